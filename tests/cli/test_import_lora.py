"""LoRA files of other trainers become PEFT adapters: kohya's, diffusers' and
ComfyUI's names, looked up in the base."""

import json

import numpy as np
import pytest

from support import load, run, save
from test_lora import floats

MODULES = ["model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj",
           "model.layers.1.self_attn.q_proj", "model.layers.1.mlp.up_proj"]
OUT, IN = 6, 4


def matrix(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("<f4")


def f32(array):
    return "F32", array.shape, array.tobytes()


def base_of(path, modules=MODULES):
    tensors = {f"{name}.weight": f32(matrix(len(name), OUT, IN))
               for name in modules}
    tensors["model.norm.weight"] = f32(matrix(1, IN))
    save(path / "model.safetensors", tensors)
    (path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return path


def underscored(name):
    return "lora_unet_" + name.replace(".", "_")


# By dialect: what a module is called, and its two factors.
DIALECTS = {
    "kohya": (underscored, ".lora_down.weight", ".lora_up.weight"),
    "te": (lambda name: "lora_te_" + name.replace(".", "_"),
           ".lora_down.weight", ".lora_up.weight"),
    "diffusers": (lambda name: "transformer." + name, ".lora_A.weight",
                  ".lora_B.weight"),
    "older": (lambda name: "unet." + name, ".lora.down.weight",
              ".lora.up.weight"),
    "comfy": (lambda name: "diffusion_model." + name, ".lora_down.weight",
              ".lora_up.weight"),
    "bare": (lambda name: name, ".lora_A.weight", ".lora_B.weight"),
}
RANKS = [2, 2, 3, 2]
ALPHAS = [None, 1.0, 6.0, 0.5]


def factors(i):
    return matrix(10 + i, RANKS[i], IN), matrix(20 + i, OUT, RANKS[i])


def file_of(path, dialect, alphas=ALPHAS):
    call, down, up = DIALECTS[dialect]
    tensors = {}
    for i, name in enumerate(MODULES):
        a, b = factors(i)
        tensors[call(name) + down] = f32(a)
        tensors[call(name) + up] = f32(b)
        if alphas[i] is not None:
            tensors[call(name) + ".alpha"] = f32(np.array(alphas[i], "<f4"))
    return save(path, tensors, {"ss_output_name": "style"})


def folded(tmp_path, base, adapter):
    root = ["--root", tmp_path / "store", "--tenant", "acme"]
    run(*root, "commit", adapter, "-m", "m", "--ref", "a")
    run(*root, "apply", "a", "--base", base, "-o", tmp_path / "folded")
    return load(tmp_path / "folded")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_looked_up_in_the_base(tmp_path, dialect):
    base = base_of(tmp_path / "base")
    file = file_of(tmp_path / "style.safetensors", dialect)
    done = run("import-lora", file, "--base", base, "-o", tmp_path / "out",
               "--json")
    assert done.json["modules"] == 4
    got = load(tmp_path / "out" / "adapter_model.safetensors")
    before, after = load(base), folded(tmp_path, base, tmp_path / "out")
    for i, name in enumerate(MODULES):
        a, b = factors(i)
        assert got[f"base_model.model.{name}.lora_A.weight"] == f32(a)
        assert got[f"base_model.model.{name}.lora_B.weight"] == f32(b)
        scale = 1 if ALPHAS[i] is None else ALPHAS[i] / RANKS[i]
        want = (floats(before[f"{name}.weight"])
                + scale * b.astype("f8") @ a.astype("f8"))
        assert np.allclose(floats(after[f"{name}.weight"]), want, rtol=1e-6)
    assert after["model.norm.weight"] == before["model.norm.weight"]


def test_a_name_that_means_two_modules_is_refused(tmp_path):
    base = base_of(tmp_path / "base", [*MODULES, "model.layers.0.mlp_up.proj"])
    file = file_of(tmp_path / "style.safetensors", "kohya")
    done = run("import-lora", file, "--base", base, "-o", tmp_path / "out",
               code=2)
    assert "'lora_unet_model_layers_0_mlp_up_proj' may be several" in done.err
    assert not (tmp_path / "out").exists()
    dotted = file_of(tmp_path / "dotted.safetensors", "diffusers")
    run("import-lora", dotted, "--base", base, "-o", tmp_path / "out")


def broken(tensors, what):
    name = underscored(MODULES[0])
    down, up = f"{name}.lora_down.weight", f"{name}.lora_up.weight"
    if what == "alone":
        del tensors[up]
    elif what == "elsewhere":
        tensors["lora_te_other.lora_up.weight"] = tensors[up]
    elif what == "dora":
        tensors[f"{name}.dora_scale"] = f32(matrix(1, OUT, 1))
    elif what == "unknown":
        tensors[f"{name}.lora_sideways"] = f32(matrix(1, 2))
    elif what == "conv":
        tensors[down] = f32(matrix(1, 2, IN, 1, 1))
    elif what == "shape":
        tensors[down] = f32(matrix(1, 2, IN + 1))
    elif what == "alpha":
        tensors[f"{name}.alpha"] = f32(np.array(np.nan, "<f4"))
    elif what == "twice":
        tensors[f"unet.{MODULES[0]}.lora_up.weight"] = tensors[up]


@pytest.mark.parametrize("what, code, says", [
    ("alone", 6, "one factor alone"),
    ("elsewhere", 2, "module 'lora_te_other' is no matrix of the base"),
    ("dora", 9, "is DoRA"),
    ("unknown", 9, "lora_sideways' is of no LoRA dialect"),
    ("conv", 9, "only linear modules"),
    ("shape", 6, "do not fit the base's [6, 4]"),
    ("alpha", 9, "is no alpha"),
    ("twice", 6, "are the same of module"),
])
def test_what_is_not_meant_is_refused_by_name(tmp_path, what, code, says):
    base = base_of(tmp_path / "base")
    file = file_of(tmp_path / "style.safetensors", "kohya")
    tensors = load(file)
    broken(tensors, what)
    save(file, tensors)
    done = run("import-lora", file, "--base", base, "-o", tmp_path / "out",
               code=code)
    assert says in done.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_stays(tmp_path):
    base = base_of(tmp_path / "base")
    file = file_of(tmp_path / "style.safetensors", "kohya")
    words = ["import-lora", file, "--base", base, "-o"]
    run(*words, tmp_path / "out")
    kept = load(tmp_path / "out")
    run(*words, tmp_path / "out", code=5)
    run(*words, tmp_path / "out", "--force")
    assert load(tmp_path / "out") == kept
    run(*words, base, "--force", code=2)
