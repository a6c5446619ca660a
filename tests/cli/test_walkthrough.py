"""docs/walkthrough.md and the demo are run as they stand: what they show is what
happens."""

import os
import re
import shutil
import subprocess

import pytest
from support import BALLAST, TREE, environment

PAGE = TREE / "docs" / "walkthrough.md"
END = "<end of command>"

# What differs from run to run.
CHANGING = [
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "<id12>"),
    (re.compile(r"\b[0-9a-f]{8}…"), "<id8>"),
    (re.compile(r"[\d,]+ bytes"), "<n> bytes"),
    (re.compile(r"\d+ blocks"), "<n> blocks"),
    (re.compile(r"^[A-Za-z0-9+/=]{60}$", re.M), "<key>"),
]


def commands():
    """(line, command, what it prints) of every console block."""
    found, inside = [], False
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside:
            found[-1][2].append(line)
    return found


def normal(text):
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path):
    pytest.importorskip("cryptography")
    shutil.copytree(TREE / "examples", tmp_path / "examples")
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    os.symlink(BALLAST, bin_dir / "ballast")
    env = environment({"PATH": f"{bin_dir}:{os.environ['PATH']}"})
    script = "".join(
        f"{{ {command}\n}} 2>&1; status=$?\n"
        f"[ $status = 0 ] || echo \"[$status]\"; echo '{END}'\n"
        for _, command, _ in commands())
    done = subprocess.run(["sh"], input=script, env=env, cwd=tmp_path,
                          capture_output=True, text=True, timeout=300,
                          check=False)
    answers = done.stdout.split(END + "\n")
    assert done.stderr == "" and len(answers) == len(commands()) + 1
    for (line, command, shown), answer in zip(commands(), answers):
        want = "".join(text + "\n" for text in shown)
        got = "".join(text for text in answer.splitlines(True)
                      if not text.startswith("hint: "))
        assert normal(got) == normal(want), f"line {line}: {command}"


def test_the_demo_gets_all_back_and_saves_more_than_a_third():
    done = subprocess.run([TREE / "examples" / "demo.sh"],
                          env=environment({"BALLAST": BALLAST}), check=True,
                          capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert "ft-small-again is ft-small, bit for bit" in done.stdout
    saved = re.search(r"^saved +\d+ bytes, (\d+) %$", done.stdout, re.M)
    assert int(saved[1]) > 33
