"""Parameters that go over the layers, or are for some tensors: in every space,
of an input and of all. Numbers are numpy's."""

import json

import numpy as np
import pytest

from stacks import (EMBED, NORM, PIECES, along, commit, config_of, depth,
                    drawn, full, in_layer, numbers, put, raw, result,
                    taken)
from support import Store, load, save

LAYERS = 3


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    """Models, the same as differences, and adapters: a, b and the base."""
    store = Store(tmp_path_factory.mktemp("values"))
    for seed, name in enumerate(("base", "a", "b")):
        commit(store, name, drawn(seed))
    for name in ("a", "b"):
        store("delta", name, "--base", "base", "-m", name, "--ref",
              f"d-{name}")
        lora(store.path / f"l-{name}", ord(name))
        store("commit", f"l-{name}", "-m", name, "--ref", f"l-{name}")
    return store


# ---- adapters ----------------------------------------------------------------

RANKS = {97: 2, 98: 3}
MODULES = [f"model.layers.{i}.{piece.removesuffix('.weight')}"
           for i in range(LAYERS) for piece in PIECES]


def lora(path, seed):
    """An adapter of scale 2 whose maps are of small whole numbers."""
    rng = np.random.default_rng(seed)
    rank, tensors = RANKS[seed], {}
    for module in MODULES:
        for which, shape in (("A", (rank, 5)), ("B", (4, rank))):
            tensors[f"base_model.model.{module}.lora_{which}.weight"] = (
                "F32", shape, raw(rng.integers(-8, 8, shape)))
    save(path / "adapter_model.safetensors", tensors, {"format": "pt"})
    (path / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "base_model_name_or_path": "tiny", "r": rank,
        "lora_alpha": 2 * rank, "target_modules": ["up_proj", "q_proj"],
        "task_type": "CAUSAL_LM", "bias": "none", "fan_in_fan_out": False,
        "use_dora": False, "use_rslora": False}))


def maps(folder):
    """{module: the map that it adds}."""
    told = json.loads((folder / "adapter_config.json").read_text())
    tensors = {name: numbers(*row) for name, row in load(folder).items()}
    found = {}
    for module in MODULES:
        name = f"base_model.model.{module}.lora_"
        rank = told.get("rank_pattern", {}).get(module, told["r"])
        alpha = told.get("alpha_pattern", {}).get(module, told["lora_alpha"])
        found[module] = (alpha / rank * tensors[name + "B.weight"]
                         @ tensors[name + "A.weight"])
    return found


# ---- weights, each over the layers -------------------------------------------

# Text, and its value for a tensor.
WEIGHTS = {
    "0,1": lambda name: along([0, 1], depth(name, LAYERS)),
    "1,0": lambda name: along([1, 0], depth(name, LAYERS)),
    "0.5,-2,4,1": lambda name: along([0.5, -2, 4, 1], depth(name, LAYERS)),
    "mlp:0.25;2": lambda name: 0.25 if "mlp" in name else 2,
    "layers.1:3;up:0.5,1;1": lambda name: (
        3 if "layers.1" in name else
        along([0.5, 1], depth(name, LAYERS)) if "up" in name else 1),
    "*:0.75": lambda name: 0.75,
    "-2": lambda name: -2,
}
PAIRS = list(zip(WEIGHTS, list(WEIGHTS)[1:] + list(WEIGHTS)[:1],
                 strict=True))


def close(got, want, part=1e-6):
    assert set(got) == set(want)
    for name, value in want.items():
        most = part * np.abs(value).max()
        assert np.allclose(got[name], value, rtol=0, atol=most), name


@pytest.mark.parametrize("one, two", PAIRS)
def test_weights_of_whole_models_go_over_the_layers(store, one, two):
    store("merge", f"a@{one}", f"b@{two}", "--no-normalize", "-m", "x",
          "--ref", "x")
    a, b = drawn(1), drawn(2)
    close(result(store, "x"), {
        name: WEIGHTS[one](name) * a[name] + WEIGHTS[two](name) * b[name]
        for name in a})


