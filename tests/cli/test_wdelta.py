"""Files of deltatensors: read to its bits, written as it writes them."""

import json
import math

import numpy as np
import pytest
import wdelta_plain as plain
from support import TREE, files, load, run, save

GOLDEN = TREE / "tests" / "golden" / "wdelta"
EXPECTED = json.loads((GOLDEN / "expected" / "index.json").read_text())

# A file or a chain, and the base it was made against.
CASES = [(name, "base_" + kind, [name])
         for kind in ("f32", "f16") for name in (
             f"v1_{kind}_int4", f"v1_{kind}_sparse", f"v1_{kind}_quantized")]
CASES += [(name, "base_bf16", [name]) for name in (
    "v1_paths_int4", "v1_paths_sparse", "v1_paths_quantized",
    "v1_othershards_int4", "v2_spec_int4", "v2_spec_sparse",
    "v2_spec_quantized")]
CASES += [("v1_mem_int4", "base_f32", ["v1_mem_int4"]),
          ("v1_chain", "base_bf16_oneshard",
           ["v1_chain_step1_int4", "v1_chain_step2_int4"])]

STRATEGIES = [
    ("int4", [], lambda d: plain.make_int4(d, 0.01)),
    ("int4", ["--outlier-fraction", "0.05"],
     lambda d: plain.make_int4(d, 0.05)),
    ("sparse", [], lambda d: plain.make_sparse(d, 0.9)),
    ("sparse", ["--sparsity", "0.25"], lambda d: plain.make_sparse(d, 0.25)),
    ("quantized", [], plain.make_quantized),
]


def golden(name):
    return GOLDEN / f"{name}.wdelta"


def wdelta(word, *args, **more):
    return run("wdelta", word, *args, **more)


def tensor(dtype, values):
    values = np.asarray(values)
    return dtype, values.shape, plain.narrow(dtype, values.astype("<f4"))


def random_pair(dtype, shapes, sigma=1e-3, seed=7):
    rng = np.random.default_rng(seed)
    base, tuned = {}, {}
    for i, shape in enumerate(shapes):
        values = rng.normal(0, 0.02, shape).astype("<f4")
        base[f"t.{i}"] = tensor(dtype, values)
        tuned[f"t.{i}"] = tensor(dtype, plain.widen(*base[f"t.{i}"]) +
                                 rng.normal(0, sigma, shape).astype("<f4"))
    return base, tuned


def put(tmp_path, base, tuned):
    save(tmp_path / "base" / "model.safetensors", base)
    save(tmp_path / "tuned" / "model.safetensors", tuned)


def save_file(tmp_path, *args, out="out.wdelta", **more):
    return wdelta("save", "tuned", "--base", "base", "-o", out, *args,
                  cwd=tmp_path, **more)


def load_file(tmp_path, *names, base="base", out="got"):
    wdelta("load", *names, "--base", base, "-o", out, cwd=tmp_path)
    return load(tmp_path / out)


# ---- reading -----------------------------------------------------------------

@pytest.mark.parametrize("name,base,names", CASES)
def test_a_file_gives_the_bits_that_deltatensors_gives(tmp_path, name, base,
                                                       names):
    wdelta("load", *map(golden, names), "--base", GOLDEN / base, "-o",
           tmp_path / "got")
    raw = (GOLDEN / "expected" / f"{name}.f32").read_bytes()
    got = load(tmp_path / "got")
    assert sorted(got) == sorted(EXPECTED[name])
    for tensor_name, info in EXPECTED[name].items():
        count = math.prod(info["shape"])
        want = np.frombuffer(raw, "<f4", count, info["off"])
        dtype, shape, data = got[tensor_name]
        assert list(shape) == info["shape"]
        assert data == plain.narrow(dtype, want), tensor_name


@pytest.mark.parametrize("name,base,names", CASES)
def test_a_file_is_verified_on_its_base_alone(name, base, names):
    paths = [golden(n) for n in names]
    assert wdelta("verify", *paths, "--base", GOLDEN / base,
                  "--json").json["verified"]
    wrong = wdelta("verify", *paths, "--base", GOLDEN / "ft1_bf16", code=6)
    assert "base model hash mismatch" in wrong.err


