"""Every code of the library becomes its exception, with the text."""

import json
import logging
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.parametrize("code", range(-12, 0))
def test_each_code_has_a_class_with_its_word_and_status(code):
    row = native.lib.bal_code_find(code).contents
    error = native.exception(
        native.bal_error(code=code, text=b"no ref 'x'", hint=b"try 'y'"), code
    )
    assert type(error).__name__ == row.python.decode()
    assert isinstance(error, ballast.Error)
    assert isinstance(error, BUILTINS[type(error).__name__])
    assert (error.code, error.exit) == (row.word.decode(), row.exit)
    assert str(error) == "no ref 'x'"
    assert error.hint == "try 'y'"
    kind = type(error)
    assert (kind.code, kind.exit) == (error.code, error.exit)


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
