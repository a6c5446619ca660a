"""Configurations of mergekit by the program: what mergekit 0.1.5 made of each
is in tests/data/mergekit, see there."""

import hashlib
import json

import numpy as np
import pytest

from support import TREE, Store, load

DATA = TREE / "tests" / "data" / "mergekit"
RECIPES = DATA / "recipes"
MODELS = sorted(path.name for path in (DATA / "models").iterdir())
MUST_FAIL = json.loads((RECIPES / "must_fail.json").read_text())

RECIPE_NAMES = sorted(path.name for path in RECIPES.iterdir()
                      if path.is_dir())


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("mergekit"))
    for name in MODELS:
        store("commit", DATA / "models" / name, "-m", name, "--ref", name)
    return store


def mapped(*names):
    """--map of the models, by their names and by their files'."""
    words = []
    for name in names or MODELS:
        words += ["--map", f"{name}={name}",
                  "--map", f"{name}/model.safetensors={name}"]
    return words


def bring(store, path, *more, ref="out", code=0):
    return store("import-mergekit", path, *mapped(), "--ref", ref, "--json",
                 *more, code=code)


def write(store, text, name="recipe.yml"):
    path = store.path / name
    path.write_text(text)
    return path


def values(dtype, raw):
    if dtype == "BF16":
        wide = np.frombuffer(raw, "<u2").astype("<u4") << 16
        return wide.view("<f4").astype(float)
    return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[dtype]).astype(float)


def by_token(raw, rows, vocabulary):
    """Rows in the order of the tokens that they are of: mergekit numbers new
    tokens as it happens."""
    width = len(raw) // rows
    order = [vocabulary[token]
             for token in sorted(vocabulary, key=lambda t: t.encode())]
    return b"".join(raw[i * width:(i + 1) * width] for i in order)


def compare(got, expect, folder, vocabulary):
    """Names of tensors that are not as mergekit has them."""
    wrong = sorted(set(got) ^ {row["name"] for row in expect})
    for row in expect:
        name = row["name"]
        dtype, shape, raw = got.get(name, (None, (), b""))
        same = dtype == row["dtype"] and list(shape) == row["shape"]
        if same and "sha256_by_token" in row:
            rows = by_token(raw, shape[0], vocabulary)
            if hashlib.sha256(rows).hexdigest() != row["sha256_by_token"]:
                wrong.append(name)
            continue
        digest = hashlib.sha256(raw).hexdigest()
        # Of equal magnitudes at a cut the lower index is kept.
        if same and digest == row.get("sha256_stable", row["sha256"]):
            continue
        if same and row["class"] == "order":
            want = values(dtype, load(folder / "order.safetensors")[name][2])
            near = np.abs(values(dtype, raw) - want) <= row["tol_abs"]
            if near.all():
                continue
        wrong.append(name)
    return sorted(set(wrong))


def expected(name):
    """What mergekit made of a recipe, and the options that it was run with."""
    expect = json.loads((RECIPES / name / "expect.json").read_text())
    seed = expect["options"].get("--random-seed")
    return (expect,
            [] if seed is None else ["--mergekit-stream", str(seed)])


def vocabulary_of(folder):
    """Ids of tokens, as a model's tokenizer.json has them."""
    path = folder / "tokenizer.json"
    if not path.exists():
        return {}
    tokenizer = json.loads(path.read_text())
    words = dict(tokenizer["model"]["vocab"])
    return words | {token["content"]: token["id"]
                    for token in tokenizer["added_tokens"]}


@pytest.mark.parametrize("name", RECIPE_NAMES)
def test_a_recipe_gives_what_mergekit_gives(store, name):
    folder = RECIPES / name
    expect, more = expected(name)
    bring(store, folder / "config.yml", *more, ref=name)
    out = store.path / f"{name}-out"
    store("checkout", name, "-o", out)
    vocabulary = vocabulary_of(out)
    assert not compare(load(out), expect["tensors"], folder, vocabulary)
    if "vocabulary" in expect:
        assert set(vocabulary) == set(expect["vocabulary"])
    config = json.loads((out / "config.json").read_text())
    want = expect.get("config", {})
    assert {key: config[key] for key in want} == want


