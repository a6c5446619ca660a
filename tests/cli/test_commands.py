"""Each command by its contract: text, JSON keys in order, exit status."""

import json
import re

import pytest

from support import (LLAMA, Store, adapter, in_files, load, model, run,
                     save)

COMMIT = ["id", "tenant", "manifest", "parent", "kind", "message", "author",
          "created_at", "base_model", "metadata", "int_id"]
ID12 = r"[0-9a-f]{12}"


@pytest.fixture(name="store", scope="module")
def made_store(tmp_path_factory):
    """A store with a base, two deltas, an adapter, and a blend."""
    path = tmp_path_factory.mktemp("commands")
    store = Store(path)
    model(path / "base")
    model(path / "one", (1, 2, 3, 5))
    model(path / "two", (1, 2, 4, 4))
    adapter(path / "lora")
    store("commit", "base/", "-m", "the base", "--ref", "base")
    store("delta", "./one", "--base", "./base", "-m", "one", "--ref", "one")
    store("delta", "./two", "--base", "./base", "-m", "two", "--ref", "two")
    store("commit", "./lora", "-m", "lora", "--ref", "lora")
    store("merge", "one@0.5", "two@0.5", "-m", "blend", "--ref", "blend")
    store("commit", "./base", "-m", "first")
    store("commit", "./one", "-m", "second")
    return store


# Arguments, what the text looks like whole, keys of the JSON after "schema".
READING = [
    (("log", "main"), rf"({ID12}  weights  (first|second)\n){{2}}", COMMIT),
    (("log", "main", "-n", "1"), rf"{ID12}  weights  second\n", COMMIT),
    (("log", "main", "--reverse", "-n2"),
     rf"{ID12}  weights  first\n{ID12}  weights  second\n", COMMIT),
    (("log", "main", "--graph"),
     rf"\* {ID12}  weights  second\n\* {ID12}  weights  first\n", COMMIT),
    (("log", "blend", "--graph"),
     rf"\* {ID12}  view  blend\n +acme:{ID12}@0.5\n +acme:{ID12}@0.5\n",
     COMMIT + ["recipe"]),
    (("reflog", "main"),
     rf"main@\{{0\}}  commit  {ID12} -> {ID12}  second\n"
     rf"main@\{{1\}}  commit  - -> {ID12}  first\n",
     ["ref", "n", "op", "old", "new", "at", "message"]),
    (("refs",), rf"({ID12}  [a-z]+\n){{6}}", ["refs"]),
    (("show", "one"),
     r"commit +[0-9a-f]{64}\ntenant +acme\nkind +delta\n(.|\n)*", COMMIT +
     ["tensors"]),
    (("show", "blend"), r"(.|\n)*method +linear\n(.|\n)*", COMMIT +
     ["recipe", "tensors"]),
    (("ls", "base"), r"w  F32  \[4\]  16\n",
     ["name", "dtype", "shape", "bytes"]),
    (("ls", "base", "w*"), r"w  F32  \[4\]  16\n",
     ["name", "dtype", "shape", "bytes"]),
    (("diff", "main~1", "main"),
     rf"{ID12} -> {ID12}\n"
     r"  tensors: 1 changed of 1 shared, 0 removed, 0 added\n"
     r"  relative change: 0.1826 overall, 0.1826 in the most changed tensor "
     r"\(w\)\n"
     r"  no fingerprints on both commits; behavioural effect unknown\n",
     ["a", "b", "shared", "changed", "removed", "added", "reshaped",
      "dtype_changed", "relative_change", "max_tensor_change", "max_tensor",
      "non_finite", "threshold", "probe_set", "probes_total",
      "probes_changed", "probes_similarity", "unobserved", "evidence",
      "layers", "modules"]),
    (("fsck",), r"consistent\n", ["ok", "checked", "problems", "expected"]),
    (("fsck", "--all", "--fast"), r"consistent\n",
     ["ok", "checked", "problems", "expected"]),
    (("gc", "--dry-run"), r"freed \d+ bytes.*\n", ["bytes_freed", "blocks"]),
    (("gc",), r"freed \d+ bytes\n", ["bytes_freed", "blocks"]),
    (("stats",), r"\d+ commits, \d+ manifests, \d+ blocks\n[\d,]+ logical "
     r"bytes, (.|\n)*",
     ["commits", "manifests", "blocks", "logical_bytes", "unique_bytes",
      "stored_bytes", "dedup_ratio", "compression_ratio", "codecs"]),
    (("stats", "--all"), r"\d+ commits, (.|\n)*",
     ["commits", "manifests", "blocks", "logical_bytes", "unique_bytes",
      "stored_bytes", "dedup_ratio", "compression_ratio", "codecs"]),
    (("config",), r"(\w+ = .*\n)+", ["settings"]),
    (("config", "compression"), r"auto\n", ["settings"]),
    (("tenants",), r"acme\n", ["tenants"]),
    (("methods",), r"(\w+  .+\n)+", ["methods"]),
    (("methods", "linear"), r"linear: (.|\n)+", ["methods"]),
    (("completion", "bash"), r"(.|\n)*complete (.|\n)*", ["shell", "script"]),
    (("help",), r"usage: ballast (.|\n)*", ["commands"]),
    (("help", "commit"), r"usage: ballast commit (.|\n)*", ["commands"]),
]


