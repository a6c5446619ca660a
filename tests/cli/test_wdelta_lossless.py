"""`wdelta save --strategy lossless`: every bit of every dtype comes back."""

import numpy as np
import pytest
from support import BITS, load, run, save, size_of

SHAPES = [(), (1,), (0,), (8,), (3, 8), (70, 32), (4, 0, 2)]

# Zeros, infinities, NaN payloads, subnormals, the largest.
STRANGE = {
    "F32": ("<u4", [0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001,
                    0x7f800001, 0xffffffff, 1, 0x80000001, 0x7f7fffff]),
    "F64": ("<u8", [0, 1 << 63, 0x7ff << 52, 0xfff << 52, (0x7ff << 52) + 1,
                    1, (0x7ff << 52) - 1]),
    "BF16": ("<u2", [0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0x7f81, 0xffff, 1]),
    "F16": ("<u2", [0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0x7c01, 0xffff, 1]),
}


def wdelta(word, *args, **more):
    return run("wdelta", word, *args, **more)


def usable(dtype, shape):
    return int(np.prod(shape, dtype=np.int64)) * BITS[dtype] % 8 == 0


def random_bytes(rng, dtype, shape):
    data = rng.bytes(size_of(dtype, shape))
    if dtype == "BOOL":
        return bytes(b & 1 for b in data)
    if dtype not in STRANGE:
        return data
    kind, patterns = STRANGE[dtype]
    values = np.frombuffer(data, kind).copy()
    chosen = rng.integers(0, 2, len(values)).astype(bool)
    values[chosen] = rng.choice(np.array(patterns, kind), chosen.sum())
    return values.tobytes()


def put(tmp_path, base, tuned):
    save(tmp_path / "base" / "model.safetensors", base)
    save(tmp_path / "tuned" / "model.safetensors", tuned)


def save_file(tmp_path, *args, out="out.wdelta", tuned="tuned", **more):
    return wdelta("save", tuned, "--base", "base", "-o", out, "--strategy",
                  "lossless", *args, cwd=tmp_path, **more)


def load_file(tmp_path, *names, out="got", **more):
    wdelta("load", *names, "--base", "base", "-o", out, cwd=tmp_path, **more)
    return load(tmp_path / out)


def small_update(rng, shape, changed=0.3):
    """Two BF16 tensors of which some elements differ by a little."""
    base = (rng.normal(0, 0.02, shape).astype("<f4").view("<u4") >> 16)
    step = rng.integers(-3, 4, shape) * (rng.random(shape) < changed)
    tuned = (base.astype(np.int64) + step).astype("<u2")
    return tuple(("BF16", shape, bits.astype("<u2").tobytes())
                 for bits in (base, tuned))


@pytest.mark.parametrize("dtype", BITS)
def test_every_bit_comes_back(tmp_path, dtype):
    rng = np.random.default_rng(5)
    base, tuned = {}, {}
    for i, shape in enumerate(s for s in SHAPES if usable(dtype, s)):
        base[f"t{i}"] = (dtype, shape, random_bytes(rng, dtype, shape))
        tuned[f"t{i}"] = base[f"t{i}"] if i % 3 == 2 else (
            dtype, shape, random_bytes(rng, dtype, shape))
    put(tmp_path, base, tuned)
    save_file(tmp_path)
    assert load_file(tmp_path, "out.wdelta") == tuned


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_pieces_of_a_large_tensor_come_back(tmp_path, jobs):
    rng = np.random.default_rng(6)
    base, tuned = {}, {}
    for i, shape in enumerate([(3, 700001), (1 << 20,), (2, 1 << 20), (5,)]):
        base[f"t{i}"], tuned[f"t{i}"] = small_update(rng, shape)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "-j", jobs)
    assert load_file(tmp_path, "out.wdelta", code=0) == tuned
    save_file(tmp_path, "-j3", out="again.wdelta")
    assert (tmp_path / "out.wdelta").read_bytes() == (
        tmp_path / "again.wdelta").read_bytes()


def test_an_ordinary_fine_tune_is_smaller_than_with_int4(tmp_path):
    rng = np.random.default_rng(8)
    base, tuned = {}, {}
    base["w"], tuned["w"] = small_update(rng, (512, 512))
    put(tmp_path, base, tuned)
    save_file(tmp_path)
    wdelta("save", "tuned", "--base", "base", "-o", "int4.wdelta",
           cwd=tmp_path)
    sizes = [(tmp_path / name).stat().st_size
             for name in ("out.wdelta", "int4.wdelta")]
    assert sizes[0] < 0.75 * sizes[1]


