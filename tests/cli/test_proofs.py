"""Proofs: what is signed, by whom, that forgeries are told, and that others can
check them. The oracles are openssl, hashlib and json; nothing of ours."""

import base64
import copy
import hashlib
import hmac
import json
import os
import sqlite3
import subprocess

import pytest

from support import Store, model, run

SECRET = "0123456789abcdef-secret"


def new_key(path):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out",
                    path], check=True)
    path.chmod(0o600)
    public = path.with_suffix(".pub")
    subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", public],
                   check=True)
    return path, public


@pytest.fixture(name="keys", scope="module")
def made_keys(tmp_path_factory):
    """Ours and somebody else's: (pair, public half) each."""
    path = tmp_path_factory.mktemp("keys")
    return new_key(path / "ours.pem"), new_key(path / "theirs.pem")


def made(path, *key, commits=2, env=None):
    """A store and the attestation of one deletion in it."""
    store = Store(path)
    path.mkdir(exist_ok=True)
    for number in range(commits):
        model(path / f"m{number}", (number, 2, 3))
        store("commit", f"./m{number}", "-m", f"c{number}")
    got = store("--json", "forget", "main", "--reason", "why, \"so\" ü", *key,
                env=env).json
    return store, got["attestation"]


@pytest.fixture(name="signed")
def made_signed(tmp_path, keys):
    return made(tmp_path / "signed", "--key", keys[0][0])


def bundle_of(store, attestation):
    (store.path / "bundle.json").unlink(missing_ok=True)
    store("proofs", "export", attestation, "-o", "bundle.json")
    return json.loads((store.path / "bundle.json").read_text())


def payload_of(envelope):
    return base64.b64decode(envelope["payload"])


