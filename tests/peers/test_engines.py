"""From a store to the real engines: what sync and serve-export bring there
answers as PEFT does."""

import json
import os
import pathlib
import subprocess

import engines
import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

TREE = pathlib.Path(os.environ["BALLAST_TREE"])
BASE = TREE / "examples" / "llama" / "base"
ADAPTERS = TREE / "tests" / "data" / "adapters"
REFS = {"tone": "lora_r8_qv", "tools": "lora_r16_all_rslora",
        "patterns": "lora_r4_patterns"}
PROMPTS = ["The weather", "Please reply to the customer that", "1 2 3 4"]
NEAR = 2e-3  # of a log-probability: what the engines differ from PEFT by


def ballast(*words, cwd, code=0):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    done = subprocess.run([os.environ["BALLAST"], "--tenant", "acme",
                           *map(os.fspath, words)], cwd=cwd, env=environment,
                          text=True, capture_output=True, check=False)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    for ref, name in REFS.items():
        ballast("commit", ADAPTERS / name, "-m", name, "--ref", ref, cwd=folder)
    ballast("merge", "tone", "tools@0.5", "--no-normalize", "-m", "both",
            "--ref", "both", cwd=folder)
    for ref in (*REFS, "both"):
        ballast("checkout", ref, "-o", f"plain-{ref}", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def prompts():
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    return [tokenizer(text)["input_ids"] for text in PROMPTS]


@pytest.fixture(scope="module")
def want(work, prompts):
    """Log-probabilities of the next token, by PEFT in float32."""
    found = {}
    for ref in (*REFS, "both", None):
        model = AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
        if ref:
            model = PeftModel.from_pretrained(model, str(work / f"plain-{ref}"))
        with torch.no_grad():
            found[ref] = [torch.log_softmax(model(torch.tensor([p])).logits
                                            [0, -1].double(), -1).numpy()
                          for p in prompts]
    return found


def near(got, want):
    """got: {token: logprob} of the likeliest ones."""
    assert len(got) >= 3
    for token, logprob in got.items():
        assert abs(logprob - want[token]) <= NEAR, (token, logprob)
    return True


def differ(want):
    """The adapters can be told apart by what is compared."""
    for ref in (*REFS, "both"):
        assert max(np.abs(a - b).max() for a, b in
                   zip(want[ref], want[None])) > 10 * NEAR


def openai_logprobs(url, model, prompt, extra):
    answer = engines.ask(url + "/v1/completions", {
        "model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0,
        "logprobs": 5, **extra})
    (top,) = answer["choices"][0]["logprobs"]["top_logprobs"]
    return top


def synced(work, url, engine, *words):
    """{ref: the name that the server has it by}."""
    out = json.loads(ballast(
        "--json", "sync-vllm", "--url", url, "-o", f"exports-{engine}",
        "--base", BASE, "--max-rank", "32", "--adapt", *words, cwd=work))
    assert not out["failed"] and not out["skipped"]
    names = out["loaded"] + out["unchanged"]
    return {name[len("acme-"):-len("-01234567")]: name for name in names}


def test_vllm_answers_as_peft_does(work, prompts, want):
    differ(want)
    with engines.vllm(str(BASE), work) as url:
        names = synced(work, url, "vllm")
        assert set(names) == {*REFS, "both"}
        for ref, name in names.items():
            for prompt, right in zip(prompts, want[ref]):
                top = openai_logprobs(url, name, prompt,
                                      {"return_tokens_as_token_ids": True})
                near({int(k.split(":")[1]): v for k, v in top.items()}, right)
        # A ref moves: the new one answers, the old one is gone.
        ballast("reset", "tone", "patterns", cwd=work)
        again = synced(work, url, "vllm")
        ballast("reset", "tone", "tone@{1}", cwd=work)
        listed = {m["id"] for m in engines.ask(url + "/v1/models")["data"]}
        assert names["tone"] not in listed and again["tone"] in listed
        top = openai_logprobs(url, again["tone"], prompts[0],
                              {"return_tokens_as_token_ids": True})
        near({int(k.split(":")[1]): v for k, v in top.items()},
             want["patterns"][0])


def test_sglang_answers_as_peft_does(work, prompts, want):
    with engines.sglang(str(BASE), work) as url:
        names = synced(work, url, "sglang")
        assert set(names) == {*REFS, "both"}
        for ref, name in names.items():
            for prompt, right in zip(prompts, want[ref]):
                answer = engines.ask(url + "/generate", {
                    "input_ids": prompt, "lora_path": name,
                    "sampling_params": {"max_new_tokens": 1, "temperature": 0},
                    "return_logprob": True, "top_logprobs_num": 5})
                (top,) = answer["meta_info"]["output_top_logprobs"]
                near({row[1]: row[0] for row in top}, right)


def test_llama_cpp_answers_as_peft_does(work, prompts, want):
    base = work / "base.gguf"
    engines.make_gguf(str(BASE), str(base))
    out = json.loads(ballast("--json", "serve-export", "-o", "exports-gguf",
                             "--for", "llama.cpp", "--base", BASE, "--adapt",
                             cwd=work))
    rows = {row["ref"]: pathlib.Path(row["path"]) / "adapter.gguf"
            for row in out["exported"]}
    assert set(rows) == {*REFS, "both"}
    with engines.llama(str(base), [str(p) for p in rows.values()]) as url:
        for i, ref in enumerate(rows):
            engines.ask(url + "/lora-adapters",
                        [{"id": i, "scale": 1.0}])
            for prompt, right in zip(prompts, want[ref]):
                answer = engines.ask(url + "/completion", {
                    "prompt": prompt, "n_predict": 1, "temperature": 0,
                    "n_probs": 5, "cache_prompt": False})
                (first,) = answer["completion_probabilities"]
                near({row["id"]: row["logprob"]
                      for row in first["top_logprobs"]}, right)
