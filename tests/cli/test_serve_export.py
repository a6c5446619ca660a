"""serve-export: folders that engines load, and what is said of those that have.

What is compared with is the folders that were committed, what checkout writes,
and b3sum."""

import json
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from support import Store, adapter, files, load, model, run, save

BUILD = pathlib.Path(os.environ["BALLAST_BUILD"])


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Refs one, same (the same content) and other; heads are theirs alone."""
    store = Store(tmp_path)
    adapter(tmp_path / "a", 1.0)
    adapter(tmp_path / "b", 3.0, rank=4)
    store("commit", "a", "-m", "one", "--ref", "one")
    store("commit", "a", "-m", "the same", "--ref", "same")
    store("commit", "b", "-m", "other", "--ref", "other")
    return store


def heads(store):
    return store("--json", "refs").json["refs"]


def export(store, *args, code=0):
    return store("--json", "serve-export", *args, "-o", "out", code=code)


def folder(store, ref):
    return store.path / "out" / store.tenant / heads(store)[ref]


def note(path):
    return json.loads((path / "ballast.json").read_text())


# ---- what is written --------------------------------------------------------

def test_every_ref_becomes_a_folder_and_a_row(store):
    commits = heads(store)
    done = export(store).json
    assert done["schema"] == "ballast/serve-export/1"
    assert (done["skipped"], done["pruned"]) == ({}, [])
    assert [row["ref"] for row in done["exported"]] == ["one", "other", "same"]
    for row in done["exported"]:
        commit = store("--json", "show", row["ref"]).json
        assert row == {
            "name": f"acme-{row['ref']}-{commit['id'][:8]}",
            "int_id": int(commit["id"][:15], 16) % (2**31 - 1) + 1,
            "path": str(folder(store, row["ref"])), "tenant": "acme",
            "ref": row["ref"], "commit": commits[row["ref"]],
            "manifest": commit["manifest"], "base_model": "tiny",
            "rank": 4 if row["ref"] == "other" else 2, "reused": False}


def test_a_folder_holds_the_adapter_and_what_it_is(store):
    export(store, "one")
    there = files(folder(store, "one"))
    mine = files(store.path / "a")
    assert {name: there[name] for name in mine} == mine
    assert sorted(there) == sorted([*mine, "ballast.json"])
    said = note(folder(store, "one"))
    store("checkout", "one", "-o", "copy")
    want = json.loads((store.path / "copy/ballast.json").read_text())
    told = said.pop("export")
    assert said == want
    assert (told["schema"], told["for"], told["adapted"]) == (
        "ballast/export/1", None, False)
    assert {name: row["bytes"] for name, row in told["files"].items()} == {
        name: len(data) for name, data in mine.items()}
    assert str(store.path) not in there["ballast.json"].decode()


def test_digests_are_those_of_another_blake3(store):
    if not shutil.which("b3sum"):
        pytest.skip("no b3sum")
    export(store, "one")
    for name, row in note(folder(store, "one"))["export"]["files"].items():
        done = subprocess.run(["b3sum", folder(store, "one") / name],
                              capture_output=True, check=True, text=True)
        assert row["blake3"] == done.stdout.split()[0]


def test_text_is_that_of_the_contract(store):
    model(store.path / "m")
    store("commit", "m", "-m", "m", "--ref", "weights")
    export(store, "one")
    commit = heads(store)["one"]
    done = store("serve-export", "one", f"{heads(store)['other'][:12]}",
                 "weights", "-o", "out", code=4)
    first, second, third = done.out.splitlines()
    number = int(commit[:15], 16) % (2**31 - 1) + 1
    assert first == "%-12d %-28s %s  (reused)" % (
        number, f"acme-one-{commit[:8]}", folder(store, "one"))
    assert second.split()[1:] == [f"acme-{heads(store)['other'][:12]}",
                                  str(folder(store, "other"))]
    assert third == "%-12s %-28s %s" % (
        "-", "weights", "skipped: 'weights' is a whole model: only adapters "
        "are served")


def test_a_view_of_adapters_is_what_checkout_writes(store):
    store("merge", "one@0.5", "other@0.5", "-m", "v", "--ref", "v")
    row = export(store, "v").json["exported"][0]
    store("checkout", "v", "-o", "copy")
    there, want = files(folder(store, "v")), files(store.path / "copy")
    assert load(folder(store, "v")) == load(store.path / "copy")
    assert there["adapter_config.json"] == want["adapter_config.json"]
    assert row["rank"] == json.loads(there["adapter_config.json"])["r"] == 6


def test_the_manifest_is_a_sorted_array_and_its_folders_are_made(store):
    done = export(store, "--manifest", "x/y/m.json").json
    text = (store.path / "x/y/m.json").read_text()
    keys = ["base_model", "commit", "int_id", "manifest", "name", "path",
            "rank", "tenant"]
    want = [{key: row[key] for key in keys} for row in done["exported"]]
    assert text == json.dumps(want, indent=2, sort_keys=True) + "\n"


def test_equal_files_have_one_inode(store):
    export(store)
    name = "adapter_model.safetensors"
    one, same, other = (
        (folder(store, ref) / name).stat() for ref in ("one", "same", "other"))
    assert one.st_ino == same.st_ino and one.st_nlink == 2
    assert other.st_nlink == 1


def test_a_file_that_was_changed_is_no_source_of_links(store):
    export(store, "one")
    path = folder(store, "one") / "adapter_model.safetensors"
    flip(path)
    export(store, "same")
    there = folder(store, "same") / "adapter_model.safetensors"
    assert there.stat().st_ino != path.stat().st_ino
    assert there.read_bytes() == (
        store.path / "a/adapter_model.safetensors").read_bytes()
    assert sorted(files(folder(store, "same"))) == [
        "adapter_config.json", "adapter_model.safetensors", "ballast.json"]


# ---- what is there ----------------------------------------------------------

def flip(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def replaced_by_link(path):
    shutil.copy(path, path.parent.parent / "elsewhere")
    path.unlink()
    path.symlink_to(path.parent.parent / "elsewhere")


NAME = "adapter_model.safetensors"

# What somebody did to a folder, and what the reason names.
DAMAGES = {
    "a byte is flipped": (lambda at: flip(at / NAME), NAME),
    "the end is cut off": (
        lambda at: (at / NAME).write_bytes((at / NAME).read_bytes()[:-1]), NAME),
    "a file is gone": (lambda at: (at / NAME).unlink(), NAME),
    "a config is changed": (
        lambda at: (at / "adapter_config.json").write_text("{}"),
        "adapter_config.json"),
    "a file is there beside": (
        lambda at: (at / "tokenizer.json").write_text("{}"), "tokenizer.json"),
    "a file is a link": (lambda at: replaced_by_link(at / NAME), NAME),
    "a file is a folder": (
        lambda at: ((at / NAME).unlink(), (at / NAME).mkdir()), NAME),
    "there is no ballast.json": (
        lambda at: (at / "ballast.json").unlink(), "ballast.json"),
    "ballast.json is rubbish": (
        lambda at: (at / "ballast.json").write_text("[1"), "ballast.json"),
    "ballast.json is of a checkout": (
        lambda at: (at / "ballast.json").write_text("{}"), "no export"),
    "ballast.json has no digest": (
        lambda at: (at / "ballast.json").write_text(
            (at / "ballast.json").read_text().replace('"blake3"', '"x"')),
        "no digest"),
}


@pytest.mark.parametrize("damage, name", DAMAGES.values(), ids=DAMAGES)
def test_what_was_changed_is_named_and_left_alone(store, damage, name):
    export(store, "one")
    at = folder(store, "one")
    damage(at)
    before = files(at)
    done = export(store, "one", code=4).json
    assert done["exported"] == [] and name in done["skipped"]["one"]
    done = export(store, "one", "--prune", code=4).json
    assert done["pruned"] == [] and files(at) == before
    store("reset", "one", "other")
    done = store("--json", "serve-export", "other", "-o", "out", "--prune")
    assert done.json["pruned"] == [] and files(at) == before


def test_a_folder_that_is_right_is_not_written_again(store):
    export(store, "one")
    path = folder(store, "one") / NAME
    before = path.stat()
    assert export(store, "one").json["exported"][0]["reused"] is True
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino,
                                                   after.st_mtime_ns)


def llama(path, heads):
    """A base whose q_proj is of so many heads."""
    save(path / "model.safetensors", {
        f"model.layers.0.self_attn.{name}_proj.weight":
            ("F32", (8, 8), bytes(256)) for name in "qkv"})
    (path / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "num_attention_heads": heads,
        "num_key_value_heads": heads}))
    return path


@pytest.mark.parametrize("more", [[], ["--adapt"]])
def test_a_gguf_file_is_of_one_base(store, more):
    path = store.path / "q"
    name = "base_model.model.model.layers.0.self_attn.{}_proj.lora_{}.weight"
    save(path / NAME, {
        name.format(q, x): ("F32", (2, 8) if x == "A" else (8, 2),
                            struct.pack("<16f", *range(16)))
        for q in "qv" for x in "AB"})
    (path / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "r": 2, "lora_alpha": 4, "task_type": "CAUSAL_LM",
        "target_modules": ".*_proj", "alpha_pattern": {"v_proj": 3}}))
    store("commit", path, "-m", "q", "--ref", "q")
    words = ["q", "--for", "llama.cpp", *more, "--base"]
    one, other = llama(store.path / "two", 2), llama(store.path / "four", 4)
    export(store, *words, one)
    before = files(folder(store, "q"))
    assert export(store, *words, one).json["exported"][0]["reused"]
    done = export(store, *words, other, code=4).json
    assert "another base" in done["skipped"]["q"]
    assert files(folder(store, "q")) == before
    assert sorted(os.listdir(store.path / "out" / store.tenant)) == [
        heads(store)["q"]]


@pytest.mark.parametrize("first, second, words", [
    ([], ["--for", "peft"], "no engine"),
    (["--for", "peft"], [], "for peft"),
    (["--for", "peft"], ["--for", "vllm"], "for peft"),
    (["--for", "peft", "--adapt"], ["--for", "peft"], "adapted"),
])
def test_another_form_is_a_conflict(store, first, second, words):
    export(store, "one", *first)
    before = files(folder(store, "one"))
    done = export(store, "one", *second, code=4).json
    assert words in done["skipped"]["one"]
    assert files(folder(store, "one")) == before
    assert export(store, "one", *first).json["exported"][0]["reused"]


@pytest.mark.parametrize("where", ["tenant", "commit", "file"])
def test_a_link_in_the_way_is_refused(store, where):
    elsewhere = store.path / "elsewhere"
    elsewhere.mkdir()
    at = folder(store, "one")
    path = at.parent if where == "tenant" else at
    path.parent.mkdir(parents=True)
    if where == "file":
        path.write_text("mine")
    else:
        path.symlink_to(elsewhere)
    done = export(store, "one", code=4).json
    assert "is no folder" in done["skipped"]["one"]
    assert list(elsewhere.iterdir()) == []


def test_what_a_killed_exporter_left_goes(store):
    export(store, "one")
    at = folder(store, "one")
    left = at.parent / f"{at.name}.ballast-0123456789abcdef"
    (left / "new").mkdir(parents=True)
    (left / "new" / NAME).write_text("half")
    export(store, "other")
    assert not left.exists() and at.exists()


def test_a_view_that_lost_an_input_is_skipped_though_its_folder_is_there(store):
    store("merge", "one@0.5", "other@0.5", "-m", "v", "--ref", "v")
    export(store, "v")
    at = folder(store, "v")
    store("forget", "one", "--reason", "asked")
    done = export(store, "v", "--prune", code=4).json
    assert done["skipped"]["v"] and done["pruned"] == [] and at.exists()
    done = store("--json", "serve-export", "-o", "out", "--prune", code=4).json
    assert str(at) in done["pruned"] and not at.exists()


# ---- what is asked for ------------------------------------------------------

@pytest.mark.parametrize("spec, words", [
    ("nothing", "no ref or commit 'nothing'"),
    ("one~7", "one~7"),
    ("beta:one", "no ref or commit 'one' in tenant 'beta'"),
    ("!", "is not a spec"),
])
def test_a_spec_that_is_none_is_skipped_and_the_rest_is_done(store, spec,
                                                             words):
    done = export(store, spec, "acme:one", code=4).json
    assert list(done["skipped"]) == [spec] and words in done["skipped"][spec]
    assert [row["ref"] for row in done["exported"]] == ["one"]


@pytest.mark.parametrize("args, words", [
    (["-o", "store/x"], "inside the store"),
    (["-o", "store"], "inside the store"),
    (["-o", ""], "no folder"),
    (["-o", "out", "--adapt"], "--for"),
    (["-o", "out", "--max-rank", "8"], "--for"),
    (["-o", "out", "--for", "nobody"], "nobody"),
    (["-o", "out", "--for", "llama.cpp"], "--base"),
    (["-o", "out", "--for", "vllm", "--max-rank", "0"], "no rank"),
    ([], "--out"),
])
def test_what_cannot_be_asked_for_is_a_usage_error(store, args, words):
    done = store("--json", "serve-export", *args, code=2)
    assert words in done.error["message"] and done.out == ""
    assert not (store.path / "out").exists()


def test_a_tenant_without_refs_has_nothing_to_export(store):
    store.tenant = "nobody"
    assert export(store).json["exported"] == []


def test_the_copy_is_known_to_a_deletion(store):
    export(store, "one")
    at = folder(store, "one")
    done = store("forget", "one", "--reason", "asked")
    assert f"copy: {at}" in done.out.splitlines()


# ---- pruning ----------------------------------------------------------------

def test_prune_takes_what_no_ref_is_at(store):
    export(store)
    one, other, same = (folder(store, ref) for ref in ("one", "other", "same"))
    (one.parent / ("0" * 64)).mkdir()
    (one.parent / "mine").mkdir()
    store("reset", "one", "other")
    done = export(store, "--prune").json
    assert done["pruned"] == [str(one)] and not one.exists()
    assert other.exists() and same.exists()
    assert (one.parent / "mine").exists()
    assert (one.parent / ("0" * 64)).exists()
    assert (same / NAME).stat().st_nlink == 1


def test_prune_leaves_what_is_of_another_store(store, tmp_path):
    export(store)
    before = files(store.path / "out")
    second = Store(tmp_path / "second")
    second.path.mkdir()
    second("commit", adapter(second.path / "z", 7.0), "-m", "z")
    done = second("--json", "serve-export", "-o", store.path / "out", "--prune")
    assert done.json["pruned"] == []
    assert before.items() <= files(store.path / "out").items()


def test_prune_with_specs_leaves_other_refs_and_what_is_named(store):
    old = heads(store)["one"]
    export(store)
    store("reset", "one", "other")
    done = export(store, "same", old, "--prune").json
    assert done["pruned"] == []
    done = export(store, "same", "--prune").json
    assert [pathlib.Path(path).name for path in done["pruned"]] == [old]
    assert folder(store, "other").exists()


# ---- servers ----------------------------------------------------------------

def loaded(store, commit, unloaded_at=0):
    """Note that http://gpu has loaded a commit, as whoever told it would."""
    subprocess.run([BUILD / "tests/note-loaded", store.root, store.tenant,
                    "http://gpu", "acme-one", commit, str(unloaded_at)],
                   check=True)