def pae(envelope):
    body, kind = payload_of(envelope), envelope["payloadType"].encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def canonical(value):
    """RFC 8785 of what has no floats, and keys of ASCII alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=False).encode()


def sign(path, envelope, pair):
    """Sign an envelope anew, by openssl."""
    (path / "pae").write_bytes(pae(envelope))
    subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", pair,
                    "-in", path / "pae", "-out", path / "sig"], check=True)
    sig = base64.b64encode((path / "sig").read_bytes()).decode()
    envelope["signatures"] = [{"keyid": "any", "sig": sig}]


def offline(path, bundle, key, code=None):
    file = path / "forged.json"
    file.write_bytes(bundle if isinstance(bundle, bytes)
                     else json.dumps(bundle).encode())
    return run("verify", file, "--offline", *(["--key", key] if key else []),
               code=code)


# ---- others can check it ----------------------------------------------------

def test_openssl_verifies_the_signature(signed, keys, tmp_path):
    envelope = bundle_of(*signed)["envelope"]
    (tmp_path / "pae").write_bytes(pae(envelope))
    (tmp_path / "sig").write_bytes(
        base64.b64decode(envelope["signatures"][0]["sig"]))
    subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin",
                    "-inkey", keys[0][1], "-in", tmp_path / "pae", "-sigfile",
                    tmp_path / "sig"], check=True, capture_output=True)
    assert envelope["payloadType"] == "application/vnd.in-toto+json"


def test_the_attestation_is_the_hash_of_a_canonical_statement(signed):
    store, attestation = signed
    payload = payload_of(bundle_of(store, attestation)["envelope"])
    assert hashlib.sha256(payload).hexdigest() == attestation
    assert canonical(json.loads(payload)) == payload


def test_the_statement_is_in_toto_about_deletion(signed, keys):
    store, attestation = signed
    bundle = bundle_of(store, attestation)
    statement = json.loads(payload_of(bundle["envelope"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:ballast:deletion:1"
    predicate = statement["predicate"]
    names = [s["name"] for s in statement["subject"]]
    assert names == sorted(
        [f"commit:acme/{name}" for name in predicate["commits"]] +
        [f"manifest:acme/{name}" for name in predicate["manifests"]])
    for subject in statement["subject"]:
        assert subject["name"].endswith(subject["digest"]["blake3"])
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", keys[0][1],
                          "-outform", "DER"], check=True,
                         capture_output=True).stdout
    assert predicate["signing"] == {"algorithm": "ed25519", "key_id":
                                    hashlib.sha256(der).hexdigest()}
    assert predicate["reason"] == "why, \"so\" ü"
    assert predicate["requested_at"] <= predicate["completed_at"]
    assert len(predicate["not_covered"]) == 7
    assert "private" not in predicate and "key_path" not in json.dumps(
        predicate)


def leaf(data):
    return hashlib.sha256(b"\0" + data).digest()


def root(leaves):
    """MTH of RFC 6962, 2.1."""
    if len(leaves) <= 1:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root(leaves[:k]) +
                          root(leaves[k:])).digest()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_log_is_the_tree_of_rfc_6962(tmp_path, keys, size):
    store, first = made(tmp_path / "s", "--key", keys[0][0], commits=size + 1)
    seen = [first]
    for _ in range(size - 1):
        seen.append(store("--json", "forget", "main", "--reason", "x", "--key",
                          keys[0][0]).json["attestation"])
    leaves = [leaf(payload_of(bundle_of(store, a)["envelope"])) for a in seen]
    origin, count, head = store("proofs", "checkpoint").out.splitlines()[:3]
    log = bundle_of(store, first)["log"]
    assert origin == log["origin"] and int(count) == size
    assert base64.b64decode(head) == root(leaves)
    for index, attestation in enumerate(seen):
        store("verify", attestation)
        bundle = bundle_of(store, attestation)
        log = bundle["log"]
        assert (log["index"], log["size"]) == (index, index + 1)
        assert base64.b64decode(log["checkpoint"].splitlines()[2]) == root(
            leaves[:index + 1])
        offline(tmp_path, bundle, keys[0][1], code=0)
    if size > 1:
        got = json.loads(store("proofs", "prove", "--from", "1").out)
        assert got["from_root"] == leaves[0].hex()
        assert got["root"] == root(leaves).hex()
        got = json.loads(store("proofs", "prove", first, "--to", "2").out)
        assert got["inclusion"] == [leaves[1].hex()]


def test_openssl_verifies_the_checkpoint(signed, keys, tmp_path):
    text = signed[0]("proofs", "checkpoint").out
    body, line = text.split("\n\n")
    name, sig = line.strip().split(" ")[1:]
    raw = base64.b64decode(sig)
    (tmp_path / "body").write_text(body + "\n")
    (tmp_path / "sig").write_bytes(raw[4:])
    subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin",
                    "-inkey", keys[0][1], "-in", tmp_path / "body", "-sigfile",
                    tmp_path / "sig"], check=True, capture_output=True)
    assert name == body.splitlines()[0]


def test_verify_says_the_same_with_and_without_the_store(signed, keys):
    store, attestation = signed
    bundle_of(store, attestation)
    there = store("verify", attestation).out
    assert there == store("verify", "bundle.json").out
    assert there == run("verify", store.path / "bundle.json", "--offline",
                        "--key", keys[0][1]).out
    assert there.endswith("verified\n")


# ---- who may sign -----------------------------------------------------------

def test_the_first_key_that_signs_is_trusted(signed, keys):
    store, attestation = signed
    store("verify", attestation)
    store("commit", "./m1", "-m", "more")
    store("forget", "main", "--reason", "x", code=2)
    store("forget", "main", "--reason", "x", "--key", keys[1][0], code=5)
    assert len(store("log").out.splitlines()) == 2
    store("key", "trust", keys[1][1])
    store("forget", "main", "--reason", "x", "--key", keys[1][0])


def test_a_public_half_cannot_sign(signed, keys):
    store, _ = signed
    store("forget", "main", "--reason", "x", "--key", keys[0][1], code=2)


def test_an_unknown_key_is_a_problem(signed, keys):
    store, attestation = signed
    out = store("verify", attestation, "--key", keys[1][1], code=1).out
    assert "PROBLEM: the signature is not that of the key that is given" in out
    out = offline(store.path, bundle_of(store, attestation), None, code=1).out
    assert "PROBLEM: unknown key: give --key" in out


def test_unsigned_is_consistent_at_most(tmp_path, keys):
    store, attestation = made(tmp_path / "s")
    out = store("verify", attestation).out
    assert "note: nobody signed it: consistent at most" in out
    assert out.endswith("verified\n")
    out = store("verify", attestation, "--key", keys[0][1], code=1).out
    assert "PROBLEM: nobody signed it" in out
    store("key", "trust", keys[0][1])
    assert "the store trusts a key" in store("verify", attestation, code=1).out


def test_a_shared_secret_signs_and_is_pinned(tmp_path):
    env = {"BALLAST_SIGNING_KEY": SECRET}
    store, attestation = made(tmp_path / "s", env=env)
    envelope = bundle_of(store, attestation)["envelope"]
    tag = hmac.new(SECRET.encode(), pae(envelope), "sha256").digest()
    assert base64.b64decode(envelope["signatures"][0]["sig"]) == tag
    assert store("verify", attestation, env=env).out.endswith("verified\n")
    assert "BALLAST_SIGNING_KEY does not hold" in store(
        "verify", attestation, code=1).out
    other = {"BALLAST_SIGNING_KEY": SECRET + "x"}
    assert "PROBLEM" in store("verify", attestation, env=other, code=1).out
    store("commit", "./m1", "-m", "more")
    store("forget", "main", "--reason", "x", env=other, code=5)
    for file in store.root.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


# ---- forgeries --------------------------------------------------------------

def restate(bundle, change, encode=canonical):
    """The statement changed, the signature left as it was."""
    statement = json.loads(payload_of(bundle["envelope"]))
    change(statement)
    bundle["envelope"]["payload"] = base64.b64encode(
        encode(statement)).decode()


def set_payload(bundle, data):
    bundle["envelope"]["payload"] = base64.b64encode(data).decode()


def change_reason(statement):
    statement["predicate"]["reason"] = "another"


def drop_block(statement):
    statement["predicate"]["blocks"].pop()


def other_tenant(statement):
    statement["predicate"]["tenant"] = "other"


def field(change):
    return lambda bundle, ctx: restate(bundle, change)


def reordered(bundle, _):
    """The same values in another order, signed by the right key."""
    restate(bundle, lambda s: None,
            lambda s: json.dumps(dict(reversed(s.items()))).encode())


def duplicate(bundle, _):
    text = payload_of(bundle["envelope"]).decode()
    set_payload(bundle, text.replace(
        '"_type":', '"_type":"https://in-toto.io/Statement/v1","_type":',
        1).encode())


def resigned(then, who=0):
    def forge(bundle, ctx):
        then(bundle, ctx)
        sign(ctx["path"], bundle["envelope"], ctx["keys"][who][0])
    return forge


def truncated(bundle, _):
    entry = bundle["envelope"]["signatures"][0]
    entry["sig"] = base64.b64encode(
        base64.b64decode(entry["sig"])[:63]).decode()


def flipped(bundle, _):
    entry = bundle["envelope"]["signatures"][0]
    raw = bytearray(base64.b64decode(entry["sig"]))
    raw[0] ^= 1
    entry["sig"] = base64.b64encode(raw).decode()


def stripped(bundle, _):
    bundle["envelope"]["signatures"] = []


def public_key_as_secret(bundle, ctx):
    """The confusion of RS256 and HS256: a tag keyed with what all know."""
    def say(statement):
        statement["predicate"]["signing"]["algorithm"] = "hmac-sha256"
    restate(bundle, say)
    tag = hmac.new(ctx["keys"][0][1].read_bytes(), pae(bundle["envelope"]),
                   "sha256").digest()
    bundle["envelope"]["signatures"][0]["sig"] = base64.b64encode(
        tag).decode()


def other_type(bundle, _):
    bundle["envelope"]["payloadType"] = "application/json"


def log_member(key, value):
    def forge(bundle, _):
        bundle["log"][key] = value
    return forge


def wrong_root(bundle, _):
    lines = bundle["log"]["checkpoint"].split("\n")
    lines[2] = base64.b64encode(b"\1" * 32).decode()
    bundle["log"]["checkpoint"] = "\n".join(lines)


def wrong_path(bundle, _):
    bundle["log"]["inclusion"].append("00" * 32)


def no_log(bundle, _):
    del bundle["log"]


FORGERIES = {
    "a changed reason": field(change_reason),
    "a block less": field(drop_block),
    "another tenant": field(other_tenant),
    "a changed reason, signed by another": resigned(field(change_reason), 1),
    "signed by another": resigned(lambda bundle, ctx: None, 1),
    "a changed reason, signed again": resigned(field(change_reason)),
    "reordered JSON": reordered,
    "reordered JSON, signed again": resigned(reordered),
    "a duplicate key, signed again": resigned(duplicate),
    "a subject less, signed again": resigned(field(
        lambda s: s["subject"].pop())),
    "another schema, signed again": resigned(field(
        lambda s: s["predicate"].update(schema="x"))),
    "no JSON, signed again": resigned(lambda b, _: set_payload(b, b"x")),
    "a list, signed again": resigned(lambda b, _: set_payload(b, b"[]")),
    "numbers for ids, signed again": resigned(field(
        lambda s: s["predicate"].update(commits=[1, 2]))),
    "truncated signature": truncated,
    "flipped signature": flipped,
    "no signature": stripped,
    "the public key as a secret": public_key_as_secret,
    "another payload type": other_type,
    "another payload type, signed again": resigned(other_type),
    "a wrong root": wrong_root,
    "a longer path": wrong_path,
    "another index": log_member("index", 1),
    "another origin": log_member("origin", "ballast/" + "0" * 32),
    "no checkpoint": log_member("checkpoint", None),
    "no log": no_log,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_a_problem(signed, keys, tmp_path, name):
    store, attestation = signed
    bundle = bundle_of(store, attestation)
    offline(tmp_path, bundle, keys[0][1], code=0)
    FORGERIES[name](bundle, {"path": tmp_path, "keys": keys})
    got = offline(tmp_path, bundle, keys[0][1], code=1)
    assert "PROBLEM: " in got.out and "verified" not in got.out
    assert run("--json", "verify", tmp_path / "forged.json", "--offline",
               "--key", keys[0][1], code=1).json["verified"] is False


@pytest.mark.parametrize("name,text", [
    ("reordered JSON, signed again", "the statement is not canonical JSON"),
    ("a duplicate key, signed again", "duplicate object key"),
    ("a subject less, signed again", "the subject is not what the predicate"),
    ("numbers for ids, signed again", "the subject is not what the predicate"),
    ("another schema, signed again", "the schema is 'x', not"),
    ("a wrong root", "checkpoint at 1 is not signed by a trusted key"),
    ("a longer path", "does not show that the log has it"),
    ("no signature", "the signature was taken away"),
])
def test_each_check_finds_its_own(signed, keys, tmp_path, name, text):
    """Where the right key signs it, the log is not the only one to object."""
    bundle = bundle_of(*signed)
    FORGERIES[name](bundle, {"path": tmp_path, "keys": keys})
    out = offline(tmp_path, bundle, keys[0][1], code=1).out
    assert any(text in line for line in out.splitlines()
               if line.startswith("PROBLEM: "))


def test_the_key_id_of_a_signature_is_a_hint(signed, keys, tmp_path):
    bundle = bundle_of(*signed)
    bundle["envelope"]["signatures"][0]["keyid"] = "somebody else's"
    offline(tmp_path, bundle, keys[0][1], code=0)


def test_the_key_of_a_bundle_is_never_trusted(signed, keys, tmp_path):
    bundle = bundle_of(*signed)
    bundle["public_key"] = keys[1][1].read_text()
    sign(tmp_path, bundle["envelope"], keys[1][0])
    offline(tmp_path, bundle, keys[0][1], code=1)
    offline(tmp_path, bundle, None, code=1)


def test_another_stores_log_is_a_problem(tmp_path, keys):
    one, first = made(tmp_path / "one", "--key", keys[0][0])
    two, _ = made(tmp_path / "two", "--key", keys[0][0])
    bundle_of(one, first)
    out = two("verify", one.path / "bundle.json", code=1).out
    assert "PROBLEM: it is of store" in out
    two("verify", first, code=3)
    mixed = bundle_of(one, first)
    mixed["log"] = bundle_of(two, two("--json", "proofs").json["proofs"][0]
                             ["attestation"])["log"]
    offline(tmp_path, mixed, keys[0][1], code=1)


BAD_FILES = {
    "empty": (b"", 6), "garbage": (b"\0\1\2", 6), "a list": (b"[]", 6),
    "an object": (b"{}", 6), "no payload": (b'{"payload":"!"}', 6),
    "twice": (b'{"schema":"ballast/proof/1","schema":"ballast/proof/1"}', 6),
    "deep": (b'{"envelope":' + b"[" * 100000, 6),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_proof_is_refused(tmp_path, keys, name):
    data, code = BAD_FILES[name]
    got = offline(tmp_path, data, keys[0][1], code=code)
    assert "forged.json" in got.err and got.err.count("\n") <= 2


def test_a_gigabyte_is_refused_before_it_is_read(tmp_path, keys):
    file = tmp_path / "huge.json"
    with open(file, "wb") as out:
        out.truncate(1 << 30)
    got = run("verify", file, "--offline", "--key", keys[0][1], code=6)
    assert "256 MiB at most" in got.err


def test_what_is_no_regular_file_is_refused(tmp_path, keys):
    os.mkfifo(tmp_path / "pipe")
    for name, code in (("pipe", 2), (".", 2), ("absent", 3)):
        run("verify", tmp_path / name, "--offline", "--key", keys[0][1],
            code=code)


def test_many_values_in_little_text_are_refused(signed, keys, tmp_path):
    bundle = bundle_of(*signed)
    set_payload(bundle, b'{"predicate":[' + b"0," * 5_000_000 + b"0]}")
    out = offline(tmp_path, bundle, keys[0][1], code=1).out
    assert "PROBLEM: the proof cannot be read" in out


# ---- the store was changed --------------------------------------------------

CHANGES = {
    "no tombstone": "DELETE FROM tombstones WHERE kind = 0",
    "another tombstone":
        "UPDATE tombstones SET attestation = zeroblob(32)",
    "leaf": "UPDATE proofs SET leaf = zeroblob(32)",
    "tenant": "UPDATE proofs SET tenant = 'other'",
    "epoch": "UPDATE proofs SET epoch = epoch + 1",
    "time": "UPDATE proofs SET completed_at = completed_at + 1",
    "no checkpoint": "UPDATE proofs SET checkpoint = NULL",
    "checkpoint": "UPDATE proofs SET checkpoint = replace(checkpoint, "
                  "char(10) || '1' || char(10), char(10) || '2' || char(10))",
    "envelope": "UPDATE proofs SET envelope = CAST('{}' AS BLOB)",
    "signature": "UPDATE proofs SET envelope = CAST(replace(CAST(envelope AS "
                 "TEXT), '\"sig\":\"', '\"sig\":\"A') AS BLOB)",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_row_is_a_problem(signed, name):
    store, attestation = signed
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("PRAGMA ignore_check_constraints=ON")
    assert db.execute(CHANGES[name]).rowcount
    db.commit()
    db.close()
    out = store("verify", attestation, code=1).out
    assert "PROBLEM: " in out and "verified" not in out


def test_a_log_with_a_gap_is_a_problem(signed, keys):
    store, _ = signed
    store("commit", "./m1", "-m", "more")
    second = store("--json", "forget", "main", "--reason", "x", "--key",
                   keys[0][0]).json["attestation"]
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("DELETE FROM proofs WHERE position = 0")
    db.commit()
    db.close()
    out = store("verify", second, code=1).out
    assert "PROBLEM: the log lacks entries" in out


def test_a_log_that_was_cut_is_told_by_a_bundle_with_its_head(signed, keys):
    store, first = signed
    store("commit", "./m1", "-m", "more")
    second = store("--json", "forget", "main", "--reason", "x", "--key",
                   keys[0][0]).json["attestation"]
    bundle_of(store, second)
    store("verify", "bundle.json")
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("DELETE FROM proofs WHERE position = 1")
    db.commit()
    db.close()
    assert "the log lacks entries" in store("verify", first, code=1).out
    out = store("verify", "bundle.json", code=1).out
    assert "does not begin as the bundle's head says" in out


def test_a_tenant_of_a_forged_statement_is_no_path(signed, keys):
    store, attestation = signed
    bundle = bundle_of(store, attestation)
    restate(bundle, lambda s: s["predicate"].update(tenant="../../.."))
    sign(store.path, bundle["envelope"], keys[0][0])
    (store.path / "forged.json").write_text(json.dumps(bundle))
    out = store("verify", "forged.json", code=1).out
    assert "names no tenant" in out


def test_a_replayed_attestation_is_a_problem(signed, keys):
    """The envelope of one proof in the row of another."""
    store, first = signed
    store("commit", "./m1", "-m", "more")
    second = store("--json", "forget", "main", "--reason", "x", "--key",
                   keys[0][0]).json["attestation"]
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("UPDATE proofs SET envelope = (SELECT envelope FROM proofs "
               "WHERE position = 0) WHERE position = 1")
    db.commit()
    db.close()
    out = store("verify", second, code=1).out
    assert "does not match the statement" in out
    store("verify", first)


def test_bytes_that_are_back_are_a_problem(signed):
    store, attestation = signed
    block = bundle_of(store, attestation)
    statement = json.loads(payload_of(block["envelope"]))
    name = statement["predicate"]["blocks"][0]
    there = store.root / "blocks" / "acme" / name[0] / name
    there.parent.mkdir(exist_ok=True)
    there.write_bytes(b"back")
    out = store("verify", attestation, code=1).out
    assert f"PROBLEM: block {name} is still in the backend" in out


def test_a_store_that_trusts_another_key_now_does_not_believe_it(signed, keys):
    store, attestation = signed
    other, _ = made(store.path / "other", "--key", keys[1][0])
    db = sqlite3.connect(other.root / "graph.db")
    row = db.execute("SELECT value, seal FROM settings "
                     "WHERE key = 'trusted_keys'").fetchone()
    db.close()
    db = sqlite3.connect(store.root / "graph.db")
    db.execute("UPDATE settings SET value = ?, seal = ? "
               "WHERE key = 'trusted_keys'", row)
    db.commit()
    db.close()
    out = store("verify", attestation, code=1).out
    assert "is not that of a key that the store trusts" in out


# ---- the rest of the command ------------------------------------------------

def test_proofs_lists_by_tenant_and_of_all(signed, keys):
    store, attestation = signed
    assert store("proofs").out.startswith(attestation)
    other = Store(store.path, tenant="other")
    assert other("proofs").out == ""
    assert other("proofs", "--all").out.startswith(attestation)
    (row,) = store("--json", "proofs").json["proofs"]
    assert row["attestation"] == attestation and row["signed"] is True
    assert row["log_index"] == 0 and row["tenant"] == "acme"


@pytest.mark.parametrize("args,code", [
    (("nothing",), 2), (("export",), 2), (("export", "00" * 32), 2),
    (("export", "00" * 32, "-o", "x"), 3), (("prove",), 2),
    (("prove", "--from", "0"), 2), (("prove", "--from", "9"), 2),
    (("prove", "00" * 32), 3)])
def test_proofs_refuses_what_makes_no_sense(signed, args, code):
    signed[0]("proofs", *args, code=code)


def test_a_store_without_proofs_has_no_checkpoint(tmp_path, keys):
    store, _ = made(tmp_path / "s")
    store("proofs", "checkpoint", code=3)
    text = store("proofs", "checkpoint", "--key", keys[0][0]).out
    assert text.splitlines()[1] == "1"


def test_verify_wants_a_store_or_offline(signed, tmp_path, keys):
    store, attestation = signed
    bundle = bundle_of(store, attestation)
    run("verify", attestation, "--offline", code=2)
    envelope = tmp_path / "envelope.json"
    envelope.write_text(json.dumps(copy.deepcopy(bundle["envelope"])))
    run("verify", envelope, "--offline", "--key", keys[0][1], code=2)
    assert store("verify", envelope).out.endswith("verified\n")