@pytest.mark.parametrize("one, two", PAIRS)
def test_weights_of_differences_go_over_the_layers(store, one, two):
    store("merge", f"d-a@{one}", f"d-b@{two}", "--method", "task_arithmetic",
          "-m", "x", "--ref", "x")
    base, a, b = drawn(0), drawn(1), drawn(2)
    store("apply", "x", "--base", "base", "-o", "applied", "--force")
    close(taken(store.path / "applied"), {
        name: base[name] + WEIGHTS[one](name) * (a[name] - base[name])
        + WEIGHTS[two](name) * (b[name] - base[name]) for name in base})


@pytest.mark.parametrize("one, two", PAIRS)
def test_weights_of_adapters_as_maps_go_over_the_layers(store, one, two):
    done = store("merge", f"l-a@{one}", f"l-b@{two}", "--no-normalize", "-m",
                 "x", "--ref", "x", "--json").json
    assert done["recipe"]["space"] == "product"
    store("checkout", "x", "-o", "maps", "--force")
    a, b = maps(store.path / "l-a"), maps(store.path / "l-b")
    close(maps(store.path / "maps"), {
        name: WEIGHTS[one](name) * a[name] + WEIGHTS[two](name) * b[name]
        for name in MODULES})


def test_normalized_shares_of_maps_sum_to_one_in_each_module(store):
    store("merge", "l-a@1,3", "l-b@q_proj:1;3", "-m", "x", "--ref", "x")
    store("checkout", "x", "-o", "maps", "--force")
    a, b = maps(store.path / "l-a"), maps(store.path / "l-b")
    want = {}
    for name in MODULES:
        one = along([1, 3], depth(name, LAYERS))
        two = 1 if "q_proj" in name else 3
        want[name] = (one * a[name] + two * b[name]) / (one + two)
    close(maps(store.path / "maps"), want)


@pytest.mark.parametrize("one, two", PAIRS)
def test_weights_of_factors_go_over_the_layers(store, one, two):
    lora(store.path / "l-c", 97)
    rows = load(store.path / "l-c")
    rows = {name: (dtype, shape, raw(numbers(dtype, shape, data) + 1))
            for name, (dtype, shape, data) in rows.items()}
    save(store.path / "l-c" / "adapter_model.safetensors", rows)
    store("commit", "l-c", "-m", "c", "--ref", "l-c")
    store("merge", f"l-a@{one}", f"l-c@{two}", "--space", "factors",
          "--no-normalize", "-m", "x", "--ref", "x")
    store("checkout", "x", "-o", "factors", "--force")
    a = taken(store.path / "l-a")
    close(taken(store.path / "factors"), {name: WEIGHTS[one](name) * a[name]
                + WEIGHTS[two](name) * (a[name] + 1) for name in a})


# ---- parameters --------------------------------------------------------------

def kept(base, got):
    """How many elements of each tensor are not the base's."""
    return {name: int(np.count_nonzero(got[name] != base[name]))
            for name in base}


def counts(density):
    """Of tensors of 20 elements, none of which is as in the base."""
    return {name: int(density(name) * 20) for name in full(0)}


@pytest.fixture(name="steep", scope="module")
def steep_model(store):
    """A base of zeros and what differs from it everywhere, by distinct
    magnitudes."""
    ramp = np.arange(1, 21).reshape(4, 5) / 8
    zero = commit(store, "zero", full(0))
    commit(store, "steep", {name: value + ramp
                            for name, value in zero.items()})
    return zero


DENSITY = "mlp:0.1;norm:1;0.5,0.25"


def density_of(name):
    if "mlp" in name:
        return 0.1
    if "norm" in name:
        return 1
    return along([0.5, 0.25], depth(name, LAYERS))


@pytest.mark.parametrize("words", [
    ("steep", "--density", DENSITY),
    (f"steep,density={DENSITY}",),
    (f"steep@mlp:2;1,density={DENSITY}", "--density", "0"),
    ("steep,density=mlp:0.1", "--density", "norm:1;0.5,0.25"),
], ids=" ".join)
def test_a_density_is_told_by_an_input_or_for_all(store, steep, words):
    store("merge", *words, "--method", "ties", "--base", "zero", "-m", "x",
          "--ref", "x")
    assert kept(steep, result(store, "x")) == counts(density_of)


