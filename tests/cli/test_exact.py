"""apply(delta(tuned, base), base) is tuned: file by file, bit by bit."""

import json
import shutil

import numpy as np
import pytest

from support import BITS, LLAMA, Store, files, load, save, size_of

SHAPES = [(), (1,), (0,), (8,), (3, 8), (2, 3, 8), (4, 0, 2), (1, 1, 1),
          (7, 5 * 8)]

# Bit patterns that arithmetic gets wrong: zeros, infinities, NaN payloads,
# subnormals, largest, by dtype.
STRANGE = {
    "F32": ("<u4", [0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001,
                    0x7f800001, 0xffffffff, 1, 0x80000001, 0x007fffff,
                    0x7f7fffff, 0x3f800000, 0x33800000]),
    "F64": ("<u8", [0, 1 << 63, 0x7ff << 52, 0xfff << 52, (0x7ff << 52) + 1,
                    (0x7ff8 << 48) + 5, 1, (1 << 63) + 1, (0x7ff << 52) - 1,
                    0x3ff << 52]),
    "BF16": ("<u2", [0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0x7f81, 0xffff, 1,
                     0x8001, 0x7f7f, 0x3f80]),
    "F16": ("<u2", [0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x7c01, 0xffff, 1,
                    0x8001, 0x7bff, 0x3c00]),
}


def random_bytes(rng, dtype, shape):
    data = rng.bytes(size_of(dtype, shape))
    return bytes(b & 1 for b in data) if dtype == "BOOL" else data


def strange_bytes(rng, dtype, shape):
    """A mix of strange values and ordinary ones."""
    width, patterns = STRANGE[dtype]
    count = int(np.prod(shape, dtype=np.int64))
    data = np.frombuffer(rng.bytes(size_of(dtype, shape)), dtype=width).copy()
    chosen = rng.integers(0, 2, count).astype(bool)
    picked = rng.choice(np.array(patterns, dtype=width), count)
    data.reshape(-1)[chosen] = picked[chosen]
    return data.tobytes()


def usable(dtype, shape):
    return int(np.prod(shape, dtype=np.int64)) * BITS[dtype] % 8 == 0


def pair_of(rng, dtype, make):
    """Two models of one layout, some tensors the same."""
    base, tuned = {}, {}
    for i, shape in enumerate(s for s in SHAPES if usable(dtype, s)):
        base[f"t{i}"] = (dtype, shape, make(rng, dtype, shape))
        tuned[f"t{i}"] = base[f"t{i}"] if i % 3 == 2 else (
            dtype, shape, make(rng, dtype, shape))
    return base, tuned


def round_trip(tmp_path, base, tuned, same_files=True):
    store = Store(tmp_path)
    save(tmp_path / "base" / "model.safetensors", base, {"format": "pt"})
    save(tmp_path / "tuned" / "model.safetensors", tuned, {"format": "pt"})
    (tmp_path / "base" / "config.json").write_text('{"dtype": "base"}')
    (tmp_path / "tuned" / "config.json").write_text('{"dtype": "tuned"}')
    store("delta", "./tuned", "--base", "./base", "-m", "x")
    done = store("apply", "main", "--base", "./base", "-o", "out", "--verify",
                 "--json").json
    assert done["exact"] is True
    assert load(tmp_path / "out") == tuned
    got = files(tmp_path / "out")
    got.pop("ballast.json")
    if same_files:
        assert got == files(tmp_path / "tuned")
    assert store("fsck").out == "consistent\n"


@pytest.mark.parametrize("dtype", BITS)
def test_random_bits_of_every_dtype_come_back(tmp_path, dtype):
    rng = np.random.default_rng(len(dtype))
    round_trip(tmp_path, *pair_of(rng, dtype, random_bytes))


@pytest.mark.parametrize("dtype", STRANGE)
def test_strange_floats_come_back(tmp_path, dtype):
    rng = np.random.default_rng(7)
    round_trip(tmp_path, *pair_of(rng, dtype, strange_bytes))


@pytest.mark.parametrize("one", STRANGE)
@pytest.mark.parametrize("other", STRANGE)
def test_a_change_of_dtype_comes_back(tmp_path, one, other):
    rng = np.random.default_rng(11)
    base = {"w": (one, (16, 8), strange_bytes(rng, one, (16, 8))),
            "v": (one, (3,), strange_bytes(rng, one, (3,)))}
    tuned = {"w": (other, (16, 8), strange_bytes(rng, other, (16, 8))),
             "v": base["v"]}
    round_trip(tmp_path, base, tuned, same_files=one == other)


