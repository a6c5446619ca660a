"""Options, arguments, environment, roots: what every command has."""

import json
import os
import re

import pytest

from support import BALLAST, Store, environment, model, run

COMMANDS = [
    "init", "commit", "delta", "apply", "checkout", "merge", "lora", "extract-lora",
    "import-lora",
    "methods",
    "import-mergekit", "export-mergekit", "log",
    "reflog", "refs", "reset", "show", "ls", "cat", "diff",
    "fingerprint", "probes", "bisect", "wdelta", "serve-export",
    "sync-vllm", "serve",
    "grant", "revoke", "grants", "push", "pull", "copy", "forget", "verify", "proofs", "fsck", "gc",
    "stats", "key", "config", "tenants", "completion", "help"]


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("options"))
    model(store.path / "m")
    store("commit", "m", "-m", "one")
    return store


# Ways to write the same thing.
ORDERS = [
    ["commit", "m", "-m", "one"],
    ["commit", "-m", "one", "m"],
    ["commit", "-mone", "m"],
    ["commit", "--message", "one", "m"],
    ["commit", "--message=one", "m"],
    ["commit", "m", "--message=two", "--message=one"],
    ["-q", "commit", "-q", "m", "-m", "one"],
    ["commit", "-m", "one", "--", "m"],
    ["--", "commit", "m", "-m", "one"],
    ["--no-such", None],
    ["commit", "-j2", "m", "-m", "one"],
    ["-j", "2", "commit", "m", "-m", "one"],
    ["--color=never", "commit", "m", "-m", "one", "--progress", "never"],
]


@pytest.mark.parametrize("words", ORDERS, ids=lambda words: " ".join(
    filter(None, words)))
def test_options_and_arguments_stand_in_any_order(store, words):
    if words[-1] is None:
        run(*words[:-1], code=2)
        return
    done = store(*words)
    assert "nothing changed" in done.out and done.err == ""


USAGE = [
    ([], "no command"),
    (["comit"], "comit"),
    (["grant"], "grant"),
    (["serve", "--port", "65536"], "--port"),
    (["serve", "--tls-cert", "c.pem"], "key"),
    (["frobnicate"], "frobnicate"),
    (["wdelta"], "wdelta"),
    (["commit"], "argument"),
    (["commit", "m"], "--message"),
    (["commit", "m", "-m"], "-m"),
    (["commit", "m", "--message"], "--message"),
    (["commit", "m", "n", "-m", "x"], "'n'"),
    (["commit", "m", "-m", "x", "--mess", "y"], "--mess"),
    (["commit", "m", "-m", "x", "--allow-empty=yes"], "--allow-empty"),
    (["commit", "m", "-m", "x", "--no-allow-empty"], "--no-allow-empty"),
    (["commit", "m", "-m", "x", "-z"], "-z"),
    (["commit", "m", "-m", "x", "--kind", "view"], "view"),
    (["commit", "m", "-m", "x", "--metadata", "{"], "metadata"),
    (["commit", "m", "-m", "x", "--metadata", "3"], "metadata"),
    (["commit", "m", "-m", "x", "--author", "\udcff"], "author"),
    (["commit", "m", "-m", "x", "--base-model", "\udcff"], "base model"),
    (["delta", "m", "-m", "x"], "--base"),
    (["log", "-n", "many"], "many"),
    (["log", "-n", "-1"], "-1"),
    (["log", "-n", "99999999999999999999"], "-n"),
    (["log", "--reverse", "--graph"], "--graph"),
    (["log", "ma in"], "ma in"),
    (["log", ""], ""),
    (["fsck", "--from", "m"], "--repair"),
    (["init", "--block-size", "big"], "big"),
    (["init", "--block-size", "0"], "--block-size"),
    (["init", "--compression", "xz"], "xz"),
    (["refs", "main"], "'main'"),
    (["reset", "main"], "argument"),
    (["reset", "ma in", "main"], "ma in"),
    (["completion", "tcsh"], "tcsh"),
    (["completion"], "argument"),
    (["help", "frobnicate"], "frobnicate"),
    (["--jobs", "0", "refs"], "jobs"),
    (["--jobs", "1000000", "refs"], "jobs"),
    (["--wait=-1", "refs"], "wait"),
    (["--progress", "maybe", "refs"], "maybe"),
    (["--color", "blue", "refs"], "blue"),
    (["--tenant", "a/b", "refs"], "a/b"),
    (["--tenant", "..", "refs"], ".."),
    (["--tenant", "a..b", "refs"], "a..b"),
    (["--tenant", "x" * 65, "refs"], "x" * 65),
    (["-m", "x", "commit", "m"], "-m"),
    (["generate", "cake", "x"], "cake"),
]


