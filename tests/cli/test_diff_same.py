"""What is the same on both sides is known by its id: it is not read, and the
numbers are those that reading it would give, bit for bit."""

import json
import shutil
import sqlite3

import numpy as np
import pytest

from support import Store, TREE, adapter, load, run, save

KINDS = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4"}
SIZES = ["64K", "1M", "4M"]


def bf16(values):
    bits = values.astype("<f4").view("<u4")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2")


def doubles(entry):
    dtype, _, data = entry
    values = np.frombuffer(data, KINDS[dtype])
    if dtype == "BF16":
        values = (values.astype("<u4") << 16).view("<f4")
    return values.astype("<f8")


def entry(dtype, values):
    made = (bf16(values) if dtype == "BF16"
            else values.astype(KINDS[dtype]))
    return dtype, (len(made),), made.tobytes()


def tensors(changed):
    """Two large tensors of each dtype, of which one changes in part; neither is
    a whole number of blocks. And small ones."""
    rng = np.random.default_rng(5)
    found = {}
    for dtype in KINDS:
        size = 4_500_019 if dtype in ("BF16", "F64") else 2_200_019
        count = size // np.dtype(KINDS[dtype]).itemsize
        for name in ("kept", "moved"):
            # Sizes so unlike that another order of sums gives other bits.
            scale = 1000 if dtype == "I32" else 0.02
            values = (rng.standard_normal(count) * scale
                      * np.exp(2 * rng.standard_normal(count)))
            if changed and name == "moved":
                values[count // 2:count // 2 + 1000] *= 1.5
            found[f"{name}.{dtype}"] = entry(dtype, values)
        found[f"small.{dtype}"] = entry(dtype, rng.standard_normal(100) * 9)
    return found


@pytest.fixture(name="models", scope="module")
def made_models(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    for name in "ab":
        save(path / name / "model.safetensors", tensors(name == "b"))
    return path


def store_of(path, models, size="4M"):
    store = Store(path)
    store("init", "--block-size", size)
    for name in "ab":
        store("commit", models / name, "-m", name, "--ref", name)
    return store


@pytest.fixture(name="made", scope="module")
def made_store(tmp_path_factory, models):
    return store_of(tmp_path_factory.mktemp("made"), models)


@pytest.fixture(name="store")
def copied_store(tmp_path, made):
    shutil.copytree(made.root, tmp_path / "store")
    return Store(tmp_path)


def diff(store, *args, **more):
    found = store("diff", *args, "--json", **more).json
    return {key: value for key, value in found.items() if key not in "ab"}


def sql(store, text, *args):
    db = sqlite3.connect(store.root / "graph.db")
    rows = db.execute(text, args).fetchall()
    db.commit()
    db.close()
    return rows


def blocks(store, ref, name):
    """The files of the blocks that a tensor has for itself."""
    body, = sql(store, "SELECT m.body FROM refs r JOIN commits c "
                "ON c.number = r.commit_number JOIN manifests m "
                "ON m.number = c.manifest WHERE r.name = ?", ref)[0]
    ids = [row["blocks"] for row in json.loads(body)["entries"]
           if row["name"] == name and row["part"] == "tensor"][0]
    return [store.root / "blocks" / store.tenant / block[0] / block
            for block in ids]


@pytest.fixture(name="numbers", scope="module")
def read_numbers(models):
    """Of two folders, where all is read."""
    found = run("diff", models / "a", models / "b", "--json").json
    return {key: value for key, value in found.items() if key not in "ab"}


def test_numbers_are_those_of_numpy(models, numbers):
    a, b = (load(models / name) for name in "ab")
    squares = {name: np.sum(doubles(a[name]) ** 2) for name in a}
    changes = {name: np.sum((doubles(b[name]) - doubles(a[name])) ** 2)
               for name in a}
    rows = {row["tensor"]: row for row in numbers["changed"]}
    assert set(rows) == {f"moved.{dtype}" for dtype in KINDS}
    for name, row in rows.items():
        assert np.isclose(row["relative"], np.sqrt(changes[name]
                                                   / squares[name]), 1e-12, 0)
        assert row["max_abs"] == np.abs(doubles(b[name])
                                        - doubles(a[name])).max()
    assert np.isclose(numbers["relative_change"],
                      np.sqrt(sum(changes.values()) / sum(squares.values())),
                      1e-12, 0)


@pytest.mark.parametrize("size", SIZES + ["12K"])
def test_the_bits_are_the_same_however_they_come_about(tmp_path, models,
                                                       numbers, size):
    store = store_of(tmp_path, models, size)
    known = sql(store, "SELECT COUNT(*) FROM norms")[0][0]
    assert bool(known) == (size != "12K")
    for forgets in ("SELECT 1", "DELETE FROM norms WHERE block % 2",
                    "DELETE FROM norms"):
        sql(store, forgets)
        for jobs in "13":
            assert diff(store, "a", "b", "--jobs", jobs) == numbers
    assert diff(store, "a", models / "b") == numbers
    assert diff(store, models / "a", "b") == numbers


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32", "F64"])
def test_what_is_the_same_is_not_read(store, numbers, dtype):
    first, *others = blocks(store, "a", f"kept.{dtype}")
    first.unlink()
    for file in others:
        file.write_bytes(b"rubbish")
    assert diff(store, "a", "b") == numbers
    assert diff(store, "a", "a")["changed"] == []
    for file in blocks(store, "b", f"moved.{dtype}"):
        file.unlink(missing_ok=True)
    store("diff", "a", "b", code=6)


def test_where_no_norm_is_known_one_side_is_read(store, numbers):
    sql(store, "DELETE FROM norms")
    assert diff(store, "a", "b") == numbers
    blocks(store, "a", "kept.F32")[0].unlink()
    assert "lost" in store("diff", "a", "b", code=6).err


@pytest.mark.parametrize("change", [
    "squares = zeroblob(8)", "squares = x'000000000000f07f'",
    "squares = x'000000000000f0bf'", "seal = NULL", "dtype = 'F32'",
    "seal = zeroblob(32)"])
def test_a_norm_that_somebody_wrote_to_is_not_believed(store, numbers, change):
    sql(store, f"UPDATE OR IGNORE norms SET {change}")
    assert diff(store, "a", "b") == numbers
    told = store("fsck", "--json", code=1).json
    assert {row["kind"] for row in told["problems"]} == {"wrong-seal"}
    # What is stored anew is measured anew.
    store("gc", "--recompress")
    store("fsck", code=1 if "dtype" in change else 0)
    blocks(store, "a", "kept.BF16")[0].unlink()
    assert diff(store, "a", "b") == numbers


@pytest.mark.parametrize("change", ["squares = zeroblob(8)", "dtype = 'F32'",
                                    "seal = NULL"])
def test_repair_takes_such_a_norm_away(store, numbers, change):
    sql(store, f"UPDATE OR IGNORE norms SET {change}")
    assert store("fsck", "--repair").out == "consistent\n"
    assert store("fsck").out == "consistent\n"
    assert diff(store, "a", "b") == numbers


def test_what_is_stored_anew_is_measured(store, numbers):
    before = sql(store, "SELECT * FROM norms ORDER BY block")
    sql(store, "DELETE FROM norms")
    store("gc", "--recompress")
    assert sql(store, "SELECT * FROM norms ORDER BY block") == before
    assert diff(store, "a", "b") == numbers


def test_what_is_forgotten_leaves_no_norm(store):
    store("forget", "b", "--reason", "asked", "--yes")
    kept = sql(store, "SELECT COUNT(*) FROM norms")[0][0]
    assert kept == sql(store, "SELECT COUNT(*) FROM norms n JOIN blocks b "
                       "ON b.number = n.block")[0][0] > 0
    store("forget", "--reason", "asked", "--yes")
    assert sql(store, "SELECT COUNT(*) FROM norms")[0][0] == 0


def test_a_block_of_numbers_that_are_not_finite_has_no_norm(tmp_path):
    store = Store(tmp_path)
    store("init", "--block-size", "64K")
    values = np.ones(65536, "<f4")
    values[20000] = np.nan
    save(tmp_path / "m" / "model.safetensors", {"w": entry("F32", values)})
    store("commit", "./m", "-m", "m")
    # Of four blocks two are the same.
    assert sql(store, "SELECT dtype, COUNT(*) FROM norms") == [("F32", 1)]
    assert diff(store, "main", "main")["non_finite"] == ["w"]


def test_blocks_of_one_content_count_once_for_each_tensor(tmp_path):
    """Zeros of two dtypes are one block."""
    store = Store(tmp_path)
    store("init", "--block-size", "64K")
    zeros = np.zeros(65536)
    for name, last in (("a", 1.0), ("b", 3.0)):
        save(tmp_path / name / "model.safetensors", {
            "w": entry("F32", zeros), "v": entry("F64", zeros),
            "x": entry("F32", np.full(5, last))})
        store("commit", f"./{name}", "-m", name, "--ref", name)
    found = diff(store, "a", "b")
    assert found["relative_change"] == 2
    assert [row["tensor"] for row in found["changed"]] == ["x"]


def test_a_store_of_an_earlier_version_is_compared(tmp_path):
    golden = TREE / "tests" / "golden" / "store-1"
    shutil.copytree(golden, tmp_path / "golden")
    store = Store(tmp_path)
    store.root = tmp_path / "golden" / "store"
    deltas = diff(store, "one@{1}", "two", "--against-base",
                  tmp_path / "golden" / "base")
    whole = diff(store, tmp_path / "golden" / "one", tmp_path / "golden" / "two")
    assert deltas == whole and whole["changed"]
    assert sql(store, "SELECT COUNT(*) FROM norms") == [(0,)]


# ---- against a base ---------------------------------------------------------

MODULE = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(name="tuned")
def made_tuned(tmp_path):
    """A base; a whole model, a delta and an adapter that are the same change."""
    store = Store(tmp_path)
    store("init", "--block-size", "64K")
    path = adapter(tmp_path / "lora", scale=0.25, rank=2, width=4)
    factors = load(path / "adapter_model.safetensors")
    a, b = (np.frombuffer(factors[name][2], "<f4").reshape(factors[name][1])
            for name in sorted(factors))
    rng = np.random.default_rng(1)
    weight = rng.integers(-8, 8, (4, 4)).astype("<f4")
    other = entry("F32", rng.standard_normal(70_000))
    for name, value in (("base", weight), ("whole", weight + b @ a)):
        save(tmp_path / name / "model.safetensors",
             {MODULE: ("F32", (4, 4), value.tobytes()), "other": other})
    for name in ("base", "whole"):
        store("commit", f"./{name}", "-m", name, "--ref", name)
    store("delta", "./whole", "--base", "base", "-m", "d", "--ref", "delta")
    store("commit", "./lora", "-m", "l", "--ref", "lora")
    return store


def test_one_change_is_compared_with_the_base(tuned):
    want = diff(tuned, "base", "whole")
    assert [row["tensor"] for row in want["changed"]] == [MODULE]
    assert want["shared"] == 2
    for name in ("delta", "lora", "whole", "./lora", "./whole"):
        assert diff(tuned, name, "--against-base", "base") == want
        assert diff(tuned, name, "--against-base", "./base") == want
    found = tuned("diff", "delta", "--against-base", "base", "--json").json
    refs = tuned("refs", "--json").json["refs"]
    assert (found["a"], found["b"]) == (refs["base"], refs["delta"])


def test_changes_of_every_kind_are_compared_on_a_base(tuned, tmp_path):
    kinds = ["delta", "lora", "whole", "./lora"]
    for one in kinds:
        for other in kinds:
            found = diff(tuned, one, other, "--against-base", "./base")
            assert found["changed"] == [] and found["relative_change"] == 0
    adapter(tmp_path / "twice", scale=0.5)
    found = diff(tuned, "delta", "./twice", "--against-base", "base")
    a, b = (load(tmp_path / name)[MODULE] for name in ("base", "whole"))
    change = np.linalg.norm(doubles(b) - doubles(a))
    assert np.isclose(found["changed"][0]["relative"],
                      change / np.linalg.norm(doubles(b)), 1e-12, 0)


def test_what_no_change_touches_is_not_read(tuned, tmp_path):
    want = diff(tuned, "lora", "whole", "--against-base", "base")
    adapter(tmp_path / "twice", scale=0.5)
    both = diff(tuned, "lora", "./twice", "--against-base", "base")
    for file in blocks(tuned, "base", "other"):
        file.unlink()
    assert diff(tuned, "lora", "whole", "--against-base", "base") == want
    assert diff(tuned, "lora", "./twice", "--against-base", "base") == both


def test_a_wrong_base_is_refused_by_name(tuned, tmp_path):
    save(tmp_path / "wrong" / "model.safetensors",
         {MODULE: ("F32", (4, 4), bytes(64)),
          "other": load(tmp_path / "base")["other"]})
    for args in (("delta",), ("lora", "delta"), ("delta", "whole")):
        told = tuned("diff", *args, "--against-base", "./wrong", code=6).err
        assert MODULE in told and "'delta'" in told
    told = tuned("diff", "lora", "--against-base", "delta", code=2).err
    assert "cannot be one" in told
    tuned("diff", "lora", "--against-base", "nothing", code=3)


def test_one_model_alone_is_not_compared(tuned):
    told = tuned("diff", "delta", code=2).err
    assert "--against-base BASE" in told
    told = tuned("diff", "delta", "whole", code=2).err
    assert "--against-base BASE" in told


def test_damage_is_not_taken_for_what_is_no_plain_adapter(tmp_path):
    """The tensors of two commits of one adapter are the same, so that only the
    maps read them."""
    store = Store(tmp_path)
    store("init", "--block-size", "64K")
    adapter(tmp_path / "lora", rank=8, width=8192)
    store("commit", "./lora", "-m", "one", "--ref", "one")
    store("commit", "./lora", "-m", "two", "--ref", "two")
    assert diff(store, "one", "two")["maps"]["relative_change"] == 0
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
    blocks(store, "one", name)[0].unlink()
    assert "lost" in store("diff", "one", "two", code=6).err