def test_new_removed_reshaped_and_retyped_tensors_come_back(tmp_path):
    rng = np.random.default_rng(3)
    cell = lambda dtype, *shape: (dtype, shape, rng.bytes(
        size_of(dtype, shape)))
    base = {"embed": cell("BF16", 8, 4), "gone": cell("F32", 5),
            "bent": cell("F16", 2, 6), "int": cell("I32", 4),
            "kept": cell("U8", 9)}
    tuned = {"embed": cell("BF16", 10, 4), "head": cell("BF16", 8, 4),
             "bent": ("F16", (6, 2), base["bent"][2]),
             "int": cell("F32", 4), "kept": base["kept"]}
    round_trip(tmp_path, base, tuned, same_files=False)


def test_large_tensors_that_span_blocks_come_back(tmp_path):
    rng = np.random.default_rng(5)
    values = rng.standard_normal(3 << 20).astype("<f4")
    changed = values.copy()
    changed[12345] += 1e-3
    changed[2 << 20:] *= np.float32(1.0001)
    shape = (3 << 20,)
    round_trip(tmp_path, {"w": ("F32", shape, values.tobytes())},
               {"w": ("F32", shape, changed.tobytes())})


@pytest.mark.parametrize("name", ["ft-small", "ft-large"])
def test_the_example_pairs_come_back(tmp_path, name):
    store = Store(tmp_path)
    base, tuned = LLAMA / "base", LLAMA / name
    store("delta", tuned, "--base", base, "-m", name)
    done = store("apply", "main", "--base", base, "-o", "out", "--verify",
                 "--json").json
    assert done["exact"] is True
    out = tmp_path / "out"
    assert load(out) == load(tuned)
    got, want = files(out), files(tuned)
    for side in want:
        if ".safetensors" not in side:
            assert got[side] == want[side], side
    assert json.loads((out / "ballast.json").read_text())["kind"] == "delta"


def test_a_commit_checks_out_file_by_file(tmp_path):
    store = Store(tmp_path)
    for name in ("base", "ft-small", "ft-large"):
        store("commit", LLAMA / name, "-m", name)
        store("checkout", "main", "-o", name)
        got = files(tmp_path / name)
        got.pop("ballast.json")
        assert got == files(LLAMA / name)


def test_wrong_base_is_refused_before_anything_is_written(tmp_path):
    rng = np.random.default_rng(1)
    base, tuned = pair_of(rng, "BF16", random_bytes)
    store = Store(tmp_path)
    save(tmp_path / "base" / "model.safetensors", base)
    save(tmp_path / "tuned" / "model.safetensors", tuned)
    store("delta", "./tuned", "--base", "./base", "-m", "x")
    for name, (dtype, shape, data) in base.items():
        if not data:
            continue
        other = dict(base)
        other[name] = (dtype, shape, bytes([data[0] ^ 1]) + data[1:])
        shutil.rmtree(tmp_path / "other", ignore_errors=True)
        save(tmp_path / "other" / "model.safetensors", other)
        done = store("apply", "main", "--base", "./other", "-o", "out",
                     "--json", code=6)
        assert f"'{name}'" in done.error["message"]
        assert not (tmp_path / "out").exists()


def test_a_blend_is_the_weighted_sum_of_the_differences(tmp_path):
    rng = np.random.default_rng(2)
    base, one, two = (rng.standard_normal((64, 32)).astype("<f4")
                      for _ in range(3))
    store = Store(tmp_path)
    for name, values in (("base", base), ("one", one), ("two", two)):
        save(tmp_path / name / "model.safetensors",
             {"w": ("F32", (64, 32), values.tobytes())})
    for name in ("one", "two"):
        store("delta", f"./{name}", "--base", "./base", "-m", name, "--ref",
              name)
    store("merge", "one@0.6", "two@0.2", "--no-normalize", "-m", "blend")
    done = store("apply", "main", "--base", "./base", "-o", "out", "--json",
                 "--verify").json
    assert done["exact"] is False
    got = np.frombuffer(load(tmp_path / "out")["w"][2], "<f4").reshape(64, 32)
    wide = [array.astype("f8") for array in (base, one, two)]
    want = wide[0] + 0.6 * (wide[1] - wide[0]) + 0.2 * (wide[2] - wide[0])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