def test_what_a_hash_was_taken_over_is_told():
    done = wdelta("verify", golden("v1_chain_step1_int4"),
                  golden("v1_chain_step2_int4"), "--base",
                  GOLDEN / "base_bf16_oneshard", "--json").json
    assert [file["hashed"] for file in done["files"]] == ["records", "float32"]


def test_a_chain_in_the_wrong_order_is_refused_by_place_and_hash(tmp_path):
    done = wdelta("load", golden("v1_chain_step2_int4"),
                  golden("v1_chain_step1_int4"), "--base",
                  GOLDEN / "base_bf16_oneshard", "-o", tmp_path / "got",
                  code=6)
    assert "link 1 of 2" in done.err and "d08024375742" in done.err
    assert not (tmp_path / "got").exists()


def test_a_link_on_another_link_is_refused_by_place_and_hash(tmp_path):
    done = wdelta("load", golden("v1_chain_step1_int4"),
                  golden("v1_chain_step1_int4"), "--base",
                  GOLDEN / "base_bf16_oneshard", "-o", tmp_path / "got",
                  code=6)
    assert "link 2 of 2" in done.err and "0cf4d33aa46f" in done.err


def test_a_model_of_other_tensors_is_no_base(tmp_path):
    save(tmp_path / "base" / "model.safetensors",
         {"w": tensor("F32", [1.0, 2.0])})
    done = wdelta("load", golden("v1_f32_int4"), "--base", tmp_path / "base",
                  "-o", tmp_path / "got", code=6)
    assert "has no tensor" in done.err


@pytest.mark.parametrize("version,code", [(0, 9), (3, 9), (99, 9)])
def test_another_version_is_unsupported(tmp_path, version, code):
    raw = bytearray(golden("v1_f32_int4").read_bytes())
    raw[7:11] = version.to_bytes(4, "little")
    (tmp_path / "x.wdelta").write_bytes(raw)
    done = wdelta("inspect", tmp_path / "x.wdelta", code=code)
    assert f"unsupported .wdelta version {version}" in done.err


def test_inspect_tells_what_deltatensors_tells():
    done = wdelta("inspect", golden("v1_paths_int4"), "--json").json
    assert {key: done[key] for key in (
        "path", "size_mb", "strategy", "n_tensors", "format_version")} == {
            "path": str(golden("v1_paths_int4")), "size_mb": 0.01,
            "strategy": "int4", "n_tensors": 4, "format_version": 1}
    assert done["parent_hash"].startswith("6427c04affc1")
    assert done["tensors"]["embed"]["shape"] == [101, 16]
    assert done["tensors"]["embed"]["dtype"] == "float32"


def test_inspect_of_several_is_a_line_each():
    done = wdelta("inspect", golden("v1_chain_step1_int4"),
                  golden("v2_spec_int4"), "--json")
    assert [(line["step"], line["format_version"]) for line in done.lines] == [
        (0, 1), (1, 2)]
    assert done.lines[1]["tensors"]["embed"]["dtype"] == "bfloat16"


# ---- writing -----------------------------------------------------------------

SHAPES = [(300, 101), (70, 33), (501,), (2, 1), (8, 3, 5), (7, 1000)]


@pytest.mark.parametrize("strategy,args,make", STRATEGIES)
def test_a_file_is_the_bytes_that_the_description_gives(tmp_path, strategy,
                                                        args, make):
    base, tuned = random_pair("F32", SHAPES)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy, *args)
    assert (tmp_path / "out.wdelta").read_bytes() == plain.write(
        base, tuned, strategy, make)


@pytest.mark.parametrize("sigma", [1e-3, 3e-5])
@pytest.mark.parametrize("strategy,args,make", STRATEGIES)
def test_of_equal_magnitudes_the_first_are_kept(tmp_path, strategy, args, make,
                                                sigma):
    """bf16 differences are few values over and over."""
    base, tuned = random_pair("BF16", SHAPES, sigma)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy, *args)
    assert (tmp_path / "out.wdelta").read_bytes() == plain.write(
        base, tuned, strategy, make)


