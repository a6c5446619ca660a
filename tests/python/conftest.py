"""What the tests of the Python package share."""

import ctypes
import gc
import os
import re
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


@pytest.fixture(scope="session", autouse=True)
def leaks(tmp_path_factory):
    """Under AddressSanitizer: what the library made is gone when all tests are.

    The interpreter and numpy keep much of their own for good, so only what was
    made in a call into C counts.
    """
    yield
    try:
        check = ctypes.CDLL(None).__lsan_do_recoverable_leak_check
    except AttributeError:
        return
    gc.collect()
    report = tmp_path_factory.mktemp("leaks") / "report"
    ctypes.CDLL(None).__sanitizer_set_report_path(os.fsencode(report))
    check()
    ctypes.CDLL(None).__sanitizer_set_report_path(b"stderr")
    text = "".join(file.read_text() for file in report.parent.iterdir())
    leaked = re.split(r"\n\n+", text)
    ours = [stack for stack in leaked if re.search(r" in bal_|libffi", stack)]
    assert not ours, "\n\n".join(ours)