def test_new_and_reshaped_tensors_and_other_dtypes_are_part_of_it(tmp_path):
    rng = np.random.default_rng(9)

    def one(dtype, *shape):
        return dtype, shape, random_bytes(rng, dtype, shape)

    put(tmp_path, {"a": one("F32", 3, 4), "b": one("BF16", 8),
                   "c": one("F16", 2)},
        {"a": one("F32", 5, 4), "b": one("F16", 8), "c": one("F16", 2),
         "new": one("I64", 3)})
    save_file(tmp_path)
    assert load_file(tmp_path, "out.wdelta") == load(tmp_path / "tuned")


def test_quality_of_it_is_exact(tmp_path):
    rng = np.random.default_rng(10)
    base, tuned = {}, {}
    base["w"], tuned["w"] = small_update(rng, (64, 64))
    put(tmp_path, base, tuned)
    told = save_file(tmp_path, "--quality", "--json").json
    assert told["format_version"] == 2
    assert told["quality"]["relative_error"] == 0
    assert told["quality"]["snr_db"] is None


def test_a_wrong_base_is_refused(tmp_path):
    rng = np.random.default_rng(11)
    base, tuned = {}, {}
    base["w"], tuned["w"] = small_update(rng, (64, 64))
    put(tmp_path, base, tuned)
    save_file(tmp_path)
    _, other = small_update(rng, (64, 64))
    save(tmp_path / "other" / "model.safetensors", {"w": other})
    done = wdelta("load", "out.wdelta", "--base", "other", "-o", "got",
                  cwd=tmp_path, code=6)
    assert "base model hash mismatch" in done.err
    assert not (tmp_path / "got").exists()


def test_a_removed_tensor_is_refused_by_name(tmp_path):
    rng = np.random.default_rng(12)
    base, tuned = {}, {}
    base["w"], tuned["w"] = small_update(rng, (8,))
    base["gone"] = base["w"]
    put(tmp_path, base, tuned)
    assert "'gone'" in save_file(tmp_path, code=2).err


def test_links_with_and_without_loss_go_together(tmp_path):
    """int4, lossless on what that gives, sparse on what that gives."""
    rng = np.random.default_rng(13)
    base, tuned = {}, {}
    for i, shape in enumerate([(40, 30), (77,)]):
        base[f"t{i}"], tuned[f"t{i}"] = small_update(rng, shape)
    put(tmp_path, base, tuned)
    last = {name: small_update(rng, shape)[1]
            for name, (_, shape, _) in tuned.items()}
    save(tmp_path / "last" / "model.safetensors", last)
    wdelta("save", "tuned", "--base", "base", "-o", "1.wdelta", cwd=tmp_path)
    save_file(tmp_path, "--parent", "1.wdelta", out="2.wdelta")
    assert load_file(tmp_path, "1.wdelta", "2.wdelta", out="two") == tuned
    wdelta("save", "last", "--base", "base", "-o", "3.wdelta", "--strategy",
           "sparse", "--sparsity", "0", "--parent", "1.wdelta", "--parent",
           "2.wdelta", cwd=tmp_path)
    assert load_file(tmp_path, "1.wdelta", "2.wdelta", "3.wdelta",
                     out="three") == last
    done = wdelta("verify", "2.wdelta", "1.wdelta", "--base", "base",
                  cwd=tmp_path, code=6)
    assert "link 1 of 2" in done.err


@pytest.mark.parametrize("at", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_a_byte_changed_is_noticed(tmp_path, at):
    rng = np.random.default_rng(14)
    base, tuned = {}, {}
    base["w"], tuned["w"] = small_update(rng, (64, 64))
    put(tmp_path, base, tuned)
    save_file(tmp_path)
    raw = bytearray((tmp_path / "out.wdelta").read_bytes())
    raw[int(at * len(raw))] ^= 0x41
    (tmp_path / "out.wdelta").write_bytes(raw)
    done = wdelta("load", "out.wdelta", "--base", "base", "-o", "got",
                  cwd=tmp_path, code=None)
    assert done.code in (6, 9)
    assert not (tmp_path / "got").exists()
