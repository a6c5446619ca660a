"""Whom a proof is believed for: keys that count, a log that only grows, and
content that came again."""

import base64
import json
import sqlite3

import pytest
from support import Store, in_files, model, run


@pytest.fixture(name="store")
def _store(tmp_path):
    store = Store(tmp_path)
    for i in range(4):
        model(tmp_path / f"m{i}", (i, 2, 3))
        store("commit", f"./m{i}", "-m", f"c{i}", "--ref", f"r{i}")
    run("key", "generate", "-o", tmp_path / "k.pem")
    run("key", "generate", "-o", tmp_path / "other.pem")
    return store


def forget(store, spec, *more, key="k.pem", **kwargs):
    return store("--json", "forget", spec, "--reason", "r", "--key", key,
                 *more, **kwargs).json


def change(store, sql):
    with sqlite3.connect(store.root / "graph.db") as db:
        db.execute(sql)
    db.close()


def test_the_same_view_recorded_again_does_not_make_its_proof_fail(store):
    merge = ["merge", "r0", "r1", "-m", "v", "--ref", "v"]
    store(*merge)
    store("checkout", "v", "-o", "one")
    proof = forget(store, "v")
    store(*merge)
    store("checkout", "v", "-o", "two")
    done = store("verify", proof["attestation"])
    assert "is present again since" in done.out and "PROBLEM" not in done.out


@in_files
def test_what_another_root_has_cached_is_no_problem_there(store):
    store("merge", "r0", "r1", "-m", "v", "--ref", "v")
    other = store.path / "other"
    other.mkdir()
    (other / "store.json").write_text(json.dumps(
        {"schema": "ballast/store/1", "db": f"sqlite:{store.root}/graph.db"}))
    (other / "blocks").symlink_to(store.root / "blocks")
    run("--root", other, "--tenant", "acme", "checkout", "v", "-o",
        store.path / "two")
    assert list(other.glob("cache/acme/*/*"))
    proof = forget(store, "v")
    run("--root", other, "verify", proof["attestation"])
    assert not list(other.glob("cache/acme/*/*"))


def test_a_key_in_the_environment_does_not_take_the_stores_place(store):
    proof = forget(store, "r0")
    for value in ("other.pem", "a-secret-of-some-length"):
        env = {"BALLAST_SIGNING_KEY": str(store.path / value)
               if value.endswith("pem") else value}
        store("verify", proof["attestation"], env=env)


def test_a_secret_that_is_missing_is_asked_for(store):
    env = {"BALLAST_SIGNING_KEY": "a-secret-of-some-length"}
    proof = store("--json", "forget", "r0", "--reason", "r", env=env).json
    done = store("verify", proof["attestation"], code=1)
    assert "BALLAST_SIGNING_KEY does not hold" in done.out
    store("verify", proof["attestation"], env=env)


def test_an_unsigned_bundle_is_not_believed_without_a_store(store):
    proof = store("--json", "forget", "r0", "--reason", "r").json
    store("verify", proof["attestation"])
    store("proofs", "export", proof["attestation"], "-o", "b.json")
    done = run("verify", store.path / "b.json", "--offline", code=1)
    assert "PROBLEM: unknown key: give --key" in done.out


def test_export_never_writes_over_a_file(store):
    proof = forget(store, "r0")
    before = (store.path / "k.pem").read_bytes()
    store("proofs", "export", proof["attestation"], "-o", "k.pem", code=5)
    assert (store.path / "k.pem").read_bytes() == before


def test_a_log_that_was_cut_is_told_and_grows_no_more(store):
    first = forget(store, "r0")["attestation"]
    forget(store, "r1")
    change(store, "DELETE FROM tombstones WHERE attestation = "
                  "(SELECT attestation FROM proofs WHERE position = 1)")
    change(store, "DELETE FROM proofs WHERE position = 1")
    kinds = [p["kind"] for p in store("fsck", "--json", code=1).json["problems"]]
    assert "log-gap" in kinds
    assert "the log lacks entries" in store("verify", first, code=1).out
    store("forget", "r2", "--reason", "r", "--key", "k.pem", code=6)


def test_a_store_that_lost_its_keys_does_not_take_the_next_one(store):
    first = forget(store, "r0")["attestation"]
    change(store, "DELETE FROM settings WHERE key = 'trusted_keys'")
    kinds = [p["kind"] for p in store("fsck", "--json", code=1).json["problems"]]
    assert kinds == ["missing-trust"]
    store("forget", "r1", "--reason", "r", "--key", "other.pem", code=6)
    store("verify", first, code=6)


def test_every_head_of_the_log_must_be_signed_by_a_trusted_key(store):
    forget(store, "r0")
    second = forget(store, "r1")["attestation"]
    db = sqlite3.connect(store.root / "graph.db")
    (text,) = db.execute("SELECT checkpoint FROM proofs WHERE position = 0"
                         ).fetchone()
    head, line = text.split("\n\n")
    raw = bytearray(base64.b64decode(line.split()[-1]))
    raw[20] ^= 1
    line = " ".join(line.split()[:-1] + [base64.b64encode(raw).decode()])
    db.execute("UPDATE proofs SET checkpoint = ? WHERE position = 0",
               (head + "\n\n" + line + "\n",))
    db.commit()
    db.close()
    done = store("verify", second, code=1)
    assert "the checkpoint at 1 is not signed by a trusted key" in done.out


def test_what_others_delete_is_not_told(store):
    for i in range(2):
        store("commit", f"./m{i}", "-m", "x", "--tenant", "partner")
    forget(store, "r0")
    (store.path / "k.pem").rename(store.path / "away.pem")
    listed = run("--root", store.root, "--tenant", "partner", "proofs",
                 "--json").json
    assert listed["proofs"] == [] and listed["pending"] == []


WEAK = {"zero": bytes(32), "one": bytes([1]) + bytes(31),
        "minus one": bytes([0xec]) + b"\xff" * 30 + b"\x7f",
        "p": bytes([0xed]) + b"\xff" * 30 + b"\x7f",
        "the sign": bytes([1]) + bytes(30) + b"\x80",
        "order 8": bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c6"
                                 "3339b13802886d53fc05")}


@pytest.mark.parametrize("point", WEAK.values(), ids=WEAK.keys())
def test_a_key_that_anybody_can_sign_for_is_refused(tmp_path, point):
    der = bytes.fromhex("302a300506032b6570032100") + point
    text = base64.b64encode(der).decode()
    (tmp_path / "p.pem").write_text(
        f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    done = run("key", "show", tmp_path / "p.pem", code=2)
    assert "anybody can sign for" in done.err
