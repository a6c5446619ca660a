"""One configuration by mergekit itself, in this process, and by ballast; and
whether both came to the same.

Some things of mergekit's are pinned, which it leaves to chance or to a library:
equal magnitudes keep their order; models are referred to in the order in which
they are written, not in that of a set, and tokens in the order of their ids;
adapters are merged before the seed is set, as from its cache; one thread adds.
"""

import contextlib
import json
import os
import subprocess

import numpy as np
import torch
import yaml
from huggingface_hub import constants
from mergekit import merge, plan, sparsify
from mergekit.config import MergeConfiguration
from mergekit.graph import Executor
from mergekit.merge_methods import sce
from mergekit.options import MergeOptions
from mergekit.scripts import multimerge
from safetensors import safe_open
from transformers import PreTrainedTokenizerFast

# Results of these go through sin, acos, exp or log, or a BLAS: in F32 the last
# bit is not the same in all libraries.
# Of each the part of the range, and the part of the elements that may be off
# by more: what is at a threshold goes either way.
ROUGH = {"slerp": (2**-17, 0), "nuslerp": (2**-17, 0), "karcher": (2**-11, 0),
         "multislerp": (2**-17, 0), "arcee_fusion": (2**-17, 0.2)}
STEPS = {torch.float16: 2**-9, torch.bfloat16: 2**-6}
SEEDED = {"dare_linear", "dare_ties", "della", "della_linear"}


class Stable:
    """torch, but that what is sorted keeps the order of what is equal."""

    def __getattr__(self, name):
        return getattr(torch, name)

    @staticmethod
    def argsort(values, dim=-1, descending=False):
        return torch.sort(values, dim=dim, descending=descending,
                          stable=True).indices

    @staticmethod
    def sort(values, descending=False):
        return torch.sort(values, descending=descending, stable=True)

    @staticmethod
    def topk(values, k, largest=True):
        order = torch.sort(values, descending=largest, stable=True)
        return order.values[:k], order.indices[:k]


def by_id(get_vocab):
    """Tokens in the order of their ids, where it was that of a hash."""
    return lambda self: dict(sorted(get_vocab(self).items(),
                                    key=lambda item: item[1]))


def models_of(config):
    """Those that a configuration names, the base before all others."""
    groups = [config, *(config.modules or {}).values()]
    found = [config.base_model] if config.base_model else []
    for group in groups:
        found += [row.model for row in group.models or []]
        found += [source.model for part in group.slices or []
                  for source in part.sources]
    return list(dict.fromkeys(found))


class Mergekit:
    """Runs configurations over the models in a folder."""

    def __init__(self, models, work):
        self.models, self.work, self.count = models, work, 0
        self.same_labels = False
        # No model is looked for anywhere but in the folder.
        constants.HF_HUB_OFFLINE = True
        torch.set_num_threads(1)
        sparsify.torch = sce.torch = Stable()
        MergeConfiguration.referenced_models = models_of
        PreTrainedTokenizerFast.get_vocab = by_id(
            PreTrainedTokenizerFast.get_vocab)
        self.plan_to_disk = plan.MergePlanner.plan_to_disk
        plan.MergePlanner.plan_to_disk = self.watch()

    def watch(self):
        """Tensors whose label is another's draw in an order of its own."""
        def plan_to_disk(planner, out_path):
            tasks = self.plan_to_disk(planner, out_path)
            labels = [task.tensor_task.group_label() for task in tasks
                      if hasattr(task, "tensor_task")]
            self.same_labels |= len(set(labels)) < len(labels)
            return tasks
        return plan_to_disk

    def options(self, seed):
        cache = self.work / "lora"
        return MergeOptions(quiet=True, write_model_card=False,
                            random_seed=seed, lora_merge_cache=str(cache))

    def run_one(self, document, out, seed):
        config = MergeConfiguration.model_validate(document)
        for model in models_of(config):
            model.merged(cache_dir=str(self.work / "lora"))
        merge.run_merge(config, str(out), self.options(seed))

    def run_several(self, text, out, seed):
        between = f"{out}-between"
        configs, needs = multimerge.load_config(text, between)
        tasks = multimerge.make_tasks(configs, needs, self.options(seed),
                                      between, str(out), True)
        Executor(tasks, math_device="cpu", storage_device="cpu").execute()
        return out if None in configs else f"{between}/{names_of(text)[-1]}"

    def __call__(self, text, seed=None):
        """The folder that it wrote, and None; or None and why not."""
        self.count += 1
        self.same_labels = False
        out = self.work / f"theirs-{self.count}"
        with contextlib.chdir(self.models), quiet():
            try:
                documents = list(yaml.safe_load_all(text))
                if len(documents) < 2:
                    self.run_one(documents[0], out, seed)
                else:
                    out = self.run_several(text, out, seed)
            except Exception as error:  # whatever it dies of
                return None, f"{type(error).__name__}: {error}"
        return out, None


@contextlib.contextmanager
def quiet():
    with open(os.devnull, "w", encoding="ascii") as nowhere:
        with contextlib.redirect_stderr(nowhere):
            with contextlib.redirect_stdout(nowhere):
                yield


