"""The store's operations, against the program's JSON where it has one."""

import gc
import json
import os
import subprocess
import sys
import timeit

import numpy
import pytest

import ballast


def weights(seed=0, n=4):
    rng = numpy.random.default_rng(seed)
    return {f"layers.{i}.w": rng.standard_normal((8, 8), "f4") for i in range(n)}


@pytest.fixture
def history(store):
    """main: one, two, three."""
    tensors = weights()
    commits = []
    for i, text in enumerate(("one", "two", "three")):
        tensors["layers.0.w"] = tensors["layers.0.w"] + i
        commits.append(store.commit("acme", tensors, message=text))
    return commits


def test_a_commit_has_the_members_of_the_program_s_json(store, program):
    commit = store.commit(
        "acme",
        weights(),
        message="a message",
        ref="support",
        metadata={"loss": 0.25, "step": 7},
        author="somebody",
        base_model="some/base",
    )
    shown = json.loads(
        program("--json", "--tenant", "acme", "show", commit.id, root=store.root)
    )
    for name in (
        *("id", "tenant", "manifest", "parent", "kind", "message", "author"),
        *("created_at", "base_model", "metadata", "int_id"),
    ):
        assert getattr(commit, name) == shown[name], name
        assert commit.to_dict()[name] == json.loads(commit.json)[name] == shown[name]
    assert commit.metadata == {"loss": 0.25, "step": 7}
    assert (commit.ref, commit.tensors) == ("support", 4)
    assert commit.bytes == 4 * 8 * 8 * 4
    assert commit.id[:12] in repr(commit)
    assert commit.id[:12] in commit._repr_html_()


def test_the_same_again_makes_no_commit_unless_asked(store):
    one = store.commit("acme", weights(), message="m")
    same = store.commit("acme", weights(), message="m")
    assert same == one and same.nothing_changed and not one.nothing_changed
    other = store.commit("acme", weights(), message="m", allow_empty=True)
    assert other != one and other.parent == one.id and hash(other) != hash(one)


def test_a_parent_that_is_not_the_head_is_a_conflict(store, history):
    with pytest.raises(ballast.Conflict):
        store.commit("acme", weights(9), message="m", parent=history[0])
    made = store.commit("acme", weights(9), message="m", parent=history[2])
    assert made.parent == history[2].id


def test_log_and_show_are_the_program_s(store, history, program):
    lines = program("--json", "--tenant", "acme", "log", root=store.root).splitlines()
    rows = store.log("acme")
    assert [row.message for row in rows] == ["three", "two", "one"]
    for line, row in zip(lines, rows, strict=True):
        want = json.loads(line)
        assert row.to_dict() == {k: v for k, v in want.items() if k != "schema"}
    assert store.log("acme", "main~1", limit=1) == [history[1]]
    shown = store.show("acme", "main")
    out = program("--json", "--tenant", "acme", "show", "main", root=store.root)
    want = json.loads(out)
    assert [row.name for row in shown.tensors] == [t["name"] for t in want["tensors"]]
    assert shown.to_dict()["tensors"] == want["tensors"]
    assert "three" in repr(rows) and "<table" in rows._repr_html_()


def test_refs_reset_and_reflog_go_together(store, history, program):
    assert store.refs("acme") == {"main": history[2].id}
    moved = store.reset("acme", "main", history[0], message="back")
    assert (moved.id, moved.ref) == (history[0].id, "main")
    assert store.resolve("acme", "main@{1}") == history[2].id
    with pytest.raises(ballast.Conflict):
        store.reset("acme", "main", history[1], expect=history[2])
    out = program("--json", "--tenant", "acme", "reflog", "main", root=store.root)
    want = [json.loads(line) for line in out.splitlines()]
    got = [move.to_dict() for move in store.reflog("acme", "main")]
    assert got == [{k: v for k, v in w.items() if k != "schema"} for w in want]


def test_diff_has_the_program_s_numbers_and_text(store, history, program):
    got = store.diff("acme", "main~1", "main")
    args = ("--tenant", "acme", "diff", "main~1", "main")
    want = json.loads(program("--json", *args, root=store.root))
    for name, value in got.to_dict().items():
        if isinstance(value, float):
            assert value == pytest.approx(want[name], rel=1e-12), name
        else:
            assert value == want[name], name
    assert repr(got) == program(*args, root=store.root).rstrip("\n")
    assert "layers.0.w" in got._repr_html_()
    assert len(got.rows) == 4 and got.differs


