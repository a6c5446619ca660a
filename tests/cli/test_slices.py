"""mergekit's rules for layers, levels and slices by what they give: the cases
are small enough that each value is worked out by hand, and mergekit 0.1.5 gives
the same."""

import json

import numpy as np
import pytest

from stacks import (EMBED, NORM, bring, commit, config_of, ends, full, near,
                    put, result)
from support import Store

LAYERS = 4


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    """Models of four layers, full of one number each."""
    store = Store(tmp_path_factory.mktemp("slices"))
    for name, value in (("zeros", 0), ("ones", 1), ("twos", 2)):
        commit(store, name, full(value, LAYERS))
    commit(store, "tied", full(3, LAYERS, head=False))
    return store


# ---- cases -------------------------------------------------------------------

def test_what_is_in_no_layer_has_the_first_value_of_a_gradient(store):
    commit(store, "three", full(1, 3))
    bring(store, """
merge_method: passthrough
models: [{model: three, parameters: {scale: [0.1, 0.5, 0.9, 0.2]}}]
""")
    near(ends(store), (0.1, [0.1, 0.7, 0.2], 0.1, 0.1))


def test_a_gradient_runs_through_each_slice_and_a_single_layer_is_its_end(
        store):
    bring(store, """
merge_method: passthrough
slices:
  - sources: [{model: ones, layer_range: [0, 2], parameters: {scale: [2, 3]}}]
  - sources: [{model: ones, layer_range: [1, 3], parameters: {scale: [5, 7]}}]
  - sources:
      - {model: ones, layer_range: [2, 3], parameters: {scale: [11, 13]}}
""")
    assert ends(store) == (2, [2, 3, 5, 7, 13], 11, 11)
    assert config_of(store, "x")["num_hidden_layers"] == 5


def test_filters_of_a_model_see_its_layers_and_those_of_all_the_results(store):
    bring(store, """
merge_method: linear
slices:
  - sources: [{model: ones, layer_range: [1, 2], parameters: &p {weight: [
      {filter: layers.0., value: 2}, {filter: layers.1., value: 3},
      {value: 5}]}}]
  - sources: [{model: ones, layer_range: [0, 1], parameters: *p}]
parameters: {normalize: false}
""")
    assert ends(store) == (5, [3, 2], 5, 5)
    bring(store, """
merge_method: task_arithmetic
base_model: zeros
slices:
  - sources: [{model: ones, layer_range: [1, 2]},
              {model: zeros, layer_range: [1, 2]}]
  - sources: [{model: ones, layer_range: [0, 1]},
              {model: zeros, layer_range: [0, 1]}]
parameters:
  weight: 1
  lambda: [{filter: layers.0., value: 2}, {filter: layers.1., value: 3},
           {value: 5}]
""")
    assert ends(store) == (5, [2, 3], 5, 5)


def test_a_model_is_a_source_of_a_slice_once(store):
    done = bring(store, """
merge_method: linear
slices:
  - sources: [{model: ones, layer_range: [0, 1]},
              {model: ones, layer_range: [2, 3]}]
parameters: {weight: 1}
""", ref="none", code=2)
    assert "'ones' is there twice" in done.error["message"]
    store("show", "none", code=3)


@pytest.mark.parametrize("models", [("ones", "tied"), ("tied", "ones")])
def test_embeddings_that_are_tied_are_the_head_beside_one(store, models):
    text = """
merge_method: linear
models: [{model: %s}, {model: %s}]
parameters: {weight: 0.5}
"""
    bring(store, text % models)
    assert ends(store) == (2, [2] * LAYERS, 2, 2)
    assert config_of(store, "x")["tie_word_embeddings"] is False
    commit(store, "tied-too", full(5, LAYERS, head=False))
    bring(store, text % ("tied", "tied-too"))
    assert ends(store) == (4, [4] * LAYERS, 4, None)
    assert config_of(store, "x")["tie_word_embeddings"] is True


VALUES = [
    ("weight: {filter: mlp, value: 3}", None),
    ("weight: [{filter: layers, value: 3}, {value: 2}]", 2),
    ("weight: {value: 3}", 3),
    ("weight: '0.5'", 0.5),
    ("weight: true", 1),
    ("weight: 1e-1", 0.1),
    ("weight: 4, normalize: 'false'", 4),
    ("weight: 4, normalize: []", 1),
    ("weight: 4, normalize: 0.5", None),
    ("weight: []", None),
]


@pytest.mark.parametrize("told, want", VALUES, ids=[row[0] for row in VALUES])
def test_values_are_what_mergekit_makes_of_them(store, told, want):
    plain = "" if "normalize" in told else ", normalize: false"
    done = bring(store, f"""
merge_method: linear
models: [{{model: ones}}]
parameters: {{{told}{plain}}}
""", code=None)
    assert done.code == (2 if want is None else 0), done
    if want is not None:
        near(ends(store)[::2], (want, want))


TIES = """
merge_method: ties
slices:
  - sources: [{model: ones, layer_range: [0, 1]},
              {model: zeros, layer_range: [0, 1]}]
    %s
parameters: {weight: 1}
"""


