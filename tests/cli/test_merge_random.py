"""Merges that nobody thought of: random methods, parameters over layers and by
filters, slices and dtypes, of tiny models. What comes of one is the same bytes
for any number of threads, any instruction set and any size of tile.

BALLAST_RANDOM_MERGES=N makes N of them, BALLAST_RANDOM_SEED=S starts there:
recipe S is the same each time."""

import json
import os

import numpy as np
import pytest

from stacks import EMBED, HEAD, NORM, TORCH, put
from support import Store, load, run

COUNT = int(os.environ.get("BALLAST_RANDOM_MERGES", "25"))
FIRST = int(os.environ.get("BALLAST_RANDOM_SEED", "0"))
LAYERS = 3
# More than a tile of 1000, rows of no round length, and a vector.
SHAPES = {"mlp.up_proj.weight": (43, 29), "self_attn.q_proj.weight": (7, 11),
          "input_layernorm.weight": (29,)}
MODELS = {"base": "F32", "a": "F32", "b": "F32", "c": "F32", "half-base":
          "BF16", "half-a": "BF16", "half-b": "BF16", "half-c": "BF16",
          "short-a": "F16"}
# Threads, and what the environment says.
WAYS = [
    ("1", {}), ("8", {}), ("1", {"BALLAST_ISA": "base"}),
    ("8", {"BALLAST_ISA": "v3", "BAL_TILE": "64"}),
    ("8", {"BALLAST_ISA": "v4", "BAL_TILE": "8"}),
    ("2", {"BALLAST_ISA": "base", "BAL_TILE": "1000"}),
]
# Where the methods' own bounds are too wide for what comes of it to be
# anything.
RANGES = {"weight": (-0.5, 2), "density": (0.3, 1.1), "epsilon": (0, 0.2),
          "gamma": (0, 0.3), "lambda": (-1, 2), "t": (-0.25, 1.25),
          "scale": (-2, 2), "r": (0, 1), "alpha": (0, 1), "eps": (0, 1e-6),
          "tol": (0, 1e-2), "select_topk": (0, 1)}
FILTERS = ["mlp", "layers.1.", "norm", "q_proj.weight", "model", "nothing"]


def tensors_of(seed):
    rng = np.random.default_rng(seed)
    made = {EMBED: (13, 29), NORM: (29,), HEAD: (13, 29)}
    made |= {f"model.layers.{i}.{piece}": shape for i in range(LAYERS)
             for piece, shape in SHAPES.items()}
    # Few numbers, so that there are ties, zeros and what is the same.
    return {name: rng.integers(-256, 256, shape) / 128
            for name, shape in made.items()}


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("random"))
    for seed, (name, dtype) in enumerate(MODELS.items()):
        put(store.path / name, tensors_of(seed), dtype=dtype)
        store("commit", name, "-m", name, "--ref", name)
    for name in ("a", "b", "c"):
        store("delta", name, "--base", "base", "-m", name, "--ref",
              f"d-{name}")
    return store


METHODS = [row for row in run("methods", "--json").json["methods"]
           if not row["name"].startswith("peft_")]


