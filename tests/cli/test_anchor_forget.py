"""Taking away, losing and mending what other commits are stored by: what stays
comes back bit for bit, and what went is nowhere."""

import random

import numpy as np
import pytest

from anchored import (Store, are_sound, at_rest, based, blocks, chain, comes_back,
                      commit, commit_all, tuned, write)
from test_damage import change
from test_heal import kinds

LENGTH = 5
SLICE = 40
ORDERS = {
    "the first": [0],
    "one in the middle": [2],
    "the last": [4],
    "all but the last": [0, 1, 2, 3],
    "all but the last, backwards": [3, 2, 1, 0],
    "all but the first": [4, 3, 2, 1],
    "all but one in the middle": [1, 4, 0, 3],
    "every one": [2, 0, 4, 1, 3],
}


@pytest.fixture(name="store")
def made_store(tmp_path):
    store = Store(tmp_path)
    store("init", "--block-size", "8192")
    return store


def path_of(store, block):
    return store.root / "blocks" / "acme" / block[0] / block


def raw(store):
    return {path.name: path.read_bytes()
            for path in store.root.glob("blocks/acme/*/*")}


def fits(store):
    return store("fsck").out == "consistent\n" and are_sound(blocks(store))


# ---- forgetting -------------------------------------------------------------


def noisy(models):
    """Each with a tensor of its own that no codec makes smaller: a run of it
    is as it is wherever it may have got."""
    rng = np.random.default_rng(4711)
    return [{**tensors, "noise": np.frombuffer(rng.bytes(4096), "<u2")}
            for tensors in models]


def slices(data):
    return [data[at:at + SLICE]
            for at in range(0, len(data) - SLICE, SLICE * 4)]


