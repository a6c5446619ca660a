"""Deletions that were cut short, and who is believed when they are finished: a
database is a file, and whoever can write to it can plant a plan in the journal
and seal it. The oracles are openssl, b3sum and json."""

import base64
import json
import shutil
import sqlite3
import struct
import subprocess

import pytest
from support import BALLAST, Store, environment, files, model, run

PLAN = "application/vnd.ballast.plan+json"

pytestmark = pytest.mark.skipif(not shutil.which("b3sum"), reason="no b3sum")


@pytest.fixture(name="keys", scope="module")
def made_keys(tmp_path_factory):
    """Ours and somebody else's."""
    path = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        run("key", "generate", "-o", path / f"{name}.pem")
    return path / "ours.pem", path / "theirs.pem"


@pytest.fixture(name="store")
def made_store(tmp_path):
    """c0 <- c1 <- c2 on main, and c3 on side."""
    store = Store(tmp_path)
    for number in range(3):
        model(tmp_path / f"m{number}", (number, 2, 3, 4.5))
        store("commit", f"./m{number}", "-m", f"c{number}")
    model(tmp_path / "m3", (7, 8, 9))
    store("commit", "./m3", "-m", "c3", "--ref", "side")
    return store


# ---- what somebody else can do ----------------------------------------------

def sealed(table, *columns):
    """docs/format.md, "Seals"."""
    data = table.encode() + b"\0"
    for value in columns:
        if value is None:
            data += b"n" + bytes(8)
        elif isinstance(value, int):
            data += b"i" + struct.pack("<q", value)
        else:
            text = value.encode() if isinstance(value, str) else value
            kind = b"t" if isinstance(value, str) else b"b"
            data += kind + struct.pack("<q", len(text)) + text
    done = subprocess.run(["b3sum", "--no-names"], input=data, check=True,
                          capture_output=True)
    return bytes.fromhex(done.stdout.decode().strip())


def query(store, sql, *args):
    db = sqlite3.connect(store.root / "graph.db")
    with db:
        found = db.execute(sql, args).fetchall()
    db.close()
    return found


def put_row(store, number, tenant, state, plan):
    query(store, "DELETE FROM journal WHERE number = ?", number)
    query(store, "INSERT INTO journal VALUES (?, ?, ?, ?, ?)", number, tenant,
          state, plan, sealed("journal", number, tenant, state, plan))


def rows(store):
    return query(store, "SELECT number, tenant, state, plan FROM journal")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"),
                      ensure_ascii=False)


def plan_of(row):
    return json.loads(base64.b64decode(json.loads(row[3])["payload"]))


def signature(path, payload, key, kind=PLAN):
    pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload),
                                   payload)
    (path / "pae").write_bytes(pae)
    subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", key,
                    "-in", path / "pae", "-out", path / "sig"], check=True)
    return base64.b64encode((path / "sig").read_bytes()).decode()


def row_text(store, plan, key=None, signatures=(), kind=PLAN):
    """A plan as the journal has it, signed by openssl."""
    payload = canonical(plan).encode()
    signatures = list(signatures)
    if key:
        signatures.append({"keyid": "any",
                           "sig": signature(store.path, payload, key, kind)})
    return canonical({
        "commits": plan["commits"], "manifests": plan["manifests"],
        "payload": base64.b64encode(payload).decode(), "payloadType": kind,
        "signatures": signatures})


def blocks(store):
    return {name: data for name, data in files(store.root / "blocks").items()
            if "/" in name}


def begin(store, spec, *args):
    """A deletion that fails behind its first step, and what is in the way."""
    plan = store("--json", "forget", spec, "--reason", "r", "--dry-run",
                 *args).json["plan"]
    (path,) = (path for path in (store.root / "blocks").rglob("*")
               if path.name == plan["blocks"][0])
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / "x").touch()
    store("forget", spec, "--reason", "r", *args, code=7)
    return path, kept


def clear(path, kept):
    shutil.rmtree(path)
    path.write_bytes(kept)


def proofs(store):
    return store("--json", "proofs", "--all").json["proofs"]


