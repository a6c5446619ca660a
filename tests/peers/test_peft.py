"""Adapters that ballast writes load in PEFT, and are the maps they should be."""

import os
import subprocess

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

TREE = os.environ["BALLAST_TREE"]
BASE = os.path.join(TREE, "examples", "llama", "base")
ADAPTERS = os.path.join(TREE, "tests", "data", "adapters")


def ballast(*words, cwd):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    done = subprocess.run([os.environ["BALLAST"], "--tenant", "acme", *words],
                          cwd=cwd, env=environment, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr


def folded(adapter):
    """Every tensor of the base with the adapter merged in by PEFT, in f32."""
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    model = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    return {name: tensor.detach().to(torch.float64)
            for name, tensor in model.state_dict().items()}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    for name, ref in (("lora_r8_qv", "tone"), ("lora_r16_all_rslora", "tools"),
                      ("lora_r4_patterns", "patterns")):
        ballast("commit", os.path.join(ADAPTERS, name), "-m", name, "--ref", ref,
                cwd=folder)
    ballast("merge", "tone", "tools@0.5", "patterns@-0.25", "--no-normalize", "-m",
            "all", "--ref", "all", cwd=folder)
    ballast("checkout", "all", "-o", "all", cwd=folder)
    return folder


def test_a_merged_adapter_is_the_weighted_sum_of_the_maps(work):
    base = {name: tensor.to(torch.float64) for name, tensor in
            AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
            .state_dict().items()}
    got = folded(str(work / "all"))
    inputs = [(1.0, "lora_r8_qv"), (0.5, "lora_r16_all_rslora"),
              (-0.25, "lora_r4_patterns")]
    maps = [(w, folded(os.path.join(ADAPTERS, name))) for w, name in inputs]
    for name, tensor in base.items():
        want = tensor + sum(w * (m[name] - tensor) for w, m in maps)
        assert torch.allclose(got[name], want, rtol=0, atol=2e-6), name


@pytest.mark.parametrize("name, ref", [("lora_r8_qv", "tone"),
                                       ("lora_r16_all_rslora", "tools"),
                                       ("lora_r4_patterns", "patterns")])
def test_applying_an_adapter_folds_it_as_peft_does(work, name, ref):
    ballast("apply", ref, "--base", BASE, "-o", f"folded-{ref}", cwd=work)
    ours = AutoModelForCausalLM.from_pretrained(work / f"folded-{ref}",
                                                dtype=torch.float32).state_dict()
    theirs = folded(os.path.join(ADAPTERS, name))
    for key, tensor in theirs.items():
        # Ours is rounded once, to the base's bf16; theirs was summed in f32,
        # which shows where base and change nearly cancel.
        want = tensor.to(torch.bfloat16).to(torch.float64)
        off = (ours[key].to(torch.float64) - want).abs() > 0
        assert off.float().mean() < 1e-3, key
        assert torch.allclose(ours[key].to(torch.float64), want, rtol=2**-7,
                              atol=1e-7), key
