"""What ballast writes loads in transformers, and computes as it should."""

import json
import os
import subprocess

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

PAIRS = os.path.join(os.environ["BALLAST_TREE"], "examples", "llama")


def ballast(*words, cwd):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    done = subprocess.run([os.environ["BALLAST"], "--tenant", "acme", *words],
                          cwd=cwd, env=environment, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tensors_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            found.update(load_file(os.path.join(folder, name)))
    return found


def logits(folder, prompt="def main():"):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model(**tokenizer(prompt, return_tensors="pt")).logits


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    base = os.path.join(PAIRS, "base")
    for tuned, ref in (("ft-small", "support"), ("ft-large", "finance")):
        ballast("delta", os.path.join(PAIRS, tuned), "--base", base, "-m", ref,
                "--ref", ref, cwd=folder)
    ballast("merge", "support@0.6", "finance@0.4", "--method", "linear", "-m",
            "blend", "--ref", "main", cwd=folder)
    for ref in ("support", "finance", "main"):
        ballast("apply", ref, "--base", base, "-o", ref, cwd=folder)
    return folder


@pytest.mark.parametrize("tuned, ref", [("ft-small", "support"),
                                        ("ft-large", "finance")])
def test_an_applied_delta_answers_as_the_tuned_model(work, tuned, ref):
    assert torch.equal(logits(work / ref), logits(os.path.join(PAIRS, tuned)))


@pytest.mark.parametrize("tuned, ref", [("ft-small", "support"),
                                        ("ft-large", "finance")])
def test_safetensors_reads_the_tuned_tensors_back(work, tuned, ref):
    ours, theirs = tensors_of(work / ref), tensors_of(os.path.join(PAIRS, tuned))
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert torch.equal(ours[name].view(torch.int16), tensor.view(torch.int16))


def test_a_blend_is_base_plus_weighted_differences(work):
    base = tensors_of(os.path.join(PAIRS, "base"))
    small = tensors_of(os.path.join(PAIRS, "ft-small"))
    large = tensors_of(os.path.join(PAIRS, "ft-large"))
    blend = tensors_of(work / "main")
    assert blend.keys() == base.keys()
    for name in base:
        b, s, l = (t[name].to(torch.float64) for t in (base, small, large))
        difference = (0.6 * (s - b) + 0.4 * (l - b)).to(torch.float32)
        want = (b.to(torch.float32) + difference).to(torch.bfloat16)
        assert torch.equal(blend[name], want), name


def test_a_blend_loads_and_answers(work):
    assert torch.isfinite(logits(work / "main")).all()


def test_a_checkout_of_a_delta_is_readable_by_safetensors(work):
    ballast("checkout", "support", "-o", "delta", cwd=work)
    with safe_open(work / "delta" / "model.safetensors", "np") as file:
        assert all(file.get_tensor(n).dtype in (np.float32, np.uint16)
                   for n in file.keys())
    told = json.loads((work / "delta" / "ballast.json").read_text())
    assert told["schema"] == "ballast/provenance/1" and told["kind"] == "delta"
