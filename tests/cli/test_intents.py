"""What a killed writer intended: rows follow bytes that are right, and nobody
is kept from work by those that are not."""

import shutil
import sqlite3

import pytest

from anchored import Store, chain, comes_back, commit, commit_all, write
from test_heal import kinds


@pytest.fixture(name="store")
def made_store(tmp_path):
    store = Store(tmp_path)
    store("init", "--block-size", "8192")
    commit_all(store, chain(3))
    return store


def files(store):
    return sorted(store.root.glob("blocks/acme/*/*"))


def intend(store, *paths):
    """As a writer does that is killed right after."""
    db = sqlite3.connect(store.root / "graph.db")
    (tenant,), = db.execute("SELECT tenant FROM tenants WHERE name = 'acme'")
    for path in paths:
        db.execute("INSERT INTO intended (session, tenant, id) VALUES (?, ?, ?)",
                   ("killed", tenant, bytes.fromhex(path.name)))
    db.commit()
    db.close()


def intended(store):
    db = sqlite3.connect(store.root / "graph.db")
    (count,), = db.execute("SELECT count(*) FROM intended")
    db.close()
    return count


def write_another(store):
    write(store.path / "other", chain(1)[0])
    return commit(store, "other", "--ref", "other")


@pytest.mark.parametrize("at", [8, 10, 11, 40])
def test_a_block_that_cannot_be_read_keeps_nobody_from_writing(store, at):
    path = files(store)[0]
    data = bytearray(path.read_bytes())
    data[at] ^= 0x82
    path.write_bytes(data)
    intend(store, path)
    write_another(store)
    assert not intended(store)
    assert kinds(store("fsck", code=1))


def test_another_block_under_its_name_is_not_taken_for_what_was_meant(store):
    own, other = [path for path in files(store)
                  if path.read_bytes()[9] == files(store)[0].read_bytes()[9]][:2]
    own.write_bytes(other.read_bytes())
    before = kinds(store("fsck", code=1))
    intend(store, own)
    write_another(store)
    assert kinds(store("fsck", code=1)) == before


@pytest.mark.parametrize("words", [["gc"], ["--tenant", "nobody", "gc"], ["fsck"]])
def test_rows_follow_what_was_stored_anew(tmp_path, words):
    """All blocks are at rest anew, and no row says so yet."""
    (tmp_path / "one").mkdir()
    store = Store(tmp_path / "one")
    store("init", "--block-size", "8192", "--compression", "none")
    models = chain(3)
    for number, tensors in enumerate(models):
        write(store.path / f"m{number}", tensors)
        commit(store, f"m{number}", "--ref", f"r{number}")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    done = Store(tmp_path / "two")
    done("config", "compression", "best")
    done("gc", "--recompress")
    assert done("fsck").out == "consistent\n"
    shutil.rmtree(store.root / "blocks")
    shutil.copytree(done.root / "blocks", store.root / "blocks")
    intend(store, *files(store))
    store(*words)
    assert not intended(store)
    assert store("fsck").out == "consistent\n"
    store("forget", "r0", "--reason", "r")
    for number in (1, 2):
        assert comes_back(store, f"r{number}", f"m{number}")


def test_a_lost_block_that_is_committed_again_has_the_row_that_fits(store):
    write_another(store)
    before = set(files(store))
    for path in before:
        path.unlink()
    again = store("commit", "other", "-m", "other", "--ref", "other")
    assert "nothing changed" in again.out
    assert set(kinds(store("fsck", code=1))) == {"missing-block"}
    assert comes_back(store, "other", "other")
