"""Adapters merged as PEFT's add_weighted_adapter does, type by type: what it made
of peft/combined.tar.xz, and where it is wrong what it should have made."""

import json
import math
import re
import tarfile

import numpy as np
import pytest

from test_peft import HERE, ballast, data, load, wide  # noqa: F401

CASES = json.loads((HERE / "combined.json").read_text())


@pytest.fixture(name="mixed", scope="session")
def made_mixed(tmp_path_factory):
    at = tmp_path_factory.mktemp("combined")
    with tarfile.open(HERE / "combined.tar.xz") as tar:
        tar.extractall(at)
    return at / "combined"


@pytest.fixture(name="store", scope="session")
def made_store(mixed, tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    for folder in sorted((mixed / "inputs").iterdir()):
        assert not ballast(root, "commit", folder, "-m", "an input", "--ref",
                           folder.name).returncode
    return root


def merged(store, out, *words):
    done = ballast(store, "merge", *words, "-m", "merged", "--ref", "merged")
    assert done.returncode == 0, done.stderr
    done = ballast(store, "checkout", "merged", "-o", out)
    assert done.returncode == 0, done.stderr


def pattern(patterns, module, otherwise):
    for key, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return otherwise


def maps(folder):
    """{module: s B A} of a folder, as PEFT reads it."""
    tensors = load(folder / "adapter_model.safetensors")
    config = json.loads((folder / "adapter_config.json").read_text())
    found = {}
    for name, a in tensors.items():
        if "_A" not in name:
            continue
        module = name.removeprefix("base_model.model.").rsplit(".lora_", 1)[0]
        b = wide(tensors[name.replace("_A", "_B")])
        rank = pattern(config.get("rank_pattern"), module, config["r"])
        assert rank == a[1].shape[0]
        alpha = pattern(config.get("alpha_pattern"), module,
                        config["lora_alpha"])
        by = math.sqrt(rank) if config.get("use_rslora") else rank
        found[module] = alpha / by * b @ wide(a)
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_combination_is_what_peft_makes_of_it(mixed, store, tmp_path, name):
    case = CASES[name]
    merged(store, tmp_path / "out", *case["inputs"], *case["args"])
    got = maps(tmp_path / "out")
    want = load(mixed / "results" / f"{name}.safetensors")
    assert got.keys() == want.keys()
    for module, (_, expected) in want.items():
        have = got[module].T if case["turned"] else got[module]
        error = np.linalg.norm(have - expected)
        assert error <= case["tolerance"] * np.linalg.norm(expected) + 1e-12


def test_dare_keeps_a_part_and_makes_up_for_the_rest(store, tmp_path):
    words = ["a1@0.5", "--space", "factors", "--method"]
    for name, more in [("all", ["peft_linear"]),
                       ("some", ["peft_dare_linear", "--density", "0.5",
                                 "--seed", "1"])]:
        merged(store, tmp_path / name, words[0], "a2@0", *words[1:], *more)
    kept = 0
    some = load(tmp_path / "some" / "adapter_model.safetensors")
    for name, (_, whole) in load(
            tmp_path / "all" / "adapter_model.safetensors").items():
        part = some[name][1]
        assert np.allclose(part[part != 0], 2 * whole[part != 0], rtol=1e-6)
        kept += np.mean(part != 0) / len(some)
    assert 0.4 < kept < 0.6


@pytest.mark.parametrize("words, code, says", [
    (["a1", "b1", "--method", "peft_linear", "--space", "factors"], 2,
     "factors of different shapes"),
    (["a1", "a2", "--method", "peft_ties"], 9, "--rank R"),
    (["a1", "--base", "a2", "--method", "peft_linear", "--space", "factors"], 2,
     "take no base"),
])
def test_what_peft_does_not_combine_is_refused(store, words, code, says):
    done = ballast(store, "merge", *words, "-m", "x", "--ref", "refused")
    assert done.returncode == code and says in done.stderr


def test_a_recipe_of_mergekit_cannot_name_them(store, tmp_path):
    file = tmp_path / "recipe.yml"
    file.write_text("merge_method: peft_ties\nmodels: [{model: a1}]\n"
                    "base_model: a2\n")
    done = ballast(store, "import-mergekit", file, "--map", "a1=a1", "--map",
                   "a2=a2", "-m", "x", "--ref", "x")
    assert done.returncode == 2 and "no merge method 'peft_ties'" in done.stderr


def test_a_copy_of_the_embedding_comes_along_if_all_have_it(mixed, store,
                                                            tmp_path):
    name = "base_model.model.model.embed_tokens.base_layer.weight"
    merged(store, tmp_path / "out", "e1@0.5", "e2", "--method",
           "task_arithmetic", "--rank", "3")
    tensors = load(mixed / "inputs" / "e1" / "adapter_model.safetensors")
    got = load(tmp_path / "out" / "adapter_model.safetensors")
    assert got[name][1].tobytes() == tensors[name][1].tobytes()
    other = tmp_path / "e3"
    other.mkdir()
    config = mixed / "inputs" / "e2" / "adapter_config.json"
    (other / "adapter_config.json").write_bytes(config.read_bytes())
    raw = bytearray((config.parent / "adapter_model.safetensors").read_bytes())
    at = raw.find(load(config.parent / "adapter_model.safetensors")[name][1]
                  .tobytes())
    raw[at] ^= 1
    (other / "adapter_model.safetensors").write_bytes(raw)
    assert not ballast(store, "commit", other, "-m", "x", "--ref",
                       "e3").returncode
    done = ballast(store, "merge", "e1", "e3", "-m", "x", "--ref", "refused")
    assert done.returncode == 9 and name in done.stderr


def test_factors_of_two_dtypes_are_merged_in_the_wider(data, store, tmp_path):  # noqa: F811
    for name in ("lora-embed", "lora-f16-file"):
        assert not ballast(store, "commit", data / "adapters" / name, "-m", "x",
                           "--ref", name).returncode
    merged(store, tmp_path / "out", "lora-embed", "lora-f16-file", "--method",
           "peft_linear", "--space", "factors")
    got = load(tmp_path / "out" / "adapter_model.safetensors")
    assert {dtype for dtype, _ in got.values()} == {"F32"}


@pytest.mark.parametrize("name", ["tied-embed", "tied-save-head", "gpt2-wte",
                                  "lora-resized"])
def test_what_is_no_difference_to_the_base_is_not_weighed(data, tmp_path,  # noqa: F811
                                                          name):
    base = data / "base" / (json.loads((HERE / "folds.json").read_text())[name]
                            ["base"] + "-f32")
    root = tmp_path / "store"
    for path, ref, kind in ((base, "base", "weights"),
                            (data / "adapters" / name, "a", "adapter")):
        assert not ballast(root, "commit", path, "-m", "x", "--ref", ref,
                           "--kind", kind).returncode
    words = ["--base", "base", "--space", "delta", "--method",
             "task_arithmetic", "-m", "x", "--ref", "m"]
    done = ballast(root, "merge", "a@0.5", *words)
    assert done.returncode == 9 and "no difference to merge" in done.stderr
    assert not ballast(root, "merge", "a", *words).returncode
    for ref in ("a", "m"):
        assert not ballast(root, "apply", ref, "--base", base, "-o",
                           tmp_path / ref).returncode
    want = load(tmp_path / "a" / "model.safetensors")
    for tensor, (_, have) in load(tmp_path / "m" / "model.safetensors").items():
        assert np.allclose(wide(("F32", have)), wide(want[tensor]), rtol=1e-6,
                           atol=1e-7), tensor


def test_peft_types_are_not_exported_to_mergekit(data, tmp_path):  # noqa: F811
    root = tmp_path / "store"
    for name, ref in (("llama-f32", "base"), ("llama-bf16", "other")):
        assert not ballast(root, "commit", data / "base" / name, "--kind",
                           "weights", "-m", "x", "--ref", ref).returncode
    assert not ballast(root, "merge", "other", "--base", "base", "--method",
                       "peft_ties", "-m", "x", "--ref", "m").returncode
    done = ballast(root, "export-mergekit", "m")
    assert done.returncode == 9 and "mergekit has not" in done.stderr