def test_a_base_is_told_for_a_slice_and_is_one_of_its_sources(store):
    done = bring(store, TIES % "", code=2)
    assert "'ties' needs a base" in done.error["message"]
    done = bring(store, TIES % "base_model: twos", code=2)
    assert "'twos' is not a source of the slice" in done.error["message"]
    half = TIES.split("parameters")[0] + TIES.split("slices:")[1]
    done = bring(store, half % ("base_model: zeros", ""), code=2)
    assert "'ties' needs a base" in done.error["message"]
    done = bring(store, TIES % "base_model: zeros").json
    assert done["recipe"]["slices"] == [{"base": 1}]
    assert ends(store) == (1, [1], 1, 1)
    done = bring(store, """
merge_method: ties
base_model: zeros
models: [{model: ones}]
parameters: {weight: 1}
""").json
    assert done["recipe"]["base"] == 1 and len(done["recipe"]["inputs"]) == 2
    assert ends(store) == (1, [1] * LAYERS, 1, 1)


def test_what_is_behind_has_as_many_sources_as_the_first_slice(store):
    bring(store, """
merge_method: linear
slices:
  - sources: [{model: ones, layer_range: [0, 1]}]
  - sources: [{model: ones, layer_range: [1, 3]},
              {model: twos, layer_range: [1, 3]}]
parameters: {weight: 0.5, normalize: false}
""")
    assert ends(store) == (0.5, [0.5, 1.5, 1.5], 0.5, 0.5)


def test_arcee_fusion_gives_f32_unless_another_is_asked_for(store):
    for name, value in (("b-one", 1), ("b-two", 2)):
        commit(store, name, full(value, 2), dtype="BF16")
    text = """
merge_method: arcee_fusion
base_model: b-one
models: [{model: b-two}]
dtype: bfloat16
"""
    for more, want in (("", "F32"), ("out_dtype: bfloat16\n", "BF16")):
        bring(store, text + more)
        told = store("show", "x", "--json").json["tensors"]
        assert {row["dtype"] for row in told} == {want}


BIAS = "model.layers.1.mlp.up_proj.bias"
# Of the two, and the base that one of them is; None: it is refused.
ABSENT = [
    ("linear", "with", None, 5), ("linear", "without", None, 5),
    ("karcher", "with", None, 5), ("multislerp", "with", None, 5),
    ("slerp", "with", "with", 5), ("slerp", "with", "without", 5),
    ("nuslerp", "with", None, 5), ("arcee_fusion", "with", "with", 5),
    ("arcee_fusion", "with", "without", 5),
    ("task_arithmetic", "without", "with", 5),
    ("task_arithmetic", "with", "without", "refused"),
    ("ties", "without", "with", 5), ("ties", "with", "without", "refused"),
    ("sce", "without", "with", 5), ("sce", "with", "without", "refused"),
    ("ram", "without", "with", 5), ("ram", "with", "without", "refused"),
    ("nearswap", "without", "with", 5),
    ("nearswap", "with", "without", "refused"),
    ("model_stock", "without", "with", 5),
    ("model_stock", "with", "without", "left out"),
]


@pytest.mark.parametrize("method, first, base, want", ABSENT)
def test_a_tensor_that_one_lacks_is_what_the_method_says(
        store, method, first, base, want):
    commit(store, "without", full(1, 2))
    commit(store, "with", full(2, 2) | {BIAS: np.full(4, 5.0)})
    commit(store, "third", full(3, 2))
    others = [name for name in ("with", "without") if name != base]
    if first == "without":
        others.reverse()
    if method == "model_stock":
        others.append("third")
    words = ["--t", "0.5"] if method in ("slerp", "nearswap") else []
    words += ["--base", base] if base else []
    done = store("merge", *others, "--method", method, *words, "--arithmetic",
                 "mergekit", "-m", "x", "--ref", "x", "--json", code=None)
    if want == "refused":
        assert done.code == 2 and BIAS in done.error["message"]
        return
    assert done.code == 0, done
    got = result(store, "x")
    if want == "left out":
        assert BIAS not in got and EMBED in got
    else:
        assert got[BIAS].tolist() == [5.0] * 4


def test_a_base_of_linear_is_one_more_model_and_has_a_weight(store):
    text = """
merge_method: linear
base_model: twos
models: [{model: ones, parameters: {weight: 3}}]
parameters: {normalize: false%s}
"""
    done = bring(store, text % "", code=2)
    assert "'twos' has no weight" in done.error["message"]
    bring(store, text % ", weight: 0.25")
    assert ends(store) == (3.5, [3.5] * LAYERS, 3.5, 3.5)


def test_a_source_goes_before_its_slice_and_that_before_all(store):
    bring(store, """
merge_method: linear
slices:
  - sources: [{model: ones, layer_range: [0, 1]},
              {model: twos, layer_range: [0, 1], parameters: {weight: 2}}]
    parameters: {weight: 0.25}
  - sources: [{model: ones, layer_range: [1, 2]},
              {model: twos, layer_range: [1, 2]}]
parameters: {weight: 9, normalize: false}
""")
    assert ends(store) == (4.25, [4.25, 27], 27, 27)


