"""Every code of the library becomes its exception, with the text."""

import copy
import ctypes
import json
import logging
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import ballast
from ballast import _native as native

BUILTINS = {
    "Usage": ValueError,
    "NotFound": LookupError,
    "Denied": PermissionError,
    "Conflict": RuntimeError,
    "Corrupt": ValueError,
    "IOFailure": OSError,
    "Busy": TimeoutError,
    "Unsupported": NotImplementedError,
    "Cancelled": InterruptedError,
}

# Code of the header: word, exit status, exception.
CODES = {
    "BAL_EINVAL": ("usage", 2, "Usage"),
    "BAL_ENOTFOUND": ("not-found", 3, "NotFound"),
    "BAL_EDENIED": ("denied", 3, "Denied"),
    "BAL_EEXISTS": ("conflict", 5, "Conflict"),
    "BAL_ECONFLICT": ("conflict", 5, "Conflict"),
    "BAL_EBROKEN": ("unsupported", 9, "Unsupported"),
    "BAL_ECORRUPT": ("corrupt", 6, "Corrupt"),
    "BAL_EIO": ("io", 7, "IOFailure"),
    "BAL_EBUSY": ("busy", 8, "Busy"),
    "BAL_EUNSUPPORTED": ("unsupported", 9, "Unsupported"),
    "BAL_ENOMEM": ("io", 7, "IOFailure"),
    "BAL_ECANCELLED": ("cancelled", 130, "Cancelled"),
}
HEADER = pathlib.Path(__file__).parents[2] / "include" / "ballast.h"
NUMBERS = {
    name: int(number)
    for name, number in re.findall(r"(BAL_E[A-Z]+) = (-\d+)", HEADER.read_text())
}


def test_every_code_of_the_header_has_a_row_here():
    assert set(CODES) == set(NUMBERS)


@pytest.mark.parametrize("name", CODES)
def test_each_code_is_raised_as_its_class_with_the_text(name):
    word, status, python = CODES[name]

    def fails(pointer):
        error = pointer.contents
        error.code = NUMBERS[name]
        error.text = "no ref 'ü'".encode()
        error.hint = b"try 'y'"
        return error.code

    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(native.bal_error))(fails)
    with pytest.raises(getattr(ballast, python)) as caught:
        native.call(function)
    error = caught.value
    assert type(error) is getattr(ballast, python)
    assert isinstance(error, ballast.Error) and isinstance(error, BUILTINS[python])
    assert (error.code, error.exit) == (word, status)
    assert (type(error).code, type(error).exit) == (word, status)
    assert (str(error), error.hint) == ("no ref 'ü'", "try 'y'")


# ---- the same, of what users do ---------------------------------------------


def exists(store, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    store.checkout("acme", "main").write(tmp_path / "there")


def moved(store, tmp_path):
    before = store.show("acme", "main")
    store.commit("acme", {"w": b"another."}, message="m")
    store.commit("acme", {"w": b"a third."}, message="m", parent=before.id)


def broken(store, tmp_path):
    store.merge("acme", "linear", ["main"], message="v", ref="view")
    store.commit("acme", {"w": b"another."}, message="m", ref="main")
    store.forget("acme", "main~1", reason="asked")
    bytes(store.checkout("acme", "view")["w"])


def corrupt(store, tmp_path):
    for path in (tmp_path / "store" / "blocks" / "acme").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"x" * path.stat().st_size)
    with ballast.Store(store.root) as again:
        bytes(again.checkout("acme", "main")["w"])


def cannot_be_written(store, tmp_path):
    ballast.Store(tmp_path / ("x" * 300))


HOLD = """
import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def busy(store, tmp_path):
    """By another process: locks of files do not part two SQLites of one."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, os.path.join(store.root, "graph.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        holder.stdout.readline()
        with ballast.Store(store.root, wait=0.01) as other:
            other.commit("acme", {"w": bytes(4)}, message="m")


def newer(store, tmp_path):
    path = tmp_path / "store" / "store.json"
    path.write_text(path.read_text().replace("ballast/store/1", "ballast/store/99"))
    ballast.Store(store.root)


def cancelled(store, tmp_path):
    for _ in range(8):
        data = {"w": os.urandom(64 << 20)}
        store.commit("acme", data, message="m", progress=lambda done, total: False)


