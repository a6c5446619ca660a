"""Commits that are stored by their distance from earlier ones: what comes back
is what was committed, whatever they are stored by."""

import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from anchored import (DEPTH_MAX, Store, are_sound, based, bf16, blocks, chain,
                      comes_back, commit, commit_all, tuned, weights, write)
from support import BALLAST, TREE, adapter, environment, load, save


@pytest.fixture(name="store")
def made_store(tmp_path):
    store = Store(tmp_path)
    store("init", "--block-size", "8192")
    return store


def fits(store):
    return store("fsck").out == "consistent\n" and are_sound(blocks(store))


# ---- chains -----------------------------------------------------------------


def test_a_chain_of_twelve_comes_back_and_is_no_deeper_than_six(store):
    models = chain(12)
    told = commit_all(store, models)
    assert "anchor" not in told[0]
    assert [row["anchor"] for row in told[1:]] == [row["id"]
                                                   for row in told[:-1]]
    for row in told[1:]:
        assert row["stored_bytes"] < told[0]["stored_bytes"] / 2
    assert max(block.depth for block in blocks(store).values()) == DEPTH_MAX
    assert fits(store)
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")


def test_stats_tell_what_is_stored_by_which_codec(store):
    commit_all(store, chain(3))
    told = store("--json", "stats").json
    codecs = told["codecs"]
    found = blocks(store)
    assert codecs["anchored"]["blocks"] == based(found) > 0
    for key in ("blocks", "stored_bytes", "unique_bytes"):
        assert sum(row[key] for row in codecs.values()) == told[key]
    assert told["stored_bytes"] == sum(row.size for row in found.values())
    assert "anchored" in store("stats").out


def test_the_named_base_is_what_it_is_stored_by(store):
    told = commit_all(store, chain(3))
    write(store.path / "new", tuned(chain(3)[0], 7))
    for number in (0, 1):
        got = commit(store, "new", "--base", told[number]["id"], "--ref",
                     f"r{number}")
        if not number:
            assert got["anchor"] == told[0]["id"]
            assert got["new_blocks"] > 0
    assert comes_back(store, "r0", "new") and fits(store)


def test_a_model_that_nothing_is_near_to_has_no_anchor(store):
    write(store.path / "one", weights(1))
    write(store.path / "two", weights(2))
    commit(store, "one")
    for seed, args in enumerate(((), ("--base", "main"), ("--ref", "other"))):
        shutil.rmtree(store.path / "two")
        write(store.path / "two", weights(seed + 5))
        got = commit(store, "two", *args)
        assert "anchor" not in got
    assert based(blocks(store)) == 0 and fits(store)


def test_a_fine_tune_finds_its_base_among_twenty_others(store):
    base = weights(99)
    for number in range(20):
        tensors = base if number == 7 else weights(number)
        write(store.path / f"m{number}", tensors)
        got = commit(store, f"m{number}", "--ref", f"r{number}")
        if number == 7:
            wanted = got["id"]
    write(store.path / "tuned", tuned(base, 1))
    got = commit(store, "tuned", "--ref", "tuned")
    assert got["anchor"] == wanted
    assert comes_back(store, "tuned", "tuned") and fits(store)


def test_the_base_of_many_runs_is_found_behind_their_checkpoints(store):
    """A run's first checkpoint is nearer to the base than to other runs' last
    ones, which are recent."""
    base = weights(99)
    write(store.path / "base", base)
    wanted = commit(store, "base", "--ref", "base")["id"]
    for run in range(12):
        tensors = base
        for step in range(2):
            tensors = tuned(tensors, 10 * run + step)
            write(store.path / f"r{run}-{step}", tensors)
            got = commit(store, f"r{run}-{step}", "--ref", f"run{run}")
            assert got["anchor"] == (previous if step else wanted)
            previous = got["id"]
    assert fits(store)


# ---- what is committed ------------------------------------------------------


def noise(seed, count, part=0.1, dtype="<f4"):
    """Numbers as an optimiser has them, and a step later: small and of all
    magnitudes, some of them special."""
    rng = np.random.default_rng(seed)
    first = (rng.normal(0, 1, count) * 10.0 ** rng.integers(-9, 1, count))
    first = first.astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45]
    first[:6] = np.array(special, dtype)
    later = (first * (1 + part * rng.normal(0, 1e-3, count))).astype(dtype)
    return first, later


def of(count, dtype, bits, part=0.1):
    first, later = noise(3, count, part, bits)
    return ({"w": (dtype, (count,), first.tobytes())},
            {"w": (dtype, (count,), later.tobytes())})


def pair(first, later, dtype="BF16"):
    return tuple({name: (dtype, value.shape, value.tobytes())
                  for name, value in tensors.items()}
                 for tensors in (first, later))