@pytest.mark.parametrize("strategy,args,make", STRATEGIES)
def test_tiles_of_a_large_tensor_fit_together(tmp_path, strategy, args, make):
    base, tuned = random_pair("BF16", [(3, 131072 + 7), (1000, 301)], 1e-4)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy, *args, "-j3")
    assert (tmp_path / "out.wdelta").read_bytes() == plain.write(
        base, tuned, strategy, make)
    got = load_file(tmp_path, "out.wdelta")
    want = plain.applied(base, tmp_path / "out.wdelta")
    for name, (dtype, _, data) in got.items():
        assert data == plain.narrow(dtype, want[name])


@pytest.mark.parametrize("strategy,args,make", STRATEGIES)
@pytest.mark.parametrize("minus", [0.0, 0.1, 1.0])
def test_ties_by_the_hundred_thousand_are_settled_by_place(tmp_path, strategy,
                                                           args, make, minus):
    """More of one magnitude than are listed, of both signs or one."""
    rng = np.random.default_rng(4)
    shape = (3, 131072 + 5)
    step = np.where(rng.random(shape) < minus, -0.25, 0.25)
    step[rng.random(shape) < 0.05] = 0.125
    base = {"w": tensor("F32", np.ones(shape))}
    put(tmp_path, base, {"w": tensor("F32", 1.0 + step)})
    tuned = load(tmp_path / "tuned")
    save_file(tmp_path, "--strategy", strategy, *args)
    assert (tmp_path / "out.wdelta").read_bytes() == plain.write(
        base, tuned, strategy, make)


def test_a_mean_is_summed_in_numpys_order(tmp_path):
    """Of so many rows some come so near a tie that the order shows."""
    base, tuned = random_pair("F32", [(20000, 150)])
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", "quantized")
    want = plain.make_quantized(plain.widen(*tuned["t.0"]) -
                                plain.widen(*base["t.0"]))[1]["scales"]
    got = plain.read(tmp_path / "out.wdelta")[2]["t.0", "scales"]
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "F64"])
@pytest.mark.parametrize("strategy", ["int4", "sparse", "quantized"])
def test_what_is_saved_loads_as_the_description_says(tmp_path, dtype, strategy):
    base, tuned = random_pair(dtype, SHAPES)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy)
    got = load_file(tmp_path, "out.wdelta")
    want = plain.applied(base, tmp_path / "out.wdelta")
    for name in base:
        assert got[name] == (dtype, base[name][1],
                             plain.narrow(dtype, want[name]))


@pytest.mark.parametrize("strategy", ["int4", "sparse", "quantized"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (0, 3)])
def test_the_smallest_tensors_are_saved_too(tmp_path, strategy, shape):
    base = {"w": tensor("F32", np.full(shape, 1.0))}
    tuned = {"w": tensor("F32", np.full(shape, 1.5))}
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy)
    assert load_file(tmp_path, "out.wdelta") == tuned


@pytest.mark.parametrize("strategy", ["int4", "sparse", "quantized"])
def test_integers_come_back_exact(tmp_path, strategy):
    rng = np.random.default_rng(3)
    base, tuned = {}, {}
    for dtype, low, high in [("I64", -9000, 9000), ("I32", -9000, 9000),
                             ("I16", -900, 900), ("I8", -128, 128),
                             ("U8", 0, 256), ("BOOL", 0, 2)]:
        base[dtype] = tensor(dtype, rng.integers(low, high, 50))
        tuned[dtype] = tensor(dtype, rng.integers(low, high, 50))
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy)
    assert load_file(tmp_path, "out.wdelta") == tuned


@pytest.mark.parametrize("strange", [math.inf, -math.inf, 1e6])
@pytest.mark.parametrize("strategy", ["int4", "quantized"])
def test_what_a_float16_cannot_hold_is_kept_exactly(tmp_path, strategy,
                                                    strange):
    base, tuned = random_pair("F32", [(40, 5)])
    values = plain.widen(*tuned["t.0"]).copy()
    values[3, 2] = strange
    tuned["t.0"] = tensor("F32", values)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--strategy", strategy)
    got = plain.widen(*load_file(tmp_path, "out.wdelta")["t.0"])
    assert got[3, 2] == np.float32(strange)
    others = np.isfinite(values) & (values < 1)
    assert np.abs(got[others] - values[others]).max() < 1e-6