@pytest.mark.parametrize("words, named", USAGE, ids=[
    " ".join(row[0])[:40] for row in USAGE])
def test_wrong_usage_is_2_and_named(store, words, named):
    done = store(*words, code=2)
    assert done.out == ""
    assert re.match(r"ballast: .+\n(hint: .+\n)?$", done.err), done
    assert named in done.err
    done = store("--json", *words, code=2)
    error = done.error
    assert list(json.loads(done.err)) == ["error"]
    assert list(error) == ["code", "exit", "message", "hint"]
    assert (error["code"], error["exit"]) == ("usage", 2)


@pytest.mark.parametrize("word, meant", [
    ("comit", "commit"), ("stat", "stats"), ("dleta", "delta"),
    ("tennants", "tenants"), ("chekcout", "checkout")])
def test_a_command_that_was_meant_is_suggested(word, meant):
    done = run(word, code=2)
    assert done.err == (f"ballast: unknown command '{word}'\n"
                        f"hint: did you mean '{meant}'?\n")


def test_what_was_meant_is_suggested_for_options_and_refs(store):
    done = store("commit", "m", "--mesage", "x", "--json", code=2)
    assert done.error["hint"] == "did you mean '--message'?"
    done = store("log", "mian", "--json", code=3)
    assert done.error["hint"] == "did you mean 'main'?"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    done = run(command, "--help")
    assert done.out.startswith(f"usage: ballast {command}")
    assert run("help", command).out == done.out
    assert run("-h", command).out == done.out
    assert done.err == "" and done.out.count("\n") > 4
    assert max(map(len, done.out.splitlines())) <= 100


def test_help_lists_exactly_the_commands():
    listed = re.findall(r"^  ([a-z-]+) +\S", run("help").out.split(
        "global options")[0].split("commands:")[1], re.M)
    assert listed == COMMANDS
    assert run("--help").out == run("help").out


def test_version_is_one_line_and_more_with_v():
    assert run("--version").out == "ballast 0.1.0\n"
    assert len(run("--version", "-v").out.splitlines()) > 2
    done = run("--version", "--json").json
    assert done == {"schema": "ballast/version/1", "version": "0.1.0"}


def test_the_root_is_the_nearest_upwards(tmp_path):
    outer = tmp_path / "outer"
    deep = outer / "a" / "b"
    deep.mkdir(parents=True)
    model(outer / "m")
    run("--tenant", "t", "commit", "m", "-m", "x", cwd=outer)
    assert (outer / ".ballast").is_dir()
    assert run("tenants", cwd=deep).out == "t\n"
    run("--root", outer / "a" / ".ballast", "init", cwd=outer)
    assert run("tenants", cwd=deep).out == ""


def test_option_beats_environment_beats_store_beats_default(tmp_path):
    model(tmp_path / "m")
    for tenant in ("stored", "told", "given"):
        run("--tenant", tenant, "commit", "m", "-m", tenant, cwd=tmp_path)
    run("config", "tenant", "stored", cwd=tmp_path)
    env = {"BALLAST_TENANT": "told"}

    def whose(*args, env=None):
        return run("log", *args, cwd=tmp_path, env=env).out.split()[-1]

    assert whose() == "stored"
    assert whose(env={"BALLAST_TENANT": ""}) == "stored"
    assert whose(env=env) == "told"
    assert whose("--tenant", "given", env=env) == "given"
    elsewhere = {"BALLAST_ROOT": str(tmp_path / "elsewhere")}
    done = run("log", cwd=tmp_path, env=elsewhere, code=3)
    assert "elsewhere" in done.err
    assert whose("--root", tmp_path / ".ballast", env=elsewhere) == "stored"
    run("log", cwd=tmp_path, env={"BALLAST_JOBS": "some"}, code=2)
    assert "BALLAST_JOBS" in run("log", cwd=tmp_path, code=2,
                                 env={"BALLAST_JOBS": "some"}).err


