"""A database that somebody wrote to: told by fsck, and believed by nobody.

Each row changes facts behind the program's back. fsck must name it with exit 1,
and whoever reads what was changed must end with exit 6 and give nothing out."""

import os
import sqlite3

import pytest

from support import Store, model


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Three commits on main, a delta on one, a view of it on blend."""
    store = Store(tmp_path)
    for number in range(3):
        name = f"m{number}"
        model(tmp_path / name, (1, 2, 3, number))
        store("commit", f"./{name}", "-m", name)
    store("delta", "./m1", "--base", "./m0", "-m", "one", "--ref", "one")
    store("merge", "one@0.5", "one@0.25", "-m", "blend", "--ref", "blend")
    store("fsck")
    return store


def change(store, *statements):
    """Write to the database as a program would that knows no rules."""
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA ignore_check_constraints=ON")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


SHOW, LOG, OUT = (("show", "one"), ("log", "one"),
                  ("checkout", "one", "-o", "out"))
BLEND = (("checkout", "blend", "-o", "out"), ("show", "blend"))
OF_ONE = " WHERE number = (SELECT commit_number FROM refs WHERE name = 'one')"
MANIFEST = (" WHERE number = (SELECT manifest FROM commits" + OF_ONE + ")")
CHANGES = {
    "message": ("UPDATE commits SET message = 'evil'" + OF_ONE,
                "wrong-commit-id", (SHOW, LOG, OUT, BLEND[0])),
    "time": ("UPDATE commits SET created_at = created_at + 1" + OF_ONE,
             "wrong-commit-id", (SHOW, LOG, OUT)),
    "base": ("UPDATE commits SET base_model = NULL" + OF_ONE,
             "wrong-commit-id", (SHOW, LOG, OUT)),
    "metadata": ("UPDATE commits SET metadata = '['" + OF_ONE,
                 "wrong-commit-id", (SHOW, LOG, OUT)),
    "made on": ("UPDATE commits SET made_on = zeroblob(32)" + OF_ONE,
                "wrong-commit-id", (SHOW, LOG, OUT)),
    "manifest of another": ("UPDATE commits SET manifest = 1" + OF_ONE,
                            "wrong-commit-id", (SHOW, LOG, OUT, BLEND[0])),
    "manifest of none": ("UPDATE commits SET manifest = 999" + OF_ONE,
                         "missing-manifest", (SHOW, LOG, OUT, BLEND[0])),
    "text of a manifest": (
        "UPDATE manifests SET body = CAST(replace(body, '[4]', '[1]') "
        "AS BLOB)" + MANIFEST, "wrong-manifest-id", (SHOW, OUT, BLEND[0])),
    "weight of a view": (
        "UPDATE manifests SET body = CAST(replace(body, '0.25', '0.75') AS "
        "BLOB) WHERE kind = 'view'", "wrong-manifest-id", BLEND),
    "kind": ("UPDATE manifests SET kind = 'adapter'" + MANIFEST,
             "wrong-kind", ()),
    "id of a commit": ("UPDATE commits SET id = x'00'" + OF_ONE,
                       "unreadable-row", (SHOW, LOG, OUT)),
    "codec of a block": ("UPDATE blocks SET codec = -5000000000",
                         "unreadable-row", ()),
    "name of what was begun": ("INSERT INTO intended VALUES ('x', 1, x'00')",
                               "unreadable-row", ()),
    "its own parent": (
        "UPDATE commits SET parent = number WHERE number = 3",
        "dangling-parent", (("log", "main"), ("show", "main~9"))),
    "parent taken away": ("UPDATE commits SET parent = NULL WHERE number = 3",
                          "wrong-parent", ()),
    "parent passed over": ("UPDATE commits SET parent = 1 WHERE number = 3",
                           "wrong-parent", ()),
    "parent that is younger": (
        "UPDATE commits SET parent = 5 WHERE number = 3",
        "dangling-parent", (("log", "main"),)),
}


@pytest.mark.parametrize("statement, kind, reads", CHANGES.values(),
                         ids=CHANGES)
def test_a_changed_row_is_told_and_not_believed(store, statement, kind, reads):
    change(store, statement)
    told = store("fsck", code=1)
    assert kind in [line.split()[0] for line in told.out.splitlines()], told
    for read in reads:
        done = store(*read, code=6)
        assert done.err.count("ballast: ") == 1, done
        assert not (store.path / "out").exists()


def test_what_has_no_row_is_kept_while_more_is_wrong(store):
    change(store, "DELETE FROM uses", "DELETE FROM blocks")
    blocks = sorted(store.root.glob("blocks/acme/*/*"))
    told = store("fsck", "--repair", code=1)
    assert "orphan-block" in told.out and "wrong-uses" in told.out
    assert sorted(store.root.glob("blocks/acme/*/*")) == blocks


@pytest.mark.parametrize("harm", ["removed", "cut", "changed", "longer",
                                  "another's", "a folder"])
def test_a_damaged_block_is_told_and_not_read(store, harm):
    blocks = sorted(store.root.glob("blocks/acme/*/*"))
    texts = [block.read_bytes() for block in blocks]
    for block, text in zip(blocks, texts):
        block.unlink()
        if harm == "cut":
            block.write_bytes(text[:-1])
        elif harm == "changed":
            block.write_bytes(text[:-1] + bytes([text[-1] ^ 1]))
        elif harm == "longer":
            block.write_bytes(text + b"x")
        elif harm == "another's":
            block.write_bytes(texts[block == blocks[0]])
        elif harm == "a folder":
            block.mkdir()
    told = store("fsck", code=1)
    for block in blocks:
        assert block.name in told.out
    for ref in ("main", "one", "blend"):
        done = store("checkout", ref, "-o", "out", code=6)
        assert done.err.count("\n") == 1 and "block" in done.err, done
        assert not (store.path / "out").exists()


def test_whatever_lies_among_the_temporaries_goes(store):
    outside = store.path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    temporaries = store.root / "blocks" / ".tmp"
    (temporaries / "dead" / "deep").mkdir(parents=True)
    os.mkfifo(temporaries / "dead" / "lock")
    (temporaries / "dead" / "deep" / "file").write_text("x")
    (temporaries / "link").symlink_to(outside)
    store("commit", "./m0", "-m", "next", "--ref", "next")
    assert [name for name in os.listdir(temporaries) if name != "lock"] == []
    assert (outside / "kept").exists()
    assert store("fsck").out == "consistent\n"
