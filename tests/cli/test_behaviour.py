"""diff of what models answer: seen, unknown, unobserved; noise; numbers."""

import json
import math
import sys

import pytest

from support import Store, model

TELLS = """
import json, os, sys
rows = json.load(open(sys.argv[1]))
for line in sys.stdin:
    probe = json.loads(line)
    row = rows[probe["prompt"]]
    if isinstance(row, list):
        row = row.pop(0)
        json.dump(dict(rows, **{probe["prompt"]: rows[probe["prompt"]]}),
                  open(sys.argv[1], "w"))
    print(json.dumps(dict(row, id=probe["id"])))
"""


@pytest.fixture(name="store")
def made_store(tmp_path):
    """a and b, 20 % apart; the same as a under another message."""
    store = Store(tmp_path)
    for name, last in (("a", 4.0), ("b", 5.0), ("again", 4.0)):
        model(tmp_path / name, (1, 2, 3, last))
        store("commit", f"./{name}", "-m", name, "--ref", name)
    (tmp_path / "tells.py").write_text(TELLS)
    return store


def said(*tokens):
    """An answer of tokens, each (token, {token: probability})."""
    return {"output": "".join(t for t, _ in tokens),
            "logprobs": [{"token": t, "logprob": math.log(p[t]),
                          "top": {k: math.log(v) for k, v in p.items()}}
                         for t, p in tokens]}


def ask(store, ref, rows, *words, **fields):
    """Record rows {prompt: answer} as what ref answered."""
    (store.path / "rows.json").write_text(json.dumps(
        {p: r if isinstance(r, (dict, list)) else {"output": r}
         for p, r in rows.items()}))
    (store.path / "probes.jsonl").write_text("".join(
        json.dumps({"prompt": p, **fields}) + "\n" for p in rows))
    return store("--json", "fingerprint", ref, "--probes", "./probes.jsonl",
                 "--command", f"{sys.executable} tells.py rows.json",
                 *words).json


def diff(store, a="a", b="b", *words):
    return store("--json", "diff", a, b, *words).json


# ---- three outcomes ---------------------------------------------------------

def test_a_moved_answer_is_seen(store):
    ask(store, "a", {"q": "Paris", "r": "yes"})
    ask(store, "b", {"q": "Pariz", "r": "yes"})
    got = diff(store)
    assert (got["probes_changed"], got["probes_total"]) == (1, 2)
    assert got["probes_similarity"] == pytest.approx(0.8)
    assert not got["unobserved"] and got["evidence"] == "answers"
    text = store("diff", "a", "b").out
    assert "\n  probes: 1 of 2 moved (similarity 0.80)\n" in text
    assert "UNOBSERVED" not in text


def test_without_fingerprints_on_both_the_effect_is_unknown(store):
    ask(store, "a", {"q": "Paris"})
    got = diff(store)
    assert got["probe_set"] is None and not got["unobserved"]
    assert store("diff", "a", "b").out.endswith(
        "  no fingerprints on both commits; behavioural effect unknown\n")


def test_weights_that_move_while_no_answer_does_are_unobserved(store):
    for ref in "ab":
        ask(store, ref, {"q": "Paris", "r": "yes"})
    got = diff(store)
    assert got["unobserved"] and got["probes_changed"] == 0
    assert got["probes_similarity"] is None
    assert store("diff", "a", "b").out.endswith(
        "  probes: 0 of 2 moved\n"
        "  UNOBSERVED CHANGE: weights moved, no probe detected it\n")


def test_below_the_threshold_nothing_need_be_observed(store):
    for ref in "ab":
        ask(store, ref, {"q": "Paris"})
    assert not diff(store, "a", "b", "--threshold", "0.5")["unobserved"]


def test_log_probabilities_see_what_answers_do_not(store):
    for ref, p in (("a", 0.9), ("b", 0.8)):
        ask(store, ref, {"q": said(("x", {"x": p, "y": 0.95 - p}))})
    got = diff(store)
    p, q = (0.9, 0.05, 0.05), (0.8, 0.15, 0.05)
    kld = sum(x * math.log(x / y) for x, y in zip(p, q))
    assert got["mean_kld"] == pytest.approx(kld, abs=1e-12)
    assert got["perplexity_ratio"] == pytest.approx(0.9 / 0.8, abs=1e-12)
    assert not got["unobserved"] and got["evidence"] == "logprobs"
    assert "seen by log-probabilities alone" in store("diff", "a", "b").out