def test_diff_is_what_numpy_says(store):
    a, b = weights(1), weights(2)
    got = store.diff("acme", a, b)
    one = numpy.concatenate([a[k].ravel() for k in a]).astype("f8")
    two = numpy.concatenate([b[k].ravel() for k in a]).astype("f8")
    norm = numpy.linalg.norm
    assert got.relative_change == pytest.approx(norm(two - one) / norm(one))
    for row in got.rows:
        x, y = a[row.tensor].astype("f8"), b[row.tensor].astype("f8")
        assert row.relative == pytest.approx(norm(y - x) / norm(x))
        assert row.max_abs == pytest.approx(numpy.abs(y - x).max())


@pytest.mark.parametrize("layer", ["layers.0", "layers.1"])
def test_diff_knows_what_probes_told(store, program, tmp_path, layer):
    """The fake runner answers by digests of the tensors that its model names."""
    one, two = weights(1), weights(1)
    two["layers.1.w"] = two["layers.1.w"] * 2
    store.commit("acme", one, message="one", ref="one")
    store.commit("acme", two, message="two", ref="two")
    probes = tmp_path / "probes.txt"
    probes.write_text("what is it?\nand this?\n")
    for ref in ("one", "two"):
        args = ["--tenant", "acme", "fingerprint", ref, "--probes", str(probes)]
        args += ["--runner", "fake", "--model", f"{layer}*"]
        program(*args, root=store.root)
    got = store.diff("acme", "one", "two")
    args = ("--tenant", "acme", "diff", "one", "two")
    want = json.loads(program("--json", *args, root=store.root))
    assert got.probe_set and got.probes_total == 2
    assert got.unobserved == (layer == "layers.0")
    for name, value in got.to_dict().items():
        near = isinstance(value, float)
        assert value == (pytest.approx(want[name]) if near else want[name]), name
    assert store.diff("acme", "one", "two", probe_set=got.probe_set[:8]) == got
    with pytest.raises(ballast.NotFound):
        store.diff("acme", "one", "two", probe_set="0000")


def test_diff_tells_what_is_not_finite_or_there(store):
    a = {"gone": numpy.ones(2, "f4"), "w": numpy.ones(4, "f4")}
    b = {"new": numpy.ones(2, "f4"), "w": numpy.full(4, numpy.nan, "f4")}
    got = store.diff("acme", a, b)
    assert (got.removed, got.added, got.non_finite) == (["gone"], ["new"], ["w"])
    assert json.loads(json.dumps(got.to_dict(), allow_nan=False))["shared"] == 1


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_a_delta_gives_the_model_back_bit_for_bit(store, tmp_path, dtype):
    base = {k: v.astype(dtype) for k, v in weights(1).items()}
    tuned = {k: v.astype(dtype) for k, v in weights(2).items()}
    tuned["layers.3.w"] = base["layers.3.w"]
    store.commit("acme", base, message="base", ref="base")
    store.commit("acme", tuned, message="tuned", ref="tuned")
    made = store.delta("acme", "tuned", base="base", message="d", ref="d")
    assert (made.kind, made.changed, made.unchanged) == ("delta", 3, 1)
    done = store.apply("acme", "d", base="base", out=tmp_path / "out")
    assert done.exact and done.tensors == 4 and done.commit == made.id
    again = store.commit("other", tmp_path / "out", message="m")
    got = store.checkout("other", again)
    for name, want in tuned.items():
        assert got[name].tobytes() == want.tobytes()
    with pytest.raises(ballast.Conflict):
        store.apply("acme", "d", base="base", out=tmp_path / "out")


