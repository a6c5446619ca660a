"""What scripts and people rely on, to the letter: words, order, exit status."""

import fcntl
import json
import os
import re
import resource
import shutil
import sqlite3
import struct
import termios
import time

import numpy as np
import pytest

from support import (BALLAST, Store, adapter, environment, files, in_files,
                     load, model, run, save)

ID12 = r"[0-9a-f]{12}"
ID64 = r"[0-9a-f]{64}"
UTC = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z"


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("contract"))
    model(store.path / "base")
    model(store.path / "one", (1, 2, 3, 5))
    model(store.path / "two", (1, 2, 4, 4))
    adapter(store.path / "lora")
    adapter(store.path / "wide", 2.0, rank=4)
    store("commit", "base/", "-m", "the base", "--ref", "base")
    store("delta", "./one", "--base", "./base", "-m", "one", "--ref", "one")
    store("delta", "./two", "--base", "./base", "-m", "two", "--ref", "two")
    store("commit", "./lora", "-m", "lora", "--ref", "lora")
    store("commit", "./wide", "-m", "wide", "--ref", "wide")
    for value in range(4):
        model(store.path / "m", (value,))
        store("commit", "m", "-m", f"m{value}")
    return store


def pairs(text):
    """JSON as lists of pairs, so that the order of keys is seen."""
    return json.loads(text, object_pairs_hook=list)


def on_terminal(args, cwd, env=None, size=(24, 80)):
    """What is shown on a terminal of a size, without carriage returns."""
    pid, fd = os.forkpty()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        os.chdir(cwd)
        os.execve(BALLAST, [BALLAST, *map(os.fspath, args)],
                  environment({"TERM": "xterm", "PAGER": "cat", **(env or {})}))
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
    return os.waitstatus_to_exitcode(status), shown.decode().replace("\r", "")


# ---- errors ----------------------------------------------------------------

def damaged(store):
    """A copy of a store in which no block is what it was."""
    for file in (store.root / "blocks").rglob("*"):
        if file.is_file() and file.stat().st_size:
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.chmod(0o644)
            file.write_bytes(data)


def newer(store):
    with sqlite3.connect(store.root / "graph.db") as db:
        db.execute("UPDATE settings SET value = '2' WHERE key = 'format'")
    db.close()


def nothing(store):
    del store


# Code word, exit status, what is done to the store, the command.
ERRORS = [
    ("usage", 2, nothing, ("log", "--no-such")),
    ("usage", 2, nothing, ("log", "main~x")),
    ("usage", 2, nothing, ("commit", "m", "-m", "x", "--ref", "a b")),
    ("usage", 2, nothing, ("merge", "main", "one", "-m", "x")),
    ("usage", 2, nothing, ("apply", "one", "--base", "./base", "-o",
                          "base/in")),
    ("not-found", 3, nothing, ("log", "nothing")),
    ("not-found", 3, nothing, ("show", "main~9")),
    ("not-found", 3, nothing, ("show", "main@{9}")),
    ("not-found", 3, nothing, ("cat", "main", "nothing")),
    ("not-found", 3, nothing, ("commit", "./nothing", "-m", "x")),
    ("conflict", 5, nothing, ("checkout", "one", "-o", "base")),
    ("conflict", 5, nothing, ("init", "--block-size", "8M")),
    ("conflict", 5, nothing, ("commit", "two", "-m", "x", "--parent",
                              "main~1")),
    ("conflict", 5, nothing, ("log", "--db", "postgresql://u:hush@h/d")),
    ("corrupt", 6, nothing, ("apply", "one", "--base", "./two", "-o", "out")),
    ("corrupt", 6, nothing, ("commit", "cut.safetensors", "-m", "x")),
    ("corrupt", 6, damaged, ("checkout", "main", "-o", "out")),
    ("unsupported", 9, newer, ("log",)),
    ("unsupported", 9, nothing, ("apply", "ia3", "--base", "./base", "-o",
                                 "out")),
]