def check_refused(store, key, proofs_before, why):
    """With the key at hand: nothing is signed, nothing is touched, all is
    read."""
    before = blocks(store)
    env = {"BALLAST_SIGNING_KEY": str(key)}
    done = store("log", env=env)
    assert "row 1 of the journal is not carried out" in done.err
    assert why in done.err
    assert blocks(store) == before
    assert len(proofs(store)) == proofs_before
    error = store("--json", "forget", "side", "--reason", "r", "--key", key,
                  code=6, env=env).error
    assert "row 1 of the journal" in error["message"]
    assert "DELETE FROM journal WHERE number = 1" in error["hint"]
    assert len(proofs(store)) == proofs_before and blocks(store) == before


# ---- who has planned it -----------------------------------------------------

def test_openssl_verifies_who_has_planned_it(store, keys, tmp_path):
    begin(store, "main", "--key", keys[0])
    (row,) = rows(store)
    kept = json.loads(row[3])
    assert kept["payloadType"] == PLAN
    payload = base64.b64decode(kept["payload"])
    assert canonical(json.loads(payload)).encode() == payload
    (only,) = kept["signatures"]
    assert only["sig"] == signature(tmp_path, payload, keys[0])
    (identity,) = query(store, "SELECT value FROM settings "
                        "WHERE key = 'store_id'")[0]
    assert json.loads(payload)["private"]["store"] == identity


def unsign(store, plan, keys, row):
    return row_text(store, plan)


def unsign_and_forget_the_key(store, plan, keys, row):
    return row_text(store, {**plan, "key": None})


def sign_by_another(store, plan, keys, row):
    return row_text(store, plan, keys[1])


def change_what_was_signed(store, plan, keys, row):
    return row_text(store, {**plan, "reason": "another"},
                    signatures=json.loads(row[3])["signatures"])


def name_another_key(store, plan, keys, row):
    public = store.path / "theirs.pub"
    subprocess.run(["openssl", "pkey", "-in", keys[1], "-pubout", "-outform",
                    "DER", "-out", public], check=True)
    name = subprocess.run(["sha256sum", public], check=True,
                          capture_output=True).stdout.decode().split()[0]
    return row_text(store, {**plan, "key": {"algorithm": "ed25519",
                                            "id": name}}, keys[1])


def another_store(store, plan, keys, row):
    return row_text(store, {**plan, "private": {"store": "0" * 32}}, keys[0])


def sign_as_something_else(store, plan, keys, row):
    return row_text(store, plan, keys[0], kind="application/vnd.in-toto+json")


def tell_the_graph_of_others(store, plan, keys, row):
    return canonical({**json.loads(row[3]), "manifests": []})


