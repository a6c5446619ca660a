"""docs/python.md and the README are run as they stand."""

import re
from pathlib import Path

import pytest

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
