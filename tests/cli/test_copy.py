"""A store moves: ballast copy."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import uuid

import numpy as np
import pytest
from postgres import Server, bin_dir
from test_journal import sealed
from test_s3 import place  # noqa: F401  a fixture

from support import BALLAST, DATABASE, Store, environment, files, model, save
from web import Web

if DATABASE:
    pytest.skip("moves out of SQLite", allow_module_level=True)


def noise(path, size, seed):
    data = np.random.default_rng(seed).bytes(size)
    path.mkdir(parents=True, exist_ok=True)
    save(path / "model.safetensors", {"w": ("BF16", (size // 2,), data)})


@pytest.fixture(name="store")
def made(tmp_path):
    """Commits, a view, a grant, a deletion with its proof."""
    store = Store(tmp_path)
    for i in range(3):
        model(tmp_path / f"m{i}", (i, i + 1))
        store("commit", f"m{i}", "-m", f"m{i}", "--ref", f"r{i}")
    store("merge", "r0@0.5", "r1@0.5", "--method", "linear", "-m", "v",
          "--ref", "view")
    store("grant", "r0", "--to", "other")
    store("forget", "r2", "--reason", "asked for", "--yes")
    return store


def told(store):
    """Everything that a store says of itself."""
    return [store(*words).out for words in (
        ["refs"], ["reflog"], ["log", "view"], ["show", "view"], ["grants"],
        ["proofs"], ["stats"])]


def content(store, name):
    store("checkout", "view", "-o", name)
    return files(store.path / name)


TARGETS = [
    ("--to-backend", "file:elsewhere"),
    ("--to-db", "sqlite:other.db"),
    ("--to-backend", "file:elsewhere", "--to-db", "sqlite:other.db"),
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_store_that_moved_is_the_same(store, target):
    before, was = told(store), content(store, "before")
    store("copy", *target)
    assert told(store) == before
    now = content(store, "after")
    assert now == was
    assert store("fsck").out == "consistent\n"
    for row in store("proofs", "--json").json["proofs"]:
        assert store("verify", row["attestation"]).code == 0
    model(store.path / "more", (7, 8))
    store("commit", "more", "-m", "more", "--ref", "r0")
    assert len(store("log", "r0").out.splitlines()) == 2


@pytest.mark.skipif(bin_dir() is None, reason="no initdb here")
def test_a_store_moves_to_a_bucket_and_a_server_and_back(store, place):
    before, was = told(store), content(store, "before")
    env = {**place, "AWS_MAX_ATTEMPTS": "3"}
    bucket = f"s3://{place['BALLAST_TEST_BUCKET']}/{uuid.uuid4().hex}"
    with Server() as server:
        store("copy", "--to-backend", bucket, "--to-db",
              f"{server.url}?schema=moved", env=env)
        shutil.rmtree(store.root / "blocks")
        (store.root / "graph.db").unlink()
        assert store("fsck", env=env).out == "consistent\n"
        (row,) = store("proofs", "--json", env=env).json["proofs"]
        assert store("verify", row["attestation"], env=env).code == 0
        model(store.path / "more", (7, 8))
        store("commit", "more", "-m", "more", "--ref", "new", env=env)
        # Another machine, which has nothing but the address.
        other = Store(store.path, tenant=store.tenant)
        other.root = store.path / "elsewhere"
        got = other("refs", "--db", f"{server.url}?schema=moved", env=env).out
        assert got == store("refs", env=env).out
        store("forget", "new", "--reason", "r", "--yes", env=env)
        store("copy", "--to-backend", "file:back", "--to-db", "sqlite:back.db",
              env=env)
    assert content(store, "after") == was
    assert store("refs").out == before[0]
    assert store("fsck").out == "consistent\n"


def test_what_is_copied_is_told(store):
    done = json.loads(store("copy", "--to-backend", "file:elsewhere",
                            "--to-db", "sqlite:other.db", "--json").out)
    blocks = [path for path in (store.root / "elsewhere").rglob("*")
              if path.is_file() and ".tmp" not in path.parts]
    assert done["blocks"] == len(blocks)
    assert done["bytes"] == sum(path.stat().st_size for path in blocks)
    assert done["present"] == 0 and done["rows"] > 20


def test_what_is_left_is_named(store):
    done = store("copy", "--to-db", "sqlite:other.db")
    assert "left for you to remove: sqlite:graph.db\n" in done.out
    done = store("copy", "--to-backend", "file:elsewhere")
    assert "left for you to remove: file:blocks\n" in done.out
    done = store("copy", "--to-backend", "file:elsewhere")
    assert "left" not in done.out


def test_a_second_root_on_the_old_database_is_led_to_the_new(store):
    old = store.root / "graph.db"
    other = Store(store.path, tenant=store.tenant)
    other.root = store.path / "second"
    before = store("refs").out
    other.root.mkdir()
    (other.root / "store.json").write_text(json.dumps(
        {"schema": "ballast/store/1", "db": f"sqlite:{old}"}))
    store("copy", "--to-db", f"sqlite:{store.path}/new.db")
    assert other("refs").out == before
    assert "new.db" in (other.root / "store.json").read_text()


def test_who_writes_at_the_old_place_is_refused_or_led(store):
    store("copy", "--to-db", f"sqlite:{store.path}/new.db")
    (store.root / "store.json").write_text(json.dumps(
        {"schema": "ballast/store/1", "db": "sqlite:graph.db"}))
    model(store.path / "more", (7, 8))
    store("commit", "more", "-m", "more", "--ref", "late")
    assert "late" in store("refs").out
    assert "new.db" in (store.root / "store.json").read_text()


def test_a_database_with_a_store_is_refused(store, tmp_path):
    other = Store(tmp_path / "other")
    model(tmp_path / "other" / "m")
    other("commit", "m", "-m", "m")
    done = store("copy", "--to-db", f"sqlite:{other.root}/graph.db", code=5)
    assert "has a store already" in done.err
    assert len(other("log").out.splitlines()) == 1
    assert store("fsck").out == "consistent\n"


def test_what_was_deleted_elsewhere_is_not_met_again(store):
    """The store comes back to where it was, and where its old blocks still are."""
    before = files(store.root / "blocks")
    store("copy", "--to-backend", "file:elsewhere")
    store("forget", "view", "--reason", "r", "--yes")
    proof = store("forget", "r0", "--reason", "r", "--yes", "--json").json
    store("copy", "--to-backend", "file:blocks")
    after = files(store.root / "blocks")
    assert set(after) < set(before)
    assert after == files(store.root / "elsewhere")
    assert store("verify", proof["attestation"]).code == 0
    assert store("fsck").out == "consistent\n"
    content = files(store.root / "elsewhere")
    store("copy", "--to-backend", "file:blocks/below")
    store("copy", "--to-backend", "file:blocks")
    assert files(store.root / "blocks" / "below") == content


@pytest.mark.parametrize("target", TARGETS)
def test_a_server_that_is_open_follows(store, target):
    tokens = {"w-riter": {"write": [store.tenant], "read": ["other"]}}
    with Web(store, tokens=tokens) as web:
        refs = f"/tenants/{store.tenant}/refs"
        adapter = f"/tenants/{store.tenant}/commits/r0"
        assert "r0" in web.get(refs, "w-riter").json["refs"]
        assert web.get(adapter, "w-riter").status == 200
        store("copy", *target)
        store("forget", "view", "--reason", "r", "--yes")
        store("forget", "r0", "--reason", "r", "--yes")
        for _ in range(8):
            assert "r0" not in web.get(refs, "w-riter").json["refs"]
            assert web.get(adapter, "w-riter").status == 404


def test_another_stores_unfinished_copy_is_not_overwritten(store, tmp_path):
    """It has moved there, and was killed before it could say so there."""
    other = Store(tmp_path / "other")
    model(tmp_path / "other" / "m")
    other("commit", "m", "-m", "m")
    other("copy", "--to-db", "sqlite:there.db")
    db = sqlite3.connect(other.root / "there.db")
    with db:
        db.execute("INSERT INTO settings VALUES ('arriving', ?, ?)",
                   ("not ours", sealed("settings", "arriving", "not ours")))
    db.close()
    done = store("copy", "--to-db", f"sqlite:{other.root}/there.db", code=5)
    assert "has a store already" in done.err
    (other.root / "store.json").write_text(json.dumps(
        {"schema": "ballast/store/1", "db": "sqlite:graph.db"}))
    assert len(other("log").out.splitlines()) == 1


def test_a_damaged_block_is_named_and_the_store_stays(store):
    blocks = [path for path in (store.root / "blocks").rglob("*")
              if path.is_file() and ".tmp" not in path.parts]
    data = bytearray(blocks[0].read_bytes())
    data[-1] ^= 1
    blocks[0].write_bytes(data)
    done = store("copy", "--to-backend", "file:elsewhere", code=6)
    assert blocks[0].name[:12] in done.err
    assert json.loads((store.root / "store.json").read_text())
    assert "elsewhere" not in store("config", "backend").out


@pytest.mark.parametrize("words, code", [
    ([], 2), (["--to-backend", "nothing:x"], 2), (["--to-db", "nothing:x"], 2),
    (["--to-db", "sqlite:"], 2)])
def test_what_makes_no_sense_is_refused(store, words, code):
    store("copy", *words, code=code)
    assert store("fsck").out == "consistent\n"


def test_one_that_is_killed_goes_on(tmp_path):
    store = Store(tmp_path)
    for i in range(6):
        noise(tmp_path / f"m{i}", 3 << 20, i)
        store("commit", f"m{i}", "-m", f"m{i}", "--ref", f"r{i}")
    refs = store("refs").out
    cut = 0
    for n in range(1, 40):
        process = subprocess.Popen(
            [BALLAST, "--root", store.root, "--tenant", store.tenant, "copy",
             "--to-backend", "file:elsewhere", "--to-db", "sqlite:other.db"],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.004 * n)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        cut += process.returncode == -signal.SIGKILL
        assert store("refs").out == refs
        if "other.db" in (store.root / "store.json").read_text():
            break
    assert cut
    if "other.db" not in (store.root / "store.json").read_text():
        store("copy", "--to-backend", "file:elsewhere", "--to-db",
              "sqlite:other.db")
    assert store("refs").out == refs
    assert store("config", "backend").out.strip().endswith("file:elsewhere")
    assert store("fsck").out == "consistent\n"
    os.rename(store.root / "blocks", tmp_path / "old-blocks")
    store("checkout", "r3", "-o", "out")
    assert (files(tmp_path / "out")["model.safetensors"] ==
            files(tmp_path / "m3")["model.safetensors"])
