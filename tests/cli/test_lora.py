"""Adapters resized, scaled, negated: what numpy says of the maps s B A."""

import json

import numpy as np
import pytest

from support import TREE, Store, adapter, load, save

ADAPTERS = TREE / "tests" / "data" / "adapters"
DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}


class Lora(Store):
    """Numbers may be arguments."""

    def __call__(self, *args, **more):
        return super().__call__(*(arg if hasattr(arg, "__fspath__") else
                                  str(arg) for arg in args), **more)


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Lora(tmp_path_factory.mktemp("lora"))
    for name in ["lora_r8_qv", "lora_r16_all_rslora"]:
        store("commit", ADAPTERS / name, "-m", name, "--ref", name)
    return store


def floats(entry):
    dtype, shape, data = entry
    if dtype == "BF16":
        wide = np.frombuffer(data, "<u2").astype("<u4") << 16
        return wide.view("<f4").astype("<f8").reshape(shape)
    return np.frombuffer(data, DTYPES[dtype]).astype("<f8").reshape(shape)


def maps(path):
    """{module: s B A}, of adapters whose scale is the same for all modules."""
    config = json.loads((path / "adapter_config.json").read_text())
    tensors = load(path / "adapter_model.safetensors")
    found = {}
    for name, entry in tensors.items():
        if not name.endswith(".lora_A.weight"):
            continue
        module = name.removesuffix(".lora_A.weight")
        rank = config["r"]
        for key, value in (config.get("rank_pattern") or {}).items():
            if module.endswith(key.strip("^").replace("\\", "")):
                rank = value
        assert rank == entry[1][0]
        scale = config["lora_alpha"] / config["r"]
        if config["use_rslora"]:
            scale = config["lora_alpha"] / np.sqrt(config["r"])
        b = floats(tensors[module + ".lora_B.weight"])
        found[module.removeprefix("base_model.model.")] = (
            scale * b @ floats(entry))
    return found


def out(store, spec):
    path = store.path / f"out-{spec}"
    store("checkout", spec, "-o", path, "--force")
    return maps(path)


def norm(matrix):
    return np.linalg.norm(matrix)


def optimum(matrix, rank):
    """The least error of a map of that rank, by LAPACK."""
    return np.sqrt(np.sum(np.linalg.svd(matrix, compute_uv=False)[rank:] ** 2))


@pytest.mark.parametrize("rank", [1, 4, 15, 16, 20])
def test_a_resized_adapter_is_the_nearest_of_its_rank(store, rank):
    done = store("lora", "resize", "lora_r16_all_rslora", "--rank", rank,
                 "--ref", "made", "--json").json
    want = maps(ADAPTERS / "lora_r16_all_rslora")
    got = out(store, "made")
    assert want.keys() == got.keys() == {row["module"]
                                         for row in done["modules"]}
    for row in done["modules"]:
        whole = want[row["module"]]
        error = norm(got[row["module"]] - whole)
        assert (row["rank_before"], row["rank"]) == (16, rank)
        assert error <= optimum(whole, rank) * (1 + 1e-5) + 1e-6 * norm(whole)
        assert np.isclose(row["norm"], norm(whole), rtol=1e-12)
        assert np.isclose(row["residual"], error / norm(whole), rtol=1e-6,
                          atol=1e-12)


def test_the_residual_is_reported_and_recorded(store):
    done = store("lora", "resize", "lora_r16_all_rslora", "--rank", 3,
                 "--ref", "r3", "--metadata", '{"run": 7}', "--json").json
    want = maps(ADAPTERS / "lora_r16_all_rslora")
    got = out(store, "r3")
    squares = {name: norm(got[name] - want[name]) ** 2 for name in want}
    shares = {name: np.sqrt(squares[name]) / norm(want[name]) for name in want}
    whole = np.sqrt(sum(norm(matrix) ** 2 for matrix in want.values()))
    residual = done["residual"]
    assert np.isclose(residual["total"],
                      np.sqrt(sum(squares.values())) / whole, rtol=1e-6)
    assert residual["module"] == max(shares, key=shares.get)
    assert np.isclose(residual["worst"], max(shares.values()), rtol=1e-6)
    shown = store("show", "r3", "--json").json
    assert shown["metadata"] == {"run": 7, "residual": residual}
    assert shown["kind"] == "adapter"
    assert shown["message"] == "resize lora_r16_all_rslora to rank 3"