def test_tensors_of_several_files_are_hashed_file_by_file(tmp_path):
    """As deltatensors 0.2.0 checks a base that is a folder of files."""
    wdelta("save", GOLDEN / "ft1_bf16", "--base", GOLDEN / "base_bf16", "-o",
           tmp_path / "out.wdelta")
    ours = wdelta("inspect", tmp_path / "out.wdelta", "--json").json
    theirs = wdelta("inspect", golden("v1_paths_int4"), "--json").json
    assert ours["parent_hash"] == theirs["parent_hash"]


def test_any_number_of_threads_writes_the_same_bytes(tmp_path):
    base, tuned = random_pair("BF16", [(400, 1001), (9, 9), (131072, 2)])
    put(tmp_path, base, tuned)
    for jobs in ("1", "2", "5"):
        save_file(tmp_path, "-j", jobs, out=f"{jobs}.wdelta")
    first = (tmp_path / "1.wdelta").read_bytes()
    assert (tmp_path / "2.wdelta").read_bytes() == first
    assert (tmp_path / "5.wdelta").read_bytes() == first


def test_a_chain_of_three_goes_on_from_what_the_links_give(tmp_path):
    base, tuned = random_pair("BF16", SHAPES)
    put(tmp_path, base, tuned)
    _, later = random_pair("BF16", SHAPES, 2e-3)
    save(tmp_path / "later" / "model.safetensors", later)
    save_file(tmp_path, out="1.wdelta")
    wdelta("save", "later", "--base", "base", "-o", "2.wdelta", "--parent",
           "1.wdelta", "--strategy", "sparse", cwd=tmp_path)
    save_file(tmp_path, "--parent", "1.wdelta", "--parent", "2.wdelta",
              out="3.wdelta")
    names = ["1.wdelta", "2.wdelta", "3.wdelta"]
    got = load_file(tmp_path, *names)
    want = plain.applied(base, *[tmp_path / name for name in names])
    for name in base:
        assert got[name][2] == plain.narrow("BF16", want[name])
    wrong = wdelta("verify", "1.wdelta", "3.wdelta", "--base", "base",
                   cwd=tmp_path, code=6)
    assert "link 2 of 2" in wrong.err


def test_a_parent_of_another_base_is_refused(tmp_path):
    base, tuned = random_pair("F32", SHAPES)
    put(tmp_path, base, tuned)
    done = save_file(tmp_path, "--parent", golden("v1_f32_int4"), code=6)
    assert "is not the base of" in done.err
    assert not (tmp_path / "out.wdelta").exists()


# ---- quality -----------------------------------------------------------------

def errors_of(base, tuned, got):
    wide = {name: [plain.widen(*model[name]).astype(np.float64)
                   for model in (base, tuned, got)] for name in base}
    return {name: (np.sum((g - t) ** 2), np.sum((t - b) ** 2))
            for name, (b, t, g) in wide.items()}


@pytest.mark.parametrize("limit", [1.0, 0.3, 0.1, 0.05, 0.01, 1e-4, 0.0])
@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
def test_no_tensor_errs_more_than_it_may(tmp_path, dtype, limit):
    base, tuned = random_pair(dtype, SHAPES)
    if dtype == "F32":
        limit = max(limit, 1e-4)
    put(tmp_path, base, tuned)
    save_file(tmp_path, "--max-error", str(limit))
    got = load_file(tmp_path, "out.wdelta")
    for error, delta in errors_of(base, tuned, got).values():
        assert math.sqrt(error) <= limit * math.sqrt(delta)


def test_a_looser_limit_takes_less_room(tmp_path):
    base, tuned = random_pair("BF16", SHAPES)
    put(tmp_path, base, tuned)
    sizes = [save_file(tmp_path, "--max-error", limit, "--json").json["size"]
             for limit in ("0.001", "0.05", "0.2", "0.9")]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] * 3 < sizes[0]


