"""Random configurations over the models of mergekit_models, by a seed: mostly
such as people write, some that have to be refused."""

import random

import yaml

from mergekit_models import FAMILIES, MODELS, family_of, layers_of

FILTERS = ["self_attn", "mlp", "layers.0.", "layers.1", "q_proj", "norm", "*",
           "embed", "lm_head", "weight", "bias", "down_proj", "h.2.", "c_attn",
           "attention.dense", ".", "model.layers.2.mlp"]

# What a value of a parameter may be.
FLOATS = {
    "weight": (-0.6, 1.4), "density": (0.05, 1.15), "epsilon": (0.0, 0.04),
    "gamma": (0.0, 0.3), "lambda": (0.3, 1.6), "t": (-0.1, 1.2),
    "select_topk": (0.0, 1.0), "r": (0.0, 0.6), "alpha": (0.0, 2.0),
    "tol": (1e-9, 1e-2), "scale": (-1.0, 2.0), "eps": (1e-9, 1e-4),
}
FLAGS = {"normalize", "rescale", "int8_mask", "filter_wise", "nuslerp_flatten",
         "nuslerp_row_wise", "normalize_weights"}
TRUTHS = [True, False, 1, 0, 1.0, 0.0, "true", "False", "yes", "OFF", "y"]

# Of each method: how many models beside the base, whether it needs one, and the
# parameters that are looked up for each model, and for all.
SIGNS = ["weight", "density"]
TASKS = ["normalize", "rescale", "int8_mask", "lambda"]
METHODS = {
    "linear": (1, 4, "maybe", ["weight"], ["normalize"]),
    "slerp": (1, 1, "yes", [], ["t"]),
    "nuslerp": (2, 2, "maybe", ["weight"],
                ["nuslerp_flatten", "nuslerp_row_wise"]),
    "multislerp": (1, 4, "maybe", ["weight"], ["normalize_weights", "eps"]),
    "karcher": (1, 3, "maybe", [], ["max_iter", "tol"]),
    "task_arithmetic": (1, 6, "yes", SIGNS, TASKS),
    "ties": (0, 3, "yes", SIGNS, TASKS),
    "dare_linear": (1, 3, "yes", SIGNS, TASKS),
    "dare_ties": (1, 3, "yes", SIGNS, TASKS),
    "della": (1, 3, "yes", [*SIGNS, "epsilon"], TASKS),
    "della_linear": (1, 2, "yes", [*SIGNS, "epsilon"], TASKS),
    "breadcrumbs": (1, 3, "yes", [*SIGNS, "gamma"], TASKS),
    "breadcrumbs_ties": (1, 3, "yes", [*SIGNS, "gamma"], TASKS),
    "sce": (1, 4, "yes", [], ["int8_mask", "select_topk"]),
    "ram": (1, 3, "yes", [], ["epsilon"]),
    "ramplus_tl": (1, 3, "yes", [], ["r", "alpha", "epsilon"]),
    "model_stock": (2, 4, "yes", [], ["filter_wise"]),
    "nearswap": (1, 1, "yes", [], ["t"]),
    "arcee_fusion": (1, 1, "yes", [], []),
    "passthrough": (1, 1, "no", ["scale"], []),
}
REQUIRED = {"weight", "t"}