@pytest.fixture(name="erring", scope="module")
def made_erring(store, tmp_path_factory):
    path = tmp_path_factory.mktemp("erring")
    shutil.copytree(store.path, path, dirs_exist_ok=True)
    other = Store(path)
    (path / "cut.safetensors").write_bytes(
        (path / "base" / "model.safetensors").read_bytes()[:-1])
    adapter(path / "ia3")
    config = json.loads((path / "ia3" / "adapter_config.json").read_text())
    (path / "ia3" / "adapter_config.json").write_text(
        json.dumps({**config, "peft_type": "IA3"}))
    other("commit", "./ia3", "-m", "x", "--ref", "ia3")
    return path


@pytest.mark.parametrize("word, status, harm, args", ERRORS, ids=[
    " ".join(row[3]) for row in ERRORS])
def test_an_error_is_a_line_a_word_and_a_status(erring, tmp_path, word, status,
                                                harm, args):
    store = Store(erring)
    if harm is not nothing:
        store = Store(shutil.copytree(erring, tmp_path / "harmed"))
        harm(store)
    before = files(store.path / "base")
    done = store(*args, code=status)
    assert done.out == ""
    assert re.fullmatch(r"ballast: [^\n]+\n(hint: [^\n]+\n)?", done.err)
    assert "hush" not in done.err
    done = store("--json", *args, code=status)
    assert done.out == "" and done.err.count("\n") == 1
    [(outer, error)] = pairs(done.err)
    assert outer == "error"
    assert [key for key, _ in error] == ["code", "exit", "message", "hint"]
    assert dict(error)["code"] == word and dict(error)["exit"] == status
    assert not (store.path / "out").exists()
    assert files(store.path / "base") == before


def test_a_disk_that_takes_no_more_is_io(tmp_path):
    store = Store(tmp_path)
    save(tmp_path / "m.safetensors", {
        "w": ("U8", (4 << 20,), np.random.default_rng(1).bytes(4 << 20))})
    store("commit", "m.safetensors", "-m", "x")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = store("checkout", "main", "-o", "out", "--json", code=7,
                 preexec_fn=small)
    assert done.error["code"] == "io"
    assert "m.safetensors" in done.error["message"]
    assert sorted(os.listdir(tmp_path)) == ["m.safetensors", "store"]
    store("fsck")