def test_quality_is_what_numpy_measures(tmp_path):
    base, tuned = random_pair("BF16", [(300, 101), (70, 33), (501,)])
    put(tmp_path, base, tuned)
    told = save_file(tmp_path, "--quality", "--json").json["quality"]
    want = errors_of(base, tuned, load_file(tmp_path, "out.wdelta"))
    rows = {row["tensor"]: row for row in told["tensors"]}
    for name, (error, delta) in want.items():
        relative = math.sqrt(error / delta)
        assert rows[name]["relative_error"] == pytest.approx(relative)
        assert rows[name]["snr_db"] == pytest.approx(
            -20 * math.log10(relative))
    total = [sum(column) for column in zip(*want.values())]
    assert told["relative_error"] == pytest.approx(
        math.sqrt(total[0] / total[1]))
    worst = max(want, key=lambda name: want[name][0] / want[name][1])
    assert told["worst_tensor"] == worst


def test_quality_as_text_is_a_line_a_tensor(tmp_path):
    base, tuned = random_pair("BF16", SHAPES)
    put(tmp_path, base, tuned)
    lines = save_file(tmp_path, "--quality").out.splitlines()
    assert len(lines) == 2 + len(SHAPES) + 1
    assert "dB" in lines[2] and "in the worst" in lines[-1]


# ---- refusals ----------------------------------------------------------------

@pytest.mark.parametrize("args,says", [
    (["--sparsity", "1"], "sparsity"),
    (["--sparsity", "-0.1"], "sparsity"),
    (["--outlier-fraction", "1.5"], "outlier-fraction"),
    (["--max-error", "-1"], "max-error"),
    (["--strategy", "hadamard"], "hadamard"),
])
def test_parameters_out_of_bounds_are_refused(tmp_path, args, says):
    put(tmp_path, *random_pair("F32", [(3,)]))
    assert says in save_file(tmp_path, *args, code=2).err


@pytest.mark.parametrize("change,says", [
    (lambda t: t.pop("t.0"), "in the base only"),
    (lambda t: t.update({"new": t["t.0"]}), "not in the base"),
    (lambda t: t.update({"t.0": tensor("F32", [1.0])}), "another shape"),
])
def test_other_tensors_than_the_base_has_are_refused(tmp_path, change, says):
    base, tuned = random_pair("F32", [(3,), (4, 2)])
    change(tuned)
    put(tmp_path, base, tuned)
    (tmp_path / "out.wdelta").write_text("as before")
    assert says in save_file(tmp_path, code=2).err
    assert (tmp_path / "out.wdelta").read_text() == "as before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["base", "out.wdelta",
                                                          "tuned"]


@pytest.mark.parametrize("out", ["base/model.safetensors", "base/x",
                                 "tuned/model.safetensors", "base"])
def test_what_is_read_is_not_written_over(tmp_path, out):
    put(tmp_path, *random_pair("F32", [(3,)]))
    before = files(tmp_path)
    save_file(tmp_path, out=out, code=2)
    assert files(tmp_path) == before


def test_a_checkpoint_may_hold_its_own_file(tmp_path):
    put(tmp_path, *random_pair("F32", [(3,)]))
    save_file(tmp_path, out="tuned/model.wdelta")
    wdelta("verify", "tuned/model.wdelta", "--base", "base", cwd=tmp_path)


def test_a_folder_that_is_there_is_not_written_over(tmp_path):
    put(tmp_path, *random_pair("F32", [(3,)]))
    save_file(tmp_path)
    load_file(tmp_path, "out.wdelta")
    wdelta("load", "out.wdelta", "--base", "base", "-o", "got", cwd=tmp_path,
           code=5)
    wdelta("load", "out.wdelta", "--base", "base", "-o", "base", "--force",
           cwd=tmp_path, code=2)
    wdelta("load", "out.wdelta", "--base", "base", "-o", "got", "--force",
           cwd=tmp_path)


@pytest.mark.parametrize("args,says", [
    (["save", "tuned", "--base", "base"], "'-o' is missing"),
    (["load", "x.wdelta", "-o", "d"], "'--base' is missing"),
    (["inspect"], "an argument is missing"),
    (["save", "a", "b", "--base", "base", "-o", "x"], "one argument too many"),
    (["sav", "x"], "no action 'sav'"),
])
def test_words_that_are_missing_are_named(args, says):
    assert says in wdelta(*args, code=2).err
