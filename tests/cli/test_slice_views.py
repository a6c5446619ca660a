"""What is done with a view of slices: it is a model like others."""

import numpy as np
import pytest

from stacks import (EMBED, HEAD, NORM, PIECES, bring, commit, config_of, ends,
                    full, in_layer, names, near, put, raw, taken)
from support import Store

LAYERS = 4

SLICED = """
merge_method: passthrough
slices:
  - sources: [{model: numbered, layer_range: [0, 3]}]
  - sources: [{model: numbered, layer_range: [1, 4]}]
"""
WANT = (20, [10, 11, 12, 11, 12, 13], 30, 40)


@pytest.fixture(name="sliced", scope="module")
def made_store(tmp_path_factory):
    """A view of slices of a model whose tensors are full of one number each."""
    store = Store(tmp_path_factory.mktemp("views"))
    numbered = full(0, LAYERS) | {
        in_layer(i, piece): np.full((4, 5), 10.0 + i)
        for i in range(LAYERS) for piece in PIECES}
    numbered |= {EMBED: np.full((4, 5), 20.0), NORM: np.full((4, 5), 30.0),
                 HEAD: np.full((4, 5), 40.0)}
    commit(store, "numbered", numbered)
    bring(store, SLICED, ref="sliced")
    return store


def test_a_view_of_slices_is_shown_and_listed(sliced):
    done = sliced("show", "sliced", "--json").json
    assert [row["name"] for row in done["tensors"]] == sorted(names(6))
    recipe = done["recipe"]
    assert recipe["slices"] == [{"base": None}, {"base": None}]
    assert [(row["slice"], row["layers"]) for row in recipe["inputs"]] == [
        (0, [0, 3]), (1, [1, 4])]
    listed = sliced("ls", "sliced", "*layers.5.*").out.split("\n")
    assert [line.split()[0] for line in listed if line] == sorted(
        in_layer(5, piece) for piece in PIECES)


def test_a_view_of_slices_is_written_and_read(sliced):
    assert ends(sliced, "sliced") == WANT
    assert config_of(sliced, "sliced")["num_hidden_layers"] == 6
    data = sliced("cat", "sliced", in_layer(5)).raw
    assert data == raw(np.full((4, 5), 13.0))
    sliced("cat", "sliced", in_layer(6), code=3)


def test_a_view_of_slices_is_exported_and_comes_back(sliced):
    text = sliced("export-mergekit", "sliced", "--map",
                  "numbered=numbered").out
    assert text == """\
merge_method: passthrough
slices:
  - sources:
      - model: "numbered"
        layer_range: [0, 3]
  - sources:
      - model: "numbered"
        layer_range: [1, 4]
parameters:
  scale: 1
"""
    bring(sliced, text, ref="again")
    assert (sliced("show", "again", "--json").json["manifest"]
            == sliced("show", "sliced", "--json").json["manifest"])


def test_a_view_of_slices_is_a_base_and_an_input(sliced):
    folder = put(sliced.path / "tuned", full(50, 6))
    sliced("delta", folder, "--base", "sliced", "-m", "x", "--ref", "d")
    sliced("apply", "d", "--base", "sliced", "-o", "applied", "--force",
           "--verify")
    got = taken(sliced.path / "applied")
    assert all((value == 50).all() for value in got.values())
    commit(sliced, "six", full(0, 6))
    sliced("merge", "sliced@0,1", "six", "--no-normalize", "-m", "x", "--ref",
           "x")
    near(ends(sliced), (0, [0, 2.2, 4.8, 6.6, 9.6, 13], 0, 0))
    bring(sliced, """
merge_method: passthrough
slices: [{sources: [{model: sliced, layer_range: [4, 6]}]}]
""")
    assert ends(sliced) == (20, [12, 13], 30, 40)
    assert config_of(sliced, "x")["num_hidden_layers"] == 2


def test_a_view_whose_slice_lost_its_model_is_broken_by_name(sliced):
    commit(sliced, "gone", full(7, LAYERS))
    bring(sliced, SLICED.replace("model: numbered", "model: gone", 1),
          ref="broken")
    assert ends(sliced, "broken")[1][0] == 7
    view = sliced("show", "broken", "--json").json["id"]
    gone = sliced("show", "gone", "--json").json["id"]
    done = sliced("forget", "gone", "--reason", "asked", "--json").json
    assert done["broken_views"] == [f"acme:{view}"]
    told = sliced("checkout", "broken", "-o", "lost", "--json", code=None)
    assert told.code not in (0, 2)
    assert gone[:12] in told.error["message"]
    assert not (sliced.path / "lost").exists()
    assert sliced("show", "broken", "--json").json["tensors"] is None
    assert ends(sliced, "sliced") == WANT
    sliced("fsck", "--all")


def test_another_tenants_model_is_a_source_while_it_is_granted(sliced):
    owner = Store(sliced.path, "owner")
    commit(owner, "theirs", full(9, LAYERS))
    text = SLICED.replace("model: numbered", "model: theirs", 1)
    path = sliced.path / "granted.yml"
    path.write_text(text)
    words = ("import-mergekit", path, "--map", "theirs=owner:theirs", "--map",
             "numbered=numbered", "--ref", "granted")
    assert sliced(*words, code=None).code != 0
    owner("grant", "theirs", "--to", "acme")
    sliced(*words)
    assert ends(sliced, "granted") == (9, [9, 9, 9, 11, 12, 13], 30, 40)
    owner("revoke", "theirs", "--to", "acme")
    told = sliced("checkout", "granted", "-o", "lost", "--json", code=None)
    assert told.code not in (0, 2) and "owner" in told.error["message"]
    sliced("fsck", "--all")
