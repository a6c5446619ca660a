"""Deletion: what goes, what stays, what is said of it, and that it is gone.

The oracle for "gone" is a search through every byte of the store's folder for
what was planted there and for the bytes that the blocks had at rest."""

import json
import os
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from support import (BALLAST, Store, environment, f32, files, in_files, model,
                     run, save)

REASON = "request 4711"


@pytest.fixture(name="store")
def made_store(tmp_path):
    """Three commits on main: c0 <- c1 <- c2."""
    store = Store(tmp_path)
    for number in range(3):
        model(tmp_path / f"m{number}", (number, 2, 3, 4.5))
        store("commit", f"./m{number}", "-m", f"c{number}")
    return store


@pytest.fixture(name="key", scope="module")
def made_key(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out",
                    path], check=True)
    path.chmod(0o600)
    return path


def ids(store, ref="main"):
    """The commits of a ref, the newest first."""
    return [line["id"] for line in store("--json", "log", ref).lines]


def forget(store, *args, **more):
    return store("--json", "forget", *args, "--reason", REASON, **more)


def predicate(result):
    return result.json["statement"]["predicate"]


def blocks_at_rest(store):
    """{block id: its bytes}."""
    return {file.name: file.read_bytes()
            for file in (store.root / "blocks").rglob("*")
            if file.is_file() and len(file.name) == 64}


# ---- what is said -----------------------------------------------------------

@in_files
def test_text_is_that_of_the_contract(store):
    size = len(blocks_at_rest(store))
    one, two, *_, three = store("forget", "main~1", "--reason",
                                REASON).out.splitlines()
    assert one.startswith("tenant 'acme': 1 commits, 1 manifests, 1 blocks, ")
    assert one.endswith(" bytes")
    word, attestation, state = two.split()
    assert (word, state) == ("attestation", "(unsigned)")
    assert len(attestation) == 64 and three == "verified"
    assert len(blocks_at_rest(store)) == size - 1


def test_a_broken_view_is_named(store):
    store("delta", "./m1", "--base", "./m0", "-m", "d", "--ref", "d")
    store("merge", "d@0.5", "-m", "blend", "--ref", "blend")
    view = ids(store, "blend")[0]
    out = store("forget", "d", "--reason", REASON).out
    assert ("1 composite(s) now reference a deleted input and will refuse to "
            f"resolve: acme:{view[:12]}") in out.splitlines()
    error = store("--json", "checkout", "blend", "-o", "out", code=9).error
    assert error["code"] == "unsupported"


def test_json_is_that_of_the_contract(store):
    got = forget(store, "main~1").json
    assert list(got) == [
        "schema", "attestation", "signed", "key_id", "statement", "envelope",
        "log_index", "commits", "manifests", "blocks", "bytes_freed",
        "retained", "broken_views", "revoked_grants", "verified", "problems"]
    assert got["schema"] == "ballast/forget/1"
    assert (got["commits"], got["manifests"], got["blocks"]) == (1, 1, 1)
    assert got["verified"] is True and got["problems"] == []
    assert got["signed"] is False and got["key_id"] is None


def test_a_mistyped_tenant_is_not_found_and_leaves_no_proof(store):
    run("--root", store.root, "--tenant", "acne", "forget", "--reason", "x",
        code=3)
    store("forget", "nothing", "--reason", "x", code=3)
    assert store("proofs", "--all").out == ""


@pytest.mark.parametrize("args", [(), ("--reason", ""), ("--reason",)])
def test_a_reason_must_be_given(store, args):
    store("forget", "main", *args, code=2)
    assert len(ids(store)) == 3


def test_a_tenant_that_was_forgotten_has_nothing_to_forget(store):
    forget(store)
    forget(store, code=3)
    assert len(store("proofs").out.splitlines()) == 1


# ---- what goes and what stays -----------------------------------------------

def test_a_child_goes_on_from_the_parent_and_keeps_its_id(store):
    before = ids(store)
    got = forget(store, "main~1")
    assert ids(store) == [before[0], before[2]]
    assert predicate(got)["commits"] == [before[1]]
    assert store("--json", "show", "main").json["parent"] == before[2]
    store("fsck")


def test_a_ref_on_it_moves_to_the_parent(store):
    before = ids(store)
    got = forget(store, "main")
    assert ids(store) == before[1:]
    assert predicate(got)["refs"] == [
        {"name": "main", "from": before[0], "to": before[1]}]
    move = store("--json", "reflog", "main").lines[0]
    assert (move["op"], move["old"], move["new"]) == (
        "forget", before[0], before[1])
    store("fsck")


