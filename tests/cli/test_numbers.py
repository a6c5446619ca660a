"""Differences and distances, by numpy."""

import json

import numpy as np
import pytest

from support import Store, save

SHAPE = (257, 129)
DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


def bf16(values):
    """The nearest bf16 of f32 values, ties to even, as their f32."""
    bits = values.astype(np.float32).view(np.uint32)
    bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32)


def stored(dtype, values):
    """What a dtype holds of values, as a numpy array, and its bytes."""
    if dtype == "BF16":
        held = bf16(values)
        half = (held.view(np.uint32) >> 16).astype("<u2")
        return held, half.tobytes()
    held = values.astype(DTYPES[dtype])
    return held, held.tobytes()


def pair(tmp_path, tuned_dtype, base_dtype):
    rng = np.random.default_rng(5)
    before = rng.normal(0, 0.02, SHAPE)
    after = before + rng.normal(0, 1e-3, SHAPE)
    base, base_bytes = stored(base_dtype, before)
    tuned, tuned_bytes = stored(tuned_dtype, after)
    save(tmp_path / "base" / "model.safetensors",
         {"w": (base_dtype, SHAPE, base_bytes)}, {"format": "pt"})
    save(tmp_path / "tuned" / "model.safetensors",
         {"w": (tuned_dtype, SHAPE, tuned_bytes)}, {"format": "pt"})
    return tuned, base


@pytest.mark.parametrize("base_dtype", ["BF16", *DTYPES])
@pytest.mark.parametrize("tuned_dtype", ["BF16", *DTYPES])
def test_a_difference_is_what_numpy_subtracts(tmp_path, tuned_dtype,
                                              base_dtype):
    tuned, base = pair(tmp_path, tuned_dtype, base_dtype)
    wide = np.float64 if "F64" in (tuned_dtype, base_dtype) else np.float32
    want = tuned.astype(wide) - base.astype(wide)
    store = Store(tmp_path)
    store("delta", "./tuned", "--base", "./base", "-m", "x")
    shown = store("show", "main", "--json").json["tensors"]
    assert shown[0]["dtype"] == ("F64" if wide is np.float64 else "F32")
    store("checkout", "main", "-o", "out")
    got = difference_in(tmp_path / "out", wide)
    assert got.tobytes() == want.tobytes()


def difference_in(folder, wide):
    """The tensor named w of a folder's one safetensors file that has it."""
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        if "w" in header:
            begin, end = header["w"]["data_offsets"]
            return np.frombuffer(data[8 + length + begin:8 + length + end],
                                 dtype=wide)
    raise AssertionError("no tensor 'w'")


@pytest.mark.parametrize("dtype", ["BF16", *DTYPES])
def test_a_distance_is_what_numpy_sums(tmp_path, dtype):
    tuned, base = pair(tmp_path, dtype, dtype)
    change = tuned.astype(np.float64) - base.astype(np.float64)
    want = np.linalg.norm(change) / np.linalg.norm(base.astype(np.float64))
    store = Store(tmp_path)
    store("commit", "./base", "-m", "x", "--ref", "base")
    store("commit", "./tuned", "-m", "x", "--ref", "tuned")
    got = store("diff", "base", "tuned", "--json").json
    assert got["changed"][0]["tensor"] == "w"
    assert got["changed"][0]["relative"] == pytest.approx(want, rel=1e-12)
    assert got["changed"][0]["max_abs"] == np.abs(change).max()
    assert got["relative_change"] == pytest.approx(want, rel=1e-12)