def test_what_a_server_has_loaded_is_not_pruned(store):
    export(store)
    one, commit = folder(store, "one"), heads(store)["one"]
    loaded(store, commit)
    store("reset", "one", "other")
    done = store("serve-export", "-o", "out", "--prune")
    assert "pruned" not in done.out and one.exists()
    assert f"{one} stays: 'http://gpu' has it loaded as 'acme-one'" in done.err
    loaded(store, commit, unloaded_at=2)
    assert export(store, "--prune").json["pruned"] == [str(one)]


def test_a_deletion_names_servers_in_its_text_plan_and_proof(store):
    loaded(store, heads(store)["one"])
    plan = store("forget", "one", "--reason", "asked", "--dry-run").out
    assert "server that may keep it: http://gpu: acme-one" in plan.splitlines()
    done = store("forget", "one", "--reason", "asked").out.splitlines()
    assert ("server: http://gpu has loaded 'acme-one', not covered until it is "
            "restarted") in done
    attestation = next(line.split()[1] for line in done
                       if line.startswith("attestation "))
    proof = store("--json", "verify", attestation, code=None).json
    predicate = proof["statement"]["predicate"]
    assert predicate["servers"] == [{
        "server": "http://gpu", "name": "acme-one",
        "loaded_at": "1970-01-01T00:00:00.000000001Z", "unloaded_at": None}]
    assert predicate["not_covered"][-1] == (
        "server 'http://gpu', which has loaded it as 'acme-one', until it is "
        "restarted")
    assert proof["problems"] == []


def test_without_a_store_there_is_nothing_to_export(tmp_path):
    run("--root", tmp_path / "none", "--tenant", "acme", "serve-export", "-o",
        tmp_path / "out", code=3)
    assert not (tmp_path / "out").exists()
