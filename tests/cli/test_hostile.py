"""Names, messages and files that mean harm: nothing raw gets out."""

import json
import os

import pytest

from support import Store, f32, model, run, save

TEXTS = {
    "escape": "\033[2J\033]0;title\007",
    "newline": "one\ntwo\nballast: all is well",
    "return": "good\rbad",
    "bidi": "safe\u202egnp.exe\u2066x\u2069",
    "c1": "a\u009b31mb",
    "separators": "a\u2028b\u2029c",
    "backspace": "a\b\b\bb",
    "delete": "a\x7fb",
    "long": "x" * 4096,
    "wide": "\u65e5\u672c\u8a9e\U0001f980" * 256,
    "quotes": "\"'\\ %s %n $(id) `id` ; --flag",
    "tab": "a\tb",
}
RAW = [chr(c) for c in range(32) if chr(c) != "\n"] + [
    "\x7f", "\u009b", "\u202e", "\u2066", "\u2069", "\u2028", "\u2029"]


def harmless(result, lines=None):
    for text in (result.out, result.err):
        assert not any(raw in text for raw in RAW), repr(text)
    if lines is not None:
        assert result.out.count("\n") == lines, result
    return result


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_message_is_kept_whole_and_shown_harmless(tmp_path, text):
    store = Store(tmp_path)
    model(tmp_path / "m")
    meta = json.dumps({"note": text})
    harmless(store("commit", "m", "-m", text, "--author", text, "--metadata",
                   meta, "--base-model", text), 1)
    harmless(store("log"), 1)
    harmless(store("log", "--graph"), 1)
    harmless(store("reflog"), 1)
    harmless(store("show", "main"))
    harmless(store("reset", "main", "main"), 1)
    done = harmless(store("log", "--json"), 1).lines[0]
    assert done["message"] == text and done["metadata"] == {"note": text}
    assert done["base_model"] == text
    store("checkout", "main", "-o", "out")
    about = json.loads((tmp_path / "out" / "ballast.json").read_text())
    assert about["message"] == text
    assert store("fsck").out == "consistent\n"


NAMES = {key: text for key, text in TEXTS.items() if len(text) <= 4096}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_tensors_name_is_kept_whole_and_shown_harmless(tmp_path, name):
    store = Store(tmp_path)
    model(tmp_path / "a", (1, 2), name)
    model(tmp_path / "b", (1, 3), name)
    done = store("commit", "a", "-m", "x", code=None)
    harmless(done)
    if done.code:
        assert done.code in (2, 6)
        return
    store("commit", "b", "-m", "y")
    harmless(store("ls", "main"), 1)
    harmless(store("show", "main"))
    harmless(store("diff", "main~1", "main", "--stat"), 5)
    assert store("ls", "main", "--json").lines[0]["name"] == name
    assert store("diff", "main~1", "main", "--json").json[
        "max_tensor"] == name
    assert store("cat", "main", name).raw == f32(1, 3)
    model(tmp_path / "wrong", (9, 9), name)
    store("delta", "./b", "--base", "./a", "-m", "z", "--ref", "d")
    harmless(store("apply", "d", "--base", "./wrong", "-o", "out", code=6))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_argument_is_shown_harmless(tmp_path, text):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    rows = [
        ("log", text), ("show", text), ("checkout", text, "-o", "out"),
        ("commit", text, "-m", "x"), ("commit", "m", "-m", "x", "--ref", text),
        ("reset", text, "main"), ("cat", "main", text), ("config", text),
        ("merge", text, "-m", "x"), ("help", text), (text,),
        ("commit", "m", "-m", "x", "--" + text), ("methods", text),
        ("log", "-n", text), ("init", "--compression", text),
        ("diff", "main", text), ("completion", text),
    ]
    for row in rows:
        done = harmless(store(*row, code=None), 0)
        assert done.code in (2, 3), (row, done)
        assert len(done.err.splitlines()) <= 2
        done = store("--json", *row, code=None)
        harmless(done, 0)
        assert done.error["exit"] == done.code


def test_a_tenant_and_a_path_are_shown_harmless(tmp_path):
    for text in TEXTS.values():
        done = harmless(run("--tenant", text, "--root", tmp_path / "s", "refs",
                            code=None))
        assert done.code in (2, 3)
    folder = tmp_path / "a\033[2Jb"
    model(folder)
    store = Store(tmp_path)
    harmless(store("commit", folder, "-m", "x"))
    out = tmp_path / "o\ru\nt"
    harmless(store("checkout", "main", "-o", out), 1)
    assert json.loads(store("checkout", "main", "-o", out, "--json").out)[
        "out"] == str(out)


def test_bytes_that_are_no_utf8_do_no_harm(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    bad = b"a\xff\xfe\x80b"
    done = store("commit", "m", "-m", bad, code=None)
    harmless(done)
    assert done.code in (0, 2)
    done = store("--json", "log", bad, code=None)
    assert done.error["exit"] in (2, 3)


@pytest.mark.parametrize("content", [
    b"", b"\0" * 8, b"\xff" * 64, b"{}", b"<html>", b"PK\3\4" + bytes(60),
    b"GGUF" + bytes(60), b"\x80\x02}q", b"version https://git-lfs.github.com/",
    (2).to_bytes(8, "little") + b"{}x", (10).to_bytes(8, "little") + b"{}",
])
def test_what_is_no_model_is_one_clear_line(tmp_path, content):
    store = Store(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.safetensors").write_bytes(content)
    for row in (("commit", "m", "-m", "x"), ("diff", "./m", "./m"),
                ("delta", "./m", "--base", "./m", "-m", "x")):
        done = harmless(store(*row, code=6), 0)
        assert done.err.startswith("ballast: ") and "model" in done.err
    assert not store.root.exists()


def test_a_million_is_bounded_and_a_bomb_is_refused(tmp_path):
    store = Store(tmp_path)
    header = b'{"w":' * 200000
    (tmp_path / "deep.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header)
    harmless(store("commit", "deep.safetensors", "-m", "x", code=6), 0)
    deep = "[" * 100000
    harmless(store("commit", "deep.safetensors", "-m", "x", "--metadata",
                   '{"a":' + deep, code=2), 0)


def test_a_fifo_and_a_device_are_not_models(tmp_path):
    store = Store(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    harmless(store("commit", "pipe", "-m", "x", code=None))
    done = store("commit", "/dev/zero", "-m", "x", code=None)
    assert done.code in (2, 6), done
    assert not store.root.exists()


def test_metadata_may_be_large_but_not_endless(tmp_path):
    store = Store(tmp_path)
    save(tmp_path / "m.safetensors", {"w": ("U8", (0,), b"")})
    meta = json.dumps({f"key{i}": "v" * 64 for i in range(1000)})
    store("commit", "m.safetensors", "-m", "x", "--metadata", meta)
    assert store("log", "--json").lines[0]["metadata"] == json.loads(meta)