@pytest.mark.parametrize("args, text, keys", READING,
                         ids=[" ".join(row[0]) for row in READING])
def test_reading_commands_keep_the_contract(store, args, text, keys):
    done = store(*args)
    assert re.fullmatch(text, done.out), done
    assert done.err == ""
    done = store(*args, "--json")
    assert done.err == ""
    for document in done.lines:
        assert list(document) == ["schema"] + keys
        assert document["schema"] == f"ballast/{args[0]}/1"


def test_init_makes_a_store_once_and_is_content_with_the_same(tmp_path):
    store = Store(tmp_path)
    assert store("init").out == f"initialised {store.root}\n"
    assert store("init").code == 0
    done = store("init", "--json").json
    assert list(done) == ["schema", "root", "block_size", "compression",
                          "backend", "db", "format"]
    assert done["block_size"] == 4 << 20 and done["format"] == 1
    assert done["compression"] == "auto"
    assert store("init", "--block-size", "8M", code=5).out == ""


@pytest.mark.parametrize("word, recorded", [
    ("raw", "none"), ("none", "none"), ("zstd", "auto"), ("auto", "auto"),
    ("fast", "fast"), ("best", "best")])
def test_init_knows_the_words_for_compression(tmp_path, word, recorded):
    done = Store(tmp_path)("init", "--compression", word, "--json")
    assert done.json["compression"] == recorded


def test_the_tenant_of_init_is_the_stores_own(tmp_path):
    run("init", "--tenant", "acme", cwd=tmp_path)
    model(tmp_path / "m")
    run("commit", "m", "-m", "x", cwd=tmp_path)
    assert run("tenants", cwd=tmp_path).out == "acme\n"
    assert run("config", "tenant", cwd=tmp_path).out == "acme\n"


def test_commit_reports_itself(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    first = store("commit", "m", "-m", "one")
    assert re.fullmatch(rf"{ID12}  1 tensors  ref main\n", first.out)
    again = store("commit", "m", "-m", "one")
    assert "nothing changed" in again.out
    assert again.out.split()[0] == first.out.split()[0]
    done = store("commit", "m", "-m", "two", "--ref", "r", "--author", "me",
                 "--base-model", "llama", "--metadata", '{"b":1,"a":[2]}',
                 "--json").json
    assert list(done) == ["schema"] + COMMIT + [
        "ref", "tensors", "bytes", "stored_bytes", "new_blocks",
        "reused_blocks"]
    assert (done["ref"], done["author"], done["base_model"]) == (
        "r", "me", "llama")
    assert done["metadata"] == {"a": [2], "b": 1}
    assert done["parent"] is None and done["kind"] == "weights"
    assert done["tensors"] == 1 and done["new_blocks"] == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z",
                        done["created_at"])
    assert done["int_id"] == int(done["id"][:15], 16) % (2**31 - 1) + 1