def test_equal_weights_that_answer_otherwise_are_the_runners_noise(store):
    ask(store, "a", {"q": "Paris"})
    ask(store, "again", {"q": "Lyon"})
    text = store("diff", "a", "again").out
    assert "the runner does not answer the same twice" in text


# ---- noise ------------------------------------------------------------------

def test_an_answer_that_came_before_as_well_has_not_moved(store):
    ask(store, "a", {"q": [{"output": "yes"}, {"output": "no"}]},
        "--repeat", "2")
    ask(store, "b", {"q": [{"output": "no"}, {"output": "no"}]},
        "--repeat", "2")
    got = diff(store)
    assert (got["probes_changed"], got["probes_unsure"]) == (0, 1)
    assert "noise: 1 probes answered in several ways" in store("diff", "a",
                                                               "b").out


def test_divergence_below_the_noise_is_no_evidence(store):
    def twice(first, second):
        return {"q": [said(("x", {"x": p, "y": 1 - p}))
                      for p in (first, second)]}
    ask(store, "a", twice(0.90, 0.80), "--repeat", "2")
    ask(store, "b", twice(0.89, 0.80), "--repeat", "2")
    got = diff(store)
    assert 0 < got["mean_kld"] < got["noise_kld"]
    assert got["unobserved"] and got["evidence"] is None


# ---- which are compared -----------------------------------------------------

def test_only_what_was_asked_on_the_same_terms_is_compared(store):
    ask(store, "a", {"q": "Paris"})
    ask(store, "b", {"q": "Paris"}, "--max-tokens", "7")
    assert diff(store)["probe_set"] is None
    ask(store, "a", {"q": "Paris"}, "--max-tokens", "7")
    assert diff(store)["probes_total"] == 1


def test_the_latest_common_set_is_found_or_the_one_that_is_named(store):
    sets = []
    for prompt in ("first", "second"):
        for ref in "ab":
            sets.append(ask(store, ref, {prompt: prompt + ref})["probe_set"])
    assert diff(store)["probe_set"] == sets[-1]
    assert diff(store, "a", "b", "--probe-set",
                sets[0][:8])["probe_set"] == sets[0]
    for named, code in (("ffff", 3), ("xyz", 2), (sets[0] + "0", 2)):
        store("diff", "a", "b", "--probe-set", named, code=code)


def test_folders_have_no_fingerprints(store):
    ask(store, "a", {"q": "Paris"})
    text = store("diff", "./a", "./b").out
    assert "behavioural effect unknown" in text
    store("diff", "./a", "./b", "--probe-set", "abcd", code=2)


# ---- right answers ----------------------------------------------------------

def test_right_answers_are_counted_and_tested(store):
    ask(store, "a", {f"q{n}": "A" for n in range(8)}, reference="A",
        choices=["A", "B"])
    ask(store, "b", {f"q{n}": "It is B" if n < 7 else "(A)" for n in range(8)},
        reference="A", choices=["A", "B"])
    got = diff(store)
    assert (got["right_a"], got["right_b"]) == (8, 1)
    assert (got["only_a"], got["only_b"]) == (7, 0)
    assert got["p_value"] == pytest.approx(2 * 0.5 ** 7, abs=1e-15)
    assert ("right answers: 8 of 8 before, 1 after (7 lost, 0 gained), "
            "p = 0.01562") in store("diff", "a", "b").out


# ---- probe by probe ---------------------------------------------------------

def test_probes_are_shown_side_by_side(store):
    ask(store, "a", {"q": "one two three " * 5, "r": "the same"})
    ask(store, "b", {"q": "one\x1b[31m two", "r": "the same"})
    out = store("diff", "a", "b", "--probes", env={"COLUMNS": "80"}).out
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in out and "\\x1b" in out
    row = next(line for line in lines if "one two three" in line)
    assert " | one" in row
    assert any("the same" in line and " | the same" in line for line in lines)


def test_probes_are_in_the_document_too(store):
    ask(store, "a", {"q": "Paris"})
    ask(store, "b", {"q": "Lyon"})
    got = diff(store, "a", "b", "--probes")["probes"]
    assert [(p["before"], p["after"], p["moved"]) for p in got] == [
        ("Paris", "Lyon", True)]


# ---- the stand-in -----------------------------------------------------------

