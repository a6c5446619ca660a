"""Checkpoints of a real Trainer, and adapters of a real PeftModel, against what
transformers, PEFT and safetensors say of the files that they wrote."""

import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
import types

import pytest

from ballast import errors, wdelta
from ballast.store import Store
from ballast.training import Checkpoints

TREE = pathlib.Path(__file__).parents[2]
BASE = TREE / "examples" / "llama" / "base"
ADAPTERS = TREE / "tests" / "data" / "adapters"


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as store:
        yield store


# ---- without transformers: a stand-in of a Trainer that saves --------------------


class Run:
    """Saves adapter folders as a Trainer saves checkpoints."""

    def __init__(self, output, callback):
        self.args = types.SimpleNamespace(output_dir=str(output))
        self.state = types.SimpleNamespace(
            global_step=0, epoch=0.0, log_history=[], is_world_process_zero=True
        )
        self.callback = callback

    def tell(self, event):
        getattr(self.callback, event)(self.args, self.state, object(), model=None)

    def write(self, name="lora_r8_qv", **logged):
        """A checkpoint on disk, which on_save was not told of."""
        self.state.global_step += 10
        self.state.epoch += 0.5
        self.state.log_history.append({**logged, "step": self.state.global_step})
        folder = self.folder()
        folder.mkdir(parents=True)
        for file in (ADAPTERS / name).iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / "optimizer.pt").write_bytes(b"not of the model")
        (folder / "trainer_state.json").write_text("{}")

    def save(self, name="lora_r8_qv", **logged):
        self.write(name, **logged)
        self.tell("on_save")

    def folder(self):
        return pathlib.Path(
            self.args.output_dir, f"checkpoint-{self.state.global_step}"
        )


TWO = ("lora_r8_qv", "lora_r16_all_rslora")


def test_each_checkpoint_is_a_commit_with_what_was_learned(store, tmp_path):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "tone", metadata={"k": 1}))
    run.tell("on_train_begin")
    run.save(TWO[0], loss=2.5, learning_rate=0.125, eval_runtime=3.0)
    run.save(TWO[1], loss=1.5, grad_norm=float("nan"))
    run.tell("on_train_end")
    newer, older = store.log("acme", "tone")
    assert older.metadata == {
        "k": 1, "step": 10, "epoch": 0.5, "loss": 2.5, "learning_rate": 0.125,
    }  # fmt: skip
    assert newer.metadata["loss"] == 1.5 and newer.metadata["step"] == 20
    assert "grad_norm" not in newer.metadata and newer.parent == older.id
    assert (newer.message, newer.kind) == ("checkpoint 20", "adapter")
    with store.checkout("acme", "tone") as got:
        assert set(got.files) == {"adapter_config.json"}
    assert run.callback.commits == [older, newer]
    assert sorted(os.listdir(tmp_path / "run")) == ["checkpoint-10", "checkpoint-20"]


def test_a_checkpoint_that_is_taken_away_meanwhile_is_committed(store, tmp_path):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    commit, gone = store.commit, threading.Event()

    def slowly(*args, **given):
        gone.wait()
        return commit(*args, **given)

    store.commit = slowly
    run.save(loss=1.0)
    for file in run.folder().iterdir():
        file.unlink()
    gone.set()
    run.tell("on_train_end")
    assert run.callback.latest().metadata["step"] == 10


def test_a_trainer_that_saves_faster_waits(store, tmp_path):
    go_on, commit = threading.Event(), store.commit

    def slowly(*args, **given):
        go_on.wait()
        return commit(*args, **given)

    store.commit = slowly
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "tone", pending=1))
    run.save(TWO[0], loss=1.0)  # at work
    run.save(TWO[1], loss=1.0)  # waits
    saver = threading.Thread(target=run.save, args=(TWO[0],))
    saver.start()
    saver.join(0.2)
    assert saver.is_alive()
    go_on.set()
    saver.join()
    run.tell("on_train_end")
    assert [c.metadata["step"] for c in run.callback.commits] == [10, 20, 30]


def test_what_a_killed_run_left_is_committed_by_the_next(store, tmp_path):
    killed = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    killed.callback._submit = lambda held: None  # no time for it
    killed.save(TWO[0], loss=2.0)
    killed.write(TWO[1], loss=1.0)  # and killed before on_save
    resumed = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    resumed.state = killed.state
    resumed.tell("on_train_begin")
    resumed.save(TWO[0], loss=0.5)
    resumed.tell("on_train_end")
    steps = [commit.metadata["step"] for commit in resumed.callback.history()]
    assert steps == [30, 20, 10]
    half = pathlib.Path(killed.callback._place(killed.args.output_dir), "new-half")
    half.mkdir(parents=True)
    again = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    again.state = killed.state
    again.tell("on_train_begin")
    again.callback.wait()
    assert not again.callback.commits and not half.exists()


