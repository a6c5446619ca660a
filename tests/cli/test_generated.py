"""Man pages, docs and completions come from the tables that help comes from."""

import re
import shutil
import subprocess

import pytest

from support import BALLAST, Store, environment, model, run
from test_options import COMMANDS


def options_of(command):
    """Every long option that a command's help shows."""
    text = run("help", *([command] if command else [])).out
    text = text.split("global options" if not command else "options:")[-1]
    text = text.split("\nexamples:")[0].split("\nexit status:")[0]
    return sorted(set(re.findall(r"^(?:  -\w,|     ) (--[a-z0-9-]+)", text,
                                 re.M)) |
                  set(re.findall(r", (--no-[a-z0-9-]+)", text)))


@pytest.fixture(name="pages", scope="module")
def made_pages(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    run("generate", "man", path / "man")
    run("generate", "docs", path / "cli.md")
    return path


def test_the_build_may_ask_by_option_too(pages, tmp_path):
    run("--generate", "man", tmp_path / "man")
    run("--generate", "docs", tmp_path / "cli.md")
    assert (tmp_path / "cli.md").read_bytes() == (
        pages / "cli.md").read_bytes()


def test_there_is_a_man_page_for_each_command(pages):
    names = sorted(page.name for page in (pages / "man").iterdir())
    assert names == sorted(["ballast.1"] + [f"ballast-{command}.1"
                                            for command in COMMANDS])


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_and_docs_have_the_options_of_help(pages, command):
    page = (pages / "man" / f"ballast-{command}.1").read_text()
    page = page.replace("\\-", "-")
    part = (pages / "cli.md").read_text().split(f"\n## ballast {command}\n")[1]
    part = part.split("\n## ")[0]
    for option in options_of(command):
        assert option in page and option in part
    assert page.startswith(f'.TH "ballast-{command}" 1 ')


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_man_pages_are_roff_without_complaints(pages):
    for page in (pages / "man").iterdir():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", page], capture_output=True,
            check=True)
        assert done.stderr == b"", page


SHELLS = {
    "bash": "{option}", "zsh": "{option}",
    "fish": "-l {bare}",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_know_commands_and_options(shell):
    script = run("completion", shell).out
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", script)
        for option in options_of(command):
            want = SHELLS[shell].format(option=option, bare=option[2:])
            assert re.search(re.escape(want) + r"\b", script), option
    # The command is hidden; `key` has a word of that name.
    assert "generate" not in re.sub("generate.show.trust", "", script)


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_are_what_the_shell_reads(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out)
    check = ["--no-execute"] if shell == "fish" else ["-n"]
    subprocess.run([shell, *check, script], check=True)


def complete(words, cwd, **env):
    """What bash would offer for the last word."""
    script = run("completion", "bash").out + (
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ballast; '
        'printf "%s\\n" "${COMPREPLY[@]}"')
    path = environment({"PATH": BALLAST.rsplit("/", 1)[0] + ":/usr/bin:/bin",
                        **env})
    done = subprocess.run(["bash", "-c", script, "bash", "ballast", *words],
                          cwd=cwd, env=path, capture_output=True, text=True,
                          check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash_completes(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "model")
    store("commit", "model", "-m", "x", "--ref", "support")
    env = {"BALLAST_ROOT": str(store.root), "BALLAST_TENANT": "acme"}
    rows = [
        (["comm"], {"commit"}),
        (["--tenant", "x", "comm"], {"commit"}),
        (["commit", "--mess"], {"--message"}),
        (["commit", "--ref", "s"], {"support"}),
        (["log", "s"], {"support"}),
        (["diff", "mod"], {"model"}),
        (["diff", "sup"], {"support"}),
        (["--color", "al"], {"always"}),
        (["merge", "--method", "lin"], {"linear"}),
        (["merge", "--no-normalize-"], {"--no-normalize-weights"}),
        (["completion", "z"], {"zsh"}),
        (["init", "--compression", "be"], {"best"}),
    ]
    for words, want in rows:
        assert set(complete(words, tmp_path, **env)) == want, words