# What the message names, beside the line.
NAMED = {
    "same model twice": "'tl-chat' is there twice",
    "base model not among the slice sources": "'tl-base' is not a source",
    "method needs a base model": "'task_arithmetic' needs a base",
    "vocabulary sizes differ and no tokenizer given": "has another shape",
    "layer counts differ": "'model.layers.4.",
    "weight missing for one model": "'tl-code' has no weight",
    "weight only given for some tensors": "no 'weight' is told for tensor",
    "unknown merge method": "'average'",
    "unknown dtype name": "'bf16'",
    "layer range outside the model": "layers [2, 6)",
    "slerp needs exactly two inputs": "'slerp' takes 1 input",
    "both models and slices given": "one of 'models', 'slices'",
    "density plus epsilon reaches 1": "density",
    "weight is not a number": "'half' is not a number",
}


@pytest.mark.parametrize("row", MUST_FAIL, ids=lambda row: row["kind"])
def test_what_mergekit_refuses_is_refused(store, row):
    path = write(store, row["config"])
    done = bring(store, path, ref="refused", code=None)
    assert done.code in (2, 9), done
    assert NAMED[row["kind"]] in done.error["message"]
    assert store("show", "refused", code=3)


# ---- what a configuration may look like --------------------------------------

LINEAR = """
merge_method: linear
models:
  - {model: tl-chat, parameters: {weight: 0.5}}
  - {model: tl-code, parameters: {weight: 0.25}}
dtype: bfloat16
"""


def recipe(store, text, *more):
    return bring(store, write(store, text), *more).json


def test_what_has_no_effect_is_listed(store):
    done = recipe(store, """
name: mix
merge_method: ties
base_model: tl-base
slices_note: none
models:
  - model: tl-base
    parameters: {weight: 1, density: 1}
  - model: tl-chat
    revision: v1.1
    parameters: {weight: 0.5, lambda: 2, t: 0.5}
parameters: {int8_mask: true, select_topk: 0.5}
""")
    assert done["not_used"] == [
        "name", "slices_note", "parameters.int8_mask",
        "parameters.select_topk", "models[0].parameters.weight",
        "models[0].parameters.density", "models[1].revision",
        "models[1].parameters.lambda", "models[1].parameters.t"]
    assert done["recipe"]["parameters"]["lambda"] == 1
    assert done["schema"] == "ballast/import-mergekit/1"


def test_without_json_it_is_said_beside_the_result(store):
    path = write(store, LINEAR + "note: x\n")
    done = store("import-mergekit", path, *mapped(), "--ref", "out")
    assert done.out.endswith("  linear of 2 inputs  ref out\n")
    assert done.err == "not used: note\n"
    quiet = store("import-mergekit", path, *mapped(), "--ref", "out", "-q")
    assert quiet.err == ""


@pytest.mark.parametrize("text, word", [
    (LINEAR.replace("weight: 0.5", "weigth: 0.5"), "it has: weight normalize"),
    (LINEAR.replace("0.5", '"50%"'), "line 4, column 43"),
    (LINEAR.replace("linear", "linaer"), "no merge method 'linaer'"),
    (LINEAR.replace("- {model: tl-chat", "- {model: tl-nobody"),
     "'tl-nobody' stands for no commit"),
    (LINEAR + "chat_template: chatml", "'chat_template'"),
    ("base_model: a\ngate_mode: hidden\nexperts: []", "mixture of experts"),
    ("base_model: a\n  - model: b\nmerge_method: ties", "line 2, column"),
    (LINEAR.replace("tl-chat", "a+b+c"), "'a+b+c' is not PATH"),
    (LINEAR + "models: []\n", "'models' is there twice"),
    ("", "nothing in it"),
    ("[1]", "is not a map"),
    ("x: &a [*a]", "alias of what it stands in"),
])
def test_a_mistake_is_refused_and_named(store, text, word):
    done = bring(store, write(store, text, "bad.yml"), code=None)
    assert done.code in (2, 9), done
    assert word in done.error["message"]
    assert "bad.yml: " in done.error["message"]