def test_the_stand_in_watches_the_tensors_it_is_told_to(store):
    (store.path / "p.txt").write_text("one\ntwo\n")
    for ref in ("a", "b"):
        store("fingerprint", ref, "--probes", "p.txt", "--runner", "fake")
        store("fingerprint", ref, "--probes", "p.txt", "--runner", "fake",
              "--model", "nothing*")
    assert diff(store)["unobserved"]
    for ref in ("a", "b"):
        store("fingerprint", ref, "--probes", "p.txt", "--runner", "fake")
    got = diff(store)
    assert got["probes_changed"] == 2 and not got["unobserved"]


# ---- weights, taken together ------------------------------------------------

def test_change_is_told_by_layer_and_by_kind_of_module(tmp_path):
    from support import f32, save
    store = Store(tmp_path)
    for ref, by in (("a", 1.0), ("b", 1.5)):
        save(tmp_path / ref / "model.safetensors", {
            f"model.layers.{layer}.{part}.weight":
                ("F32", (2,), f32(3 * (by if layer == 1 and "q" in part else 1),
                                  4 * (by if layer == 1 and "q" in part else 1)))
            for layer in range(12) for part in ("mlp.up_proj",
                                               "self_attn.q_proj")})
        store("commit", f"./{ref}", "-m", ref, "--ref", ref)
    got = diff(store)
    layers = {row["name"]: row["relative"] for row in got["layers"]}
    modules = {row["name"]: row["relative"] for row in got["modules"]}
    assert layers["0"] == 0
    assert layers["1"] == pytest.approx(2.5 / math.sqrt(50))
    assert modules["self_attn.q_proj"] == pytest.approx(2.5 / math.sqrt(300))
    assert modules["mlp.up_proj"] == 0
    assert [row["name"] for row in got["layers"]] == [str(n) for n in range(12)]
    text = store("diff", "a", "b", "--layers", "--modules").out
    assert "by layer" in text and "by kind of module" in text


# ---- what no number tells ---------------------------------------------------

def two(store, a, b, dtype="F64"):
    import numpy as np
    from support import save
    for ref, values in (("x", a), ("y", b)):
        data = np.array(values, dtype={"F64": "<f8", "F32": "<f4"}[dtype])
        save(store.path / ref / "model.safetensors",
             {"w": (dtype, data.shape, data.tobytes())})
        store("commit", f"./{ref}", "-m", ref, "--ref", ref, "--allow-empty")
        ask(store, ref, {"q": "the same"})
    return diff(store, "x", "y")


@pytest.mark.parametrize("a, b", [
    ([1e154] * 4, [1.5e154] * 4),  # squares overflow in the sum
    ([1e200], [2e200]),            # and by themselves
    ([1e-200], [5e-200]),          # or vanish
    ([1.0], [float("inf")]),
])
def test_a_change_whose_squares_have_no_number_is_not_averaged_away(store, a, b):
    got = two(store, a, b)
    assert got["unobserved"] and got["relative_change"] is None
    assert [row["tensor"] for row in got["changed"]] == ["w"]
    text = store("diff", "x", "y").out
    assert "inf overall" in text and "nan" not in text


def test_a_mask_of_infinities_is_named_and_has_not_moved(store):
    got = two(store, [float("-inf"), 0], [float("-inf"), 0], "F32")
    assert got["non_finite"] == ["w"] and not got["unobserved"]
    assert got["relative_change"] == 0


def test_deltas_of_different_bases_are_not_the_same(tmp_path):
    import numpy as np
    from support import save
    store = Store(tmp_path)

    def folder(name, w, n):
        return save(tmp_path / name / "model.safetensors", {
            key: ("F32", (2,), np.array(v, "<f4").tobytes())
            for key, v in (("w", w), ("n", n))}).parent

    for ref, n in (("d1", [5, 5]), ("d2", [50, -5])):
        store("delta", folder(f"{ref}t", [1, 3], n), "--base",
              folder(f"{ref}b", [1, 2], n), "-m", ref, "--ref", ref)
    got = diff(store, "d1", "d2")
    assert [row["tensor"] for row in got["changed"]] == ["n"]
    assert got["relative_change"] is None


def test_stacks_of_layers_are_told_apart(tmp_path):
    from support import f32, save
    store = Store(tmp_path)
    for ref, value in (("a", 1.0), ("b", 2.0)):
        save(tmp_path / ref / "model.safetensors", {
            "encoder.layers.0.w.weight": ("F32", (1,), f32(value)),
            "decoder.layers.0.w.weight": ("F32", (1,), f32(100))})
        store("commit", f"./{ref}", "-m", ref, "--ref", ref)
    assert {r["name"]: r["relative"] for r in diff(store)["layers"]} == {
        "encoder 0": 1.0, "decoder 0": 0.0}
