"""Adapters merged as maps and cut to a rank: what numpy says of the sum."""

import numpy as np
import pytest

from support import load
from test_lora import ADAPTERS, Lora, maps, norm, optimum, out

NAMES = ["lora_r8_qv", "lora_r16_all_rslora"]


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Lora(tmp_path_factory.mktemp("rank"))
    for name in NAMES:
        store("commit", ADAPTERS / name, "-m", name, "--ref", name)
    return store


def merge(store, ref, *args):
    return store("merge", *args, "-m", "sum", "--ref", ref, "--json").json


def total(weights):
    """The weighted sum of both adapters' maps."""
    found = {}
    for name, weight in zip(NAMES, weights, strict=True):
        for module, matrix in maps(ADAPTERS / name).items():
            found[module] = found.get(module, 0) + weight * matrix
    return found


def both(*weights):
    return [f"{name}@{weight}" for name, weight in zip(NAMES, weights,
                                                       strict=True)]


@pytest.mark.parametrize("method, weights", [
    ("task_arithmetic", (0.5, 0.25)), ("linear", (0.75, 0.25)),
    ("task_arithmetic", (1, -0.7))])
@pytest.mark.parametrize("rank", [1, 8, 24])
def test_a_cut_sum_is_the_nearest_of_its_rank(store, method, weights, rank):
    done = merge(store, "cut", *both(*weights), "--method", method, "--rank",
                 rank)
    want = total(weights)
    got = out(store, "cut")
    assert want.keys() == got.keys()
    errors = {name: norm(got[name] - want[name]) for name in want}
    for name, whole in want.items():
        assert errors[name] <= (optimum(whole, rank) * (1 + 1e-5)
                                + 1e-6 * norm(whole)), name
    size = np.sqrt(sum(norm(matrix) ** 2 for matrix in want.values()))
    lost = np.sqrt(sum(error ** 2 for error in errors.values()))
    assert np.isclose(done["residual"]["total"], lost / size, rtol=1e-6)
    assert {entry[1][0] for name, entry in load(store.path / "out-cut").items()
            if "lora_A" in name} == {rank}


def test_rank_and_residual_are_recorded(store):
    done = merge(store, "cut", *both(1, 1), "--rank", 4)
    shown = store("show", "cut", "--json").json
    assert shown["recipe"]["rank"] == 4 and shown["kind"] == "view"
    assert shown["recipe"]["space"] == "product"
    assert shown["metadata"] == {"residual": done["residual"]}
    text = store("merge", *both(1, 1), "--rank", 4, "-m", "x", "--ref", "x").out
    assert f"residual {done['residual']['total']:.3g}, at most" in text


def test_without_a_rank_a_merge_is_what_it_was(store):
    done = merge(store, "whole", *both(1, 1))
    assert "residual" not in done and done["metadata"] == {}
    assert not {"rank", "energy", "ranks"} & done["recipe"].keys()


def test_energy_is_kept_in_each_module(store):
    done = merge(store, "energy", *both(0.5, 0.5), "--method",
                 "task_arithmetic", "--energy", 0.8)
    want = total((0.5, 0.5))
    got = out(store, "energy")
    ranks = {name.removeprefix("base_model.model.").removesuffix(
        ".lora_A.weight"): entry[1][0]
        for name, entry in load(store.path / "out-energy").items()
        if name.endswith(".lora_A.weight")}
    for name, whole in want.items():
        share = np.cumsum(np.linalg.svd(whole, compute_uv=False) ** 2)
        assert ranks[name] == 1 + int(np.argmax(share >= 0.8 * share[-1]))
        assert norm(got[name] - whole) <= np.sqrt(0.2) * norm(whole) * 1.000001
    assert done["recipe"]["energy"] == 0.8 and len(set(ranks.values())) > 1


def test_an_adapter_and_its_negative_are_exactly_nothing(store):
    store("lora", "negate", "lora_r8_qv", "--ref", "minus")
    for inputs in [["lora_r8_qv", "minus"], ["lora_r8_qv", "lora_r8_qv@-1"]]:
        done = merge(store, "zero", *inputs, "--method", "task_arithmetic",
                     "--rank", 3)
        assert done["residual"] == {"total": 0, "worst": 0, "module": None}
        out(store, "zero")
        for dtype, shape, data in load(store.path / "out-zero").values():
            assert dtype == "F32" and 3 in shape and not any(data)


def test_a_view_is_the_same_for_any_number_of_threads(store):
    merge(store, "cut", *both(0.3, 0.6), "--rank", 7)
    folders = []
    for jobs in [1, 2, 7]:
        path = store.path / f"jobs{jobs}"
        store("checkout", "cut", "-o", path, "-j", jobs, "--no-cache")
        folders.append(load(path))
    assert folders[0] == folders[1] == folders[2]


def test_a_cut_view_is_an_input_like_any_adapter(store):
    merge(store, "inner", *both(1, 1), "--method", "task_arithmetic",
          "--rank", 6)
    merge(store, "outer", "inner@2", "lora_r8_qv@-1", "--method",
          "task_arithmetic", "--rank", 14)
    inner = out(store, "inner")
    got = out(store, "outer")
    minus = maps(ADAPTERS / "lora_r8_qv")
    for name, matrix in inner.items():
        want = 2 * matrix - minus.get(name, 0)
        assert norm(got[name] - want) <= 1e-6 * norm(want)


REFUSED = [
    (["--rank", 4, "--energy", 0.5], "not both"),
    (["--rank", 0], "1 is the least"),
    (["--rank", 70000], "over 65536"),
    (["--rank", "four"], "rank"),
    (["--energy", 0], "above 0"),
    (["--energy", 2], "1 at most"),
    (["--rank", 4, "--space", "factors"], "as the maps they are only"),
]


@pytest.mark.parametrize("args, text", REFUSED)
def test_what_cannot_be_is_refused(store, args, text):
    done = store("merge", *both(1, 1), *args, "-m", "x", "--ref", "no", code=2)
    assert text in done.err
    assert "no" not in store("refs").out.split()
