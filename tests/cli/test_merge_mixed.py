"""Adapters, deltas and whole models in one merge, as differences to a base: what
numpy says of them."""

import json

import numpy as np
import pytest

from support import LLAMA, load, save
from test_lora import ADAPTERS, Lora, floats, maps

BASE = LLAMA / "base"
SMALL = LLAMA / "ft-small"
LARGE = LLAMA / "ft-large"


def changed(path, change):
    """A copy of an adapter whose config and tensors went through `change`."""
    source = ADAPTERS / "lora_r8_qv"
    config = json.loads((source / "adapter_config.json").read_text())
    tensors = load(source / "adapter_model.safetensors")
    change(config, tensors)
    save(path / "adapter_model.safetensors", tensors, {"format": "pt"})
    (path / "adapter_config.json").write_text(json.dumps(config))
    return path


def with_dora(config, tensors):
    config["use_dora"] = True
    draw = np.random.default_rng(5)
    for name, entry in list(tensors.items()):
        if "lora_B" in name:
            size = entry[1][0]
            numbers = draw.uniform(0.5, 1.5, size).astype("<f4")
            tensors[name.replace("lora_B.weight", "lora_magnitude_vector")] = (
                "F32", (size,), numbers.tobytes())


def with_norm(config, tensors):
    config["modules_to_save"] = ["norm"]
    numbers = np.linspace(0.5, 2, weights(BASE)["model.norm.weight"].size)
    tensors["base_model.model.model.norm.weight"] = (
        "F32", numbers.shape, numbers.astype("<f4").tobytes())


def weights(path):
    return {name: floats(entry) for name, entry in load(path).items()}


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Lora(tmp_path_factory.mktemp("mixed"))
    for path, ref in [(BASE, "base"), (SMALL, "small"), (LARGE, "large")]:
        store("commit", path, "--kind", "weights", "-m", ref, "--ref", ref)
    store("delta", LARGE, "--base", BASE, "-m", "delta", "--ref", "delta")
    store("delta", BASE, "--base", SMALL, "-m", "other", "--ref", "other")
    for path, ref in [
            (ADAPTERS / "lora_r8_qv", "lora"),
            (ADAPTERS / "lora_r16_all_rslora", "rslora"),
            (changed(store.path / "dora", with_dora), "dora"),
            (changed(store.path / "norm", with_norm), "norm")]:
        store("commit", path, "-m", ref, "--ref", ref)
    return store


def of_adapter(path):
    return {f"{name}.weight": matrix for name, matrix in maps(path).items()}


def of_model(path):
    base = weights(BASE)
    return {name: value - base[name] for name, value in weights(path).items()}


def of_dora(path):
    base, found = weights(BASE), {}
    tensors = load(path / "adapter_model.safetensors")
    for name, matrix in of_adapter(path).items():
        size = floats(tensors["base_model.model." + name.replace(
            ".weight", ".lora_magnitude_vector")])
        moved = base[name] + matrix
        lengths = np.linalg.norm(moved, axis=1)
        found[name] = moved * (size / lengths)[:, None] - base[name]
    return found


def of_norm(path):
    found = of_adapter(path)
    tensors = load(path / "adapter_model.safetensors")
    found["model.norm.weight"] = (
        floats(tensors["base_model.model.model.norm.weight"])
        - weights(BASE)["model.norm.weight"])
    return found


def differences(store, ref):
    """What an input does to the base, in double."""
    makers = {"lora": lambda: of_adapter(ADAPTERS / "lora_r8_qv"),
              "rslora": lambda: of_adapter(ADAPTERS / "lora_r16_all_rslora"),
              "dora": lambda: of_dora(store.path / "dora"),
              "norm": lambda: of_norm(store.path / "norm"),
              "small": lambda: of_model(SMALL),
              "delta": lambda: of_model(LARGE)}
    return makers[ref]()


def total(store, inputs):
    found = {name: np.zeros(value.shape)
             for name, value in weights(BASE).items()}
    for ref, weight in inputs:
        for name, value in differences(store, ref).items():
            found[name] += weight * value
    return found


def merge(store, inputs, *args, **more):
    words = [f"{ref}@{weight}" for ref, weight in inputs]
    return store("merge", *words, "--base", "base", "-m", "mixed", "--ref",
                 "mixed", *args, **more)


MIXES = [
    [("lora", 0.5), ("small", 0.5)],
    [("lora", 0.7), ("delta", -0.4)],
    [("small", 0.5), ("delta", 0.25), ("rslora", 1)],
    [("lora", 1), ("rslora", -0.5)],
    [("dora", 0.5), ("small", 1)],
    [("norm", 0.75), ("delta", 0.5)],
]