class Maker:
    """One configuration."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.method = self.rng.choice(sorted(METHODS))
        self.few, self.most, self.base, self.own, self.common = (
            METHODS[self.method])
        self.family = self.rng.choice(
            ["llama"] * 5 + [name for name in FAMILIES if name != "llama"])

    def chance(self, part):
        return self.rng.random() < part

    # ---- values --------------------------------------------------------------

    def scalar(self, name):
        if name in FLAGS:
            return self.rng.choice(TRUTHS)
        if name == "max_iter":
            return self.rng.choice([1, 2, 5, 10, 12, 7.0, "3"])
        low, high = FLOATS[name]
        if self.method.startswith("della") and name == "density":
            low, high = 0.1, 0.9
        if self.method.startswith("ram") and name == "epsilon":
            high = 1e-3
        value = self.rng.uniform(low, high)
        value = self.rng.choice([
            value, round(value, 2), round(value, 1), float(f"{value:.1e}"),
            low if low else 0, 1 if low < 1 < high else high])
        return str(value) if self.chance(0.1) else value

    def plain(self, name):
        if self.chance(0.7) or name == "max_iter":
            return self.scalar(name)
        return [self.scalar(name) for _ in range(self.rng.randint(1, 5))]

    def condition(self, name, words=None):
        value = self.plain(name) if self.chance(0.999) else []
        row = {"filter": words or self.rng.choice(FILTERS), "value": value}
        return dict(reversed(row.items())) if self.chance(0.2) else row

    def value(self, name, whole=0.9):
        if self.chance(0.6):
            return self.plain(name)
        if self.chance(0.05):
            return self.condition(name)
        rows = [self.condition(name) for _ in range(self.rng.randint(1, 3))]
        if self.chance(whole):
            rows.append({"value": self.plain(name)})
        return rows

    def some(self, names, part):
        """Parameters with values, each of the names with a chance."""
        return {name: self.value(name) for name in names if self.chance(part)}

    # ---- models --------------------------------------------------------------

    def choose(self):
        """Models that go together, the first of which may be the base."""
        names = [name for name in MODELS if family_of(name) == self.family]
        if self.family == "llama":
            words = {"la-words", "la-more"}
            tied = {"la-tied", "la-tied-base"}
            kind = self.rng.random()
            odd = words if kind > 0.2 else set()
            odd = odd | tied if kind > 0.15 else odd
            deep = self.chance(0.15)
            # Nearly the same: arcee_fusion's mask of it is rounding noise.
            near = {"la-near", "la-f32-base", "la-tied-base"}
            odd = odd | (near if "arcee" in self.method else set())
            names = [name for name in names if name not in odd
                     and ("deep" in name) == deep]
        self.rng.shuffle(names)
        count = self.rng.randint(self.few, self.most)
        names = names[:count + (self.base != "no")]
        return [self.with_adapter(name) for name in names]

    def with_adapter(self, name):
        adapter = self.rng.choice(["ad-plain", "ad-scaled"])
        fits = name.startswith("la-") and "deep" not in name
        # What transformers ties is written otherwise when it was merged.
        fits = fits and "tied" not in name and "words" not in name
        # Of an F32 model the product's last bits are a BLAS's.
        fits = fits and MODELS[name][2] != "float32"
        return f"{name}+{adapter}" if fits and self.chance(0.06) else name

    def entry(self, name, base):
        row = {"model": name}
        if name == base and self.chance(0.7):
            return row
        told = self.some(self.own, 0.6)
        if told:
            row["parameters"] = told
        return row

    def entries(self, names, base):
        """With the base anywhere among them, or not listed at all."""
        rows = [self.entry(name, base) for name in names]
        if self.chance(0.5):
            self.rng.shuffle(rows)
        if base and len(rows) > 1 and self.chance(0.4):
            rows = [row for row in rows if row["model"] != base]
        return rows

    # ---- slices --------------------------------------------------------------

    def slice_of(self, names, base):
        layers = min(layers_of(name) for name in names)
        length = self.rng.randint(1, layers)
        rows = []
        for name in names:
            row = self.entry(name, base)
            first = self.rng.randint(0, layers_of(name) - length)
            row["layer_range"] = [first, first + length]
            rows.append(row)
        part = {"sources": rows}
        if self.chance(0.3):
            self.rng.shuffle(rows)
        if self.chance(0.4):
            part["parameters"] = self.some([*self.own, *self.common], 0.5)
        return part

    def slices(self, names, base):
        parts = []
        for _ in range(self.rng.randint(1, 4)):
            part = self.slice_of(names, base)
            if base and self.chance(0.1):
                part["base_model"] = self.rng.choice(names)
            parts.append(part)
        if self.method == "passthrough":
            for part in parts[1:]:
                part["sources"][0]["model"] = self.choose()[0]
        return parts

    # ---- all -----------------------------------------------------------------

    def tokens(self, names):
        words = ["w01", "w09", "w24", "</s>", "new"]
        found = {}
        for word in self.rng.sample(words, self.rng.randint(1, 3)):
            row = {"source": self.rng.choice([
                {"kind": "zero"}, self.rng.choice(names),
                {"kind": "model_token", "model": self.rng.choice(names),
                 "token": "w12"},
                {"kind": "model_token", "model": self.rng.choice(names),
                 "token_id": 5}])}
            if self.chance(0.4):
                row["force"] = self.chance(0.7)
            found[word] = row
        return found

    def tokenizer(self, config, names):
        plain = [name for name in names if "+" not in name]
        source = self.rng.choice(["union", "base", *plain])
        if self.chance(0.5):
            config["tokenizer_source"] = source
            return
        config["tokenizer"] = {"source": source}
        if self.chance(0.5):
            config["tokenizer"]["tokens"] = self.tokens(names)
        if self.chance(0.3):
            config["tokenizer"]["pad_to_multiple_of"] = self.rng.choice(
                [1, 8, 16])

    def parameters(self):
        told = self.some([*self.own, *self.common], 0.4)
        for name in REQUIRED & {*self.own, *self.common}:
            if name not in told and self.chance(0.95):
                told[name] = self.value(name, 0.98)
        return told

    def dtypes(self, config):
        names = ["float32", "bfloat16", "float16"]
        if self.chance(0.4):
            config["dtype"] = self.rng.choice(names)
        if self.chance(0.25):
            config["out_dtype"] = self.rng.choice(names)

    def lists(self, names, base):
        """Models or slices, in a module or not."""
        if self.chance(0.45) or self.method == "passthrough":
            inner = {"slices": self.slices(names, base)}
        else:
            inner = {"models": self.entries(names, base)}
        if not self.chance(0.12):
            return inner
        if self.chance(0.5):
            inner["parameters"] = self.parameters()
        return {"modules": {"default": inner}}

    def make(self):
        names = self.choose()
        told = self.base == "yes" or (self.base == "maybe"
                                      and self.chance(0.4))
        base = names[0] if told else None
        if not told and self.base == "maybe" and len(names) > self.most:
            names = names[:self.most]
        config = {"merge_method": self.method}
        if base:
            config["base_model"] = base
        config |= self.lists(names, base)
        config["parameters"] = self.parameters()
        self.dtypes(config)
        words = any("words" in name or "more" in name for name in names)
        if self.chance(0.8 if words else 0.05) and self.family != "neox":
            self.tokenizer(config, names)
        if self.chance(0.3):
            config = dict(sorted(config.items()))
        return {key: value for key, value in config.items() if value != {}}


def rename(value, old, new):
    """Every model of one name under another."""
    if isinstance(value, dict):
        return {key: rename(row, old, new) for key, row in value.items()}
    if isinstance(value, list):
        return [rename(row, old, new) for row in value]
    return new if value == old else value


def chain(seed):
    """Documents, each of which but the first merges what another made."""
    rng = random.Random(f"chain {seed}")
    documents = []
    while len(documents) < rng.randint(2, 3):
        maker = Maker(rng.random())
        maker.family = "gpt2" if seed % 3 == 0 else "qwen"
        documents.append({"name": f"step-{len(documents)}"} | maker.make())
    for i, document in enumerate(documents[1:]):
        old = rng.choice([name for name in MODELS
                          if f"'{name}'" in str(document)])
        documents[i + 1] = rename(document, old, documents[i]["name"])
    del documents[-1]["name"]
    if rng.random() < 0.3:
        rng.shuffle(documents)
    return documents


def recipe(seed):
    """The text of a configuration, and the seed of its random numbers."""
    rng = random.Random(f"recipe {seed}")
    if rng.random() < 0.06:
        text = yaml.safe_dump_all(chain(seed), sort_keys=False)
    else:
        text = yaml.safe_dump(Maker(seed).make(), sort_keys=False)
    return text, rng.randint(0, 2**32 - 1)