# What is done: the exception, and words of its text.
DEEDS = {
    "a bad name": (
        lambda s, _: s.commit("../x", {}, message="m"), ballast.Usage, r"'\.\./x'"),
    "no such ref": (
        lambda s, _: s.checkout("acme", "none"), ballast.NotFound, "'none'"),
    "another tenant's": (
        lambda s, _: s.merge("other", "linear", ["acme:main"], message="m"),
        ballast.NotFound, "main"),
    "a folder that is there": (exists, ballast.Conflict, "not empty"),
    "a ref that moved": (moved, ballast.Conflict, "main"),
    "a view without its input": (broken, ballast.Unsupported, "lost its input"),
    "other bytes": (corrupt, ballast.Corrupt, "block"),
    "no place to write": (cannot_be_written, ballast.IOFailure, "xxx"),
    "a lock that is held": (busy, ballast.Busy, "graph.db"),
    "a newer format": (newer, ballast.Unsupported, "store.json"),
    "a stop": (cancelled, ballast.Cancelled, "cancelled"),
}  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
def test_what_goes_wrong_is_raised_as_its_class(store, tmp_path, deed):
    store.commit("acme", {"w": b"some bit"}, message="m")
    act, kind, words = DEEDS[deed]
    with pytest.raises(kind, match=words) as caught:
        act(store, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BUILTINS)
def test_an_error_survives_pickling(name):
    error = getattr(ballast, name)("what went wrong", hint="what to do")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.hint, again.exit) == (
        "what went wrong",
        "what to do",
        error.exit,
    )


