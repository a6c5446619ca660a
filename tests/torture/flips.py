"""One bit of one file, or one column of one row, is not what it was: `fsck` or
`verify` names it, or what is read is still right.

What both the torture and the sample among the program's tests are made of."""

import os
import pathlib
import shutil
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from support import Store, adapter, model  # noqa: E402

# Not looked at, and why.
EXEMPT = {
    ("intended", None): "what a writer is about to publish: emptied by the "
                        "next command, and never read as a fact",
}


class Subject:
    """A store with a leaf, a delta, a view, a grant and a proof, and what can
    be read of it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.store = Store(self.path)
        self.other = Store(self.path, "zeta")
        acme, zeta = self.store, self.other
        os.environ["HOME"] = str(self.path)
        acme("commit", model(self.path / "m0"), "-m", "m0")
        acme("delta", model(self.path / "m1", (1, 2, 3, 5)), "--base", "m0",
             "-m", "d", "--ref", "d")
        acme("commit", adapter(self.path / "a"), "-m", "a", "--ref", "a")
        acme("grant", "a", "--to", "zeta")
        zeta("commit", adapter(self.path / "b", scale=2.0), "-m", "b", "--ref",
             "b")
        zeta("merge", "acme:a@0.5", "b@0.5", "-m", "v", "--ref", "v")
        acme("commit", model(self.path / "gone", (9, 9, 7, 7)), "-m", "gone",
             "--ref", "gone")
        self.proofs = self.forget()
        zeta("checkout", "v", "-o", "first")
        assert acme("fsck", "--all").out == "consistent\n"
        self.wanted = self.read()

    def forget(self):
        """The attestation of one deletion; none where it cannot be signed."""
        done = self.store("--json", "forget", "gone", "--reason", "test",
                          "--yes", code=None)
        return [done.json["attestation"]] if done.code == 0 else []

    def read(self):
        """Everything that a person would see; None for what is refused."""
        seen = []
        for store, refs in ((self.store, ("main", "d", "a")),
                            (self.other, ("b", "v"))):
            for ref in refs:
                out = self.path / "out"
                shutil.rmtree(out, ignore_errors=True)
                log = store("--json", "log", ref, code=None)
                done = store("checkout", ref, "-o", "out", code=None)
                if done.code or log.code:
                    seen.append(None)
                    continue
                seen.append((log.out, {
                    str(file.relative_to(out)): file.read_bytes()
                    for file in out.rglob("*") if file.is_file()}))
        return seen

    def told(self):
        """Does anybody name the damage?"""
        if self.store("fsck", "--all", code=None).code:
            return True
        return any(self.store("verify", proof, code=None).code
                   for proof in self.proofs)

    def harmless(self):
        return all(now is None or now == wanted
                   for now, wanted in zip(self.read(), self.wanted))

    def files(self):
        """Blocks, the cache and store.json, small ones first."""
        kept = [file for file in self.store.root.rglob("*")
                if file.is_file() and not file.name.startswith("graph.db")
                and file.name != "lock" and ".tmp" not in str(file)
                and file.stat().st_size]
        return sorted(kept, key=lambda file: (file.stat().st_size, file))

    def database(self):
        return self.store.root / "graph.db"


def flip(subject, file, bits):
    """The bits of one file whose change nobody names."""
    text = file.read_bytes()
    missed = []
    for bit in bits:
        changed = bytearray(text)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        if not subject.told() and not subject.harmless():
            missed.append((file.name, bit))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)
    return missed


def columns(subject):
    """(table, column, rows) of the database."""
    found = []
    with sqlite3.connect(subject.database()) as db:
        tables = [row[0] for row in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' "
            "AND name NOT LIKE 'sqlite%' ORDER BY name")]
        for table in tables:
            count = db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
            for row in db.execute(f"PRAGMA table_info({table})").fetchall():
                found.append((table, row[1], row[2], count))
    db.close()
    return [row for row in found
            if (row[0], None) not in EXEMPT and row[:2] not in EXEMPT]


CHANGED = {
    "INTEGER": "CASE WHEN {c} IS NULL THEN 1 ELSE {c} + 1000 END",
    "TEXT": "CASE WHEN {c} IS NULL THEN 'x' ELSE {c} || 'x' END",
    "BLOB": "CASE WHEN {c} IS NULL THEN zeroblob(32) ELSE CAST(x'5a' || "
            "substr({c}, 2) AS BLOB) END",
}


def change(subject, table, column, kind, row):
    """The change of one column of one row, if nobody names it."""
    path = subject.database()
    text = path.read_bytes()
    db = sqlite3.connect(path)
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA ignore_check_constraints=ON")
    key = [info[1] for info in db.execute(f"PRAGMA table_info({table})")
           if info[5]]
    keys = db.execute(f"SELECT {', '.join(key)} FROM {table} "
                      f"LIMIT 1 OFFSET {row}").fetchone()
    where = " AND ".join(f"{name} = ?" for name in key)
    db.execute(f"UPDATE {table} SET {column} = "
               f"{CHANGED[kind].format(c=column)} WHERE {where}", keys)
    db.commit()
    db.close()
    missed = not subject.told() and not subject.harmless()
    for name in ("graph.db-wal", "graph.db-shm"):
        (subject.store.root / name).unlink(missing_ok=True)
    path.write_bytes(text)
    return [(table, column, row)] if missed else []