def several_dtypes():
    one, two = chain(2)
    ints = {"i": ("I32", (4096,), np.arange(4096, dtype="<i4").tobytes()),
            "b": ("BOOL", (999,), bytes(n % 2 for n in range(999)))}
    halves = noise(5, 3000, dtype="<f2")
    return tuple({**tensors, **ints, "h": ("F16", (3000,), half.tobytes())}
                 for tensors, half in zip(pair(one, two), halves))


def fewer_and_more():
    """One tensor gone, one new, one of another shape, one less, one more, one
    of another dtype."""
    one, two = pair(*chain(2, tensors=9))
    del two["layers.0.weight"]
    two["a.new"] = two["layers.1.weight"]
    _, _, data = two["layers.2.weight"]
    two["layers.2.weight"] = ("BF16", (64, 128), data)
    two["layers.3.weight"] = ("BF16", (4096,), data[:8192])
    two["layers.4.weight"] = ("BF16", (16384,), 2 * data)
    two["layers.5.weight"] = ("F32", (8192,), 2 * data)
    return one, two


def small_ones():
    """All of it is less than a block."""
    return pair(*chain(2, count=37, tensors=40))


def small_ones_moved():
    """A new one shares their block, which has no base then."""
    one, two = small_ones()
    first = ("BF16", (11,), bytes(22))
    return one, {"a": first, **two}


def small_and_odd():
    """No whole number of elements between the tensors."""
    one, two = several_dtypes()
    odd = {"a.odd": ("U8", (3,), b"odd")}
    return {**odd, **one}, {**odd, **two}


def several_blocks():
    """The last block of each is short."""
    return pair(*chain(2, count=3 * 4096 + 5))


def of_other_dtype():
    tensors = chain(2)
    later = {name: (bits.astype("<u4") << 16).view("<f4")
             for name, bits in tensors[1].items()}
    return (pair(tensors[0], tensors[0])[0], pair(later, later, "F32")[0])


PAIRS = {
    "optimiser": (lambda: of(9000, "F32", "<f4"), True),
    "doubles": (lambda: of(5000, "F64", "<f8", 1e-4), True),
    "several dtypes": (several_dtypes, True),
    "fewer, more and reshaped": (fewer_and_more, None),
    "small": (small_ones, True),
    "small, packed otherwise": (small_ones_moved, None),
    "small, odd": (small_and_odd, True),
    "several blocks": (several_blocks, True),
    "another dtype": (of_other_dtype, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_stored_by_another_comes_back(store, name):
    make, anchored = PAIRS[name]
    for tensors, folder in zip(make(), ("one", "two")):
        save(store.path / folder / "model.safetensors", tensors)
    first = commit(store, "one")
    got = commit(store, "two")
    if anchored is not None:
        assert got.get("anchor") == (first["id"] if anchored else None)
        assert (based(blocks(store)) > 0) == anchored
    assert comes_back(store, first["id"], "one")
    assert comes_back(store, "main", "two") and fits(store)


def test_tensors_of_more_than_a_block_of_4_mib_come_back(tmp_path):
    store = Store(tmp_path)
    told = commit_all(store, chain(2, count=(9 << 19) + 77, tensors=1))
    assert told[1]["anchor"] == told[0]["id"]
    assert based(blocks(store)) >= 3
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")


def test_checkpoints_of_an_adapter_are_stored_by_each_other(store):
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.1, 4096).astype("<f4")
    told = []
    for number in range(4):
        adapter(store.path / f"a{number}")
        module = "base_model.model.model.layers.0.self_attn.q_proj"
        save(store.path / f"a{number}" / "adapter_model.safetensors", {
            f"{module}.lora_A.weight": ("F32", (2, 2048), values.tobytes()),
            f"{module}.lora_B.weight": ("F32", (2048, 2), values.tobytes())})
        told.append(commit(store, f"a{number}", "--ref", "a"))
        values = (values * np.float32(1.0001)).astype("<f4")
    assert [row.get("anchor") for row in told[1:]] == [row["id"]
                                                       for row in told[:-1]]
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"a{number}")
    assert fits(store)


def test_a_delta_is_stored_by_the_base_that_the_store_has(store):
    one, two = chain(2)
    base = write(store.path / "base", one)
    write(store.path / "tuned", two)
    first = commit(store, "base", "--ref", "base")
    got = store("--json", "delta", "tuned", "--base", "base", "-m", "d",
                "--ref", "d").json
    assert got["anchor"] == first["id"]
    assert based(blocks(store)) == 2 * 8192 * 4 // 8192
    store("apply", "d", "--base", base, "-o", "applied")
    assert load(store.path / "applied") == load(store.path / "tuned")
    store("forget", first["id"], "--reason", "r")
    assert fits(store)
    store("apply", "d", "--base", base, "-o", "again")
    assert load(store.path / "again") == load(store.path / "tuned")


# ---- settings ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["none", "fast", "auto", "best"])
def test_with_any_compression_all_come_back(tmp_path, how):
    store = Store(tmp_path)
    store("init", "--block-size", "8192", "--compression", how)
    told = commit_all(store, chain(4))
    assert (based(blocks(store)) == 0) == (how == "none")
    assert ("anchor" in told[1]) == (how != "none")
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")
    assert fits(store)


