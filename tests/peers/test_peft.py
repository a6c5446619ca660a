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


def logits(model):
    tokens = torch.arange(3, 67).reshape(2, 32)
    with torch.no_grad():
        return model(tokens).logits


# What is recorded, its ref, and a cap on how far apart the two ways may be: only
# the folded weights are rounded, to bf16.
VIEWS = {
    "sum": ["tone", "tools@0.5", "patterns@-0.25", "--no-normalize"],
    "cut": ["tone", "tools", "--method", "task_arithmetic", "--rank", "6"],
    "ties": ["tone", "tools", "--method", "ties", "--density", "0.4", "--rank",
             "12"],
    "factors": ["tone", "tone@0.5", "--method", "peft_ties", "--density", "0.6",
                "--space", "factors"],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_merged_view_is_the_same_loaded_and_folded(work, name):
    ref = f"view-{name}"
    ballast("merge", *VIEWS[name], "-m", name, "--ref", ref, cwd=work)
    ballast("checkout", ref, "-o", ref, cwd=work)
    ballast("apply", ref, "--base", BASE, "-o", f"{ref}-folded", cwd=work)
    model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    plain = logits(model)
    loaded = logits(PeftModel.from_pretrained(model, work / ref))
    applied = logits(AutoModelForCausalLM.from_pretrained(
        work / f"{ref}-folded", dtype=torch.float32))
    moved = (loaded - plain).norm()
    assert moved > 0
    assert (applied - loaded).norm() < 0.05 * moved
    assert torch.allclose(applied, loaded, rtol=0, atol=0.1)


COMBINED = {
    "linear": ["--method", "peft_linear", "--space", "factors"],
    "ties": ["--method", "peft_ties", "--space", "factors"],
    "magnitude_prune": ["--method", "peft_magnitude_prune", "--space",
                        "factors"],
    "cat": ["--method", "task_arithmetic"],
    "svd": ["--method", "task_arithmetic", "--rank", "5"],
    "ties_svd": ["--method", "peft_ties", "--rank", "5"],
    "magnitude_prune_svd": ["--method", "peft_magnitude_prune", "--rank", "5"],
}


@pytest.mark.parametrize("kind", COMBINED)
def test_a_combination_type_is_pefts(work, kind):
    adapter = os.path.join(ADAPTERS, "lora_r8_qv")
    ballast("lora", "resize", "tools", "--rank", "8", "--ref", "tools8", "--dtype",
            "f32", "-m", "of rank 8", cwd=work)
    ballast("checkout", "tools8", "-o", "tools8", "--force", cwd=work)
    pruned = "ties" in kind or "prune" in kind
    ballast("merge", "tone@0.7", "tools8@-0.3", *COMBINED[kind],
            *(["--density", "0.5"] if pruned else []), "-m", kind, "--ref", kind,
            cwd=work)
    ballast("checkout", kind, "-o", f"combined-{kind}", cwd=work)
    model = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32), adapter,
        adapter_name="a")
    model.load_adapter(work / "tools8", "b")
    model.add_weighted_adapter(
        ["a", "b"], [0.7, -0.3], "merged", combination_type=kind,
        **({"svd_rank": 5} if "svd" in kind else {}),
        **({"density": 0.5} if pruned else {}))
    model.load_adapter(work / f"combined-{kind}", "ours")
    for name, module in model.named_modules():
        if not hasattr(module, "lora_A") or "merged" not in module.lora_A:
            continue
        theirs, ours = (module.get_delta_weight(who) for who in
                        ("merged", "ours"))
        assert (theirs - ours).norm() <= 2e-4 * theirs.norm() + 1e-7, name


@pytest.mark.parametrize("inputs", [["tone@0.5", "small@0.5"],
                                    ["tools@0.7", "patterns@-1", "small@0.3"]])
def test_a_mix_is_what_torch_makes_of_it(work, inputs):
    small = os.path.join(TREE, "examples", "llama", "ft-small")
    for path, ref in ((BASE, "base"), (small, "small")):
        ballast("commit", path, "--kind", "weights", "-m", ref, "--ref", ref,
                cwd=work)
    ballast("merge", *inputs, "--method", "task_arithmetic", "--base", "base",
            "-m", "mixed", "--ref", "mixed", cwd=work)
    out = f"mixed-{len(inputs)}"
    ballast("apply", "mixed", "--base", BASE, "-o", out, cwd=work)
    paths = {"tone": "lora_r8_qv", "tools": "lora_r16_all_rslora",
             "patterns": "lora_r4_patterns"}

    def state(path):
        return AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32).state_dict()

    base = state(BASE)
    want = {name: tensor.clone() for name, tensor in base.items()}
    for text in inputs:
        ref, weight = text.split("@")
        tuned = (state(small) if ref == "small" else
                 folded(os.path.join(ADAPTERS, paths[ref])))
        for name, tensor in tuned.items():
            want[name] += float(weight) * (tensor - base[name]).float()
    for name, tensor in state(work / out).items():
        assert torch.allclose(tensor, want[name], rtol=2**-8, atol=1e-6), name