def test_a_ref_without_a_parent_to_go_to_is_deleted_name_and_all(store):
    store("commit", "./m0", "-m", "alone", "--ref", "Zz-secret-ref")
    got = forget(store, "Zz-secret-ref")
    assert predicate(got)["refs"][0]["to"] is None
    store("log", "Zz-secret-ref", code=3)
    assert "Zz-secret-ref" not in store("reflog").out
    for name, content in files(store.root).items():
        assert b"Zz-secret-ref" not in content, name
    store("fsck")


def test_what_another_commit_has_stays_and_is_named(store):
    store("commit", "./m2", "-m", "again", "--ref", "other")
    before = blocks_at_rest(store)
    other = ids(store, "other")[0]
    got = forget(store, "main").json
    assert (got["commits"], got["manifests"], got["blocks"]) == (1, 0, 0)
    assert got["bytes_freed"] == 0
    (kept,) = got["retained"]
    assert kept["why"] == f"commit {other[:12]} has it too"
    assert blocks_at_rest(store) == before
    store("checkout", "other", "-o", "out")


@in_files
def test_a_block_that_another_manifest_uses_stays_and_is_named(store):
    got = forget(store, "main~1").json
    (kept,) = got["retained"]
    assert kept["why"].startswith("manifest ")
    assert kept["id"] in blocks_at_rest(store)
    for ref in ("main", "main~1"):
        store("checkout", ref, "-o", f"out{ref[-1]}")


def test_a_tenant_goes_whole_and_another_stays(store):
    other = Store(store.path, tenant="other")
    other("commit", "./m0", "-m", "theirs")
    got = forget(store).json
    assert (got["commits"], got["manifests"]) == (3, 3)
    assert not (store.root / "blocks" / "acme").exists()
    assert store("tenants").out.split() == ["other"]
    other("checkout", "main", "-o", "out")
    other("fsck", "--all")


def test_a_full_id_goes_before_a_ref_that_looks_like_a_prefix(store):
    head, below = ids(store)[:2]
    store("reset", head[:8], below)
    got = forget(store, head)
    assert predicate(got)["commits"] == [head]


@in_files
def test_block_files_without_a_row_go_too_and_are_listed(store):
    """As a lost database, or a program of another kind, leaves them."""
    name = "ab" * 32
    there = store.root / "blocks" / "acme" / "a" / name
    there.parent.mkdir(exist_ok=True)
    there.write_bytes(b"left over")
    got = forget(store, "main")
    assert name in predicate(got)["blocks"]
    assert not there.exists()


def test_grants_go_and_are_named(store):
    store("grant", "main", "--to", "partner")
    partner = Store(store.path, tenant="partner")
    partner("merge", "acme:main", "-m", "theirs", "--ref", "view")
    view = ids(partner, "view")[0]
    got = forget(store, "main")
    assert got.json["revoked_grants"] == 1
    assert got.json["broken_views"] == [f"partner:{view}"]
    (grant,) = predicate(got)["grants_revoked"]
    assert (grant["owner"], grant["grantee"]) == ("acme", "partner")
    partner("checkout", "view", "-o", "out", code=9)
    store("fsck", "--all")


def test_views_of_others_are_counted_and_not_named(store):
    """partner has a grant, third has one on partner's view alone."""
    store("grant", "main", "--to", "partner")
    partner = Store(store.path, tenant="partner")
    partner("merge", "acme:main", "-m", "theirs", "--ref", "view")
    partner("grant", "view", "--to", "third")
    third = Store(store.path, tenant="third")
    third("merge", "partner:view", "-m", "far", "--ref", "far")
    got = forget(store, "main")
    assert "third" not in got.out
    assert predicate(got)["broken_elsewhere"] == 1
    assert len(got.json["broken_views"]) == 1
    third("checkout", "far", "-o", "out", code=9)


def test_grants_received_go_with_a_tenant(store):
    partner = Store(store.path, tenant="partner")
    partner("commit", "./m0", "-m", "p")
    partner("grant", "main", "--to", "acme")
    got = forget(store)
    assert [grant["owner"] for grant in predicate(got)["grants_received"]] == [
        "partner"]
    assert partner("--json", "grants").json["grants"] == []