# Written otherwise, and the same.
ONE_SLICE = """
merge_method: linear
slices:
  - sources:
      - {model: tl-chat, layer_range: [0, 4]}
      - {model: tl-code, layer_range: [0, 4], parameters: {weight: 0.25}}
    parameters: {weight: 0.5}
parameters: {weight: 3}
dtype: bfloat16
"""

SAME = {
    "numbers as text": LINEAR.replace("0.5", '"0.5"'),
    "an anchor": """
merge_method: linear
half: &half {weight: 0.5}
models:
  - {model: tl-chat, parameters: *half}
  - model: tl-code
    parameters: {<<: *half, weight: 0.25}
dtype: bfloat16
""",
    "a map for a model": LINEAR.replace("model: tl-chat",
                                        "model: {model: {path: tl-chat}}"),
    "torch's name of a dtype": LINEAR.replace("bfloat16", "torch.bfloat16"),
    "out_dtype the same": LINEAR + "out_dtype: bfloat16\n",
    "a weight for all": """
merge_method: linear
models:
  - {model: tl-chat}
  - {model: tl-code, parameters: {weight: [{value: 0.25}]}}
parameters: {weight: 0.5, normalize: yes}
dtype: bfloat16
""",
    "the module default": """
merge_method: linear
modules:
  default:
    models:
      - {model: tl-chat, parameters: {weight: 0.5}}
      - {model: tl-code, parameters: {weight: 0.25}}
dtype: bfloat16
""",
}


@pytest.mark.parametrize("name", SAME)
def test_it_may_be_written_otherwise(store, name):
    assert (recipe(store, SAME[name])["recipe"]
            == recipe(store, LINEAR)["recipe"])


def test_one_slice_of_all_layers_is_the_models_as_they_are(store):
    for ref, text in (("whole", LINEAR), ("slice", ONE_SLICE)):
        bring(store, write(store, text), ref=ref)
        store("checkout", ref, "-o", store.path / ref)
    assert load(store.path / "whole") == load(store.path / "slice")


@pytest.mark.parametrize("first, end, word", [
    (0, 5, "[0, 5) of"), (3, 6, "which has 4"), (4, 5, "which has 4")])
def test_a_slice_is_of_layers_that_are_there(store, first, end, word):
    text = ONE_SLICE.replace("[0, 4]", f"[{first}, {end}]")
    done = bring(store, write(store, text), code=2)
    assert word in done.error["message"]


def test_the_arithmetic_is_mergekits_unless_told(store):
    assert recipe(store, LINEAR)["recipe"]["arithmetic"] == "mergekit"
    done = recipe(store, LINEAR, "--arithmetic", "precise")
    assert done["recipe"]["arithmetic"] == "precise"
    assert done["message"] == "import of recipe.yml"
    done = recipe(store, LINEAR, "-m", "mine")
    assert done["message"] == "mine"


def test_a_base_that_is_not_listed_is_the_last_of_a_linear_merge(store):
    done = recipe(store, LINEAR + "base_model: tl-base\n"
                  "parameters: {weight: 0.1}\n")
    assert [row["weight"] for row in done["recipe"]["inputs"]] == [
        0.5, 0.25, 0.1]
    done = bring(store, write(store, LINEAR + "base_model: tl-base\n"), code=2)
    assert "'tl-base' has no weight" in done.error["message"]