def test_allow_empty_makes_the_commit_all_the_same(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    first = store("commit", "m", "-m", "one", "--json").json
    second = store("commit", "m", "-m", "one", "--allow-empty", "--json").json
    assert second["parent"] == first["id"]


def test_commit_with_a_stale_parent_is_a_conflict(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    model(tmp_path / "n", (9, 9))
    store("commit", "m", "-m", "one")
    store("commit", "n", "-m", "two", "--parent", "main")
    done = store("commit", "m", "-m", "three", "--parent", "main~1", "--json",
                 code=5)
    assert done.error["code"] == "conflict"
    assert len(store("log").out.splitlines()) == 2


def test_commit_of_a_kind_checks_it_or_makes_the_difference(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "base")
    model(tmp_path / "tuned", (4, 3, 2, 1))
    adapter(tmp_path / "lora")
    store("commit", "lora", "-m", "x", "--kind", "adapter")
    store("commit", "lora", "-m", "x", "--kind", "weights", code=2)
    store("commit", "base", "-m", "x", "--kind", "delta", code=2)
    done = store("commit", "tuned", "-m", "x", "--kind", "delta", "--base",
                 "./base", "--ref", "d", "--json").json
    assert done["kind"] == "delta"
    done = store("commit", "tuned", "-m", "x", "--base", "./base", "--ref",
                 "w", "--json").json
    assert done["kind"] == "weights" and done["base_model"]


def test_delta_counts_what_became_of_tensors(tmp_path):
    store = Store(tmp_path)
    one = ("F32", (1,), b"\0\0\0\0")
    two = ("F32", (1,), b"\0\0\0\1")
    save(tmp_path / "base.safetensors", {"same": one, "gone": one,
                                         "moved": one, "bent": one})
    save(tmp_path / "tuned.safetensors", {
        "same": one, "new": one, "moved": two,
        "bent": ("F32", (1, 1), b"\0\0\0\0")})
    done = store("delta", "tuned.safetensors", "--base", "base.safetensors",
                 "-m", "x")
    assert re.fullmatch(rf"{ID12}  1 tensors changed, 1 unchanged, 1 added, "
                        r"1 removed, 1 reshaped  ref main\n", done.out)
    done = store("delta", "tuned.safetensors", "--base", "base.safetensors",
                 "-m", "y", "--json").json
    assert list(done) == ["schema"] + COMMIT + [
        "ref", "changed", "unchanged", "added", "removed", "reshaped",
        "bytes", "stored_bytes"]
    assert [done[key] for key in ("changed", "unchanged", "added", "removed",
                                  "reshaped")] == [1] * 5


def test_delta_takes_specs_too(store, tmp_path):
    tuned = model(tmp_path / "tuned", (7, 7, 7, 7))
    done = store("delta", tuned, "--base", "base", "-m", "x", "--ref", "spec")
    assert "1 tensors changed" in done.out
    store("delta", "main", "--base", "acme:base", "-m", "x", "--ref", "specs")
    out = tmp_path / "out"
    store("apply", "spec", "--base", "base", "-o", out, "--verify")
    assert load(out) == load(tuned)


def test_apply_reports_and_writes(store, tmp_path):
    out = tmp_path / "out"
    done = store("apply", "one", "--base", "./base", "-o", out)
    assert done.out == f"model written to {out}\n"
    out = tmp_path / "json"
    done = store("apply", "one", "--base", "./base", "-o", out, "--json").json
    assert list(done) == ["schema", "out", "commit", "tensors", "bytes",
                          "exact"]
    assert (done["exact"], done["tensors"], done["bytes"]) == (True, 1, 16)
    assert load(out) == load(store.path / "one")
    about = json.loads((out / "ballast.json").read_text())
    assert about["schema"] == "ballast/provenance/1"
    assert about["commit"] == done["commit"]
    assert str(store.path) not in (out / "ballast.json").read_text()


def test_apply_refuses_another_base_by_tensor_unless_forced(store, tmp_path):
    other = model(tmp_path / "other", (9, 2, 3, 4))
    out = tmp_path / "out"
    done = store("apply", "one", "--base", other, "-o", out, "--json", code=6)
    assert done.error["code"] == "corrupt" and "'w'" in done.error["message"]
    assert not out.exists()
    done = store("apply", "one", "--base", other, "-o", out, "--json",
                 "--force").json
    assert done["exact"] is False and out.exists()


def test_apply_casts_and_does_not_call_it_exact(store, tmp_path):
    out = tmp_path / "out"
    done = store("apply", "one", "--base", "./base", "-o", out, "--dtype",
                 "BF16", "--verify", "--json").json
    assert done["exact"] is False
    assert load(out)["w"][0] == "BF16"
    store("apply", "one", "--base", "./base", "-o", out, "--dtype", "I8",
          code=2)


@pytest.mark.parametrize("command", [
    ("checkout", "one"), ("apply", "one", "--base", "./base")])
def test_what_is_there_is_not_replaced_unasked(store, tmp_path, command):
    out = tmp_path / "out"
    out.mkdir()
    store(*command, "-o", out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    done = store(*command, "-o", tmp_path / "full", "--json", code=5)
    assert done.error["code"] == "conflict"
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    store(*command, "-o", tmp_path / "full", "--force")
    assert not (tmp_path / "full" / "mine").exists()


@pytest.mark.parametrize("ref", ["base", "one", "lora", "blend"])
def test_checkout_is_done_when_it_is_there(store, tmp_path, ref):
    out = tmp_path / "out"
    first = store("checkout", ref, "-o", out)
    assert re.fullmatch(rf"\d tensors -> {re.escape(str(out))}\n", first.out)
    stamp = (out / "ballast.json").stat().st_mtime_ns
    assert store("checkout", ref, "-o", out).out == first.out
    done = store("checkout", ref, "-o", out, "--json").json
    assert list(done) == ["schema", "out", "tensors", "bytes", "commit"]
    assert (out / "ballast.json").stat().st_mtime_ns == stamp


def test_a_folder_that_was_changed_is_not_the_commit(store, tmp_path):
    out = tmp_path / "out"
    store("checkout", "base", "-o", out)
    save(out / "model.safetensors", {"w": ("F32", (4,), bytes(16))})
    store("checkout", "base", "-o", out, code=5)


@pytest.mark.parametrize("where", ["base", "base/in", "store", "store/in", "."])
def test_out_is_never_in_or_around_base_or_store(store, where):
    before = load(store.path / "base")
    done = store("apply", "one", "--base", "./base", "-o", where, "--force",
                 code=None)
    assert done.code in (2, 5), done
    assert load(store.path / "base") == before
    store("fsck")


def test_merge_records_without_computing(store):
    done = store("merge", "one@0.6", "acme:two@0.4", "-m", "x", "--ref", "m")
    assert re.fullmatch(rf"{ID12}  linear of 2 inputs  ref m\n", done.out)
    done = store("merge", "one@0.6", "two", "--no-normalize", "-m", "y",
                 "--ref", "m", "--json").json
    assert list(done) == ["schema"] + COMMIT + ["recipe", "ref"]
    assert done["kind"] == "view"
    assert list(done["recipe"])[0] == "method"
    assert len(done["recipe"]["inputs"]) == 2


MERGE_REFUSED = [
    (("--density", "0.5"), "normalize"),
    (("--densty=0.5",), "--density"),
    (("--squeeze=0.5",), "normalize"),
    (("--no-normalise",), "--no-normalize"),
    (("--method", "liner"), "linear"),
    (("--strict", "--union"), "--strict"),
    (("--space", "nowhere"), "product"),
    (("--dtype", "I9"), "I9"),
    (("--weight", "much"), "much"),
    (("--metadata", "[1]"), "metadata"),
    (("--metadata", "{"), "metadata"),
]


@pytest.mark.parametrize("options, named", MERGE_REFUSED,
                         ids=[" ".join(row[0]) for row in MERGE_REFUSED])
def test_merge_refuses_and_names_what_there_is(store, options, named):
    done = store("merge", "one", "two", "-m", "x", "--json", *options, code=2)
    assert done.error["code"] == "usage"
    assert named in done.error["message"] + (done.error["hint"] or "")


def test_merge_of_what_another_tenant_has_finds_nothing(store):
    for text in ("other:one", "acmee:one", "acme:nothing"):
        done = store("merge", "one", text, "-m", "x", "--json", code=3)
        assert done.error["exit"] == 3
    for command in (("log", "other:one"), ("diff", "one", "other:one"),
                    ("show", "nobody:one")):
        done = store(*command, "--json", code=3)
        assert done.error["code"] == "not-found"


def test_reset_moves_a_ref_and_back(store):
    store("commit", "base/", "-m", "a", "--ref", "back")
    store("commit", "one/", "-m", "b", "--ref", "back")
    done = store("reset", "back", "back~1")
    assert re.fullmatch(rf"back -> {ID12}  a\n", done.out)
    done = store("reset", "back", "back@{1}", "--json").json
    assert list(done) == ["schema"] + COMMIT + ["ref"]
    assert (done["message"], done["ref"]) == ("b", "back")
    moves = store("reflog", "back", "--json").lines
    assert [move["op"] for move in moves] == ["reset", "reset", "commit",
                                              "commit"]
    assert [move["n"] for move in moves] == [0, 1, 2, 3]
    assert moves[-1]["old"] is None


def test_ls_and_cat_are_of_the_same_bytes(store):
    (row,) = store("ls", "base", "--json").lines
    assert row == {"schema": "ballast/ls/1", "name": "w", "dtype": "F32",
                   "shape": [4], "bytes": 16}
    assert store("ls", "base", "x*").out == ""
    want = load(store.path / "base")["w"][2]
    assert store("cat", "base", "w").raw == want
    assert store("cat", "base", "config.json").raw == b'{"a": 1}'
    done = store("cat", "base", "x", "--json", code=3)
    assert "'x'" in done.error["message"] and done.out == ""


def test_diff_asks_and_answers(store):
    assert store("diff", "base", "base", "--exit-code").code == 0
    same = store("diff", "base", "./base").out
    assert "0 changed of 1 shared" in same and "fingerprints" not in same
    done = store("diff", "base", "main", "--exit-code", code=1)
    assert done.err == ""
    done = store("diff", "base", "main", "--exit-code", "--json", code=1).json
    assert done["changed"] == [{"tensor": "w", "relative": pytest.approx(
        1 / 30 ** 0.5), "max_abs": 1.0}]
    assert done["threshold"] == 0.01
    done = store("diff", "base", "main", "--threshold", "0.5", "--json").json
    assert done["threshold"] == 0.5
    assert "  w\n" in store("diff", "base", "main", "--stat").out
    store("diff", "base", "main", "--probe-set", "abcd", code=3)


def test_diff_tells_every_kind_of_change(tmp_path):
    inf = b"\0\0\x80\x7f"
    one, two = b"\0\0\x80\x3f", b"\0\0\0\x40"
    save(tmp_path / "a.safetensors", {
        "same": ("F32", (1,), one), "gone": ("F32", (1,), one),
        "bent": ("F32", (1,), one), "wide": ("F32", (1,), one),
        "big": ("F32", (1,), one), "zero": ("F32", (1,), bytes(4))})
    save(tmp_path / "b.safetensors", {
        "same": ("F32", (1,), one), "new": ("F32", (1,), one),
        "bent": ("F32", (1, 1), one), "wide": ("BF16", (1,), one[2:]),
        "big": ("F32", (1,), inf), "zero": ("F32", (1,), two)})
    done = run("diff", "a.safetensors", "b.safetensors", "--json",
               cwd=tmp_path).json
    assert done["shared"] == 5
    assert done["removed"] == ["gone"] and done["added"] == ["new"]
    assert done["reshaped"] == ["bent"]
    assert done["dtype_changed"] == ["wide"]
    assert done["non_finite"] == ["big"]
    assert [row["tensor"] for row in done["changed"]] == ["big", "zero"]
    assert all(row["relative"] is None for row in done["changed"])
    text = run("diff", "a.safetensors", "b.safetensors", cwd=tmp_path).out
    assert ("  tensors: 2 changed of 5 shared, 1 removed, 1 added, 1 reshaped,"
            " 1 in another dtype, 1 not finite\n") in text


@in_files
def test_fsck_says_no_when_a_block_is_damaged(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    blocks = [file for file in (store.root / "blocks").rglob("*")
              if file.is_file() and file.stat().st_size]
    assert blocks
    for file in blocks:
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.chmod(0o644)
        file.write_bytes(data)
    done = store("fsck", code=1)
    assert done.out and "consistent" not in done.out and done.err == ""
    done = store("fsck", "--json", code=1).json
    assert done["ok"] is False
    assert all(list(row) == ["kind", "what", "detail"]
               for row in done["problems"])
    store("checkout", "main", "-o", "out", code=6)
    assert not (tmp_path / "out").exists()


def test_config_shows_and_sets(tmp_path):
    store = Store(tmp_path)
    store("init")
    assert store("config", "compression", "best").out == "best\n"
    assert store("config", "compression").out == "best\n"
    done = store("config", "--json").json
    assert done["settings"]["compression"] == "best"
    for args in (("nothing",), ("compresion",), ("compression", "worst"),
                 ("block_size", "8M"), ("format", "2")):
        assert store("config", *args, "--json", code=2).error[
            "code"] == "usage"
    store("config", "default_jobs", "1")
    assert store("stats").code == 0


def test_methods_tells_types_defaults_and_bounds():
    done = run("methods", "--json").json
    for method in done["methods"]:
        assert list(method) == ["name", "summary", "paper", "min_inputs",
                                "max_inputs", "seeded", "parameters"]
        for parameter in method["parameters"]:
            assert list(parameter) == ["name", "type", "default", "low",
                                       "high", "per_input", "mergekit"]
    (linear,) = run("methods", "linear", "--json").json["methods"]
    assert {p["name"]: p["default"] for p in linear["parameters"]} == {
        "weight": 1, "normalize": True}
    assert run("methods", "liner", "--json", code=2).error["hint"] == (
        "did you mean 'linear'?")


def test_the_quickstart_works_as_written(tmp_path):
    store = Store(tmp_path)
    base = LLAMA / "base"
    store("delta", LLAMA / "ft-small", "--base", base, "-m", "support, run 41",
          "--ref", "support")
    store("delta", LLAMA / "ft-large", "--base", base, "-m", "finance",
          "--ref", "finance")
    store("merge", "support@0.6", "finance@0.4", "-m", "blend")
    store("apply", "main", "--base", base, "-o", "blend", "--verify")
    store("merge", "support", "finance", "--no-normalize", "-m", "sum")
    assert len(store("log").out.splitlines()) == 2
    assert "changed of" in store("diff", "main~1", "main").out
    assert store("reset", "main", "main@{1}").out.endswith("  blend\n")
    assert store("reset", "main", "main@{1}").out.endswith("  sum\n")
    assert store("fsck").out == "consistent\n"