def test_a_wrong_base_is_corrupt_unless_forced(store, tmp_path):
    store.delta("acme", weights(2), base=weights(1), message="d")
    with pytest.raises(ballast.Corrupt, match="layers"):
        store.apply("acme", "main", base=weights(3), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    out = tmp_path / "out"
    done = store.apply("acme", "main", base=weights(3), out=out, force=True)
    assert not done.exact


def test_apply_rounds_to_a_dtype(store, tmp_path):
    store.delta("acme", weights(2), base=weights(1), message="d")
    out = tmp_path / "out"
    store.apply("acme", "main", base=weights(1), out=out, dtype="f16")
    store.commit("acme", out, message="m", ref="rounded")
    got = store.checkout("acme", "rounded")["layers.1.w"]
    assert numpy.array_equal(got, weights(2)["layers.1.w"].astype("f2"))


def test_a_checkout_is_written_once_and_known_again(store, history, tmp_path):
    out = tmp_path / "out"
    done = store.checkout("acme").write(out)
    assert (done.tensors, done.commit) == (4, history[2].id)
    provenance = json.loads((out / "ballast.json").read_text())
    assert provenance["commit"] == history[2].id
    at = (out / "ballast.json").stat().st_mtime_ns
    assert store.checkout("acme").write(out) == done
    assert (out / "ballast.json").stat().st_mtime_ns == at
    with pytest.raises(ballast.Conflict):
        store.checkout("acme", "main~1").write(out)
    store.checkout("acme", "main~1").write(out, force=True)
    assert json.loads((out / "ballast.json").read_text())["commit"] == history[1].id


def test_a_folder_with_other_bytes_is_not_taken_for_the_commit(store, tmp_path):
    store.commit("acme", weights(), message="m")
    store.checkout("acme").write(tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.safetensors")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ballast.Conflict):
        store.checkout("acme").write(tmp_path / "out")


def test_a_checkout_is_a_mapping_that_reads_when_asked(store):
    want = weights()
    store.commit("acme", want, message="m")
    got = store.checkout("acme")
    assert list(got) == sorted(want) and len(got) == 4
    assert "layers.1.w" in got and "nothing" not in got
    with pytest.raises(KeyError):
        got["nothing"]
    assert got.info("layers.1.w").shape == (8, 8)
    for name, array in got.items():
        assert numpy.array_equal(array, want[name])
    mine = got["layers.1.w"]
    mine[:] = 0
    assert numpy.array_equal(got["layers.1.w"], want["layers.1.w"])
    assert "4 tensors" in repr(got) and "layers.1.w" in got._repr_html_()


def test_large_models_are_read_by_several_threads_and_the_same(store):
    rng = numpy.random.default_rng(5)
    want = {f"w{i}": rng.standard_normal((1024, 700), "f4") for i in range(5)}
    store.commit("acme", want, message="m")
    got = store.checkout("acme").state_dict()
    assert list(got) == list(want)
    assert all(numpy.array_equal(got[k], want[k]) for k in want)


def test_a_merge_is_the_weighted_mean(store):
    a, b = weights(1), weights(2)
    store.commit("acme", a, message="a", ref="a")
    two = store.commit("acme", b, message="b", ref="b")
    view = store.merge(
        tenant="acme",
        method="linear",
        inputs=[("a", 0.25), (two, 0.75)],
        message="blend",
        ref="blend",
    )
    assert (view.kind, view.ref) == ("view", "blend")
    got = store.checkout("acme", "blend")
    for name in a:
        want = 0.25 * a[name].astype("f8") + 0.75 * b[name]
        assert numpy.allclose(got[name], want, rtol=1e-6)


def test_a_merge_s_parameters_are_the_program_s(store, program):
    base = weights(0)
    for seed, name in ((1, "a"), (2, "b")):
        tensors = {k: v + weights(seed)[k] for k, v in base.items()}
        store.delta("acme", tensors, base=base, message=name, ref=name)
    view = store.merge(
        "acme",
        "ties",
        [("a", 0.6, {"density": 0.3}), "b@0.4"],
        density=0.5,
        lambda_=0.9,
        normalize=False,
        message="m",
        ref="py",
    )
    args = ["merge", "a@0.6,density=0.3", "b@0.4", "--method", "ties", "--density"]
    args += ["0.5", "--lambda", "0.9", "--no-normalize", "-m", "m", "--ref", "cli"]
    out = program("--json", "--tenant", "acme", *args, root=store.root)
    assert json.loads(out)["recipe"] == view.recipe
    with pytest.raises(ballast.Usage, match="densty"):
        store.merge("acme", "ties", ["a", "b"], densty=0.5, message="m")
    with pytest.raises(ballast.Usage):
        store.merge("acme", "no_such_method", ["a", "b"], message="m")


def test_gradients_and_filters_are_values(store):
    for seed, name in ((1, "a"), (2, "b")):
        store.commit("acme", weights(seed), message=name, ref=name)
    t = {"layers.0": [0, 0.5], "": 1.0}
    view = store.merge("acme", "slerp", ["a", "b"], t=t, message="m", ref="s")
    assert view.kind == "view"
    got = store.checkout("acme", "s")["layers.3.w"]
    assert numpy.allclose(got, weights(2)["layers.3.w"])


def test_grants_let_another_tenant_merge_until_revoked(store):
    mine = store.commit("acme", weights(1), message="m")
    store.commit("other", weights(2), message="m", ref="own")
    inputs = ["own", (mine, 0.5)]
    with pytest.raises((PermissionError, LookupError)):
        store.merge("other", "linear", inputs, message="m", ref="v")
    grant = store.grant("acme", mine, "other")
    assert grant.live and (grant.owner, grant.commit) == ("acme", mine.id)
    view = store.merge("other", "linear", inputs, message="m", ref="v")
    assert store.grants("other") == [grant] == store.grants("acme")
    revoked = store.revoke("acme", mine, "other")
    assert (revoked.revoked, revoked.broken) == (1, [f"other:{view.id}"])
    assert not store.grants("acme")[0].live
    with pytest.raises(ballast.Error):
        store.checkout("other", "v")["layers.0.w"]
    with pytest.raises(ballast.NotFound):
        store.revoke("acme", None, "other", all=True)


def test_forgetting_is_proved_and_can_be_verified(store, history, program, tmp_path):
    key = tmp_path / "key.pem"
    program("key", "generate", "-o", str(key), root=store.root)
    plan = store.forget("acme", history[1], reason="asked", dry_run=True)
    assert plan.dry_run and not plan and len(store.log("acme")) == 3
    proof = store.forget("acme", history[1], reason="asked", key=key)
    assert proof and proof.signed and proof.commits == 1 and proof.problems == []
    with pytest.raises(LookupError):
        store.show("acme", history[1])
    again = store.verify(proof)
    assert again.verified and again.attestation == proof.attestation
    out = program("--json", "verify", proof.attestation, root=store.root)
    want = {k: v for k, v in json.loads(out).items() if k != "schema"}
    assert again.to_dict() == want
    bundle = tmp_path / "proof.json"
    args = ("proofs", "export", proof.attestation, "-o", str(bundle))
    program(*args, root=store.root)
    assert store.verify(bundle, key=key, offline=True).verified
    text = bundle.read_text()
    assert "verified" in repr(proof)
    other = tmp_path / "other.pem"
    program("key", "generate", "-o", str(other), root=store.root)
    bad = store.verify(bundle, key=other, offline=True)
    assert not bad and bad.problems and text
    with pytest.raises(ballast.NotFound):
        store.verify("0" * 64)


def test_upkeep_says_what_the_program_says(store, history, program):
    out = program("--json", "--tenant", "acme", "stats", root=store.root)
    want = json.loads(out)
    for name, value in store.stats("acme").to_dict().items():
        assert value == want[name], name
    checked = store.fsck("acme")
    out = program("--json", "--tenant", "acme", "fsck", root=store.root)
    want = json.loads(out)
    assert checked and checked.to_dict() == {
        k: v for k, v in want.items() if k != "schema"
    }
    assert store.gc().bytes_freed == 0
    assert store.tenants() == ["acme"]
    assert store.config()["compression"] == store.config("compression") == "auto"
    store.config("compression", "best")
    assert store.config("compression") == "best"
    with pytest.raises(ballast.Usage):
        store.config("block_size", "1M")


def test_fsck_finds_a_damaged_block(store):
    rng = numpy.random.default_rng(3)
    store.commit("acme", {"w": rng.standard_normal(50000, "f4")}, message="m")
    blocks = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(os.path.join(store.root, "blocks"))
        for name in names
        if os.path.getsize(os.path.join(folder, name)) > 50000
    ]
    with open(blocks[0], "r+b") as stream:
        stream.seek(1000)
        stream.write(b"damaged!")
    found = store.fsck()
    assert not found and found.problems and not found.expected
    assert str(found.problems[0]).startswith(found.problems[0].kind)


def test_a_tenant_that_is_not_named_is_the_store_s(tmp_path):
    with ballast.Store(tmp_path / "s", tenant="acme") as store:
        store.commit(None, weights(), message="m")
    with ballast.Store(tmp_path / "s") as store:
        assert store.refs(None) == store.refs("acme") != {}


def test_a_closed_store_refuses_and_closing_again_is_nothing(tmp_path):
    store = ballast.Store(tmp_path / "s")
    commit = store.commit("acme", weights(), message="m")
    checkout = store.checkout("acme")
    store.close()
    store.close()
    assert store.closed and "closed" in repr(store)
    for call in (
        lambda: store.refs("acme"),
        lambda: store.commit("acme", weights(1), message="m"),
        lambda: store.stats(),
        lambda: store.pointer,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert commit.message == "m"
    assert checkout["layers.0.w"].shape == (8, 8), "it keeps the store"
    checkout.close()
    checkout.close()
    with pytest.raises(ValueError, match="closed"):
        checkout["layers.0.w"]


def test_a_checkout_outlives_every_name_of_its_store(tmp_path):
    store = ballast.Store(tmp_path / "s")
    store.commit("acme", weights(), message="m")
    checkout = store.checkout("acme")
    del store
    gc.collect()
    assert numpy.array_equal(checkout["layers.2.w"], weights()["layers.2.w"])


def test_a_trivial_call_takes_no_time(store):
    best = min(timeit.repeat(lambda: store.root, number=10000, repeat=5)) / 10000
    assert best < 5e-6


def test_the_package_runs_the_program(program, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ballast", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"ballast {ballast.version()}"


def test_push_and_pull_send_what_is_missing(store, history, tmp_path, program):
    done = store.push("acme", tmp_path / "other", "main")
    assert done.commits == len(store.log("acme")) and done.blocks > 0
    assert [row["ref"] for row in done.refs] == ["main"]
    with ballast.Store(tmp_path / "other", create=False) as other:
        assert [row.id for row in other.log("acme")] == [
            row.id for row in store.log("acme")
        ]
        assert other.config("block_size") == store.config("block_size")
        assert other.fsck() and other.reflog("acme")[0].op == "push"
        again = other.pull("acme", store, store.show("acme"), "main")
        assert again.to_dict() == {
            **dict.fromkeys(
                ("commits", "blocks", "reused_blocks", "bytes", "stored_bytes"), 0
            ),
            "refs": [],
        }
    out = program(
        "--json",
        "--tenant",
        "acme",
        "push",
        tmp_path / "other",
        "main",
        root=store.root,
    )
    assert {k: v for k, v in json.loads(out).items() if k != "schema"} == (
        again.to_dict()
    )


def test_a_push_that_is_refused_raises_what_fits(store, history, tmp_path):
    with pytest.raises(ballast.NotFound):
        store.pull("acme", tmp_path / "none", "main")
    with pytest.raises(ballast.Usage):
        store.push("acme", store, "main")
    with pytest.raises(ballast.Usage):
        store.push("acme", tmp_path / "other")
    with pytest.raises(ballast.NotFound):
        store.push("acme", tmp_path / "other", "nothing")
    store.push("acme", tmp_path / "other", "main")
    store.reset("acme", "main", "main~1")
    with pytest.raises(ballast.Conflict):
        store.push("acme", tmp_path / "other", "main")
    done = store.push("acme", tmp_path / "other", "main", force=True)
    assert done.refs[0]["new"] == store.resolve("acme", "main")


def test_a_store_that_is_copied_is_at_the_new_place(store, tmp_path):
    want = weights()
    made = store.commit("acme", want, message="m")
    with pytest.raises(ballast.Usage):
        store.copy()
    told = store.copy(backend="file:elsewhere", metadata="sqlite:other.db")
    assert told.blocks and told.bytes and told.rows and not told.present
    assert store.closed
    with ballast.Store(store.root) as moved:
        assert moved.config("backend") == "file:elsewhere"
        assert [commit.id for commit in moved.log("acme")] == [made.id]
        got = moved.checkout("acme")
        assert all(numpy.array_equal(got[name], want[name]) for name in want)