def test_what_is_told_for_a_slice_is_told_for_what_is_before_or_behind_it(
        store):
    bring(store, """
merge_method: task_arithmetic
base_model: zeros
slices:
  - sources: [{model: ones, layer_range: [0, 2]},
              {model: zeros, layer_range: [0, 2]}]
    parameters: {lambda: [2, 3]}
  - sources: [{model: ones, layer_range: [0, 1]},
              {model: zeros, layer_range: [0, 1]}]
  - sources: [{model: twos, layer_range: [3, 4]},
              {model: zeros, layer_range: [3, 4]}]
    parameters: {lambda: [7, 4]}
parameters: {weight: 1, lambda: 5}
""")
    assert ends(store) == (2, [2, 3, 5, 8], 14, 14)


def test_slices_share_nothing_of_what_is_before_or_behind_them(store):
    """Of a method that knows no weights."""
    bring(store, """
merge_method: karcher
slices:
  - sources: [{model: ones, layer_range: [0, 1]}]
  - sources: [{model: twos, layer_range: [1, 2]}]
""")
    assert ends(store) == (1, [1, 2], 2, 2)


# ---- vocabularies ------------------------------------------------------------

# What each model calls its rows, and their values.
WORDS = {"A": {"x": 1, "y": 2}, "B": {"x": 10, "z": 20},
         "C": {"z": 100, "x": 200, "w": 300}}


@pytest.fixture(name="words", scope="module")
def worded_store(store):
    for name, rows in WORDS.items():
        tensors = full(0, 1, head=False)
        tensors[EMBED] = np.repeat([[float(v)] for v in rows.values()], 5, 1)
        tensors[NORM] = np.full(5, min(rows.values()))
        path = put(store.path / name, tensors,
                   config={"vocab_size": len(rows)})
        (path / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "added_tokens": [],
            "model": {"type": "BPE", "merges": [],
                      "vocab": {word: i for i, word in enumerate(rows)}}}))
        store("commit", name, "-m", name, "--ref", name)
    return store


def rows_of(store, more, base=None):
    """{model: {token: its row}}: of a sum in which it alone has a weight."""
    found = {}
    for name in WORDS:
        weights = "".join(
            f"  - {{model: {other}, parameters: "
            f"{{weight: {int(other == name)}}}}}\n" for other in WORDS)
        named = f"base_model: {base}\n" if base else ""
        bring(store, f"merge_method: linear\nmodels:\n{weights}{named}"
              f"parameters: {{normalize: false}}\n{more}")
        rows = result(store, "x")[EMBED]
        assert (rows == rows[:, :1]).all()
        told = json.loads((store.path / "out/tokenizer.json").read_text())
        size = json.loads((store.path / "out/config.json").read_text())
        assert size["vocab_size"] == len(rows)
        vocab = told["model"]["vocab"]
        vocab |= {row["content"]: row["id"] for row in told["added_tokens"]}
        found[name] = {word: rows[i, 0] for word, i in vocab.items()}
        found[name][None] = rows[len(vocab):, 0].tolist()
    return found


def in_order(rows, order="xyzw"):
    return {name: [row[word] for word in order] for name, row in rows.items()}


def test_rows_that_a_model_lacks_come_from_the_others(words):
    assert in_order(rows_of(words, "tokenizer_source: union\n")) == {
        "A": [1, 2, 60, 300], "B": [10, 2, 20, 300], "C": [200, 2, 100, 300]}


def test_rows_that_a_model_lacks_come_from_the_base_first(words):
    got = rows_of(words, "tokenizer: {source: union}\n", base="B")
    assert got["A"]["z"] == 20


def test_rows_beyond_the_tokens_are_the_mean_of_the_others(words):
    got = rows_of(words, "tokenizer: {pad_to_multiple_of: 6}\n")
    assert {name: row[None] for name, row in got.items()} == {
        "A": [90.75] * 2, "B": [83] * 2, "C": [150.5] * 2}


def test_a_row_is_forced_made_of_zeros_or_that_of_another_token(words):
    got = rows_of(words, """
tokenizer:
  tokens:
    x: {source: C, force: true}
    new: {source: {kind: zero}}
    other: {source: {kind: model_token, model: C, token: z}}
""")
    for row in got.values():
        assert (row["x"], row["new"], row["other"]) == (200, 0, 100)


def test_a_model_of_several_slices_has_one_vocabulary(words):
    sources = """
  - sources: [{model: A, layer_range: [0, 1]},
              {model: B, layer_range: [0, 1]}]"""
    bring(words, f"""
merge_method: linear
slices: {2 * sources}
parameters: {{weight: 1, normalize: false}}
tokenizer_source: union
""")
    got = result(words, "x")
    assert got[EMBED][:, 0].tolist() == [11, 4, 40]
    assert got[NORM].tolist() == [11] * 5
