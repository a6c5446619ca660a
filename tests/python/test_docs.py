"""docs/python.md and the README are run as they stand."""

import re
from pathlib import Path

import pytest

import ballast

TREE = Path(__file__).parents[2]
PAGE = TREE / "docs" / "python.md"


def programs(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def test_the_page_s_program_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    exec(compile(programs(PAGE)[0], str(PAGE), "exec"), {})
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
    (block,) = [block for block in programs(PAGE) if "store.diff(" in block.split("\n")[0]]
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


def test_the_readme_s_lines_run(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]}
    tensors = {
        "base_model.model.q.lora_A.weight": torch.ones(2, 8),
        "base_model.model.q.lora_B.weight": torch.ones(8, 2),
    }
    space = {"tensors": tensors, "config": config}
    (program,) = programs(TREE / "README.md")
    exec(compile(program, "README.md", "exec"), space)
    with space["store"] as store, store.checkout("acme", "support", torch=True) as got:
        assert all(torch.equal(got[name], tensors[name]) for name in tensors)
