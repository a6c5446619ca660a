"""Two adapters compared as maps: norms, cosines, principal angles by numpy."""

import json

import numpy as np
import pytest

from support import adapter, load, save
from test_lora import ADAPTERS, Lora, maps, norm

NAMES = ["lora_r8_qv", "lora_r16_all_rslora"]


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Lora(tmp_path_factory.mktemp("maps"))
    for name in NAMES:
        store("commit", ADAPTERS / name, "-m", name, "--ref", name)
    return store


def diff(store, *args):
    return store("diff", *args, "--json").json


def cosines(one, two, ranks):
    """Of the principal angles between column spaces."""
    bases = [np.linalg.svd(matrix)[0][:, :rank]
             for matrix, rank in zip([one, two], ranks, strict=True)]
    return np.minimum(np.linalg.svd(bases[0].T @ bases[1],
                                    compute_uv=False), 1)


def same_angles(row, key, want):
    assert np.isclose(row[f"{key}_overlap"], np.mean(want ** 2), atol=1e-9)
    assert np.isclose(row[f"{key}_angle"], np.degrees(np.arccos(want.min())),
                      atol=1e-4)


def test_norms_and_angles_are_those_of_numpy(store):
    found = diff(store, *NAMES)["maps"]
    a, b = (maps(ADAPTERS / name) for name in NAMES)
    assert [row["module"] for row in found["modules"]] == sorted(a | b)
    overlaps = []
    for row in found["modules"]:
        name = row["module"]
        one = a.get(name, np.zeros_like(b[name]))
        two = b[name]
        assert np.isclose(row["norm_a"], norm(one), rtol=1e-12)
        assert np.isclose(row["norm_b"], norm(two), rtol=1e-12)
        assert np.isclose(row["difference"], norm(two - one), rtol=1e-12)
        assert row["rank_b"] == 16
        if name not in a:
            assert row["rank_a"] == 0 and row["cosine"] is None
            assert row["column_overlap"] is row["row_angle"] is None
            continue
        assert row["rank_a"] == 8
        assert np.isclose(row["cosine"],
                          np.sum(one * two) / norm(one) / norm(two))
        same_angles(row, "column", cosines(one, two, (8, 16)))
        same_angles(row, "row", cosines(one.T, two.T, (8, 16)))
        overlaps.append(row["column_overlap"])
    assert np.isclose(found["column_overlap"], np.mean(overlaps))
    sizes = [np.sqrt(sum(norm(matrix) ** 2 for matrix in side.values()))
             for side in (a, b)]
    product = sum(np.sum(a[name] * b[name]) for name in a)
    assert np.isclose(found["cosine"], product / sizes[0] / sizes[1])


def test_other_factors_of_the_same_maps_are_no_difference(store, tmp_path):
    """B R and R^-1 A: the tensors are all other ones."""
    source = ADAPTERS / "lora_r8_qv"
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    tensors = {}
    for name, (dtype, shape, data) in load(
            source / "adapter_model.safetensors").items():
        value = np.frombuffer(data, "<f4").reshape(shape)
        value = turn.T @ value if "lora_A" in name else value @ turn
        tensors[name] = (dtype, shape, value.astype("<f4").tobytes())
    save(tmp_path / "adapter_model.safetensors", tensors, {"format": "pt"})
    (tmp_path / "adapter_config.json").write_bytes(
        (source / "adapter_config.json").read_bytes())
    found = diff(store, "lora_r8_qv", tmp_path)
    assert len(found["changed"]) == 16 and found["relative_change"] > 0.5
    assert found["maps"]["relative_change"] < 1e-6
    assert found["maps"]["cosine"] > 1 - 1e-9
    assert found["maps"]["row_overlap"] > 1 - 1e-9


def test_a_cut_adapter_lies_in_the_one_it_was_cut_of(store):
    store("lora", "resize", NAMES[1], "--rank", 5, "--ref", "r5")
    found = diff(store, "r5", NAMES[1])["maps"]
    for row in found["modules"]:
        assert row["rank_a"] == 5
        assert row["column_overlap"] > 1 - 1e-9 and row["row_angle"] < 0.01
        # What was cut off is at right angles to what was kept.
        assert np.isclose(row["difference"] ** 2,
                          row["norm_b"] ** 2 - row["norm_a"] ** 2)


def test_the_text_says_so_too(store):
    text = store("diff", NAMES[0], NAMES[0]).out
    assert ("as maps: relative change 0.0000, cosine 1.0000, column spaces "
            "overlap 1.0000, row spaces 1.0000") in text
    text = store("diff", *NAMES, "--stat").out
    assert text.count("|b - a|") == 28
    assert text.count("columns") == 8


def test_what_is_no_plain_adapter_is_compared_as_tensors_alone(store, tmp_path):
    path = adapter(tmp_path / "dora")
    config = json.loads((path / "adapter_config.json").read_text())
    config["use_dora"] = True
    (path / "adapter_config.json").write_text(json.dumps(config))
    other = adapter(tmp_path / "other", scale=2.0)
    found = diff(store, path, other)
    assert "use_dora" in found["maps"]["not_compared"]
    assert len(found["changed"]) == 1
    assert "not compared as maps: " in store("diff", path, other).out


def test_other_models_have_no_maps(store, tmp_path):
    for name in "ab":
        save(tmp_path / name / "model.safetensors",
             {"w": ("F32", (1,), b"\0\0\0\0")})
    found = diff(store, tmp_path / "a", tmp_path / "b")
    assert "maps" not in found
