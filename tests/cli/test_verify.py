"""What verify looks for, one thing at a time: the store as it was before the
deletion is what it is given back from, so that every row fits its seal. And
clocks that are wrong, and keys that change."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest
from support import TREE, Store, model, run

PRELOAD = TREE / "tests" / "torture" / "preload" / "clock_preload.c"


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Two commits, the second granted and in a view that was resolved, and the
    store as it is then in `before`."""
    store = Store(tmp_path)
    run("key", "generate", "-o", tmp_path / "k.pem")
    for i in range(2):
        model(tmp_path / f"m{i}", (i, 2, 3))
        store("commit", f"./m{i}", "-m", f"c{i}", "--ref", f"r{i}")
    store("grant", "r1", "--to", "partner")
    store("merge", "r0", "r1", "-m", "v", "--ref", "v")
    store("checkout", "v", "-o", "copy")
    shutil.copytree(store.root, tmp_path / "before")
    return store


def forget(store, spec="r1", key="k.pem", **more):
    return store("--json", "forget", spec, "--reason", "r", "--key", key,
                 **more).json["attestation"]


def put_back(store, *tables):
    """Rows of the store before, seals included, in the place of those now."""
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("ATTACH ? AS old", (str(store.path / "before" / "graph.db"),))
    for table in tables:
        done = db.execute(f"INSERT OR REPLACE INTO {table} "
                          f"SELECT * FROM old.{table}")
        assert done.rowcount > 0
    db.commit()
    db.close()


def predicate(store, attestation):
    told = store("--json", "verify", attestation, code=None).json
    return told["statement"]["predicate"]


def problems(store, attestation):
    return [line for line in store("verify", attestation, code=1).out
            .splitlines() if line.startswith("PROBLEM: ")]


# ---- what is there still ------------------------------------------------------

ROWS = {
    "a grant": (["grants"], "the grant of manifest", "is still live"),
    "a ref": (["commits", "refs", "moves"], "ref 'r1' is still at it", ""),
    "a commit": (["commits"], "commit", "is still in the database"),
    "a manifest": (["manifests"], "manifest", "is still in the database"),
    "a block": (["blocks"], "block", "database"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_there_still_is_a_problem(store, name):
    attestation = forget(store)
    store("verify", attestation)
    tables, what, state = ROWS[name]
    put_back(store, *tables)
    assert any(line.startswith(f"PROBLEM: {what}") and state in line
               for line in problems(store, attestation))


@pytest.mark.parametrize("kind, what", [("0", "commit"), ("1", "manifest")])
def test_a_tombstone_that_is_gone_is_a_problem(store, kind, what):
    attestation = forget(store)
    with sqlite3.connect(store.root / "graph.db") as db:
        db.execute(f"DELETE FROM tombstones WHERE kind = {kind}")
    db.close()
    (line,) = problems(store, attestation)
    assert line.startswith(f"PROBLEM: {what} ")
    assert line.endswith("has no tombstone of this proof")


@pytest.mark.parametrize("spec, of", [("v", "manifests"), ("r1", "cache"),
                                      ("r1", "manifests")])
def test_a_view_in_the_cache_is_a_problem(store, spec, of):
    """Of the epoch as it is now, so that it is no leftover."""
    attestation = forget(store, spec)
    store("commit", "./m0", "-m", "x", "--ref", "x")
    store("merge", "r0", "x", "-m", "w", "--ref", "w")
    store("checkout", "w", "-o", "another")
    store("verify", attestation)
    (view,) = (store.path / "before" / "cache" / "acme").iterdir()
    name = predicate(store, attestation)[of][0].split(":")[-1]
    shutil.copytree(view, store.root / "cache" / "acme" / name)
    assert set(problems(store, attestation)) == {
        f"PROBLEM: the view cache has manifest {name} still"}


def test_a_deletion_that_has_begun_again_is_a_problem(store):
    """A folder where a block was keeps it from going on."""
    attestation = forget(store)
    store("commit", "./m1", "-m", "again", "--ref", "again")
    name = predicate(store, attestation)["blocks"][0]
    block = store.root / "blocks" / "acme" / name[0] / name
    block.unlink()
    (block / "full").mkdir(parents=True)
    store("forget", "again", "--reason", "r", "--key", "k.pem", code=None)
    assert ("PROBLEM: a deletion of what it names has begun again and has not "
            "ended") in problems(store, attestation)
    shutil.rmtree(block)
    store("verify", attestation)


# ---- clocks -------------------------------------------------------------------

@pytest.fixture(name="clock", scope="module")
def made_clock(tmp_path_factory):
    out = tmp_path_factory.mktemp("clock") / "preload.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE",
                    "-shared", "-fPIC", "-o", out, PRELOAD, "-ldl"], check=True)

    def at(shift):
        return {"LD_PRELOAD": str(out), "BALLAST_CLOCK": shift,
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") +
                                ":verify_asan_link_order=0"}
    return at


