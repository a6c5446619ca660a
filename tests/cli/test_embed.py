"""The example program: what a user of the library alone sees."""

import os
import pathlib
import subprocess

from support import LLAMA, environment

EMBED = pathlib.Path(os.environ["BALLAST_BUILD"]) / "tests" / "embed"


def embed(*words):
    return subprocess.run([EMBED, *words], env=environment(), text=True,
                          capture_output=True, timeout=60)


def test_a_program_of_ones_own_gets_its_model_back(tmp_path):
    words = (tmp_path / "store", LLAMA / "base", LLAMA / "ft-small",
             tmp_path / "out")
    done = embed(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" 0 tensors differ\n")
    again = embed(*words)
    assert again.returncode == 5
    assert str(tmp_path / "out") in again.stderr
