"""At a prompt: what bash completes, and the bar while work lasts."""

import os
import re
import subprocess

import numpy as np
import pytest

from support import BALLAST, Store, adapter, environment, model, run, save


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("shell"))
    model(store.path / "one")
    adapter(store.path / "lora")
    store("commit", "./one", "-m", "one", "--ref", "one")
    store("commit", "./lora", "-m", "lora", "--ref", "lora")
    store("commit", "./lora", "-m", "wide", "--ref", "wide")
    return store


# ---- completion ------------------------------------------------------------

def completed(store, words, folder):
    """What bash would offer for the last of the words."""
    script = run("completion", "bash").out + (
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ballast\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n')
    env = environment({"PATH": f"{os.path.dirname(BALLAST)}:"
                               f"{os.environ['PATH']}",
                       "BALLAST_ROOT": str(store.root),
                       "BALLAST_TENANT": "acme"})
    done = subprocess.run(["bash", "-c", script, "-", "ballast", *words],
                          env=env, cwd=folder, capture_output=True, text=True,
                          check=False, timeout=20)
    assert done.stderr == ""
    return done.stdout.split()


COMPLETIONS = [
    (["comm"], {"commit"}), (["re"], {"reflog", "refs", "reset"}),
    (["-j", "2", "ref"], {"reflog", "refs"}), (["log", "--rev"], {"--reverse"}),
    (["--color", "al"], {"always"}), (["log", "--color", "=", "n"], {"never"}),
    (["log", "--color", "="], {"auto", "always", "never"}),
    (["commit", "--kind", ""], {"adapter", "delta", "weights"}),
    (["show", "lo"], {"lora"}), (["reset", "wi"], {"wide"}),
    (["checkout", "lora", "-o", "ba"], set()), (["help", "me"],
                                                {"merge", "methods"}),
    (["methods", "lin"], {"linear"}), (["config", "def"], {"default_jobs"}),
    (["--tenant", "nobody", "show", "lo"], set()),
    (["--tenant", "=", "acme", "show", "lo"], {"lora"}),
    (["merge", "one", "--no"], {"--normalize", "--no-normalize"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["key", ""], {"generate", "show", "trust"}), (["key", "ge"], {"generate"}),
    (["key", "show", "k"], {"k.pem"}), (["proofs", "e"], {"export"}),
    (["proofs", ""], {"checkpoint", "export", "prove"}),
    (["--tenant", "acme", "proofs", "export", "k"], set()),
]


@pytest.mark.parametrize("words, want", COMPLETIONS,
                         ids=[" ".join(row[0]) for row in COMPLETIONS])
def test_bash_completes(store, tmp_path, words, want):
    (tmp_path / "k.pem").touch()
    assert want <= set(completed(store, words, tmp_path))
    if not want:
        assert completed(store, words, tmp_path) == []


def test_no_shell_offers_files_for_words():
    for shell in ("zsh", "fish"):
        script = run("completion", shell).out
        for command, words in (("key", "generate show trust"),
                               ("proofs", "checkpoint export prove")):
            lines = [line for line in script.splitlines() if words in line]
            assert any(command in line for line in lines)
            if shell == "fish":
                (first,) = [line for line in lines if "and not" in line]
                assert f"_from {command}; " in first and "-F" not in first


# ---- progress --------------------------------------------------------------

def test_a_bar_is_drawn_on_stderr_and_leaves_nothing(tmp_path):
    store = Store(tmp_path)
    data = np.random.default_rng(1).bytes(48 << 20)
    save(tmp_path / "m.safetensors", {f"w{i}": ("U8", (3 << 20,),
                                                data[i * (3 << 20):][:3 << 20])
                                      for i in range(16)})
    done = store("commit", "m.safetensors", "-m", "x", "-j1", "--json",
                 "--progress", "always")
    assert done.json["tensors"] == 16
    if done.err:  # it may be done before a first look at the clock
        bars = done.err.split("\r")
        assert bars[-1] == "\033[K" and " 0.0 B/s" not in done.err
        assert re.match(r"commit \[[#.]{30}\] +\d+%  [\d.]+ \w+", bars[1])
    quiet = store("commit", "m.safetensors", "-m", "y", "-q")
    assert quiet.err == ""