def test_the_best_is_the_one_with_the_least_loss(store, tmp_path):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    for name, loss in zip(TWO + TWO, (3.0, 1.0, 2.0, 1.0)):
        run.save(name, loss=loss, eval_right=-loss)
    callback = run.callback
    assert callback.load_best().metadata["step"] == 40
    assert callback.load_best("eval_right", greater=True).metadata["step"] == 40
    assert callback.load_best("loss", greater=True).metadata["step"] == 10
    with pytest.raises(LookupError, match="nothing"):
        callback.load_best("nothing")


def test_without_a_checkpoint_there_is_no_latest(store):
    callback = Checkpoints(store, "acme", "tone")
    assert callback.latest() is None
    with pytest.raises(LookupError):
        callback.load_best()


def test_an_error_is_raised_at_the_end_and_the_checkpoint_kept(store, tmp_path):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "no good ref"))
    run.save(loss=1.0)
    with pytest.raises(errors.Usage):
        run.tell("on_train_end")
    assert list((tmp_path / "run").rglob("000000000010-*/model/adapter_config.json"))


def test_an_error_is_logged_where_the_training_matters_more(store, tmp_path, caplog):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "no good", strict=False))
    with caplog.at_level(logging.WARNING, "ballast"):
        run.save(loss=1.0)
        run.tell("on_train_end")
    assert "000000000010" in caplog.text


def test_only_one_process_of_many_commits(store, tmp_path):
    run = Run(tmp_path / "run", Checkpoints(store, "acme", "tone"))
    run.state.is_world_process_zero = False
    run.save(loss=1.0)
    run.tell("on_train_end")
    assert not run.callback.commits


# ---- with a Trainer --------------------------------------------------------------

TRAIN = '''
import os, sys
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainerCallback
from transformers import TrainingArguments, set_seed
from ballast.store import Store
from ballast.training import BallastCallback
from ballast.wdelta import DeltaTensorsCallback

base, store, output, kill, lora = sys.argv[1:]

class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == int(kill):
            os.kill(os.getpid(), 9)

set_seed(0)
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
if lora == "lora":
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(model, LoraConfig(r=4, task_type="CAUSAL_LM",
                                             target_modules=["q_proj"]))
ids = torch.randint(0, 1000, (8, 16), generator=torch.Generator().manual_seed(1))
rows = [{"input_ids": row, "labels": row} for row in ids]
args = TrainingArguments(
    output, max_steps=6, save_steps=2, logging_steps=1, learning_rate=1e-3,
    per_device_train_batch_size=2, report_to=[], save_total_limit=2,
    use_cpu=True, disable_tqdm=True)
with Store(store) as store:
    callback = BallastCallback(store, "acme", "run", base=base)
    assert isinstance(callback, TrainerCallback)
    callbacks = [callback, DeltaTensorsCallback(base, strategy="lossless"), Kill()]
    trainer = Trainer(model, args, train_dataset=rows, callbacks=callbacks)
    there = os.path.isdir(output) and any(
        n.startswith("checkpoint-") for n in os.listdir(output))
    trainer.train(resume_from_checkpoint=there or None)
'''


def arguments(tmp_path, kill, lora):
    places = (BASE, tmp_path / "store", tmp_path / "run")
    return [*map(str, places), str(kill), lora]


def train(tmp_path, monkeypatch, lora="whole"):
    """To the end, here."""
    monkeypatch.setattr(sys, "argv", ["train", *arguments(tmp_path, 0, lora)])
    exec(compile(TRAIN, "train", "exec"), {"__name__": "train"})


def train_and_kill(tmp_path, step):
    """By a process that is killed at a step."""
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, *arguments(tmp_path, step, "whole")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr[-2000:]