def test_copies_that_were_written_out_are_named(store):
    store("checkout", "main", "-o", "here")
    store("checkout", "main", "-o", "moved")
    shutil.move(store.path / "moved", store.path / "elsewhere")
    exports = predicate(forget(store, "main"))["exports"]
    assert {(e["path"].rsplit("/", 1)[1], e["there"]) for e in exports} == {
        ("here", True), ("moved", False)}


def test_grants_and_copies_leave_no_row(store):
    store("grant", "main", "--to", "once")
    store("revoke", "main", "--to", "once")
    store("checkout", "main", "-o", "here")
    got = forget(store, "main")
    assert predicate(got)["grants_revoked"] == []
    db = sqlite3.connect(store.root / "graph.db")
    for table in ("grants", "exports", "journal"):
        assert db.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    db.close()


# ---- the dry run ------------------------------------------------------------

def content(store):
    """The store's bytes, less what SQLite keeps for its own readers."""
    return {name: data for name, data in files(store.root).items()
            if data and not name.endswith("-shm")}


def rows(store):
    db = sqlite3.connect(store.root / "graph.db")
    dump = list(db.iterdump())
    db.close()
    return dump


@pytest.mark.parametrize("spec", [(), ("main~1",)])
def test_a_dry_run_changes_nothing_and_says_what_would_go(store, spec):
    facts = rows(store)
    before = content(store)
    plan = forget(store, *spec, "--dry-run").json["plan"]
    text = store("forget", *spec, "--reason", REASON, "--dry-run").out
    assert content(store) == before
    assert text.endswith("dry run: nothing was removed\n")
    for name in plan["commits"] + plan["manifests"] + plan["blocks"]:
        assert name in text
    assert rows(store) == facts
    done = predicate(forget(store, *spec))
    for member in ("commits", "manifests", "blocks", "refs", "retained",
                   "scope", "tenant", "bytes_freed"):
        assert done[member] == plan[member], member


# ---- gone -------------------------------------------------------------------

MARKS = {"message": b"Q-message-mark", "author": b"Q-author-mark",
         "metadata": b"Q-metadata-mark", "base": b"Q-base-mark",
         "tensor": b"Q-tensor-mark", "ref": b"Q-ref-mark",
         "file": b"Q-file-mark"}