@pytest.mark.parametrize("arithmetic", ["precise", "mergekit"])
def test_slerp_goes_as_far_as_each_tensor_is_told(store, arithmetic):
    store("merge", "a", "b", "--method", "slerp", "--t", "mlp:1,0,1;norm:1;0",
          "--arithmetic", arithmetic, "-m", "x", "--ref", "x")
    a, b = drawn(1), drawn(2)
    ends = {name: b if "norm" in name or
            ("mlp" in name and "layers.1" not in name) else a for name in a}
    close(result(store, "x"), {name: ends[name][name] for name in a}, 1e-5)


def test_a_whole_number_goes_over_layers_if_each_has_a_whole_one(store):
    store("merge", "a", "b", "--method", "karcher", "--max-iter", "2,4", "-m",
          "x", "--ref", "x")
    done = store("merge", "a", "b", "--method", "karcher", "--max-iter", "2,5",
                 "-m", "x", "--ref", "y", "--json", code=2)
    assert "max_iter: 3.5 is not a whole number" in done.error["message"]
    assert "layers.1." in done.error["message"]
    store("show", "y", code=3)


def test_what_is_recorded_tells_all_of_it(store):
    done = store("merge", "d-a@0,0.50,density=mlp:0.10;*:0.5", "d-b",
                 "--method", "ties", "--weight", "norm:2", "--lambda",
                 "1,2", "-m", "x", "--ref", "x", "--json").json
    one, two = done["recipe"]["inputs"]
    assert (one["weight"], two["weight"]) == ("0,0.5", "norm:2;1")
    assert one["parameters"] == {"density": "mlp:0.1;0.5"}
    assert "parameters" not in two
    assert done["recipe"]["parameters"]["lambda"] == "1,2"
    assert done["recipe"]["parameters"]["density"] == 1
    shown = store("show", "x", "--json").json["recipe"]
    assert shown == done["recipe"]


# ---- dtypes and streams ------------------------------------------------------

def test_out_dtype_is_what_comes_of_a_merge_in_dtype(store):
    path = store.path
    put(path / "fine", {"w": [1.00390625, 3.0]})
    store("commit", "fine", "-m", "x", "--ref", "fine")
    for words, dtype, want in (
            (("--dtype", "BF16"), "BF16", 1.0),
            (("--dtype", "BF16", "--out-dtype", "F32"), "F32", 1.0),
            (("--out-dtype", "F64"), "F64", 1.00390625),
            (("--out-dtype", "BF16"), "BF16", 1.0)):
        store("merge", "fine", "fine", "--arithmetic", "mergekit", *words,
              "-m", "x", "--ref", "x")
        store("checkout", "x", "-o", "fine-out", "--force")
        (row,) = load(path / "fine-out").values()
        assert row[0] == dtype
        assert numbers(*row).tolist() == [want, 3.0]
        told = config_of(store, "x")["torch_dtype"]
        assert told == {"BF16": "bfloat16", "F32": "float32",
                        "F64": "float64"}[dtype]


def test_mergekits_stream_is_recorded_in_place_of_a_seed(store, steep):
    def merge(seed):
        done = store("merge", "steep", "--base", "zero", "--method",
                     "dare_linear", "--density", "norm:1;0.5", "--arithmetic",
                     "mergekit", "--mergekit-stream", seed, "-m", "x", "--ref",
                     "x", "--json").json
        assert done["recipe"]["mergekit_stream"] == seed
        assert "seed" not in done["recipe"]
        return done["manifest"], kept(steep, result(store, "x"))

    first, second, again = merge("1"), merge("2"), merge("1")
    assert first == again and first != second
    assert first[1][NORM] == 20 and 0 < first[1][EMBED] < 20


