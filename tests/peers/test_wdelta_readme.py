"""deltatensors' README, block by block as it was published: by deltatensors, and
with ballast.wdelta for its name. Both get to the same values."""

import importlib.metadata
import io
import os
import re
from contextlib import redirect_stdout

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

import ballast.wdelta
import deltatensors

README = importlib.metadata.metadata("deltatensors").get_payload()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.S)
# What stands for the dots of the README.
DOTS = [
    ("save_steps=500, ...)", "save_steps=500, max_steps=500, **quick)"),
    ("callbacks=[callback],\n    ...\n", "callbacks=[callback],\n    train_dataset=rows,\n"),
]
NAMES = {"theirs": "deltatensors", "ours": "ballast.wdelta"}


def run(block, whose, **given):
    """A block's names when it has run in the folder that we are in."""
    for dots, more in DOTS:
        block = block.replace(dots, more)
    block = re.sub(r"\bdeltatensors\b", NAMES[whose], block)
    assert "..." not in re.sub("#.*", "", block)
    dt = ballast.wdelta if whose == "ours" else deltatensors
    space = {"dt": dt, **given}
    with redirect_stdout(io.StringIO()):
        exec(compile(block, "README of deltatensors", "exec"), space)
    return space


@pytest.fixture
def both(tmp_path, monkeypatch):
    """Runs something in two folders; what it gave in each."""

    def each(act):
        found = []
        for whose in NAMES:
            place = tmp_path / whose
            place.mkdir()
            monkeypatch.chdir(place)
            found.append(act(whose))
        return found

    return each


def folder(name, steps):
    """A model, so many small steps off the first."""
    rng = np.random.default_rng(5)
    state = {n: rng.normal(0, 0.02, shape).astype(np.float32)
             for n, shape in (("a.w", (96, 65)), ("b.w", (33,)), ("c.w", (4, 5, 6)))}
    for _ in range(steps):
        state = {n: (v + rng.normal(0, 1e-3, v.shape)).astype(np.float32)
                 for n, v in state.items()}
    os.makedirs(name)
    save_file({n: torch.from_numpy(v) for n, v in state.items()},
              os.path.join(name, "model.safetensors"))


def same(theirs, ours):
    assert list(theirs) == list(ours)
    for name, value in theirs.items():
        got = np.asarray(ours[name])
        assert got.dtype == np.asarray(value).dtype, name
        assert np.array_equal(got, np.asarray(value)), name


def test_it_has_the_blocks_that_are_run_here():
    assert [block.split("\n")[0] for block in BLOCKS] == [
        "import deltatensors as dt",
        "from deltatensors.training import DeltaTensorsCallback",
        'sd = dt.load_delta_from_paths("outputs/checkpoint-500/model.wdelta", '
        '"path/to/base-model")',
        "# Save a chained delta (v2 vs reconstructed v1, not vs base)",
    ]


def test_the_quick_start_gives_the_same(both):
    def act(whose):
        folder("qwen-base", 0)
        folder("qwen-wiki", 1)
        return run(BLOCKS[0], whose)

    theirs, ours = both(act)
    same(theirs["recon_sd"], ours["recon_sd"])
    assert theirs["info"] == ours["info"]


def test_the_trainer_s_checkpoints_are_the_same(both):
    ids = torch.arange(8) % 32
    rows = [{"input_ids": ids, "labels": ids} for _ in range(4)]
    quick = {"use_cpu": True, "report_to": [], "disable_tqdm": True,
             "per_device_train_batch_size": 1, "logging_steps": 500}

    def act(whose):
        set_seed(3)
        model = LlamaForCausalLM(LlamaConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=2, vocab_size=32))
        model.save_pretrained("path/to/base-model")
        run(BLOCKS[1], whose, model=model, rows=rows, quick=quick)
        return run(BLOCKS[2], whose), model.state_dict()

    (theirs, trained), (ours, again) = both(act)
    for name, value in trained.items():
        assert torch.equal(value, again[name])
    same(theirs["sd"], ours["sd"])


def test_a_chain_gives_the_same(both):
    def act(whose):
        dt = ballast.wdelta if whose == "ours" else deltatensors
        folder("base_model", 0)
        for step in (1, 2, 3):
            folder(f"v{step}_checkpoint", step)
        with redirect_stdout(io.StringIO()):
            dt.save_delta_from_paths("v1.wdelta", "v1_checkpoint/", "base_model/")
            dt.save_delta_from_paths("v3.wdelta", "v3_checkpoint/", "base_model/")
        return run(BLOCKS[3], whose)

    theirs, ours = both(act)
    same(theirs["sd"], ours["sd"])
    assert theirs["history"] == ours["history"]