class Ballast:
    """A store with the models in it, each by a ref of its name; more: other
    names, by their models'."""

    def __init__(self, models, work, more=()):
        self.work, self.count, self.ref = work, 0, None
        names = sorted(os.listdir(models))
        called = dict(zip(names, names)) | dict(more)
        self.map = [word for name, model in called.items()
                    for word in ("--map", f"{name}={model}")]
        self.program("init")
        for name in names:
            done = self.program("commit", models / name, "-m", name, "--ref",
                                name)
            assert not done.returncode, done.stderr

    def program(self, *words):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("BALLAST_")}
        return subprocess.run(
            [os.environ["BALLAST"], "--root", self.work / "store", "--tenant",
             "acme", *map(os.fspath, words)], env=environment, text=True,
            capture_output=True, check=False, timeout=120)

    def bring(self, text, seed=None):
        """Import: what the program said. The result has the ref self.ref."""
        self.count += 1
        path = self.work / f"ours-{self.count}.yml"
        path.write_text(text, encoding="utf-8", newline="")
        more = [] if seed is None else ["--mergekit-stream", str(seed)]
        names = names_of(text)
        if None in names:
            self.ref = f"out-{self.count}"
            more += ["--ref", self.ref]
        else:
            self.ref = names[-1]
        return self.program("import-mergekit", path, *self.map, *more)

    def __call__(self, text, seed=None):
        """As of Mergekit; a refusal is an exit status and what was said."""
        done = self.bring(text, seed)
        if done.returncode:
            new = self.ref == f"out-{self.count}"
            new = new and not self.program("show", self.ref).returncode
            return None, (f"exit {done.returncode}: {done.stderr.strip()}"
                          f"{' AND IT IS RECORDED' if new else ''}")
        out = self.work / f"ours-{self.count}"
        done = self.program("checkout", self.ref, "-o", out)
        if done.returncode:
            return None, f"checkout exit {done.returncode}: {done.stderr}"
        return out, None

    def export(self):
        done = self.program("export-mergekit", self.ref, *self.map)
        assert not done.returncode, done.stderr
        return done.stdout


def names_of(text):
    """Of the documents; a single one is named by nothing."""
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError):
        documents = []
    if len(documents) < 2:
        return [None]
    return [document.get("name") if isinstance(document, dict) else None
            for document in documents]


# ---- comparing ---------------------------------------------------------------

def load(folder):
    """Name to tensor, of all files of a folder."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".safetensors"):
            with safe_open(os.path.join(folder, name), "pt") as file:
                found |= {key: file.get_tensor(key) for key in file.keys()}
    return found


def vocabulary_of(folder):
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    return told["model"]["vocab"] | {token["content"]: token["id"]
                                     for token in told["added_tokens"]}


def same_bits(ours, theirs):
    """Bit by bit, but that any NaN is another's equal."""
    both = torch.isnan(ours) & torch.isnan(theirs)
    wide = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    kind = wide[ours.element_size()]
    return bool(((ours.view(kind) == theirs.view(kind)) | both).all())


def is_near(ours, theirs, step, spared):
    a, b = (np.nan_to_num(t.to(torch.float64).numpy()) for t in (ours, theirs))
    step = max(step, STEPS.get(theirs.dtype, 0))
    far = np.abs(a - b) > step * np.abs(b).max(initial=0)
    return bool(far.sum() <= spared * far.size)


def differs(name, ours, theirs, rough):
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return (f"{name} is {ours.dtype} {tuple(ours.shape)}, not "
                f"{theirs.dtype} {tuple(theirs.shape)}")
    if same_bits(ours, theirs):
        return None
    if rough and is_near(ours, theirs, *max(rough)):
        return None
    off = (ours.double() - theirs.double()).abs()
    return (f"{name}: {int((off != 0).sum())} of {off.numel()} differ, by "
            f"{float(off.max()):.3g} at most")


def told_by(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        text = file.read()
    try:
        told = json.loads(text)
    except ValueError as error:
        return f"that is no JSON: {error}"
    keys = ("num_hidden_layers", "n_layer", "vocab_size")
    return {key: told.get(key) for key in keys}


def differences(ours, theirs, methods, same_labels=False):
    """What is not as it should be, in lines; none if all is."""
    mine, its = load(ours), load(theirs)
    found = [f"{name} is only in {'ours' if name in mine else 'theirs'}"
             for name in sorted(set(mine) ^ set(its))]
    if told_by(ours) != told_by(theirs):
        found.append(f"config {told_by(ours)}, not {told_by(theirs)}")
    if vocabulary_of(ours) != vocabulary_of(theirs):
        found.append("another vocabulary")
    rough = [ROUGH[method] for method in methods if method in ROUGH]
    drawn = same_labels and SEEDED & set(methods)
    for name in sorted(set(mine) & set(its)):
        a, b = mine[name], its[name]
        if drawn and a.dtype == b.dtype and a.shape == b.shape:
            continue
        found.append(differs(name, a, b, rough))
    return [line for line in found if line]
