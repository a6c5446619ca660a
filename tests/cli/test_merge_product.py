"""Methods that are not sums, of adapters as the maps they are: what numpy says of
the merged maps, and how near an adapter can come to them."""

import numpy as np
import pytest

from support import load
from test_lora import ADAPTERS, Lora, maps, norm, optimum, out

NAMES = ["lora_r8_qv", "lora_r16_all_rslora"]


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Lora(tmp_path_factory.mktemp("product"))
    for name in NAMES:
        store("commit", ADAPTERS / name, "-m", name, "--ref", name)
    return store


def merge(store, ref, *args, inputs=NAMES, **more):
    return store("merge", *inputs, *args, "-m", "merged", "--ref", ref,
                 "--json", **more)


def both(module):
    """The maps of a module, zeros where an adapter has none."""
    found = [maps(ADAPTERS / name).get(module) for name in NAMES]
    shape = next(one.shape for one in found if one is not None)
    return [np.zeros(shape) if one is None else one.astype("<f4").astype("<f8")
            for one in found]


def largest(delta, density):
    """Without all but the largest."""
    count = int(density * delta.size)
    keep = np.zeros(delta.size, bool)
    keep[np.argsort(-np.abs(delta), axis=None, kind="stable")[:count]] = True
    return np.where(keep.reshape(delta.shape), delta, 0)


def ties(deltas, weights=(1, 1), density=0.5):
    parts = [w * largest(d, density) for w, d in zip(weights, deltas)]
    sign = np.where(sum(parts) >= 0, 1, -1)
    agree = [np.sign(part) == sign for part in parts]
    mixed = sum(np.where(yes, part, 0) for yes, part in zip(agree, parts))
    by = sum(np.where(yes, w, 0.0) for yes, w in zip(agree, weights))
    return mixed / np.where(by == 0, 1, by)


def nuslerp_halfway(deltas):
    """Of equal weights, without a base."""
    flat = [delta.reshape(-1) for delta in deltas]
    sizes = np.prod([np.linalg.norm(one) for one in flat])
    # Nothing is at right angles to everything.
    angle = np.arccos(np.dot(*flat) / sizes if sizes else 0)
    share = np.sin(angle / 2) / np.sin(angle)
    return sum(share * delta for delta in deltas)


MODULES = sorted(maps(ADAPTERS / NAMES[1]))
CASES = {
    "ties": (["--method", "ties", "--density", "0.5"], ties),
    "weighted": (["--method", "ties", "--density", "0.3"],
                 lambda deltas: ties(deltas, (0.5, 2), 0.3)),
    "nuslerp": (["--method", "nuslerp"], nuslerp_halfway),
}
WEIGHTS = {"weighted": [f"{NAMES[0]}@0.5", f"{NAMES[1]}@2"],
           "nuslerp": [f"{name}@0.5" for name in NAMES]}


@pytest.mark.parametrize("case", CASES)
def test_of_full_rank_it_is_what_the_method_makes_of_the_maps(store, case):
    args, method = CASES[case]
    merge(store, "full", *args, "--rank", "60000",
          inputs=WEIGHTS.get(case, NAMES))
    got = out(store, "full")
    assert sorted(got) == MODULES
    for module in MODULES:
        want = method(both(module))
        assert norm(got[module] - want) <= 1e-5 * norm(want) + 1e-12, module


@pytest.mark.parametrize("rank", [1, 8])
def test_cut_it_is_as_near_as_any_of_its_rank(store, rank):
    args, method = CASES["ties"]
    done = merge(store, "cut", *args, "--rank", rank).json
    got = out(store, "cut")
    lost, size = 0, 0
    for module in MODULES:
        want = method(both(module))
        error = norm(got[module] - want)
        assert error <= optimum(want, rank) * (1 + 1e-5) + 1e-6 * norm(want)
        lost, size = lost + error**2, size + norm(want) ** 2
    assert np.isclose(done["residual"]["total"], np.sqrt(lost / size),
                      rtol=1e-5)
    assert done["residual"]["module"] in MODULES
    assert done["recipe"]["space"] == "product"
    assert done["recipe"]["rank"] == rank


def test_energy_is_kept_in_each_module(store):
    args, method = CASES["ties"]
    done = merge(store, "energy", *args, "--energy", 0.8).json
    got = out(store, "energy")
    shapes = {name: entry[1] for name, entry in load(
        store.path / "out-energy").items()}
    for module in MODULES:
        want = method(both(module))
        share = np.cumsum(np.linalg.svd(want, compute_uv=False) ** 2)
        rank = shapes[f"base_model.model.{module}.lora_A.weight"][0]
        assert rank == 1 + int(np.argmax(share >= 0.8 * share[-1])), module
        assert norm(got[module] - want) <= np.sqrt(0.2) * norm(want) * 1.00001
    assert done["recipe"]["energy"] == 0.8


def test_what_keeps_everything_is_the_sum(store):
    merge(store, "dare", "--method", "dare_linear", "--density", 1, "--rank",
          12)
    merge(store, "sum", "--method", "task_arithmetic", "--rank", 12)
    dare, plain = out(store, "dare"), out(store, "sum")
    for module in MODULES:
        assert norm(dare[module] - plain[module]) <= 1e-5 * norm(plain[module])


def test_jobs_and_tiles_do_not_show(store):
    merge(store, "cut", "--method", "della", "--density", 0.6, "--seed", 7,
          "--rank", 5)
    folders = []
    for jobs, isa, tile in [(1, "", ""), (7, "", "4096"), (2, "base", "77")]:
        path = store.path / f"jobs{jobs}"
        store("checkout", "cut", "-o", path, "-j", jobs, "--no-cache",
              env={"BALLAST_ISA": isa, "BAL_TILE": tile})
        folders.append(load(path))
    assert folders[0] == folders[1] == folders[2]


def test_it_is_an_adapter_like_any_other(store):
    merge(store, "inner", *CASES["ties"][0], "--rank", 6)
    merge(store, "outer", "--method", "task_arithmetic",
          inputs=["inner@2", f"{NAMES[0]}@-1"])
    inner, got = out(store, "inner"), out(store, "outer")
    minus = maps(ADAPTERS / NAMES[0])
    for module, matrix in inner.items():
        want = 2 * matrix - minus.get(module, 0)
        assert norm(got[module] - want) <= 1e-6 * norm(want)


@pytest.mark.parametrize("args, code, says", [
    ([], 9, "--rank R or --energy F makes an adapter of it, --base SPEC a delta"),
    (["--rank", 4, "--energy", 0.5], 2, "not both"),
    (["--rank", 4, "--arithmetic", "mergekit"], 9, "'mergekit'"),
    (["--rank", 4, "--strict"], 2, "--union takes what each input has"),
])
def test_what_cannot_be_is_refused(store, args, code, says):
    done = merge(store, "no", "--method", "ties", *args, code=code)
    assert says in done.err
    assert "no" not in store("refs").out.split()
