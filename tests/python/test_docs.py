"""docs/python.md is run as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_page_s_program_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    program = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]
    exec(compile(program, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert "run 42" in said and "2 changed of 2 shared" in said
    assert "(8, 8) float32" in said and "acme-main-" in said