class Recipe:
    """One recipe, all of which a seed decides."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.method = METHODS[seed % len(METHODS)]
        self.delta = self.chance(0.25) and self.method["name"] != "passthrough"
        self.arithmetic = self.pick(["precise", "mergekit"])
        self.based = self.needs_base() or self.chance(0.3)

    def chance(self, part):
        return self.rng.random() < part

    def pick(self, things):
        return things[self.rng.integers(len(things))]

    def needs_base(self):
        return self.method["name"] not in (
            "linear", "passthrough", "karcher", "multislerp", "nuslerp")

    # ---- values

    def number(self, param):
        if param["type"] == "bool":
            return bool(self.chance(0.5))
        if param["type"] == "int":
            return int(self.rng.integers(1, 6))
        low, high = RANGES[param["name"]]
        return float(np.round(self.rng.uniform(low, high), 3))

    def plain(self, param):
        """A number, or several over the layers."""
        if param["type"] == "int" or not self.chance(0.4):
            return self.number(param)
        return [self.number(param) for _ in range(self.rng.integers(1, 5))]

    def value(self, param):
        """What it is, by filters: the last has none."""
        if not self.chance(0.4):
            return self.plain(param)
        parts = [{"filter": self.pick(FILTERS), "value": self.plain(param)}
                 for _ in range(self.rng.integers(1, 3))]
        return [*parts, {"value": self.plain(param)}]

    def parameters(self, of_input, always):
        found = {}
        for param in self.method["parameters"]:
            required = param["default"] is None or param["name"] == "weight"
            if of_input and not param["per_input"]:
                continue
            if (always and required) or self.chance(0.5):
                found[param["name"]] = self.value(param)
        return found

    # ---- models

    def models(self):
        """The base first, if there is one."""
        low = self.method["min_inputs"]
        high = self.method["max_inputs"] or max(low, 3)
        prefix = self.pick(["", "half-"])
        names = [prefix + name for name in self.rng.permutation(
            ["a", "b", "c"])[:self.rng.integers(low, high + 1)]]
        if self.chance(0.2):
            names[0] = "short-a"
        return [prefix + "base"] * self.based + names

    def dtypes(self):
        told = {}
        if self.chance(0.4):
            told["dtype"] = TORCH[self.pick(list(TORCH))]
        if self.arithmetic == "mergekit" and self.chance(0.3):
            told["out_dtype"] = TORCH[self.pick(list(TORCH))]
        return told

    def source(self, name, first, count):
        """Of a range that starts where it can."""
        row = {"model": name, "layer_range": [first, first + count]}
        if self.chance(0.5):
            row["parameters"] = self.parameters(True, False)
        return row

    def slice(self, names):
        count = int(self.rng.integers(1, LAYERS + 1))
        row = {"sources": [self.source(
            name, int(self.rng.integers(0, LAYERS - count + 1)), count)
            for name in names]}
        if self.chance(0.3):
            row["parameters"] = self.parameters(False, False)
        return row

    def config(self):
        """As mergekit has it: JSON is YAML."""
        names = self.models()
        told = {"merge_method": self.method["name"],
                "parameters": self.parameters(False, True)} | self.dtypes()
        if self.based:
            told["base_model"] = names[0]
        if self.chance(0.4):
            told["slices"] = [self.slice(names)
                              for _ in range(self.rng.integers(1, 4))]
        else:
            told["models"] = [
                {"model": name, "parameters": self.parameters(True, False)}
                for name in names]
        return told

    # ---- differences

    def words(self):
        """A merge of differences, as it is typed."""
        low = self.method["min_inputs"]
        high = self.method["max_inputs"] or 3
        operand = self.method["name"] in ("slerp", "nearswap", "arcee_fusion",
                                          "model_stock")
        names = [f"d-{name}" for name in "abc"[:max(low + operand, high)]]
        words = [name + "".join(
            f",{key}={spelled(value)}" for key, value in self.parameters(
                True, False).items()) for name in names]
        for key, value in self.parameters(False, True).items():
            option = "--" + key.replace("_", "-")
            if isinstance(value, bool):
                words.append(option if value else "--no-" + option[2:])
            elif not is_of_bools(value):
                words += [option, spelled(value)]
        return [*words, "--method", self.method["name"], "--arithmetic",
                self.arithmetic]


def is_of_bools(value):
    return any(word in json.dumps(value) for word in ("true", "false"))


def spelled(value):
    """As it is typed: "mlp:0,1;0.5"."""
    if isinstance(value, list) and isinstance(value[-1], dict):
        return ";".join(
            (f"{row['filter']}:" if "filter" in row else "")
            + spelled(row["value"]) for row in value)
    if isinstance(value, list):
        return ",".join(str(number) for number in value)
    return str(value)


def record(store, recipe, seed):
    """None: it is refused, and why it was is said."""
    if recipe.delta:
        seeded = ["--seed", str(seed)] if recipe.method["seeded"] else []
        done = store("merge", *recipe.words(), *seeded, "-m", "x", "--ref",
                     "x", "--json", code=None)
    else:
        path = store.path / "recipe.yml"
        path.write_text(json.dumps(recipe.config()))
        maps = [word for name in MODELS for word in ("--map",
                                                     f"{name}={name}")]
        stream = recipe.arithmetic == "mergekit" and recipe.chance(0.5)
        more = ["--mergekit-stream", str(seed)] if stream else []
        done = store("import-mergekit", path, *maps, *more, "--arithmetic",
                     recipe.arithmetic, "--ref", "x", "--json", code=None)
    if done.code == 0:
        return done.json
    assert done.code in (2, 9), done
    assert done.error["message"], done
    return None


def resolved(store, recipe, jobs, env):
    """What is written of the view."""
    out = store.path / "out"
    words = (("apply", "x", "--base", "base") if recipe.delta
             else ("checkout", "x"))
    store(*words, "-o", out, "--force", "--no-cache", "--jobs", jobs, env=env)
    return load(out), (out / "config.json").read_bytes()


def differing(one, two):
    """Names of what is not the same."""
    names = set(one[0]) | set(two[0])
    return sorted(name for name in names
                  if one[0].get(name) != two[0].get(name)) + (
        ["config.json"] if one[1] != two[1] else [])


MERGED = []


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_comes_of_a_recipe_is_the_same_everywhere(store, seed):
    recipe = Recipe(seed)
    made = record(store, recipe, seed)
    if not made:
        return
    MERGED.append(seed)
    want = resolved(store, recipe, *WAYS[0])
    json.loads(want[1])
    for jobs, env in WAYS[1:]:
        got = resolved(store, recipe, jobs, env)
        assert not differing(got, want), (jobs, env, made["recipe"])


def test_most_of_them_are_merged(store):
    """Else nothing was shown; after all others."""
    assert len(MERGED) >= COUNT * 2 // 3
    store("fsck", "--all")