@pytest.mark.parametrize("forge,why", [
    (unsign, "has not signed its plan"),
    (unsign_and_forget_the_key, "nobody has signed its plan"),
    (sign_by_another, "has not signed its plan"),
    (change_what_was_signed, "has not signed its plan"),
    (name_another_key, "does not trust the key"),
    (another_store, "another store's"),
    (sign_as_something_else, "it is not a plan"),
    (tell_the_graph_of_others, "its plan names other manifests"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_what_the_key_has_not_planned_it_does_not_sign(store, keys, forge,
                                                       why):
    clear(*begin(store, "main", "--key", keys[0]))
    (row,) = rows(store)
    put_row(store, *row[:3], forge(store, plan_of(row), keys, row))
    check_refused(store, keys[0], 0, why)


def test_a_plan_that_is_planted_is_not_signed_by_who_comes_by(store, keys,
                                                              tmp_path):
    """In a store where nobody has deleted yet, for the reader's own key."""
    copy = Store(tmp_path / "copy")
    shutil.copytree(store.root, copy.root)
    clear(*begin(copy, "main", "--key", keys[0]))
    (row,) = rows(copy)
    plan = plan_of(row)
    plan["private"]["key_path"] = str(keys[0])
    put_row(store, *row[:3], row_text(store, plan))
    check_refused(store, keys[0], 0, "does not trust the key")


def test_a_plan_of_the_keys_that_is_put_back_is_not_carried_out_again(store,
                                                                      keys):
    clear(*begin(store, "main", "--key", keys[0]))
    (row,) = rows(store)
    store("refs")
    assert len(proofs(store)) == 1 and not rows(store)
    store("commit", "./m2", "-m", "again")
    put_row(store, *row)
    check_refused(store, keys[0], 1, "there is a proof of it")
    store("checkout", "main", "-o", "out")


@pytest.mark.parametrize("state", [1, 2])
def test_bytes_that_are_there_are_not_signed_for_as_removed(store, keys,
                                                            state):
    clear(*begin(store, "main", "--key", keys[0]))
    (row,) = rows(store)
    put_row(store, row[0], row[1], state, row[3])
    done = store("log", env={"BALLAST_SIGNING_KEY": str(keys[0])})
    assert "row 1 of the journal says that" in done.err
    assert not proofs(store)


def test_a_secret_that_is_away_is_waited_for_with_the_bytes(store):
    env = {"BALLAST_SIGNING_KEY": "0123456789abcdef-secret"}
    plan = store("--json", "forget", "main", "--reason", "r", "--dry-run",
                 env=env).json["plan"]
    (path,) = (path for path in (store.root / "blocks").rglob("*")
               if path.name == plan["blocks"][0])
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / "x").touch()
    store("forget", "main", "--reason", "r", env=env, code=7)
    clear(path, kept)
    assert "waits for its signature" in store("log").err
    assert path.exists() and not proofs(store)
    error = store("--json", "commit", "./m2", "-m", "x", code=8).error
    assert "BALLAST_SIGNING_KEY" in error["hint"]
    store("log", env=env)
    assert not path.exists() and len(proofs(store)) == 1
    store("commit", "./m2", "-m", "x")


def test_the_first_key_is_the_stores_before_it_has_signed(store, keys,
                                                          tmp_path):
    mine = shutil.copy(keys[0], tmp_path / "mine.pem")
    clear(*begin(store, "main", "--key", mine))
    mine.rename(tmp_path / "away.pem")
    store("forget", "side", "--reason", "r", "--key", keys[1], code=5)
    store("forget", "side", "--reason", "r", code=2)
    store("proofs", "--key", tmp_path / "away.pem")
    (proof,) = proofs(store)
    assert store("verify", proof["attestation"]).out.endswith("verified\n")


def test_an_unsigned_plan_of_a_store_without_keys_is_carried_out(store):
    clear(*begin(store, "main"))
    store("refs")
    (proof,) = proofs(store)
    assert proof["signed"] is False
    store("verify", proof["attestation"])


# ---- what becomes a path ----------------------------------------------------

BAD = "ab" * 31 + "/."


@pytest.mark.parametrize("change", [
    {"tenant": "../../victim"}, {"tenant": "a..b"}, {"tenant": 7},
    {"blocks": ["../../../victim/x"]}, {"blocks": [BAD]}, {"blocks": None},
    {"manifests": [BAD]}, {"commits": ["x"]}, {"commits": "x"},
    {"cache": ["../../victim:" + "ab" * 32]}, {"cache": ["acme:" + BAD]},
    {"cache": ["acme"]}, {"scope": "all"}, {"epoch": -1}, {"epoch": "1"},
    {"key": 1}, {"key": {}}, {"reason": None},
], ids=str)
def test_a_plan_of_no_names_and_ids_is_not_carried_out(store, keys, change):
    victim = store.path / "victim"
    victim.mkdir()
    (victim / "x").write_text("mine")
    clear(*begin(store, "main"))
    (row,) = rows(store)
    plan = {**plan_of(row), **change}
    tenant = plan["tenant"] if isinstance(plan["tenant"], str) else "acme"
    put_row(store, 1, tenant, 0, row_text(store, plan))
    check_refused(store, keys[0], 0, "its plan has no")
    assert (victim / "x").read_text() == "mine"


@pytest.mark.parametrize("text", [
    "", "{}", "[]", "null", '{"payload":"","payloadType":"' + PLAN +
    '","signatures":[]}', '{"payload":"e30=","payloadType":"x",'
    '"signatures":[]}', "[" * 1000], ids=range(7))
def test_a_row_that_is_no_plan_is_named(store, keys, text):
    put_row(store, 1, "acme", 0, text)
    check_refused(store, keys[0], 0, "row 1 of the journal")


@pytest.mark.parametrize("more", [[], ["--repair"], ["--fast"]])
def test_fsck_tells_of_a_row_that_is_no_plan_and_looks_at_all_else(store, more):
    put_row(store, 1, "acme", 0, "{}")
    block = next((store.root / "blocks" / "acme").rglob("?" * 64))
    block.unlink()
    told = store("fsck", "--json", *more, code=1).json
    kinds = {problem["kind"] for problem in told["problems"]}
    assert {"unreadable-row", "missing-block"} <= kinds
    assert told["checked"]["commits"] == 4
    assert len(rows(store)) == 1


def test_a_row_whose_tenant_is_another_than_its_plans_is_named(store, keys):
    clear(*begin(store, "main"))
    (row,) = rows(store)
    put_row(store, 1, "other", 0, row[3])
    check_refused(store, keys[0], 0, "its plan is another tenant's")


@pytest.mark.parametrize("sql", [
    "UPDATE journal SET plan = plan || ' '", "UPDATE journal SET state = 1",
    "UPDATE journal SET tenant = 'other'",
    "UPDATE journal SET seal = zeroblob(32)"])
def test_a_row_of_a_wrong_seal_is_named_and_holds_up_no_other_proof(store,
                                                                    keys, sql):
    attestation = store("--json", "forget", "side", "--reason", "r", "--key",
                        keys[0]).json["attestation"]
    store("commit", "./m3", "-m", "c3", "--ref", "side")
    clear(*begin(store, "main", "--key", keys[0]))
    query(store, sql)
    check_refused(store, keys[0], 1, "changed by something else")
    assert store("verify", attestation).out.endswith("verified\n")


def test_a_row_that_is_no_plan_holds_up_no_deletion_but_itself(store, keys):
    clear(*begin(store, "main", "--key", keys[0]))
    put_row(store, 2, "acme", 0, "{}")
    assert "row 2 of the journal" in store("log").err
    assert len(proofs(store)) == 1 and len(rows(store)) == 1


# ---- who reads meanwhile ----------------------------------------------------

def test_who_reads_the_database_holds_up_the_proof_and_nothing_else(store,
                                                                    keys):
    db = sqlite3.connect(store.root / "graph.db", isolation_level=None)
    db.execute("BEGIN")
    db.execute("SELECT COUNT(*) FROM commits").fetchall()
    store("forget", "main", "--reason", "r", "--key", keys[0], "--wait", "0.1",
          code=8)
    assert len(rows(store)) == 1
    # The program is given 120 seconds.
    for args in (["log"], ["commit", "./m2", "-m", "new"], ["gc"], ["refs"],
                 ["reset", "other", "main"], ["checkout", "main", "-o", "o"]):
        done = store(*args, "--wait", "3600")
        assert done.err.count("a deletion waits for its signature") == 1
    assert [row[2] for row in rows(store)] == [1]
    store("forget", "side", "--reason", "r", "--key", keys[0], "--wait", "0.1",
          code=8)
    assert store("log", "side").out.count("\n") == 1
    db.execute("COMMIT")
    db.close()
    assert not store("refs").err
    (proof,) = proofs(store)
    out = store("verify", proof["attestation"]).out
    assert "is present again since" in out and out.endswith("verified\n")
    store("fsck")


def test_a_log_that_nobody_reads_on_holds_no_snapshot(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    for number in range(8):
        store("commit", "./m", "-m", f"{number} " + "x" * 30000,
              "--allow-empty")
    with subprocess.Popen(
            [BALLAST, "--root", store.root, "--tenant", "acme", "--json",
             "log"], env=environment(), stdout=subprocess.PIPE) as reader:
        assert reader.stdout.read(1) == b"{"
        store("forget", "main~3", "--reason", "r", "--wait", "0.1")
        text = b"{" + reader.stdout.read()
    assert reader.returncode == 0
    assert len(text.splitlines()) == 8