DARE = ("--base", "base", "--method", "dare_linear", "--density", "0.5")
REFUSED = [
    (("a", "--base", "base", "--method", "ties", "--density", "-0.1"),
     ["density", "-0.1", "0 or more"]),
    (("a", "--base", "base", "--method", "ties", "--density", "0.5,-1"),
     ["density", "-1", "0 or more"]),
    (("a", "--base", "base", "--method", "ties", "--density", "mlp:"),
     ["density"]),
    (("a,density=mlp:-0.1;1", "--base", "base", "--method", "ties"),
     ["density", "-0.1", "0 or more"]),
    (("a", "--base", "base", "--method", "breadcrumbs", "--gamma", "0,2"),
     ["gamma", "2", "0 … 1"]),
    (("a", "b", "--method", "karcher", "--max-iter", "5.5"), ["max_iter"]),
    (("a", "b", "--method", "karcher", "--max-iter", "5,-1"),
     ["max_iter", "-1", "0 … "]),
    (("a@mlp:x", "b"), ["weight", "x"]),
    (("a@0,,1", "b"), ["weight"]),
    (("a@", "b"), ["weight"]),
    (("a@0.5,weight=1", "b"), ["'weight' is there twice"]),
    (("a,normalize=true", "b"), ["'normalize' is one for all inputs"]),
    (("a,densty=0.5", "b"), ["'densty'", "weight normalize"]),
    (("a,=0.5", "b"), ["is not name=value"]),
    (("a,density", "b"), ["is not name=value"]),
    (("a@1,0", "b@-1,0"), ["sum to zero"]),
    (("a@mlp:1;0", "b@0"), ["sum to zero", "lm_head.weight"]),
    (("a", "b", "--method", "slerp", "--t", "mlp:0.5"),
     ["no 't' is told for tensor"]),
    (("a@mlp:1", "b", "--arithmetic", "mergekit"),
     ["no 'weight' is told for tensor"]),
    (("l-a@1,0", "l-b@-1,0"), ["sum to zero", "model.layers."]),
    (("a", "b", "--out-dtype", "F32"), ["out_dtype", "'mergekit'"]),
    (("a", "b", "--out-dtype", "I8", "--arithmetic", "mergekit"),
     ["out_dtype", "BF16 F16 F32 F64"]),
    (("d-a", "d-b", "--out-dtype", "F32", "--arithmetic", "mergekit"),
     ["out_dtype", "whole models only"]),
    (("a", *DARE, "--mergekit-stream", "1"), ["arithmetic", "'mergekit'"]),
    (("a", "b", "--mergekit-stream", "1", "--arithmetic", "mergekit"),
     ["'linear' draws no random numbers"]),
    (("a", *DARE, "--arithmetic", "mergekit", "--mergekit-stream", "-1"),
     ["mergekit_stream"]),
    (("a", *DARE, "--arithmetic", "mergekit", "--mergekit-stream", "1",
      "--seed", "1"), ["a seed, and"]),
]


def recorded(store):
    return store("stats", "--json").json, store("refs", "--json").out


@pytest.mark.parametrize("words, says", REFUSED,
                         ids=[" ".join(row[0]) for row in REFUSED])
def test_what_cannot_be_is_refused_and_nothing_recorded(store, words, says):
    before = recorded(store)
    done = store("merge", *words, "-m", "x", "--ref", "refused", code=2)
    assert done.out == ""
    assert done.err.startswith("ballast: ")
    text = done.err.split("\n")
    assert all(word in text[0] for word in says), done.err
    assert recorded(store) == before


def test_a_layer_that_is_the_same_counts_as_one(store):
    """A difference of one layer alone is as deep as the model says."""
    base = full(1)
    commit(store, "flat", base)
    tensors = dict(base)
    tensors[in_layer(1)] = base[in_layer(1)] + 2
    put(store.path / "one-layer", tensors)
    store("delta", "one-layer", "--base", "flat", "-m", "x", "--ref", "d-one")
    store("merge", "d-one@0,1", "--method", "task_arithmetic", "-m", "x",
          "--ref", "x")
    store("apply", "x", "--base", "flat", "-o", "applied", "--force")
    close(taken(store.path / "applied"),
          base | {in_layer(1): base[in_layer(1)] + 1})