@pytest.mark.parametrize("inputs", MIXES)
def test_a_mix_is_the_sum_of_what_each_does_to_the_base(store, inputs, tmp_path):
    space = ["--space", "delta"] if all(
        ref in ("lora", "rslora") for ref, _ in inputs) else []
    merge(store, inputs, "--method", "task_arithmetic", *space)
    store("checkout", "mixed", "-o", tmp_path / "out")
    want = total(store, inputs)
    got = load(tmp_path / "out")
    assert set(got) <= set(want)
    for name, value in want.items():
        here = floats(got[name]) if name in got else np.zeros(value.shape)
        # Terms are F32; their sum is of double.
        room = sum(abs(weight) * np.abs(differences(store, ref).get(name, 0))
                   for ref, weight in inputs)
        assert np.all(np.abs(here - value) <= room * 2.0**-22 + 1e-30), name


@pytest.mark.parametrize("inputs", MIXES[:2])
def test_applied_it_is_rounded_once(store, inputs, tmp_path):
    merge(store, inputs, "--method", "task_arithmetic")
    store("apply", "mixed", "--base", BASE, "-o", tmp_path / "out")
    base, moves = weights(BASE), total(store, inputs)
    for name, value in weights(tmp_path / "out").items():
        want = base[name] + moves[name]
        unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(want), 1e-38))) - 7)
        # The difference and its sum with the base are F32.
        wide = (np.abs(base[name]) + np.abs(moves[name])) * 2.0**-23
        assert np.all(np.abs(value - want) <= unit / 2 + wide), name


def test_another_base_is_refused_by_name(store, tmp_path):
    merge(store, MIXES[0])
    done = store("apply", "mixed", "--base", SMALL, "-o", tmp_path / "out",
                 code=6)
    assert "lm_head.weight" in done.err and not (tmp_path / "out").exists()


def test_a_delta_of_another_base_is_refused(store):
    done = merge(store, [("lora", 1), ("other", 1)], code=2)
    assert "deltas of different bases: tensor '" in done.err


def test_the_recipe_tells_the_base_and_no_weight_of_it(store):
    recipe = merge(store, MIXES[0], "--json").json["recipe"]
    assert recipe["space"] == "delta"
    assert [one.get("carrier", False) for one in recipe["inputs"]] == [
        False, False, True]
    base = store("show", "base", "--json").json["id"]
    assert recipe["inputs"][2]["commit"] == base
    assert f"base       acme:{base[:12]}@1\n" in store("show", "mixed").out


@pytest.mark.parametrize("words, says", [
    (["lora", "small"], "do not mix"),
    (["lora", "delta"], "do not mix"),
    (["lora", "small", "--base", "lora"], "do not mix"),
    (["small", "lora", "--base", "base@0.5"], "takes no weight"),
    (["small", "lora", "--base", "base", "--space", "weights"], "do not mix"),
    (["lora", "small", "--base", "base", "--rank", "4"], "a rank"),
    (["lora", "base", "--base", "base"], "is an input, too"),
    (["lora@0.5", "base@0.5", "--base", "base"], "is an input, too"),
])
def test_what_does_not_go_together_is_refused(store, words, says):
    done = store("merge", *words, "-m", "x", "--ref", "refused", code=2)
    assert says in done.err
    store("show", "refused", code=3)


@pytest.mark.parametrize("ref", ["lora", "large"])
def test_a_single_input_knows_its_base_too(store, ref, tmp_path):
    store("merge", ref, "--base", "base", "--space", "delta", "-m", "x", "--ref",
          "single")
    done = store("apply", "single", "--base", SMALL, "-o", tmp_path / "no",
                 code=6)
    assert "base differs" in done.err
    done = store("merge", "single", "other", "-m", "x", "--ref", "no", code=2)
    assert "deltas of different bases" in done.err
    store("apply", "single", "--base", BASE, "-o", tmp_path / "out")
    want = weights(LARGE) if ref == "large" else None
    for name, value in (want or {}).items():
        assert np.array_equal(weights(tmp_path / "out")[name], value)


@pytest.mark.parametrize("weight", ["0.5", "0,1"])
def test_a_weight_for_all_is_none_of_the_base(store, weight, tmp_path):
    for method in ["linear", "task_arithmetic"]:
        store("merge", "lora", "small", "--base", "base", "--method", method,
              "--weight", weight, "--no-normalize", "-m", "x", "--ref", method)
        store("checkout", method, "-o", tmp_path / method)
    assert load(tmp_path / "linear") == load(tmp_path / "task_arithmetic")


def test_jobs_do_not_show(store, tmp_path):
    merge(store, MIXES[4], "--method", "ties", "--density", "0.5")
    for jobs in "18":
        store("--jobs", jobs, "apply", "mixed", "--base", BASE, "-o",
              tmp_path / jobs)
    assert load(tmp_path / "1") == load(tmp_path / "8")


def test_who_forgets_the_base_is_told_of_the_mix(store):
    mixed = merge(store, MIXES[0], "--json").json["id"]
    done = store("forget", "base", "--reason", "r", "--dry-run", "--json")
    assert f"acme:{mixed}" in done.json["plan"]["broken_views"]