@pytest.mark.parametrize("energy", [0.5, 0.9, 0.999, 1])
def test_energy_is_the_share_of_squares_kept_in_each_module(store, energy):
    done = store("lora", "resize", "lora_r16_all_rslora", "--energy", energy,
                 "--ref", "energy", "--json").json
    want = maps(ADAPTERS / "lora_r16_all_rslora")
    got = out(store, "energy")
    ranks = set()
    for row in done["modules"]:
        whole = want[row["module"]]
        share = np.cumsum(np.linalg.svd(whole, compute_uv=False)[:16] ** 2)
        rank = 1 + int(np.argmax(share >= energy * share[-1] * (1 - 1e-15)))
        assert row["rank"] == rank
        assert norm(got[row["module"]] - whole) <= (
            np.sqrt(1 - energy) * norm(whole) * (1 + 1e-6)
            + 1e-6 * norm(whole))
        ranks.add(rank)
    assert energy == 1 or len(ranks) > 1


def test_it_is_the_same_for_any_number_of_threads(store):
    ids = {store("lora", "resize", "lora_r16_all_rslora", "--rank", 5, "--ref",
                 f"jobs{jobs}", "-j", jobs, "--json").json["manifest"]
           for jobs in [1, 2, 7]}
    assert len(ids) == 1


def test_the_dtype_is_the_adapters_own_or_the_one_told(store, tmp_path):
    tensors = {}
    for name, (_, shape, data) in load(
            ADAPTERS / "lora_r8_qv" / "adapter_model.safetensors").items():
        bits = np.frombuffer(data, "<u4") >> 16
        tensors[name] = ("BF16", shape, bits.astype("<u2").tobytes())
    save(tmp_path / "adapter_model.safetensors", tensors, {"format": "pt"})
    (tmp_path / "adapter_config.json").write_bytes(
        (ADAPTERS / "lora_r8_qv" / "adapter_config.json").read_bytes())
    store("commit", tmp_path, "-m", "bf16", "--ref", "bf16")
    errors = {}
    for dtype, args in [("BF16", []), ("F32", ["--dtype", "F32"])]:
        done = store("lora", "resize", "bf16", "--rank", 8, "--ref", "dtype",
                     *args, "--json").json
        out(store, "dtype")
        assert {entry[0] for entry in load(
            store.path / "out-dtype").values()} == {dtype}
        errors[dtype] = done["residual"]["total"]
    # What rounding loses is part of the residual.
    assert 1e-4 < errors["BF16"] < 1e-2 and errors["F32"] < 1e-7


def test_negating_loses_nothing(store):
    done = store("lora", "negate", "lora_r8_qv", "--ref", "minus",
                 "--json").json
    assert done["residual"] == {"total": 0, "worst": 0, "module": None}
    want = maps(ADAPTERS / "lora_r8_qv")
    got = out(store, "minus")
    assert all(np.array_equal(-want[name], got[name]) for name in want)
    store("lora", "negate", "minus", "--ref", "again")
    again = out(store, "again")
    assert all(np.array_equal(want[name], again[name]) for name in want)


@pytest.mark.parametrize("factor", ["0.3", "-2.5", "0", "1", "4"])
def test_scaling_is_by_the_number(store, factor):
    done = store("lora", "scale", "lora_r8_qv", "--ref", "times", "--json",
                 "--", factor).json
    want = maps(ADAPTERS / "lora_r8_qv")
    got = out(store, "times")
    for name, whole in want.items():
        error = norm(got[name] - float(factor) * whole)
        assert error <= 1e-7 * norm(whole) * abs(float(factor))
    exact = factor in ["0", "1", "4"]
    assert (done["residual"]["total"] == 0) == exact


def test_whole_tensors_stay_what_they_are(store, tmp_path):
    path = adapter(tmp_path / "saved", rank=2, width=4)
    tensors = load(path / "adapter_model.safetensors")
    head = np.arange(8, dtype="<f4").tobytes()
    tensors["base_model.model.lm_head.weight"] = ("F32", (2, 4), head)
    save(path / "adapter_model.safetensors", tensors, {"format": "pt"})
    config = json.loads((path / "adapter_config.json").read_text())
    config["modules_to_save"] = ["lm_head"]
    (path / "adapter_config.json").write_text(json.dumps(config))
    store("commit", path, "-m", "saved", "--ref", "saved")
    store("lora", "resize", "saved", "--rank", 1, "--ref", "small")
    store("checkout", "small", "-o", tmp_path / "small")
    small = load(tmp_path / "small" / "adapter_model.safetensors")
    assert small["base_model.model.lm_head.weight"] == ("F32", (2, 4), head)
    made = json.loads((tmp_path / "small" / "adapter_config.json").read_text())
    assert made["modules_to_save"] == ["lm_head"] and made["r"] == 1
    done = store("lora", "negate", "saved", "--ref", "small", code=9)
    assert "lm_head.weight" in done.err