def test_a_training_that_is_killed_and_resumed_is_all_there(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    numpy = pytest.importorskip("numpy")
    from safetensors.numpy import load_file

    train_and_kill(tmp_path, 5)
    with Store(tmp_path / "store") as store:
        before = Checkpoints(store, "acme", "run").history()
        assert store.fsck()
    train(tmp_path, monkeypatch)
    state = json.loads(
        (tmp_path / "run" / "checkpoint-6" / "trainer_state.json").read_text()
    )
    logged = {row["step"]: row for row in state["log_history"] if "loss" in row}
    with Store(tmp_path / "store") as store:
        callback = Checkpoints(store, "acme", "run")
        commits = callback.history()
        assert [c.metadata["step"] for c in commits] == [6, 4, 2]
        assert commits[len(commits) - len(before) :] == before
        assert store.fsck()
        for commit in commits:
            want = logged[commit.metadata["step"]]
            for name in ("loss", "learning_rate", "epoch"):
                assert commit.metadata[name] == pytest.approx(want[name])
            assert commit.kind == "delta"
        best = min((4, 6, 2), key=lambda step: logged[step]["loss"])
        assert callback.load_best().metadata["step"] == best
        for step, spec in ((6, "run"), (4, "run~1")):
            out = tmp_path / f"out-{step}"
            store.apply("acme", spec, base=BASE, out=out)
            got = {}
            for file in out.glob("*.safetensors"):
                got.update(load_file(file))
            folder = tmp_path / "run" / f"checkpoint-{step}"
            want = load_file(folder / "model.safetensors")
            delta = wdelta.load_delta_from_paths(folder / "model.wdelta", BASE)
            assert set(got) == set(want) == set(delta)
            for name in want:
                numpy.testing.assert_array_equal(got[name], want[name])
                numpy.testing.assert_array_equal(delta[name], want[name])


def test_a_lora_training_gives_adapters(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    train(tmp_path, monkeypatch, "lora")
    with Store(tmp_path / "store") as store:
        commits = store.log("acme", "run")
        assert [c.kind for c in commits] == ["adapter"] * 3
        folder = tmp_path / "out"
        store.checkout("acme", "run").write(folder)
    name = "adapter_model.safetensors"
    want = (tmp_path / "run" / "checkpoint-6" / name).read_bytes()
    assert (folder / name).read_bytes() == want


# ---- PEFT ------------------------------------------------------------------------


@pytest.fixture
def model():
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("peft")
    torch = pytest.importorskip("torch")
    return transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)


def logits(model):
    import torch

    with torch.no_grad():
        return model(torch.arange(3, 15).unsqueeze(0)).logits


def test_a_peft_model_goes_through_a_store(store, model, tmp_path):
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model

    from ballast.peft import load_adapter, save_adapter

    torch.manual_seed(0)
    names = {"q_proj", "v_proj", "down_proj"}
    config = LoraConfig(r=4, lora_alpha=6, target_modules=names, task_type="CAUSAL_LM",
                        init_lora_weights=False)
    tuned = get_peft_model(model, config).eval()
    want = logits(tuned)
    commit = save_adapter(tuned, store, "acme", ref="tone", message="tuned")
    assert commit.kind == "adapter" and commit.base_model == str(BASE)

    tuned.save_pretrained(tmp_path / "peft")
    written = json.loads((tmp_path / "peft" / "adapter_config.json").read_text())
    with store.checkout("acme", "tone", torch=True) as got:
        assert got.config["target_modules"] == sorted(names)
        written["target_modules"].sort()
        assert got.config == written
        got.write(tmp_path / "ours")
    fresh = type(model).from_pretrained(BASE, dtype=torch.float32)
    assert torch.equal(logits(load_adapter(fresh, store, "acme", "tone")), want)
    fresh = type(model).from_pretrained(BASE, dtype=torch.float32)
    theirs = PeftModel.from_pretrained(fresh, tmp_path / "ours")
    assert torch.equal(logits(theirs), want)
    again = save_adapter(tuned, store, "acme", ref="tone", message="tuned")
    assert again == commit


def test_a_second_adapter_goes_beside_the_first(store, model):
    import torch
    from peft import PeftModel

    from ballast.peft import load_adapter

    for name, ref in zip(TWO, ("one", "two")):
        store.commit("acme", ADAPTERS / name, message=name, ref=ref)
    both = load_adapter(model, store, "acme", "one", adapter_name="one")
    assert load_adapter(both, store, "acme", "two", adapter_name="two") is both
    both.set_adapter("two")
    got = logits(both)
    fresh = type(model).from_pretrained(BASE, dtype=torch.float32)
    want = logits(PeftModel.from_pretrained(fresh, ADAPTERS / TWO[1]))
    assert torch.equal(got, want)
    with pytest.raises(ValueError, match="already"):
        load_adapter(both, store, "acme", "two", adapter_name="two")


def test_a_view_of_adapters_is_loaded_as_one(store, model, tmp_path):
    import torch
    from peft import PeftModel

    from ballast.peft import load_adapter

    for name, ref in zip(TWO, ("one", "two")):
        store.commit("acme", ADAPTERS / name, message=name, ref=ref)
    store.merge("acme", "linear", ["one", "two"], message="both", ref="both")
    got = logits(load_adapter(model, store, "acme", "both"))
    store.checkout("acme", "both").write(tmp_path / "both")
    fresh = type(model).from_pretrained(BASE, dtype=torch.float32)
    assert torch.equal(got, logits(PeftModel.from_pretrained(fresh, tmp_path / "both")))


def test_what_is_no_adapter_is_refused(store, model):
    from ballast.peft import load_adapter, save_adapter

    store.commit("acme", BASE, message="base", ref="base")
    with pytest.raises(ValueError, match="no adapter"):
        load_adapter(model, store, "acme", "base")
    store.commit("acme", ADAPTERS / TWO[0], message="one", ref="one")
    tuned = load_adapter(model, store, "acme", "one")
    with pytest.raises(ValueError, match="no adapter 'other': there are default"):
        save_adapter(tuned, store, "acme", adapter_name="other")
