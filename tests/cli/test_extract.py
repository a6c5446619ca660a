"""Fine-tunes as adapters: against the best that numpy's SVD can do."""

import json

import numpy as np
import pytest

from support import load, run, save
from test_lora import Lora, maps, norm, optimum

LAYER = "model.layers.0."


def spectrum(seed, m, n, values):
    """A matrix with these singular values."""
    random = np.random.default_rng(seed)
    u, _ = np.linalg.qr(random.standard_normal((m, len(values))))
    v, _ = np.linalg.qr(random.standard_normal((n, len(values))))
    return (u * values) @ v.T


CHANGES = {
    # One that falls, one that is flat (nothing stands out), low ranks, a row.
    LAYER + "self_attn.q_proj": spectrum(1, 96, 200, 0.9 ** np.arange(96)),
    LAYER + "self_attn.v_proj": spectrum(
        2, 200, 130, 1 - 0.002 * np.arange(130)),
    LAYER + "mlp.up_proj": spectrum(3, 128, 64, np.array([3.0, 2.0, 1.0])),
    LAYER + "mlp.down_proj": spectrum(4, 1, 64, np.array([2.0])),
}


def weights(path, tensors):
    save(path / "model.safetensors", {
        name: ("F32", value.shape, value.astype("<f4").tobytes())
        for name, value in tensors.items()}, {"format": "pt"})
    (path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    return path


@pytest.fixture(name="places", scope="module")
def made_places(tmp_path_factory):
    path = tmp_path_factory.mktemp("extract")
    random = np.random.default_rng(0)
    base, tuned = {}, {}
    for name, change in CHANGES.items():
        base[name + ".weight"] = random.standard_normal(
            change.shape).astype("<f4")
        tuned[name + ".weight"] = base[name + ".weight"] + change
    for model in base, tuned:
        model["model.norm.weight"] = np.full(64, len(model), "<f4")
        model["model.embed_tokens.weight"] = np.ones((10, 64), "<f4")
        model[LAYER + "self_attn.k_proj.weight"] = np.ones((8, 200), "<f4")
    tuned["model.norm.weight"] += 1
    tuned["model.embed_tokens.weight"] = tuned["model.embed_tokens.weight"] * 2
    weights(path / "base", base)
    weights(path / "tuned", tuned)
    return path


def change(places, name):
    """What F32 makes of the difference."""
    both = [np.frombuffer(load(places / model)[name + ".weight"][2], "<f4")
            for model in ("tuned", "base")]
    return (both[0] - both[1]).astype("<f8").reshape(CHANGES[name].shape)


def extract(places, out, *args, code=4):
    return run("extract-lora", places / "tuned", "--base", places / "base",
               "-o", places / out, "--force", *map(str, args), "--json",
               code=code).json


@pytest.mark.parametrize("rank", [1, 3, 16, 64])
def test_each_module_is_nearest_of_its_rank(places, rank):
    done = extract(places, "lora", "--rank", rank)
    got = maps(places / "lora")
    assert got.keys() == CHANGES.keys()
    lost = size = 0
    for row in done["tensors"]:
        name = row["tensor"].removesuffix(".weight")
        whole = change(places, name)
        error = norm(got[name] - whole)
        assert row["rank"] == min(rank, *whole.shape)
        assert error <= optimum(whole, rank) * (1 + 1e-5) + 1e-6 * norm(whole)
        assert np.isclose(row["norm"], norm(whole), rtol=1e-12)
        assert np.isclose(row["residual"], error / norm(whole), rtol=1e-6,
                          atol=1e-12)
        lost, size = lost + error ** 2, size + norm(whole) ** 2
    assert np.isclose(done["residual"]["total"], np.sqrt(lost / size))
    config = json.loads((places / "lora" / "adapter_config.json").read_text())
    assert config["r"] == config["lora_alpha"] == rank
    assert config["target_modules"] == ["down_proj", "q_proj", "up_proj",
                                        "v_proj"]


@pytest.mark.parametrize("energy", [0.5, 0.9, 0.9999])
def test_energy_is_the_share_that_is_kept(places, energy):
    done = extract(places, "energy", "--energy", energy)
    for row in done["tensors"]:
        whole = change(places, row["tensor"].removesuffix(".weight"))
        share = np.cumsum(np.linalg.svd(whole, compute_uv=False) ** 2)
        least = 1 + int(np.argmax(share >= energy * share[-1]))
        assert least <= row["rank"] <= least + 1
        assert row["residual"] <= np.sqrt(1 - energy) * (1 + 1e-6) + 1e-6


def test_what_is_not_in_the_adapter_is_named(places):
    done = extract(places, "left", "--rank", 2)
    assert done["left_out"] == ["model.embed_tokens.weight",
                                "model.norm.weight"]
    text = run("extract-lora", places / "tuned", "--base", places / "base",
               "-o", places / "left", "--force", "--rank", "2", code=4).out
    assert "4 modules, residual" in text
    assert "changed, and not in it: 2 tensors" in text
    assert "model.norm.weight" in text


def test_targets_are_names_or_ends_of_paths(places):
    done = extract(places, "some", "--rank", 2, "--target", "q_proj",
                   "--target", "mlp.up_proj", code=0)
    assert [row["tensor"] for row in done["tensors"]] == [
        LAYER + "mlp.up_proj.weight", LAYER + "self_attn.q_proj.weight"]
    assert len(done["left_out"]) == 4
    assert set(maps(places / "some")) == {LAYER + "mlp.up_proj",
                                          LAYER + "self_attn.q_proj"}


def test_a_name_that_others_have_too_is_told_in_full(places, tmp_path):
    """Else PEFT would adapt the module that did not change as well."""
    for model, value in [("base", 1), ("tuned", 2)]:
        weights(tmp_path / model, {
            "layers.0.q.weight": np.full((4, 4), value, "<f4"),
            "layers.1.q.weight": np.ones((4, 4), "<f4")})
    run("extract-lora", tmp_path / "tuned", "--base", tmp_path / "base",
        "--rank", "1", "-o", tmp_path / "lora")
    config = json.loads((tmp_path / "lora" / "adapter_config.json").read_text())
    assert config["target_modules"] == ["layers.0.q"]


def test_the_same_seed_gives_the_same_bytes(places):
    files = []
    for args in [("-j", 1), ("-j", 3), ("--seed", 0), ("--seed", 7)]:
        extract(places, "seed", "--rank", 5, *args)
        files.append((places / "seed" / "adapter_model.safetensors")
                     .read_bytes())
    assert files[0] == files[1] == files[2] != files[3]


def test_a_delta_is_taken_as_it_is(places, tmp_path):
    store = Lora(tmp_path)
    store("delta", places / "tuned", "--base", places / "base", "-m", "d",
          "--ref", "d")
    extract(places, "whole", "--rank", 4)
    store("extract-lora", "d", "--rank", 4, "-o", tmp_path / "lora", code=4)
    assert load(tmp_path / "lora") == load(places / "whole")
    # And a commit of it is an adapter like any other.
    store("commit", tmp_path / "lora", "-m", "lora", "--ref", "lora")
    assert store("show", "lora", "--json").json["kind"] == "adapter"


def test_factors_are_f32_or_of_the_dtype_told(places):
    for dtype, args in [("F32", []), ("BF16", ["--dtype", "BF16"])]:
        extract(places, "dtype", "--rank", 2, *args)
        assert {entry[0] for entry in load(places / "dtype").values()} == {
            dtype}


REFUSED = [
    (["--rank", "0"], 2, "1 is the least"),
    ([], 2, "--rank R or --energy F is missing"),
    (["--rank", "2", "--energy", "0.5"], 2, "not both"),
    (["--rank", "2", "--target", "k_proj"], 2, "is named 'k_proj'"),
    (["--rank", "2", "--target", "proj"], 2, "is named 'proj'"),
    (["--rank", "2", "--dtype", "U8"], 2, "none of BF16"),
]


@pytest.mark.parametrize("args, code, text", REFUSED)
def test_what_cannot_be_is_refused(places, args, code, text):
    done = run("extract-lora", places / "tuned", "--base", places / "base",
               "-o", places / "no", *args, code=code)
    assert text in done.err and not (places / "no").exists()


def test_models_that_do_not_differ_have_no_adapter(places):
    done = run("extract-lora", places / "base", "--base", places / "base",
               "-o", places / "no", "--rank", "2", code=2)
    assert "no weight of a linear module has changed" in done.err
    done = run("extract-lora", places / "tuned", "-o", places / "no", "--rank",
               "2", code=2)
    assert "needs its base" in done.err


def test_weights_that_may_be_transposed_are_refused(tmp_path):
    for model, value in [("base", 1), ("tuned", 2)]:
        weights(tmp_path / model,
                {"h.0.attn.c_attn.weight": np.full((4, 12), value, "<f4")})
    done = run("extract-lora", tmp_path / "tuned", "--base", tmp_path / "base",
               "--rank", "1", "-o", tmp_path / "no", code=9)
    assert "c_attn.weight' may be stored transposed" in done.err


def test_a_difference_that_is_not_finite_is_refused(tmp_path):
    for model, value in [("base", 1), ("tuned", np.inf)]:
        weights(tmp_path / model, {"q.weight": np.full((4, 4), value, "<f4")})
    done = run("extract-lora", tmp_path / "tuned", "--base", tmp_path / "base",
               "--rank", "1", "-o", tmp_path / "no", code=9)
    assert "module 'q'" in done.err and "not finite" in done.err
    assert not (tmp_path / "no").exists()


def test_factors_that_their_dtype_cannot_hold_are_refused(tmp_path):
    x = np.outer(np.arange(1, 9), np.arange(1, 7)).astype("<f4")
    for name, values in (("base", x), ("big", x * np.float32(1e12))):
        save(tmp_path / name / "model.safetensors",
             {"m.q_proj.weight": ("F32", values.shape, values.tobytes())})
    done = run("extract-lora", "big", "--base", "base", "--rank", "4", "--dtype",
               "F16", "-o", "out", cwd=tmp_path, code=9)
    assert "F16" in done.err
    assert not (tmp_path / "out").exists()
