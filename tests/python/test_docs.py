"""docs/python.md is run as it stands."""

import re
from pathlib import Path

import pytest

import ballast

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def test_the_page_s_program_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks()[0], str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert "run 42" in said and "2 changed of 2 shared" in said
    assert "(8, 8) float32" in said and "acme-main-" in said


def test_the_page_s_diff_has_what_it_says(store, tmp_path, monkeypatch):
    numpy = pytest.importorskip("numpy")
    for name, of in (("llama-8b", 1), ("support-ft", 1.5)):
        tensors = {"model.layers.3.mlp.up_proj.weight": numpy.full((2, 2), of, "f4")}
        store.commit("acme", tensors, message="m", ref=name)
        store.checkout("acme", name).write(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks() if "store.diff(" in block.split("\n")[0]]
    names = {"store": store}
    exec(compile(block, str(PAGE), "exec"), names)
    diff = names["diff"]
    assert isinstance(diff, ballast.Diff) and diff.relative_change == 0.5
    for groups, name in ((diff.layers, "3"), (diff.modules, "mlp.up_proj")):
        (group,) = groups
        found = (group.name, group.tensors, group.changed, group.relative)
        assert found == (name, 1, 1, 0.5)
    assert [(group.layer, group.name) for group in diff.cells] == [("3", "mlp.up_proj")]
    assert diff.maps is None and diff.mean_kld is None and not diff.unobserved