def test_recompressing_changes_what_is_stored_and_nothing_else(tmp_path):
    store = Store(tmp_path)
    store("init", "--block-size", "8192", "--compression", "none")
    told = commit_all(store, chain(5))
    before = blocks(store)
    store("config", "compression", "best")
    got = store("--json", "gc", "--recompress").json
    after = blocks(store)
    assert set(after) == set(before) and based(after)
    assert got["recompressed"] == len(after)
    assert got["bytes_before"] == sum(row.size for row in before.values())
    assert got["bytes_after"] == sum(row.size for row in after.values())
    assert got["bytes_after"] < got["bytes_before"] / 2
    assert [row["id"] for row in store("--json", "log").lines] == [
        row["id"] for row in reversed(told)]
    for number, row in enumerate(told):
        assert comes_back(store, row["id"], f"m{number}")
    assert fits(store)
    again = store("--json", "gc", "--recompress").json
    assert again["bytes_after"] == again["bytes_before"]
    assert blocks(store) == after


def test_recompressing_makes_no_base_deeper_than_what_is_coded_by_it(store):
    """A block in the middle has become one without a base, others are coded by
    it, and now there is a base for it again."""
    models = chain(5)
    told = commit_all(store, models[:4])
    store("forget", told[1]["id"], "--reason", "r")
    write(store.path / "m4", models[4])
    told.append(commit(store, "m4", "--base", told[2]["id"], "--ref", "side"))
    assert told[4]["anchor"] == told[2]["id"]
    store("gc", "--recompress")
    assert fits(store)
    for number in (0, 2, 3, 4):
        assert comes_back(store, told[number]["id"], f"m{number}")


# ---- a store that others use, too -------------------------------------------


def test_tenants_with_the_same_models_share_nothing(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path, "zeta")
    told = commit_all(store, chain(2))
    assert "anchor" not in commit(other, "m1")
    assert based(blocks(other, "zeta")) == 0
    store("forget", "--reason", "r")
    assert not blocks(store)
    assert comes_back(other, "main", "m1")
    assert other("fsck", "--all").out == "consistent\n"
    assert "anchor" in told[1]


def test_who_was_granted_a_commit_reads_it_without_its_base(tmp_path):
    store, other = Store(tmp_path), Store(tmp_path, "zeta")
    told = commit_all(store, chain(2))
    store("grant", told[1]["id"], "--to", "zeta")
    other("merge", f"acme:{told[0]['id']}@1.0", "-m", "v", code=3)
    other("merge", f"acme:{told[1]['id']}@1.0", "--method", "linear", "-m",
          "v", "--ref", "v")
    assert comes_back(other, "v", "m1")
    store("forget", told[0]["id"], "--reason", "r")
    assert comes_back(other, "v", "m1")
    assert other("fsck", "--all").out == "consistent\n"


def test_a_view_is_the_same_after_its_inputs_base_was_forgotten(store):
    told = commit_all(store, chain(3))
    store("merge", f"{told[1]['id']}@0.5", f"{told[2]['id']}@0.5",
          "--method", "linear", "-m", "v", "--ref", "v")
    store("checkout", "v", "-o", "before")
    store("forget", told[0]["id"], "--reason", "r")
    store("gc", "--recompress")
    store("--no-cache", "checkout", "v", "-o", "after")
    assert load(store.path / "before") == load(store.path / "after")
    assert fits(store)


def test_writers_of_one_model_by_different_bases_leave_what_rows_say(store):
    models = chain(3, count=65536)
    told = commit_all(store, models[:2])
    write(store.path / "new", models[2])
    running = [subprocess.Popen(
        [BALLAST, "--root", store.root, "--tenant", "acme", "commit", "new",
         "-m", f"w{i}", "--ref", f"r{i}", "--base", told[i % 2]["id"]],
        cwd=store.path, env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE) for i in range(6)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert fits(store)
    for i in range(6):
        assert comes_back(store, f"r{i}", "new")


def test_a_store_of_an_earlier_program_takes_commits_by_what_it_has(tmp_path):
    golden = TREE / "tests" / "golden" / "store-1"
    shutil.copytree(golden, tmp_path, dirs_exist_ok=True)
    store = Store(tmp_path)
    db = sqlite3.connect(store.root / "graph.db")
    assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'bases'"
                          ).fetchall()
    db.close()
    commit(store, "base", "--ref", "again")
    store("config", "anchoring", "on")
    big = chain(2)
    write(tmp_path / "m0", big[0])
    write(tmp_path / "m1", big[1])
    first = commit(store, "m0")
    assert commit(store, "m1")["anchor"] == first["id"]
    assert store("fsck").out == "consistent\n"
    assert comes_back(store, "main", "m1") and comes_back(store, "again",
                                                          "base")
