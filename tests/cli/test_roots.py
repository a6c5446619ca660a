"""Several roots on one backend and one database are one store."""

import fcntl
import sqlite3

import pytest
from support import Store, run


@pytest.fixture(name="place")
def _place(tmp_path):
    """Two roots, and what they have in common."""
    common = tmp_path / "common"
    common.mkdir()
    where = ["--backend", f"file:{common}/blocks",
             "--db", f"sqlite:{common}/graph.db"]
    (tmp_path / "m").mkdir()
    return tmp_path, common, where


def commit(tmp_path, root, where, ref, *more, code=0):
    (tmp_path / "m.txt").write_text(ref)
    return run("--root", tmp_path / root, "--tenant", "acme", *where, "commit",
               "model.safetensors", "-m", ref, "--ref", ref, *more,
               cwd=tmp_path, code=code)


@pytest.fixture(name="model")
def _model(place):
    from support import save
    save(place[0] / "model.safetensors", {"w": ("F32", [4], bytes(16))})


def test_a_fresh_root_reads_the_store_and_leaves_no_trace(place, model):
    tmp, _, where = place
    commit(tmp, "one", where, "a")
    done = run("--root", tmp / "two", "--tenant", "acme", *where, "refs")
    assert done.out.split()[1] == "a"
    assert not (tmp / "two").exists()


def test_a_fresh_root_finds_no_store_where_there_is_none(place):
    tmp, common, where = place
    done = run("--root", tmp / "two", "--tenant", "acme", *where, "refs",
               code=3)
    assert "no store at" in done.err
    assert not (tmp / "two").exists() and not list(common.iterdir())


def test_writers_of_all_roots_share_one_lock(place, model):
    tmp, common, where = place
    commit(tmp, "one", where, "a")
    commit(tmp, "two", where, "b")
    with open(common / "lock", "r+", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for root in "one", "two":
            commit(tmp, root, where, "c", "--wait", "0.01", code=8)
    refs = run("--root", tmp / "one", "--tenant", "acme", "refs", "--json")
    assert sorted(refs.json["refs"]) == ["a", "b"]


@pytest.mark.parametrize("key", ["backend", "db", "block_size", "format",
                                 "compression"])
def test_a_store_without_a_setting_says_so(tmp_path, key):
    store = Store(tmp_path)
    store("init")
    with sqlite3.connect(store.root / "graph.db") as db:
        db.execute("DELETE FROM settings WHERE key = ?", (key,))
    db.close()
    for command in (["refs"], ["fsck"]):
        done = store(*command, code=6)
        assert "lacks settings" in done.err