def is_nowhere(store, tensors, at_rest_once, number):
    """The noise and the mark in no file; what the blocks had at rest in none
    but blocks: near models have runs in common there."""
    noise = slices(tensors["noise"].tobytes())
    noise.append(f"Q-mark-of-{number}-".encode())
    rest = [part for data in at_rest_once
            for part in slices(data[-len(data) // 2:])]
    for path in store.root.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            within = path.is_relative_to(store.root / "blocks")
            for part in noise if within else noise + rest:
                assert part not in text, path


def forget(store, spec):
    told = store("--json", "forget", spec, "--reason", "r").json
    assert told["verified"] and not told["problems"]
    store("verify", told["attestation"])
    return told["statement"]["predicate"]


@pytest.mark.parametrize("order", ORDERS)
def test_of_a_chain_what_stays_comes_back_and_what_went_is_nowhere(store,
                                                                   order):
    models = noisy(chain(LENGTH))
    told = commit_all(store, models)
    assert all("anchor" in row for row in told[1:])
    left = dict(enumerate(told))
    ever = []
    for number in ORDERS[order]:
        before = raw(store)
        ever.append(before)
        noise = slices(models[number]["noise"].tobytes())[0]
        assert any(noise in data for data in before.values())
        forget(store, left.pop(number)["id"])
        assert fits(store)
        gone = set(before) - set(raw(store))
        is_nowhere(store, models[number], [then[id] for then in ever
                                           for id in gone if id in then],
                   number)
        for other, row in left.items():
            assert comes_back(store, row["id"], f"m{other}")
    if not left:
        assert not blocks(store)
    assert store("gc").out == "freed 0 bytes\n"


def test_the_proof_says_what_was_stored_anew(store):
    told = commit_all(store, chain(2))
    before = blocks(store)
    moved = {id for id, block in before.items() if block.bases}
    got = forget(store, told[0]["id"])
    anew = {row["id"] for row in got["retained"]
            if "stored anew" in row["why"]}
    assert anew == moved and based(blocks(store)) == 0
    after = forget(store, told[1]["id"])
    assert not [row for row in after["retained"] if "anew" in row["why"]]


def test_a_dry_run_stores_nothing_anew(store):
    told = commit_all(store, chain(2))
    before = raw(store)
    store("forget", told[0]["id"], "--reason", "r", "--dry-run")
    assert raw(store) == before and fits(store)


def test_a_whole_tenant_goes_with_all_that_is_coded_by_each_other(store):
    """In whatever order its blocks' ids are."""
    models = noisy(chain(LENGTH))
    told = commit_all(store, models)
    before = raw(store)
    got = store("--json", "forget", "--reason", "r").json
    assert got["verified"] and got["commits"] == len(told)
    for number in range(LENGTH):
        is_nowhere(store, models[number], before.values(), number)
    assert not raw(store) and store("fsck").out == "consistent\n"


def test_a_base_that_another_commit_has_as_well_stays(store):
    """The second commit has the first one's tensor, the third is coded by it."""
    one, two = chain(2, tensors=2)
    shared, other = sorted(one)
    second = {shared: one[shared], other: two[other]}
    third = tuned(second, 9)
    told = commit_all(store, [one, second, third])
    before = blocks(store)
    forget(store, told[0]["id"])
    after = blocks(store)
    kept = {id for block in before.values() for id in block.bases} & set(after)
    assert kept and all(before[id] == after[id] for id in kept
                        if not before[id].bases)
    assert fits(store)
    for number in (1, 2):
        assert comes_back(store, told[number]["id"], f"m{number}")


def test_what_is_committed_again_after_it_was_forgotten_comes_back(store):
    told = commit_all(store, chain(4))
    for number in (1, 0, 2):
        forget(store, told[number]["id"])
        commit(store, f"m{number}", "--ref", f"again{number}")
        assert fits(store)
    for number in range(3):
        assert comes_back(store, f"again{number}", f"m{number}")
    store("gc", "--recompress")
    assert fits(store) and comes_back(store, "main", "m3")


@pytest.mark.parametrize("seed", range(6))
def test_in_any_order_of_doing_all_that_is_there_comes_back(store, seed):
    """Commits by this base and that, deletions, recompression."""
    rng = random.Random(seed)
    models = chain(4)
    there, made = {}, 0
    for _ in range(14):
        what = rng.choice(("commit", "commit", "commit", "forget", "gc"))
        if what == "commit":
            name = f"m{made}"
            origin = models[rng.randrange(4)]
            write(store.path / name, tuned(origin, rng.randrange(3)))
            base = rng.choice([None, *there])
            args = ("--base", there[base]) if base else ()
            there[name] = commit(store, name, "--ref", name, *args)["id"]
            made += 1
        elif what == "forget" and there:
            forget(store, there.pop(rng.choice(sorted(there))))
        elif what == "gc":
            store("gc", "--recompress")
        assert fits(store)
    for name, id in there.items():
        assert comes_back(store, id, name)


# ---- gc ---------------------------------------------------------------------


def test_gc_takes_no_block_that_another_is_coded_by(store):
    told = commit_all(store, chain(3))
    first = (" WHERE manifest = (SELECT manifest FROM commits "
             "ORDER BY number LIMIT 1)")
    before = blocks(store)
    change(store, "DELETE FROM uses" + first)
    store("gc")
    after = blocks(store)
    assert {id for block in before.values() for id in block.bases} <= set(after)
    for number in (1, 2):
        assert comes_back(store, told[number]["id"], f"m{number}")


# ---- losing -----------------------------------------------------------------


def damage(path, how):
    data = path.read_bytes()
    path.unlink()
    if how == "cut":
        path.write_bytes(data[:-3])
    if how == "damaged":
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])


def a_base(store):
    """One that is coded by another, and that others are coded by."""
    found = blocks(store)
    return next(base for id in sorted(found) for base in found[id].bases
                if found[base].bases)


@pytest.mark.parametrize("how", ["lost", "cut", "damaged"])
def test_a_lost_base_is_told_by_fsck_and_named_to_who_reads(store, how):
    told = commit_all(store, chain(3))
    base = a_base(store)
    found = blocks(store)
    damage(path_of(store, base), how)
    out = store("fsck", code=1).out
    assert base in out
    if how == "lost":
        assert all(f"acme:{id}" in out for id, block in found.items()
                   if base in block.bases)
    err = store("checkout", told[2]["id"], "-o", "out", code=6).err
    assert base[:12] in err and err.count("\n") == 1
    assert not (store.path / "out").exists()
    assert comes_back(store, told[0]["id"], "m0")
    store("fsck", "--repair", "--from", "m1", code=None)
    assert fits(store)
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")


@pytest.mark.parametrize("how", ["lost", "cut"])
def test_a_lost_block_that_is_committed_again_is_coded_by_no_other(store, how):
    """For that might be one that is coded by it."""
    told = commit_all(store, chain(4))
    for id in sorted(blocks(store)):
        damage(path_of(store, id), how)
        for number in range(4):
            commit(store, f"m{number}", "--allow-empty", "--ref", "again",
                   "--base", told[3 - number]["id"])
        assert not at_rest(path_of(store, id)).bases
        assert are_sound(blocks(store))
    assert fits(store)
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")


BASE_ROWS = {
    "none": ("DELETE FROM bases",),
    "another": ("UPDATE OR REPLACE bases SET base = "
                "(SELECT max(number) FROM blocks)",),
    "one too few": ("DELETE FROM bases WHERE block = "
                    "(SELECT max(block) FROM bases)",),
}


@pytest.mark.parametrize("how", BASE_ROWS)
def test_rows_of_bases_that_headers_say_otherwise_are_mended(store, how):
    told = commit_all(store, chain(3))
    change(store, *BASE_ROWS[how])
    assert set(kinds(store("fsck", code=1))) == {"wrong-block-row"}
    store("fsck", "--repair")
    assert fits(store)
    forget(store, told[0]["id"])
    assert fits(store)
    for number in (1, 2):
        assert comes_back(store, told[number]["id"], f"m{number}")


def test_rows_of_bases_that_are_too_many_do_no_harm(store):
    told = commit_all(store, chain(3))
    change(store, "INSERT OR IGNORE INTO bases SELECT b.number, p.number "
                  "FROM blocks b, blocks p WHERE b.number <> p.number")
    forget(store, told[1]["id"])
    assert fits(store)
    store("gc", "--recompress")
    assert fits(store)
    for number in (0, 2):
        assert comes_back(store, told[number]["id"], f"m{number}")
    store("forget", "--reason", "r")
    assert not blocks(store) and store("fsck").out == "consistent\n"


@pytest.mark.parametrize("who", ["base", "child"])
@pytest.mark.parametrize("how", ["lost", "cut", "damaged"])
def test_a_tenant_with_damaged_blocks_can_be_forgotten(store, who, how):
    commit_all(store, chain(3))
    found = blocks(store)
    id = next(id for id in sorted(found)
              if bool(found[id].bases) == (who == "child"))
    damage(path_of(store, id), how)
    assert store("--json", "forget", "--reason", "r").json["verified"]
    assert not raw(store) and store("fsck").out == "consistent\n"
