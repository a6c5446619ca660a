"""Merges of whole models to a base, by the program; the numbers are numpy's."""

import numpy as np
import pytest

from support import Store, f32, load, model, save

BASE = np.array([8, -4, 2, 1, 0.5, 3, -7, 6], "<f4")
ONE = BASE + np.array([1, 0, 0.25, 0, 0, -2, 0, 0.5], "<f4")
TWO = BASE + np.array([0, 2, 0.5, 0, -1, 0, 0, 0.125], "<f4")


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    """Three whole models, and two of them as differences to the first."""
    path = tmp_path_factory.mktemp("merge")
    store = Store(path)
    for name, values in (("base", BASE), ("one", ONE), ("two", TWO)):
        model(path / name, values, config={"is": name})
        store("commit", name, "-m", name, "--ref", name)
    for name in ("one", "two"):
        store("delta", name, "--base", "base", "-m", name, "--ref",
              f"d-{name}")
    return store


def values(store, spec, name):
    """What a view's tensor is when it is written."""
    out = store.path / name
    store("checkout", spec, "-o", name)
    ((_, _, data),) = load(out).values()
    return np.frombuffer(data, "<f4"), (out / "config.json").read_text()


def test_whole_models_are_merged_as_differences_to_the_base(store):
    store("merge", "one@2", "two", "--method", "task_arithmetic", "--base",
          "base", "-m", "sum", "--ref", "sum")
    got, config = values(store, "sum", "sum-out")
    want = BASE + 2 * (ONE - BASE) + (TWO - BASE)
    assert got.tobytes() == want.tobytes()
    assert '"base"' in config
    # And so are the differences themselves, written onto it.
    store("merge", "d-one@2", "d-two", "--method", "task_arithmetic", "-m",
          "sum", "--ref", "d-sum")
    store("apply", "d-sum", "--base", "base", "-o", "d-sum-out")
    ((_, _, data),) = load(store.path / "d-sum-out").values()
    assert data == want.tobytes()


@pytest.mark.parametrize("method", ["ties", "breadcrumbs", "sce"])
def test_a_tensor_that_one_input_leaves_as_it_is_is_merged(tmp_path, method):
    """It has no blocks there, and the merge reads it several times over."""
    rng = np.random.default_rng(3)
    count = 1 << 18
    base = {name: rng.normal(0, 1, count).astype("<f4") for name in "ab"}
    one = {name: x + rng.normal(0, 1e-3, count).astype("<f4")
           for name, x in base.items()}
    two = {"a": base["a"] + np.float32(0.5), "b": base["b"]}
    store = Store(tmp_path)
    store("init", "--block-size", "65536")
    for name, tensors in (("base", base), ("one", one), ("two", two)):
        save(tmp_path / name / "model.safetensors",
             {key: ("F32", x.shape, x.tobytes()) for key, x in tensors.items()})
    for name in ("one", "two"):
        store("delta", name, "--base", "base", "-m", name, "--ref", name)
    extra = {"ties": ["--density", "1"], "sce": ["--select-topk", "1"],
             "breadcrumbs": ["--density", "1", "--gamma", "0"]}[method]
    store("merge", "one", "two", "--method", method, *extra, "-m", "m")
    outs = []
    for jobs in "14":
        store("-j", jobs, "--no-cache", "apply", "main", "--base", "base", "-o",
              f"out{jobs}")
        outs.append(load(tmp_path / f"out{jobs}"))
    assert outs[0] == outs[1]
    got = np.frombuffer(outs[0]["b"][2], "<f4")
    assert np.isfinite(got).all() and (got != base["b"]).any()


def test_the_base_may_be_an_input_by_itself(store):
    done = store("merge", "base", "one", "--method", "task_arithmetic",
                 "--base", "base", "-m", "x", "--ref", "x", "--json").json
    assert done["recipe"]["base"] == 0
    assert len(done["recipe"]["inputs"]) == 2
    assert values(store, "x", "x-out")[0].tobytes() == ONE.tobytes()


def test_without_a_base_it_is_said_how_to_name_one(store):
    done = store("merge", "one", "two", "--method", "ties", "-m", "x",
                 "--json", code=2)
    assert "'ties' needs a base" in done.error["message"]
    assert "--base" in done.error["hint"]


@pytest.mark.parametrize("words", [
    ("base", "one"), ("--base", "base", "one"), ("one", "--base", "base"),
], ids=" ".join)
def test_slerp_goes_from_the_first_or_the_base(store, words):
    done = store("merge", *words, "--method", "slerp", "--t", "1", "-m", "x",
                 "--ref", "s", "--json").json
    recipe = done["recipe"]
    commits = {store("show", name, "--json").json["id"]: name
               for name in ("base", "one")}
    assert commits[recipe["inputs"][recipe["base"]]["commit"]] == "base"
    name = "slerp-" + "-".join(words).replace("--", "")
    assert np.allclose(values(store, "s", name)[0], ONE, rtol=1e-6)


def test_a_seed_is_recorded_and_gives_the_same_again(store):
    def merge(*more):
        done = store("merge", "one", "two", "--base", "base", "--method",
                     "dare_linear", "--density", "0.5", "-m", "x", "--ref",
                     "dare", "--json", *more).json
        return done["manifest"], done["recipe"]["seed"]

    first, seed = merge()
    other, drawn = merge()
    assert seed != drawn and first != other
    assert merge("--seed", seed) == (first, seed)
    shown = store("show", "dare").out
    assert f"seed       {seed}\n" in shown
    assert shown.count("base       acme:") == 1
    assert shown.count("input      acme:") == 2


def test_mergekit_arithmetic_is_recorded_and_used(store):
    path = store.path
    model(path / "big", [2.0 ** 24], name="v")
    model(path / "small", [0.5], name="v")
    for name in ("big", "small"):
        store("commit", name, "-m", name, "--ref", name)
    for arithmetic, want in (("precise", 0.5), ("mergekit", 0.0)):
        store("merge", "small", "--base", "big", "--method",
              "task_arithmetic", "--arithmetic", arithmetic, "-m", "x",
              "--ref", arithmetic)
        got, _ = values(store, arithmetic, arithmetic)
        assert got.tobytes() == f32(want)
    assert "\narithmetic mergekit\n" in store("show", "mergekit").out
    assert "\narithmetic" not in store("show", "precise").out


REFUSED = [
    (("one", "--base", "base@0.5", "--method", "ties"), "no weight"),
    (("one", "--base", "nobody", "--method", "ties"), "nobody"),
    (("one", "two", "base", "--method", "slerp", "--t", "0.5"),
     "1 input at most"),
    (("one", "--method", "slerp", "--t", "0.5"), "needs a base"),
    (("one", "two", "--method", "slerp"), "'t' is required"),
    (("one", "--seed", "1"), "draws no random"),
    (("one", "--base", "base", "--method", "dare_ties", "--seed", "-1"),
     "seed"),
]


@pytest.mark.parametrize("words, says", REFUSED,
                         ids=[" ".join(row[0]) for row in REFUSED])
def test_what_cannot_be_merged_is_refused_when_it_is_recorded(
        store, words, says):
    done = store("merge", *words, "-m", "x", "--json", code=None)
    assert done.code in (2, 3), done
    assert says in done.error["message"]


def test_no_option_is_listed_twice(store):
    words = [line.split()[0].rstrip(",") for line in
             store("merge", "--help").out.splitlines()
             if line.startswith("      --")]
    assert len(words) == len(set(words))