def test_a_clock_that_is_set_back_does_not_end_a_deletion_before_it_began(
        store, clock):
    """Each look at the clock is an hour before the last one."""
    attestation = forget(store, env=clock("0,3600"))
    told = predicate(store, attestation)
    assert told["completed_at"] == told["requested_at"]
    store("verify", attestation)


@pytest.mark.parametrize("ahead, later", [("0", "-400000000"),
                                          ("400000000", "0")],
                         ids=["set back since", "set right since"])
def test_what_came_again_is_told_by_the_count_of_deletions_not_by_the_clock(
        store, clock, ahead, later):
    """A commit is dated before the deletion that it comes after."""
    store("commit", "./m1", "-m", "future", "--ref", "future",
          env=clock("500000000"))
    attestation = forget(store, "future", env=clock(ahead))
    store("commit", "./m0", "-m", "between", env=clock(later))
    block = forget(store, "r1", env=clock(ahead))
    assert predicate(store, block)["blocks"]
    store("commit", "./m1", "-m", "again", "--ref", "again", env=clock(later))
    for name in (attestation, block):
        assert store("verify", name).out.endswith("verified\n")
    assert "present again since" in store("verify", block).out


# ---- keys that change ---------------------------------------------------------

def public(store, name):
    text = run("key", "show", store.path / name).out
    path = store.path / f"{name}.pub"
    path.write_text(text[text.index("-----BEGIN"):])
    return path


def test_a_bundle_is_checked_by_its_own_key_after_another_took_its_place(store):
    first = forget(store)
    run("key", "generate", "-o", store.path / "p.pem")
    store("key", "trust", "p.pem")
    second = forget(store, "r0", "p.pem")
    keys = {first: public(store, "k.pem"), second: public(store, "p.pem")}
    for attestation, key in keys.items():
        file = store.path / f"{attestation}.json"
        store("proofs", "export", attestation, "-o", file)
        for where in (["--offline"], ["--root", store.root]):
            assert run("verify", file, *where, "--key", key).out.endswith(
                "verified\n")
        store("verify", attestation)
        store("verify", attestation, "--key", key)
        done = subprocess.run(
            [sys.executable, TREE / "examples" / "verify_proof.py", file, key],
            capture_output=True, text=True, check=True)
        assert done.stdout == f"verified: {attestation}\n"
    other = run("verify", store.path / f"{first}.json", "--offline", "--key",
                keys[second], code=1)
    assert "PROBLEM: the signature is not that of the key" in other.out


def test_an_unsigned_proof_is_told_under_the_head_that_was_signed_later(store):
    first = store("--json", "forget", "r1", "--reason", "r").json["attestation"]
    store("proofs", "export", first, "-o", "before.json")
    assert json.loads((store.path / "before.json").read_text())["log"][
        "checkpoint"] is None
    second = forget(store, "r0")
    store("proofs", "export", first, "-o", "after.json")
    store("proofs", "export", second, "-o", "second.json")
    after, own = (json.loads((store.path / name).read_text())["log"]
                  for name in ("after.json", "second.json"))
    assert after["checkpoint"] == own["checkpoint"] and after["size"] == 2


# ---- copies -------------------------------------------------------------------

def test_copies_that_are_there_are_named_before_the_verdict(store):
    store("checkout", "r1", "-o", "kept\x1b[31m")
    store("checkout", "r1", "-o", "gone")
    shutil.rmtree(store.path / "gone")
    out = store("forget", "r1", "--reason", "r").out
    assert out.splitlines()[-2:] == [
        f"copy: {store.path.resolve()}/kept\\x1b[31m", "verified"]
    assert "gone" not in out and out.count("copy: ") == 1