def plant(store, name, seed):
    """A commit with marks everywhere, random weights and smooth ones."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal(20000).astype("<f4").tobytes()
    smooth = np.repeat(rng.standard_normal(50).astype("<f4"), 400).tobytes()
    folder = store.path / name
    mark = {key: value.decode() for key, value in MARKS.items()}
    save(folder / "model.safetensors", {
        f"{mark['tensor']}.a": ("F32", (20000,), noise),
        f"{mark['tensor']}.b": ("F32", (20000,), smooth)})
    (folder / "config.json").write_text(json.dumps({"x": mark["file"]}))
    store("commit", folder, "-m", mark["message"], "--author", mark["author"],
          "--metadata", json.dumps({"k": mark["metadata"]}), "--base-model",
          mark["base"], "--ref", mark["ref"])
    return noise, smooth


def leftovers(store, raw, marks=MARKS):
    """Which files still have one of the byte runs."""
    return {(file, what) for file, data in files(store.root).items()
            for what, run_ in [*marks.items(), *raw] if run_ in data}


def runs_of(data, step=997, length=24):
    return [(f"bytes at {at}", data[at:at + length])
            for at in range(0, len(data) - length, step)]


@in_files
@pytest.mark.parametrize("tenant", [False, True], ids=["commit", "tenant"])
def test_no_byte_of_it_is_left_in_the_store(tmp_path, tenant):
    store = Store(tmp_path)
    keeper = Store(tmp_path, tenant="keeper")
    model(tmp_path / "kept", (9, 8, 7))
    keeper("commit", "./kept", "-m", "stays")
    if not tenant:
        store("commit", "./kept", "-m", "stays too")
    others = {name: data for name, data in blocks_at_rest(store).items()}
    noise, smooth = plant(store, "secret", 7)
    # Enough rows around it that pages of the database split and are reused.
    for number in range(30):
        keeper("commit", "./kept", "-m", f"m{number}" * 20, "--allow-empty")
    raw = runs_of(noise) + runs_of(smooth[:1600], 400)
    for name, data in blocks_at_rest(store).items():
        if name not in others:
            raw += runs_of(data[64:])
    assert leftovers(store, raw)
    store("checkout", MARKS["ref"].decode(), "-o", "out")
    store("--json", "forget", *([] if tenant else [MARKS["ref"].decode()]),
          "--reason", "because")
    assert not leftovers(store, raw)
    keeper("fsck", "--all")
    keeper("checkout", "main", "-o", "still")


def test_cached_views_of_it_go(store):
    store("delta", "./m1", "--base", "./m0", "-m", "d", "--ref", "d")
    store("merge", "d@0.5", "-m", "blend", "--ref", "blend")
    store("checkout", "blend", "-o", "out")
    cached = [file for file in (store.root / "cache").rglob("*")
              if file.is_file() and file.stat().st_size > 64]
    got = forget(store, "d")
    assert len(predicate(got)["cache"]) == 1
    assert not any(file.exists() for file in cached if "acme" in str(file))


# ---- again ------------------------------------------------------------------

def test_what_is_committed_again_is_told_and_the_proof_holds(store):
    attestation = forget(store, "main").json["attestation"]
    store("commit", "./m2", "-m", "back")
    out = store("verify", attestation).out
    assert " is present again since " in out
    assert out.endswith("verified\n")
    got = store("--json", "verify", attestation).json
    assert got["verified"] is True
    assert any("manifest" in note for note in got["notes"])


def test_a_second_deletion_of_the_same_has_its_own_proof(store):
    first = forget(store, "main").json["attestation"]
    store("commit", "./m2", "-m", "back")
    second = forget(store, "main").json["attestation"]
    assert first != second
    for attestation in (first, second):
        assert store("verify", attestation).out.endswith("verified\n")


# ---- cut short --------------------------------------------------------------

def obstruct(store, data):
    """Put a folder in the place of a block: it cannot be unlinked."""
    for path in (store.root / "blocks").rglob("*"):
        if path.is_file() and path.name in data:
            path.unlink()
            path.mkdir()
            (path / "x").touch()
            return path
    raise AssertionError("no such block")


def begin(store, *args):
    """A deletion that fails between its first and its last step."""
    plan = forget(store, "main", "--dry-run", *args).json["plan"]
    path = obstruct(store, plan["blocks"])
    error = store("--json", "forget", "main", "--reason", REASON, *args,
                  code=None)
    assert error.code == 7, error
    assert "next command" in error.error["hint"]
    return path


@in_files
def test_what_was_cut_short_can_be_read_no_more_and_is_finished(store):
    head = ids(store)[0]
    path = begin(store)
    assert store("log").out.count("\n") == 2
    store("show", head, code=3)
    assert store("proofs").out.startswith("pending") or not path.exists()
    shutil.rmtree(path)
    listed = store("--json", "proofs").json
    assert listed["pending"] == [] and len(listed["proofs"]) == 1
    store("verify", listed["proofs"][0]["attestation"])
    store("fsck")


@in_files
def test_a_writer_does_not_go_on_before_it_is_finished(store):
    path = begin(store)
    store("commit", "./m2", "-m", "back", code=7)
    shutil.rmtree(path)
    store("commit", "./m2", "-m", "back")
    store("checkout", "main", "-o", "out")
    store("fsck")


@in_files
def test_the_key_is_found_again_where_it_was(store, key):
    path = begin(store, "--key", key)
    shutil.rmtree(path)
    store("refs")
    (proof,) = store("--json", "proofs").json["proofs"]
    assert proof["signed"] is True
    assert str(key).encode() not in b"".join(files(store.root).values())


@in_files
def test_without_its_key_it_waits_and_all_else_goes_on(store, key, tmp_path):
    mine = tmp_path / "mine.pem"
    shutil.copy(key, mine)
    mine.chmod(0o600)
    path = begin(store, "--key", mine)
    shutil.rmtree(path)
    mine.rename(tmp_path / "away.pem")
    warned = store("refs")
    assert "a deletion waits for its signature" in warned.err
    store("commit", "./m2", "-m", "back")
    store("checkout", "main", "-o", "out")
    assert "pending" in store("proofs").out
    assert store("--json", "proofs").json["pending"][0]["reason"] == REASON
    listed = store("--json", "proofs", "--key", tmp_path / "away.pem").json
    assert listed["pending"] == []
    (proof,) = listed["proofs"]
    out = store("verify", proof["attestation"]).out
    assert " is present again since " in out and out.endswith("verified\n")
    store("fsck")


def test_a_reader_of_the_database_is_waited_for_and_told_of(store):
    db = sqlite3.connect(store.root / "graph.db", isolation_level=None)
    db.execute("BEGIN")
    db.execute("SELECT COUNT(*) FROM commits").fetchall()
    got = store("--json", "forget", "main", "--reason", REASON, "--wait",
                "0.2", code=8)
    assert "next command" in got.error["hint"]
    assert len(ids(store)) == 2
    db.execute("COMMIT")
    db.close()
    store("refs")
    assert len(store("--json", "proofs").json["proofs"]) == 1
    store("fsck")


def test_many_at_once_end_as_if_one_after_the_other(store):
    for number in range(4):
        store("commit", f"./m{number % 3}", "-m", f"own {number}", "--ref",
              f"r{number}", "--allow-empty")
    jobs = [("forget", f"r{n}", "--reason", "x") for n in range(4)]
    jobs += [("commit", f"./m{n % 3}", "-m", f"new {n}", "--ref", f"n{n}")
             for n in range(4)]
    jobs += [("gc",), ("fsck",), ("log",)]
    started = [subprocess.Popen(
        [BALLAST, "--root", store.root, "--tenant", "acme", *job],
        cwd=store.path, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE) for job in jobs]
    for job, process in zip(jobs, started):
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, (job, out, err)
    proofs = store("--json", "proofs").json["proofs"]
    assert sorted(p["log_index"] for p in proofs) == [0, 1, 2, 3]
    for proof in proofs:
        assert store("verify", proof["attestation"]).out.endswith("verified\n")
    store("fsck")
    for number in range(4):
        store("checkout", f"n{number}", "-o", f"out{number}")


@pytest.mark.parametrize("answer,gone", [(b"n\n", False), (b"\n", False),
                                         (b"y\n", True)])
def test_on_a_terminal_a_tenant_goes_only_if_somebody_says_so(store, answer,
                                                              gone):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [BALLAST, "--root", store.root, "--tenant", "acme", "forget",
         "--reason", REASON], env=environment(), stdin=theirs,
        stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    assert b"forget all of tenant 'acme'? [y/N]" in os.read(ours, 200)
    os.write(ours, answer)
    process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode == 0) == gone
    assert (store("--json", "tenants").json["tenants"] == []) == gone


@in_files
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_what_is_removed_and_still_listed_is_not_signed(store):
    """A file system that says it has unlinked, and has not."""
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlinkat",
         "-e", "inject=unlinkat:retval=0", BALLAST, "--root", store.root,
         "--tenant", "acme", "forget", "main", "--reason", REASON],
        capture_output=True, check=False, env=environment())
    if b"ptrace" in done.stderr.lower():
        pytest.skip("strace may not trace here")
    assert done.returncode == 7, done
    assert b"was removed and is still listed" in done.stderr
    assert b"attestation" not in done.stdout
    (proof,) = store("--json", "proofs").json["proofs"]
    store("verify", proof["attestation"])


@in_files
@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_killed_at_any_write_it_is_finished_or_never_began(tmp_path, key):
    """At each write that forget makes, in turn."""
    first = Store(tmp_path / "first")
    first.path.mkdir()
    for number in range(2):
        model(first.path / f"m{number}", (number, 2, 3, 4.5))
        first("commit", f"./m{number}", "-m", f"Q-mark-{number}")
    calls = "fsync,fdatasync,unlink,unlinkat,rename,pwrite64,ftruncate"
    began = 0
    for when in range(1, 400, 3):
        path = tmp_path / f"s{when}"
        shutil.copytree(first.path, path)
        store = Store(path)
        done = subprocess.run(
            ["strace", "-f", "-qq", "-o", "/dev/null", "-e",
             f"trace={calls}", "-e",
             f"inject={calls}:signal=SIGKILL:when={when}", BALLAST, "--root",
             store.root, "--tenant", "acme", "forget", "main", "--reason",
             REASON, "--key", key], capture_output=True, check=False,
            env=environment())
        if b"ptrace" in done.stderr.lower():
            pytest.skip("strace may not trace here")
        history = store("log").out
        proofs = store("--json", "proofs").json
        assert proofs["pending"] == []
        assert len(proofs["proofs"]) == 2 - history.count("\n")
        for proof in proofs["proofs"]:
            began += 1
            store("verify", proof["attestation"])
            assert not leftovers(store, [], {"mark": b"Q-mark-1"})
        store("fsck", "--all")
        shutil.rmtree(path)
        if done.returncode == 0:
            break
    assert began > 1 and done.returncode == 0