@pytest.mark.parametrize("words", [
    ["log"], ["refs"], ["fsck"], ["stats"], ["tenants"], ["show", "main"],
    ["config"], ["gc"], ["reset", "a", "b"], ["checkout", "main", "-o", "x"],
    ["merge", "a", "-m", "x"], ["diff", "a", "b"], ["cat", "a", "b"],
    ["apply", "a", "--base", "b", "-o", "c"], ["reflog"], ["ls", "main"],
    ["delta", "a", "--base", "b", "-m", "x"], ["serve-export", "-o", "x"],
])
def test_a_command_that_only_reads_makes_no_store(tmp_path, words):
    store = Store(tmp_path)
    done = store(*words, "--json", code=3)
    assert done.error["code"] == "not-found"
    assert "no store" in done.error["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words, code", [
    (["--tenant", "t", "commit", "nothing", "-m", "x"], 3),
    (["--tenant", "t", "delta", "./m", "--base", "./n", "-m", "x"], 3),
    (["commit", "m", "-m", "x"], 2),
    (["delta", "./m", "--base", "./m", "-m", "x"], 2),
])
def test_what_fails_before_it_writes_makes_no_store(tmp_path, words, code):
    model(tmp_path / "m")
    done = run(*words, cwd=tmp_path, code=code)
    assert "tenant" in done.err or code == 3
    assert not (tmp_path / ".ballast").exists()


def test_the_first_commit_makes_the_store(tmp_path):
    model(tmp_path / "m")
    run("--tenant", "t", "commit", "m", "-m", "x", cwd=tmp_path)
    assert run("tenants", cwd=tmp_path).out == "t\n"
    done = run("log", cwd=tmp_path, code=2)
    assert "--tenant" in done.err


def test_verbose_tells_on_stderr_only(store):
    done = store("refs", "-v")
    assert re.fullmatch(r"[0-9a-f]{12}  main\n", done.out)
    assert "refs took" in done.err


def test_json_is_compact_and_colourless_in_a_pipe(store):
    done = store("refs", "--json", "--color", "always")
    assert done.out.count("\n") == 1 and "\033" not in done.out
    assert ": " not in done.out
    assert "\033" in store("refs", "--color", "always").out
    assert "\033" not in store("refs").out


def on_terminal(args, cwd, env):
    """Run with a terminal as stdout and stderr; what it showed."""
    pid, fd = os.forkpty()
    if not pid:
        os.chdir(cwd)
        os.execve(BALLAST, [BALLAST, *args], environment(env))
    shown = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_a_terminal_gets_colour_indent_and_a_pager(store):
    root = ["--root", str(store.root), "--tenant", "acme"]
    env = {"TERM": "xterm", "PAGER": "cat"}
    code, shown = on_terminal(root + ["refs"], store.path, env)
    assert code == 0 and "\033[33m" in shown
    code, shown = on_terminal(root + ["refs"], store.path,
                              {**env, "NO_COLOR": "1"})
    assert code == 0 and "\033" not in shown
    code, shown = on_terminal(root + ["refs", "--json"], store.path, env)
    assert '\n  "refs": {' in shown.replace("\r", "")
    code, shown = on_terminal(root + ["log"], store.path,
                              {**env, "PAGER": "sed s/^/paged:/"})
    assert code == 0 and "paged:" in shown
    code, shown = on_terminal(root + ["refs"], store.path,
                              {**env, "PAGER": "sed s/^/paged:/"})
    assert "paged:" not in shown
    code, shown = on_terminal(root + ["log"], store.path,
                              {**env, "PAGER": "true"})
    assert code == 0
    code, shown = on_terminal(root + ["show", "main"], store.path, env)
    assert re.search(r"date +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000", shown)


def test_raw_bytes_do_not_go_to_a_terminal(store):
    root = ["--root", str(store.root), "--tenant", "acme"]
    code, shown = on_terminal(root + ["cat", "main", "w"], store.path,
                              {"TERM": "xterm"})
    assert code == 2 and "terminal" in shown


def test_a_bar_is_drawn_when_asked_for_and_cleared(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m", [1.0] * 65536)
    done = store("commit", "m", "-m", "x", "--progress", "always")
    assert "\r" not in done.out
    if done.err:
        assert done.err.endswith("\r\033[K")
    assert store("fsck", "--progress", "never").err == ""