def test_the_text_is_the_program_s(store, program, tmp_path):
    store.commit("acme", {"w": bytes(8)}, message="m")
    with pytest.raises(ballast.NotFound) as caught:
        store.checkout("acme", "nothing")
    path = os.environ.get("BALLAST") or "ballast"
    done = subprocess.run(
        [path, "--json", "--root", store.root, "--tenant", "acme", "show", "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    error = json.loads(done.stderr)["error"]
    assert error["message"] == str(caught.value)
    assert (error["code"], error["exit"]) == (caught.value.code, caught.value.exit)


def test_a_store_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(LookupError):
        ballast.Store(tmp_path / "none", create=False)


def test_other_settings_are_a_conflict(tmp_path):
    ballast.Store(tmp_path / "s", block_size=1 << 20).close()
    with pytest.raises(ballast.Conflict):
        ballast.Store(tmp_path / "s", block_size=2 << 20)


def test_a_file_that_is_cut_off_is_corrupt(store, tmp_path):
    path = tmp_path / "model.safetensors"
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(8))
    with pytest.raises(ballast.Corrupt, match="model.safetensors"):
        store.commit("acme", path, message="m")


def test_a_text_with_a_nul_is_refused_and_not_cut(store):
    with pytest.raises(ballast.Usage):
        store.commit("acme", {"w": bytes(8)}, message="a\0b")
    with pytest.raises(ballast.Usage):
        store.commit("acme\0other", {"w": bytes(8)}, message="m")


def test_a_bad_name_of_a_tenant_is_usage(store):
    with pytest.raises(ValueError):
        store.refs("../other")


def test_an_exception_in_a_row_ends_the_walk_and_is_raised(store):
    for text in ("one", "two", "three"):
        store.commit("acme", {"w": text.encode()}, message=text)
    seen = []

    def row(pointer):
        seen.append(pointer)
        raise ZeroDivisionError("in a callback")

    with store.scope("acme") as scope, pytest.raises(ZeroDivisionError):
        native.walk(
            native.bal_commit_fn,
            row,
            native.lib.bal_log,
            scope.tenant,
            scope.resolve("main"),
            0,
        )
    assert len(seen) == 1


@pytest.fixture
def warned(store, program, tmp_path):
    """Does something that goes through and that the library warns of."""
    key = tmp_path / "key.pem"
    program("key", "generate", "-o", str(key), root=store.root)
    key.chmod(0o644)

    def work():
        store.commit("acme", {"w": bytes(8)}, message="m")
        return store.forget("acme", None, reason="asked", key=key)

    return work


def test_what_the_library_warns_of_is_logged(warned, caplog, capfd):
    assert warned()
    rows = [row for row in caplog.records if row.name == "ballast"]
    assert [row.levelname for row in rows] == ["WARNING"]
    assert rows[0].getMessage().startswith(f"{rows[0].area}: ")
    assert "key.pem" in rows[0].getMessage()
    assert capfd.readouterr() == ("", "")


def test_warnings_of_other_threads_are_logged_too(warned, caplog):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(warned).result()
    assert "ballast" in {row.name for row in caplog.records}


def test_a_logger_that_is_off_is_told_nothing(warned, caplog):
    with caplog.at_level(logging.ERROR, "ballast"):
        assert warned()
    assert caplog.records == []


def test_a_handler_that_raises_harms_no_work(warned):
    class Handler(logging.Handler):
        def emit(self, record):
            raise ZeroDivisionError

    handler = Handler()
    logging.getLogger("ballast").addHandler(handler)
    try:
        assert warned()
    finally:
        logging.getLogger("ballast").removeHandler(handler)


def test_importing_needs_neither_numpy_nor_torch():
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['torch'] = None\n"
        "import tempfile, ballast\n"
        "with ballast.Store(tempfile.mkdtemp() + '/s') as store:\n"
        "    store.commit('a', {'w': b'abcd'}, message='m')\n"
        "    assert bytes(store.checkout('a')['w']) == b'abcd'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SURROGATE = "\ud800"
CYCLE = {}
CYCLE["again"] = CYCLE
MISTAKES = {
    "a config that is no JSON": {"config": "{"},
    "a config that is a list": {"config": "[1]"},
    "a config that is no text": {"config": b"\xff"},
    "a config with a NaN": {"config": {"a": float("nan")}},
    "a config of text with a NaN": {"config": '{"a": NaN}'},
    "a config with a surrogate": {"config": {"a": SURROGATE}},
    "a config of text with a surrogate": {"config": f'{{"a": "{SURROGATE}"}}'},
    "a config in a circle": {"config": CYCLE},
    "a config of keys that do not sort": {"config": {1: 2, "a": 3}},
    "a side file with a surrogate": {"files": {"a": SURROGATE}},
    "metadata with a NaN": {"metadata": {"a": float("nan")}},
    "metadata with an object": {"metadata": {"a": object()}},
    "metadata in a circle": {"metadata": CYCLE},
    "arrays as a list": {"tensors": [("w", numpy.ones(2))]},
    "arrays as a generator": {"tensors": (row for row in [])},
    "nothing": {"tensors": None},
}


@pytest.mark.parametrize("given", MISTAKES.values(), ids=MISTAKES)
def test_what_cannot_be_recorded_is_a_usage_error(store, given):
    with pytest.raises(ballast.Usage):
        store.commit("acme", **{"tensors": {"w": numpy.ones(2)}, "message": "m"} | given)
    assert store.tenants() == []


def test_a_name_that_is_no_text_is_a_usage_error_wherever_arrays_are_taken(store):
    with pytest.raises(ballast.Usage, match="a tensor's name"):
        store.delta("acme", {1: numpy.ones(2)}, base={"w": numpy.ones(2)}, message="m")


@pytest.mark.parametrize(
    "given", [{"jobs": -1}, {"jobs": 2**32}, {"block_size": -1}, {"wait": -1}, {"wait": math.nan}]
)
def test_numbers_that_c_would_wrap_are_usage_errors(tmp_path, given):
    with pytest.raises(ballast.Usage, match=next(iter(given))):
        ballast.Store(tmp_path / "s", **given)


def test_a_negative_limit_is_a_usage_error(store):
    store.commit("acme", {"w": numpy.ones(2)}, message="m")
    with pytest.raises(ballast.Usage, match="limit"):
        store.log("acme", limit=-1)


def test_handles_say_why_they_are_not_copied(store):
    store.commit("acme", {"w": numpy.ones(2)}, message="m")
    got = store.checkout("acme")
    for handle in (store, got, got.model):
        for copies in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="open it again"):
                copies(handle)


def test_the_base_model_is_told_by_a_config_of_any_kind(store):
    config = {"peft_type": "LORA", "base_model_name_or_path": "org/base"}
    text = json.dumps(config)
    for given in (
        {"config": config},
        {"config": text},
        {"config": text.encode()},
        {"files": {"adapter_config.json": text}},
    ):
        made = store.commit("acme", {"w": numpy.ones(2)}, message="m", **given)
        assert made.base_model == "org/base"
