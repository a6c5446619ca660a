"""Makes a golden store: make_store.py FOLDER, with BALLAST naming the program.

Run once for each format of a store, and what it makes committed as it is: later
programs must open it and find the same in it. Small: three tensors of every
float dtype, a delta, a merge, a rollback.
"""

import hashlib
import json
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1}


def noise(label, size):
    """Bytes that look random and are the same wherever this runs."""
    made = b""
    while len(made) < size:
        made += hashlib.sha256(f"{label}/{len(made)}".encode()).digest()
    return made[:size]


def model(folder, label):
    folder.mkdir(parents=True)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for dtype, width in WIDTHS.items():
        for name, elements in (("a", 1200), ("b", 7), ("empty", 0)):
            made = noise(f"{label}/{dtype}/{name}", elements * width)
            header[f"{dtype.lower()}.{name}"] = {
                "dtype": dtype, "shape": [elements],
                "data_offsets": [len(data), len(data) + len(made)]}
            data += made
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps({"label": label}))


def main(folder):
    folder.mkdir(parents=True)
    for label in ("base", "one", "two"):
        model(folder / label, label)

    def ballast(*words):
        done = subprocess.run([os.environ["BALLAST"], "--root", folder / "store",
                               "--tenant", "acme", "--json", *words], cwd=folder,
                              check=True, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    ballast("init", "--block-size", "16K")
    ballast("commit", "base", "-m", "the base", "--ref", "base", "--author", "a")
    for label in ("one", "two"):
        ballast("delta", label, "--base", "base", "-m", label, "--ref", label,
                "--author", "a", "--metadata", '{"loss": 0.25}')
    # Random bits do not merge; of the base alone a view can be made.
    ballast("merge", "base", "base@3", "-m", "mix", "--author", "a")
    ballast("reset", "one", "two")
    want(folder, ballast)
    db = sqlite3.connect(folder / "store" / "graph.db")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def want(folder, ballast):
    """What the program says of the store today, to be said for ever."""
    moves = [[m["ref"], m["op"], m["old"], m["new"]] for m in ballast("reflog")]
    manifests = {label: ballast("show", spec)[0]["manifest"]
                 for label, spec in (("one", "one@{1}"), ("two", "two"))}
    (folder / "want.json").write_text(json.dumps(
        {"refs": ballast("refs")[0]["refs"], "reflog": moves,
         "manifests": manifests}, indent=1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