REFUSED = [
    (["resize", "lora_r8_qv"], 2, "--rank R or --energy F is missing"),
    (["resize", "lora_r8_qv", "--rank", 2, "--energy", 0.5], 2, "not both"),
    (["resize", "lora_r8_qv", "--rank", 0], 2, "1 is the least"),
    (["resize", "lora_r8_qv", "--rank", 70000], 2, "is over 65536"),
    (["resize", "lora_r8_qv", "--energy", 1.5], 2, "1 at most"),
    (["resize", "lora_r8_qv", "--energy", 0], 2, "above 0"),
    (["resize", "lora_r8_qv", "--rank", 2, "--dtype", "I8"], 2, "none of BF16"),
    (["resize", "nothing", "--rank", 2], 3, "no ref or commit 'nothing'"),
    (["scale", "lora_r8_qv"], 2, "an argument is missing"),
    (["scale", "lora_r8_qv", "twice"], 2, "twice"),
    (["scale", "lora_r8_qv", "inf"], 2, "inf"),
    (["negate", "lora_r8_qv", "2"], 2, "one argument too many"),
    (["negate", "lora_r8_qv", "--rank", 2], 2, "for resize alone"),
    (["negat", "lora_r8_qv"], 2, "did you mean 'negate'?"),
    (["negate", "lora_r8_qv", "--metadata", '{"residual": 1}'], 2, "residual"),
]


@pytest.mark.parametrize("args, code, text", REFUSED)
def test_what_cannot_be_is_refused_by_name(store, args, code, text):
    assert text in store("lora", *args, "--ref", "no", code=code).err
    assert "no" not in store("refs").out.split()


def test_only_adapters_are_resized(store, tmp_path):
    save(tmp_path / "model.safetensors", {"w": ("F32", (1,), b"\0\0\0\0")})
    store("commit", tmp_path, "-m", "weights", "--ref", "weights")
    for args in [["resize", "weights", "--rank", 2], ["negate", "weights"]]:
        done = store("lora", *args, "--ref", "no", code=2)
        assert "of kind 'weights', not an adapter" in done.err


def test_a_factor_that_is_not_finite_is_refused(store, tmp_path):
    path = adapter(tmp_path / "bad", scale=np.nan)
    store("commit", path, "-m", "bad", "--ref", "bad")
    done = store("lora", "resize", "bad", "--rank", 1, "--ref", "no", code=9)
    assert "model.layers.0.self_attn.q_proj" in done.err
    assert "not finite" in done.err


def factors(path, a, b):
    (rank, into), (out, _) = a.shape, b.shape
    kind = {4: "F32", 8: "F64"}[a.dtype.itemsize]
    save(path / "adapter_model.safetensors", {
        f"base_model.model.m.q_proj.lora_{name}.weight":
            (kind, x.shape, x.tobytes()) for name, x in (("A", a), ("B", b))})
    (path / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": rank,
         "target_modules": ["q_proj"]}))
    assert out and into
    return path


@pytest.mark.parametrize("a, b", [
    (np.zeros((4, 8), "<f4"), np.full((6, 4), np.nan, "<f4")),
    (np.full((4, 8), np.inf, "<f4"), np.zeros((6, 4), "<f4")),
    (np.full((4, 8), 1e-170), np.full((6, 4), 1e160)),
], ids=["NaN by zero", "infinity by zero", "squares beyond F64"])
def test_what_is_no_number_is_not_lost_in_zeros(tmp_path, a, b):
    store = Lora(tmp_path)
    factors(tmp_path / "bad", a, b)
    store("commit", "bad", "-m", "bad", "--ref", "bad")
    done = store("lora", "resize", "bad", "--rank", 2, "--ref", "out", code=9)
    assert "q_proj" in done.err
    assert "out" not in store("refs").out


def test_a_rank_beyond_the_shape_is_the_shapes(tmp_path):
    """PEFT scales a module by its alpha over its own rank."""
    store = Lora(tmp_path)
    rng = np.random.default_rng(1)
    a = rng.normal(size=(4, 8)).astype("<f4")
    b = rng.normal(size=(6, 4)).astype("<f4")
    factors(tmp_path / "x", a, b)
    store("commit", "x", "-m", "x", "--ref", "x")
    store("lora", "resize", "x", "--rank", 65536, "--ref", "wide")
    store("checkout", "wide", "-o", "wide")
    config = json.loads((tmp_path / "wide" / "adapter_config.json").read_text())
    tensors = load(tmp_path / "wide" / "adapter_model.safetensors")
    got = [floats(tensors[f"base_model.model.m.q_proj.lora_{name}.weight"])
           for name in "AB"]
    assert got[0].shape == (6, 8) and got[1].shape == (6, 6)
    rank = (config.get("rank_pattern") or {"": config["r"]}).popitem()[1]
    alpha = (config.get("alpha_pattern") or {"": config["lora_alpha"]}).popitem()[1]
    assert rank == 6
    assert np.allclose(alpha / rank * got[1] @ got[0],
                       b.astype("<f8") @ a.astype("<f8"), rtol=1e-5, atol=1e-6)