MULTI = """
name: second
merge_method: task_arithmetic
base_model: tl-base
models: [{model: first, parameters: {weight: 0.5}}]
---
name: first
merge_method: linear
models:
  - {model: tl-chat, parameters: {weight: 1}}
  - {model: tl-code, parameters: {weight: 1}}
---
merge_method: slerp
base_model: first
models: [{model: second}]
parameters: {t: 0.25}
"""


def test_documents_name_each_other_and_become_refs(store):
    done = recipe(store, MULTI)
    ids = [store("show", name, "--json").json["id"]
           for name in ("second", "first", "out")]
    assert done["id"] == ids[2] and done["ref"] == "out"
    assert [row["commit"] for row in done["recipe"]["inputs"]] == ids[:2]
    text = store("import-mergekit", store.path / "recipe.yml", *mapped(),
                 "--ref", "out").out.splitlines()
    assert [line.split()[-1] for line in text] == ["first", "second", "out"]


@pytest.mark.parametrize("old, new, word", [
    ("model: tl-chat", "model: second", "in a circle"),
    ("name: second", "name: first", "two documents named 'first'"),
    ("name: second\n", "", "two documents without a 'name'"),
    ("merge_method: slerp", "name: third\nmerge_method: slerp", "'out'"),
])
def test_documents_that_cannot_be_ordered_are_refused(store, old, new, word):
    done = bring(store, write(store, MULTI.replace(old, new)), code=2)
    assert word in done.error["message"]


# ---- and back ----------------------------------------------------------------

@pytest.mark.parametrize("name", RECIPE_NAMES)
def test_what_is_exported_is_imported_as_the_same(store, name):
    expect, more = expected(name)
    first = bring(store, RECIPES / name / "config.yml", *more).json
    words = [word for model in MODELS for word in ("--map", f"{model}={model}")]
    text = store("export-mergekit", "out", *words).out
    again = recipe(store, text, *more)
    assert (sorted(again["recipe"]["inputs"], key=json.dumps)
            == sorted(first["recipe"]["inputs"], key=json.dumps))
    plain = store("export-mergekit", "out").out
    assert f'"{store.tenant}:' in plain
    path = write(store, plain)
    again = store("import-mergekit", path, "--ref", "out", "--json",
                  *more).json
    assert again["recipe"]["parameters"] == first["recipe"]["parameters"]
    out = store.path / f"{name}-again"
    store("checkout", "out", "-o", out)
    assert not compare(load(out), expect["tensors"], RECIPES / name,
                       vocabulary_of(out))


def test_an_export_is_text_that_yaml_reads_as_numbers(store):
    store("merge", "tl-chat@1e-5", "tl-code@2", "--method", "linear", "-m", "x",
          "--ref", "tiny", "--space", "weights")
    text = store("export-mergekit", "tiny", "--map", "./a b=tl-chat",
                 "--map", "b=tl-code").out
    assert text == """\
# Recorded in arithmetic 'precise', which rounds once; mergekit rounds at each step.
merge_method: linear
models:
  - model: "./a b"
    parameters:
      weight: 1.0e-05
  - model: "b"
    parameters:
      weight: 2
parameters:
  normalize: true
"""
    out = store.path / "tiny.yml"
    done = store("export-mergekit", "tiny", "-o", out, "--json").json
    assert out.read_text() == done["recipe"] and done["out"] == str(out)


def test_what_mergekit_cannot_do_is_not_exported(store):
    done = store("export-mergekit", "tl-base", "--json", code=2)
    assert "is not a view" in done.error["message"]
    store("delta", DATA / "models" / "tl-chat", "--base",
          DATA / "models" / "tl-base", "-m", "d", "--ref", "d-chat")
    store("merge", "d-chat", "-m", "x", "--ref", "deltas")
    done = store("export-mergekit", "deltas", "--json", code=9)
    assert "'delta'" in done.error["message"]
    store("merge", "tl-chat", "tl-chat", "-m", "x", "--ref", "twice")
    done = store("export-mergekit", "twice", "--json", code=9)
    assert "same commit" in done.error["message"]