@in_files
def test_a_lock_that_is_not_free_is_busy_and_reading_goes_on(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    with open(store.root / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        done = store("commit", "m", "-m", "y", "--wait", "0.3", "--json",
                     code=8)
        assert 0.3 <= time.monotonic() - began < 5
        assert done.error["code"] == "busy" and "--wait" in done.error["hint"]
        assert store("log", "--wait", "0").out.endswith("  weights  x\n")
    store("commit", "m", "-m", "y")


def test_another_tenant_and_none_are_one_text(store):
    store("commit", "m", "-m", "x", "--tenant", "other")
    for args in (("show", "{}:main"), ("diff", "one", "{}:main"),
                 ("merge", "one", "{}:main", "-m", "x"),
                 ("checkout", "{}:main", "-o", "out")):
        texts = {store(*(arg.format(name) for arg in args),
                       code=3).err.replace(name, "T")
                 for name in ("other", "nobody")}
        assert len(texts) == 1
    theirs = store("log", "--tenant", "other", "--json").lines[0]["id"]
    done = store("show", theirs, code=3)
    assert done.err == store("show", "0" * 64, code=3).err.replace(
        "0" * 64, theirs)


# ---- specs, sizes, times ----------------------------------------------------

SPECS = [
    ("main", "m3"), ("main~0", "m3"), ("main~", "m2"), ("main~1", "m2"),
    ("main^", "m2"), ("main^^", "m1"), ("main~2^", "m0"), ("main~1~2", "m0"),
    ("main@{0}", "m3"), ("main@{1}", "m2"), ("main@{1}~1", "m1"),
    ("acme:main", "m3"), ("acme:main~3", "m0"),
]


@pytest.mark.parametrize("spec, message", SPECS)
def test_a_spec_leads_to_a_commit(store, spec, message):
    assert store("show", spec, "--json").json["message"] == message


@pytest.mark.parametrize("length, suffix", [(4, ""), (12, ""), (64, ""),
                                            (12, "~1"), (64, "^")])
def test_a_prefix_of_an_id_is_a_spec(store, length, suffix):
    full = store("show", "main", "--json").json["id"]
    assert re.fullmatch(ID64, full)
    got = store("show", full[:length] + suffix, "--json").json
    assert got["message"] == ("m2" if suffix else "m3")


@pytest.mark.parametrize("spec", ["main~x", "main@{", "main@{x}", "~1", "^",
                                  "main~-1", "main ^", "main@{-1}"])
def test_what_is_no_spec_is_usage(store, spec):
    assert store("show", spec, code=2).out == ""


def test_an_ambiguous_prefix_names_the_candidates(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    full = store("show", "main", "--json").json["id"]
    twin = full[:10] + full[-54:][::-1]
    with sqlite3.connect(store.root / "graph.db") as db:
        rest = ("tenant, manifest, parent, made_on, created_at, author,"
                " base_model, message, metadata")
        db.execute(f"INSERT INTO commits (number, id, {rest}) SELECT number + 1,"
                   f" ?, {rest} FROM commits", (bytes.fromhex(twin),))
    db.close()
    done = store("show", full[:8], "--json", code=2)
    said = done.error["message"] + (done.error["hint"] or "")
    assert full[:12] in said and twin[:12] in said, done
    assert store("show", full[:12], "--json").json["id"] == full


SIZES = [("4096", 4096), ("8K", 8192), ("8KiB", 8192), ("512 KiB", 524288),
         ("1M", 1 << 20), ("1MiB", 1 << 20), ("64M", 64 << 20)]


@pytest.mark.parametrize("text, size", SIZES)
def test_sizes_are_of_1024(tmp_path, text, size):
    done = Store(tmp_path)("init", "--block-size", text, "--json")
    assert done.json["block_size"] == size


def test_times_are_local_on_a_terminal_and_utc_in_json(store):
    words = ["--root", store.root, "--tenant", "acme", "show", "main"]
    _, shown = on_terminal(words, store.path, {"TZ": "Asia/Kolkata"})
    assert re.search(r"\d\d:\d\d:\d\d \+0530", shown) or "UTC" in shown
    stamp = store("show", "main", "--json").json["created_at"]
    assert re.fullmatch(UTC, stamp)
    assert stamp in store("show", "main").out


# ---- commands ----------------------------------------------------------------

def test_an_error_on_a_terminal_is_coloured_and_helps(store):
    words = ["--root", store.root, "--tenant", "acme", "log", "mian"]
    code, shown = on_terminal(words, store.path)
    assert code == 3 and "\033[" in shown and "did you mean 'main'?" in shown
    code, shown = on_terminal(words, store.path, {"NO_COLOR": "1"})
    assert code == 3 and "\033" not in shown
    code, shown = on_terminal([*words, "--color", "always"], store.path,
                              {"NO_COLOR": "1"})
    assert "\033[" in shown


def test_a_long_log_goes_through_a_pager_of_ones_own(store):
    words = ["--root", store.root, "--tenant", "acme", "log"]
    _, shown = on_terminal(words, store.path, {"PAGER": "sed s/^/p:/"},
                           (3, 80))
    assert shown.count("p:") == 4
    assert "p:" not in store("log", env={"PAGER": "sed s/^/p:/"}).out


def test_the_root_is_told_in_full(tmp_path):
    made = run("init", cwd=tmp_path).out
    assert made == f"initialised {tmp_path}/.ballast\n"
    assert run("init", cwd=tmp_path).out == made
    done = run("init", "--tenant", "acme", "--json", cwd=tmp_path, code=5)
    assert done.error["hint"] == "'ballast config tenant acme' changes it"
    done = run("init", "--block-size", "8M", "--json", cwd=tmp_path, code=5)
    assert "4194304" in done.error["message"] and done.error["hint"]


def test_nothing_changed_is_said_and_no_commit_made(store):
    before = store("log", "--json").out
    done = store("commit", "m", "-m", "m3")
    assert re.fullmatch(rf"{ID12}  nothing changed  ref main\n", done.out)
    assert store("log", "--json").out == before
    assert store("commit", "m", "-m", "m3", "--json").json["id"] == \
        json.loads(before.splitlines()[0])["id"]


def test_diff_means_commits_rather_than_folders_of_their_names(store):
    text = store("diff", "one", "two").out
    assert re.match(rf"{ID12} -> {ID12}\n", text)
    done = store("diff", "one", "two", "--json").json
    assert re.fullmatch(ID64, done["a"]) and re.fullmatch(ID64, done["b"])
    assert store("diff", "./one", "./two").out.startswith("./one -> ./two\n")
    done = store("diff", "base", "one", "--json", code=2)
    assert "./NAME" in done.error["hint"]
    assert run("diff", "one", "two", cwd=store.path).out.startswith(
        "one -> two\n")


def test_diff_has_null_for_what_is_not_finite(tmp_path):
    def f32(*values):
        return ("F32", (len(values),), np.array(values, "<f4").tobytes())

    save(tmp_path / "a.safetensors", {"w": f32(1, 2), "i": f32(1, 2)})
    save(tmp_path / "b.safetensors", {"w": f32(1, np.nan),
                                      "i": f32(np.inf, 2)})
    done = run("diff", "a.safetensors", "b.safetensors", "--json",
               cwd=tmp_path)
    assert not re.search(r"NaN|Infinity|nan|inf\b", done.out)
    assert done.json["non_finite"] == ["i", "w"]
    assert done.json["relative_change"] is None
    rows = done.json["changed"]
    assert [list(row) for row in rows] == [["tensor", "relative",
                                            "max_abs"]] * 2
    assert all(row["relative"] is None for row in rows)


def test_a_recipe_has_its_keys_and_weights(store):
    done = store("merge", "one@0.25", "acme:two,weight=0.75", "-m", "x",
                 "--ref", "v", "--json").json
    recipe = done["recipe"]
    assert list(recipe)[:3] == ["method", "inputs", "parameters"]
    for row in recipe["inputs"]:
        assert list(row)[:4] == ["tenant", "commit", "manifest", "weight"]
    assert [row["weight"] for row in recipe["inputs"]] == [0.25, 0.75]


@pytest.mark.parametrize("text", ["one@", "one@x", "one@nan", "one@inf",
                                  "one,", "one,x=1", "one,weight",
                                  "one@1,weight=1", "@1", ""])
def test_an_input_that_is_none_is_usage(store, text):
    done = store("merge", text, "two", "-m", "x", "--json", code=2)
    assert done.error["code"] == "usage"


def test_a_view_of_adapters_loads_and_its_rank_adds_up(store, tmp_path):
    store("merge", "lora@0.5", "wide@0.25", "--no-normalize", "-m", "x",
          "--ref", "both")
    out = tmp_path / "out"
    store("checkout", "both", "-o", out)
    assert sorted(files(out)) == ["adapter_config.json",
                                  "adapter_model.safetensors", "ballast.json"]
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["r"] == 6 and config["peft_type"] == "LORA"
    product = {}
    for name in ("lora", "wide"):
        product[name] = folded(store.path / name)
    want = 0.5 * product["lora"] + 0.25 * product["wide"]
    assert np.allclose(folded(out), want, rtol=1e-6)
    about = json.loads((out / "ballast.json").read_text())
    assert list(about) == ["schema", "tenant", "commit", "manifest", "kind",
                           "base_model", "message", "metadata", "int_id",
                           "recipe"]
    assert str(store.path) not in json.dumps(about)


def folded(path):
    """scaling * B @ A of the one module of an adapter."""
    config = json.loads((path / "adapter_config.json").read_text())
    found = {}
    for name, (_, shape, data) in load(path).items():
        found["A" if "lora_A" in name else "B"] = np.frombuffer(
            data, "<f4").reshape(shape).astype("f8")
    return config["lora_alpha"] / config["r"] * (found["B"] @ found["A"])


def test_the_config_of_an_adapter_comes_back(store, tmp_path):
    store("checkout", "lora", "-o", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "adapter_config.json").read_text()
                      ) == json.loads((store.path / "lora" /
                                       "adapter_config.json").read_text())
    about = json.loads((tmp_path / "out" / "ballast.json").read_text())
    assert list(about) == ["schema", "tenant", "commit", "manifest", "kind",
                           "base_model", "message", "metadata", "int_id"]


def test_an_adapter_on_a_wrong_base_is_told_its_own(store, tmp_path):
    for force in ((), ("--force",)):
        done = store("apply", "lora", "--base", "./base", "-o",
                     tmp_path / "out", "--json", *force, code=6)
        assert done.error["hint"] == "the adapter was made for 'tiny'"


@pytest.fixture(name="talking", scope="module")
def made_talking(tmp_path_factory):
    """A delta of a base with a tokenizer, and that base with another one."""
    store = Store(tmp_path_factory.mktemp("talking"))
    for name, values in (("base", (1, 2)), ("tuned", (1, 3)),
                         ("other", (1, 2))):
        model(store.path / name, values)
        (store.path / name / "tokenizer.json").write_text(
            '{"b": 1}' if name == "other" else '{"a": 1}')
        if name != "other":
            (store.path / name / "chat_template.jinja").write_text("x")
    store("delta", "./tuned", "--base", "./base", "-m", "x")
    store("merge", "main", "-m", "v", "--ref", "v")
    return store


@pytest.mark.parametrize("options", [(), ("--verify",), ("--force",)])
@pytest.mark.parametrize("spec", ["main", "v"])
def test_apply_says_when_only_files_of_the_base_differ(talking, tmp_path, spec,
                                                       options):
    args = ("apply", spec, *options, "-o", tmp_path / "out", "--base")
    done = talking(*args, "./other")
    assert done.out == f"model written to {tmp_path / 'out'}\n"
    assert re.fullmatch("ballast: warning: base-files-differ="
                        "chat_template.jinja,tokenizer.json .*\n", done.err)
    shutil.rmtree(tmp_path / "out")
    assert talking(*args, "./other", "-q").err == ""
    shutil.rmtree(tmp_path / "out")
    assert talking(*args, "./base").err == ""


def test_reflog_tells_old_and_new(store):
    store("commit", "base/", "-m", "a", "--ref", "walk")
    store("commit", "./one", "-m", "b", "--ref", "walk")
    store("reset", "walk", "walk~1")
    lines = store("reflog", "walk").out.splitlines()
    assert re.fullmatch(rf"walk@\{{0\}}  reset  ({ID12}) -> ({ID12})  walk~1",
                        lines[0])
    assert re.fullmatch(rf"walk@\{{1\}}  commit  {ID12} -> {ID12}  b", lines[1])
    assert re.fullmatch(rf"walk@\{{2\}}  commit  - -> {ID12}  a", lines[2])
    for row in store("reflog", "--json").lines:
        assert list(row) == ["schema", "ref", "n", "op", "old", "new", "at",
                             "message"]
        assert re.fullmatch(UTC, row["at"])


def test_stats_have_separators_and_true_ratios(tmp_path):
    store = Store(tmp_path)
    save(tmp_path / "m.safetensors", {"w": ("U8", (5000000,),
                                            bytes(5000000))})
    store("commit", "m.safetensors", "-m", "a", "--ref", "a")
    store("commit", "m.safetensors", "-m", "b", "--ref", "b")
    done = store("stats", "--json").json
    assert done["dedup_ratio"] == pytest.approx(
        done["logical_bytes"] / done["unique_bytes"])
    assert done["compression_ratio"] == pytest.approx(
        done["unique_bytes"] / done["stored_bytes"])
    text = store("stats").out
    for key in ("logical_bytes", "unique_bytes", "stored_bytes"):
        assert f"{done[key]:,}" in text


def test_a_dry_gc_frees_nothing(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    before = files(store.root / "blocks")
    assert store("gc", "--dry-run").out.startswith("freed 0 bytes")
    assert files(store.root / "blocks") == before


def test_tenants_are_all_there_are(store):
    store("commit", "m", "-m", "x", "--tenant", "zeta")
    assert "zeta\n" in store("tenants").out
    assert store("tenants", "--all").out == store("tenants").out
