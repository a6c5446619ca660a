"""What the tests of the Python package share."""

import os
import shutil
import subprocess

import pytest

import ballast


@pytest.fixture
def store(tmp_path):
    with ballast.Store(tmp_path / "store", jobs=2) as opened:
        yield opened


@pytest.fixture
def program():
    """Runs the program on a store; its stdout."""
    path = os.environ.get("BALLAST") or shutil.which("ballast")
    if not path:
        pytest.skip("no ballast program")

    def run(*args, root, status=0):
        done = subprocess.run(
            [path, "--root", root, *args], capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run
