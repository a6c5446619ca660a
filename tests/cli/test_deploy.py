"""What deploy/ holds is what systemd takes."""

import shutil
import subprocess

import pytest
from support import BALLAST, TREE

ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(not ANALYZE, reason="no systemd-analyze here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    for name in ("ballast.service", "ballast.socket"):
        text = (TREE / "deploy" / name).read_text()
        (tmp_path / name).write_text(
            text.replace("/usr/local/bin/ballast", BALLAST))
    done = subprocess.run([ANALYZE, "verify", "--man=no",
                           *sorted(tmp_path.iterdir())],
                          capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "ballast" in line]
    assert not ours and not done.returncode, done.stderr
