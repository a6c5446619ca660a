"""Every route for every kind of token: who gets what."""

import http.client
import json
import sqlite3
import re
import time

import pytest
from support import Store, adapter, f32, save
from web import Web, drain, status_of

READER, WRITER, ALL, OTHER, OLD = "r-eader", "w-riter", "a-ll", "o-ther", "o-ld"
TOKENS = {
    READER: ["acme"],
    WRITER: {"write": ["acme"]},
    ALL: {"read": ["*"], "write": ["*"]},
    OTHER: {"read": ["other"], "write": ["other"]},
    OLD: {"write": ["acme"], "expires": "2020-01-01T00:00:00Z"},
}
WHO = [None, "wrong", OLD, OTHER, READER, WRITER, ALL]

# Route, then the status for each of WHO. The commit's id is put for ID.
NOT = 404
MATRIX = [
    ("GET /health", 200, 200, 200, 200, 200, 200, 200),
    ("GET /openapi.json", 200, 200, 200, 200, 200, 200, 200),
    ("GET /tenants/acme/refs", NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/loras", NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/commits", NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/commits/main", NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/commits/main/adapter",
     NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/commits/main/config",
     NOT, NOT, NOT, NOT, 200, 200, 200),
    ("GET /tenants/acme/diff/main/main", NOT, NOT, NOT, NOT, 200, 200, 200),
    ("POST /tenants/acme/commits?message=m&ref=up",
     NOT, NOT, NOT, NOT, 403, 201, 201),
    ("POST /tenants/acme/merges", NOT, NOT, NOT, NOT, 403, 201, 201),
    ("DELETE /tenants/acme/commits/ID?reason=r",
     NOT, NOT, NOT, NOT, 403, 200, 200),
]
MERGE = {"inputs": [{"spec": "main"}, {"spec": "second"}], "message": "m",
         "ref": "merged"}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    made("commit", adapter(tmp_path / "a"), "-m", "one")
    made("commit", adapter(tmp_path / "b", 2.0), "-m", "two", "--ref",
         "second")
    other = Store(tmp_path, "other")
    other("commit", adapter(tmp_path / "c", 3.0), "-m", "theirs")
    return made


def body_of(route, tmp_path, n):
    if "merges" in route:
        return MERGE
    if route.startswith("POST"):
        return save(tmp_path / f"up{n}" / "x.safetensors",
                    {"w": ("F32", (1,), f32(n))}).read_bytes()
    return None


@pytest.mark.parametrize("row", MATRIX, ids=[row[0] for row in MATRIX])
def test_every_token_gets_what_it_says_and_no_more(store, tmp_path, row):
    route, *want = row
    method, path = route.split()
    got = []
    with Web(store, tokens=TOKENS) as web:
        for n, who in enumerate(WHO):
            extra = store("commit", adapter(tmp_path / f"x{n}", 5.0 + n), "-m",
                          "m", "--ref", "gone", "--json").json["id"]
            answer = web.ask(method, path.replace("ID", extra), who,
                             body_of(route, tmp_path, n))
            got.append(answer.status)
            if answer.status >= 400:
                assert set(answer.json["error"]) == {"code", "message"}
    assert got == want


@pytest.mark.parametrize("route", [row[0] for row in MATRIX[2:]])
def test_what_may_not_be_read_looks_as_if_it_were_not_there(
        store, tmp_path, route):
    """The same bytes and headers: a tenant that is there, one that is not, a
    name that is none."""
    method, path = route.split()
    path = path.replace("ID", "0" * 64)
    with Web(store, tokens=TOKENS) as web:
        seen = set()
        for who in (None, "wrong", OTHER):
            for tenant in ("acme", "nobody", "acme%20x", "..."):
                answer = web.ask(method, path.replace("acme", tenant, 1), who,
                                 body_of(route, tmp_path, 1))
                headers = {k: v for k, v in answer.headers.items()
                           if k != "date"}
                seen.add((answer.status, json.dumps(headers), answer.body))
        # Whoever may read everything is told no more of one that is not there.
        answer = web.ask(method, path.replace("acme", "nobody", 1), ALL,
                         body_of(route, tmp_path, 1))
    assert len(seen) == 1 and answer.status in (404, 201, 400)
    if method == "GET":
        (status, _, body), = seen
        assert (answer.status, answer.body) == (status, body)


def test_an_input_of_another_tenant_is_as_if_it_were_not_there(store):
    with Web(store, tokens=TOKENS) as web:
        seen = []
        for spec in ("other:main", "other:nothing", "nobody:main"):
            answer = web.ask("POST", "/tenants/acme/merges", WRITER,
                             {**MERGE, "inputs": [{"spec": spec}]})
            said = answer.json["error"]["message"]
            for word in spec.split(":"):
                said = said.replace(f"'{word}'", "'X'")
            seen.append((answer.status, answer.json["error"]["code"], said))
    assert len(set(seen)) == 1 and seen[0][0] == 404


def test_without_tokens_it_can_be_read_and_not_written(store):
    with Web(store) as web:
        assert web.get("/tenants/acme/refs").status == 200
        answer = web.ask("POST", "/tenants/acme/merges", None, MERGE)
        assert answer.status == 403
        assert web.get("/tenants/nobody/refs").status == 404


METRICS = [(None, 200), (READER, 200), (ALL, 200)]


@pytest.mark.parametrize("who, status", METRICS)
def test_metrics_are_for_loopback(store, who, status):
    with Web(store, tokens=TOKENS) as web:
        answer = web.get("/metrics", who)
    assert answer.status == status
    assert answer.body.startswith(b"# ")


def test_tokens_are_read_again_at_a_hangup_and_a_bad_file_keeps_the_old(store):
    with Web(store, tokens=TOKENS) as web:
        web.write({"n-ew": ["acme"]})
        web.process.send_signal(1)
        web.wait_for("tokens reloaded")
        assert web.get("/tenants/acme/refs", "n-ew").status == 200
        assert web.get("/tenants/acme/refs", READER).status == 404
        web.write('{"n-ew": 7}')
        web.process.send_signal(1)
        line = web.wait_for("the old ones stay: .*").group()
        assert "n-ew" not in line
        assert web.get("/tenants/acme/refs", "n-ew").status == 200


def test_a_token_that_goes_while_its_upload_comes_commits_nothing(
        store, tmp_path):
    data = body_of("POST up", tmp_path, 1)
    with Web(store, tokens={WRITER: {"write": ["acme"]}}) as web:
        made = web.connect()
        made.sendall(b"POST /tenants/acme/commits?message=m&ref=up HTTP/1.1\r\n"
                     b"Host: x\r\nAuthorization: Bearer w-riter\r\n"
                     b"Content-Length: %d\r\nConnection: close\r\n\r\n"
                     % len(data) + data[:-1])
        assert web.get("/tenants/acme/refs", WRITER).status == 200
        web.write({"n-ew": ["acme"]})
        web.process.send_signal(1)
        web.wait_for("tokens reloaded")
        made.sendall(data[-1:])
        assert status_of(drain(made)) == 404
        assert "up" not in web.get("/tenants/acme/refs", "n-ew").json["refs"]


def test_who_waits_for_a_lock_leaves_a_worker_to_who_reads(store, tmp_path):
    data = body_of("POST up", tmp_path, 1)
    database = sqlite3.connect(store.root / "graph.db", timeout=30)
    with Web(store, "--workers", "2", tokens=TOKENS) as web:
        database.execute("BEGIN IMMEDIATE")
        waiting = []
        for n in range(6):
            connection = http.client.HTTPConnection(web.host, web.port,
                                                    timeout=60)
            connection.request(
                "POST", f"/tenants/acme/commits?message=m&ref=up{n}", data,
                {"Authorization": f"Bearer {WRITER}"})
            waiting.append(connection)
        for _ in range(20):
            path = "/tenants/acme/commits/main/config"
            assert web.get(path, READER).status == 200
        database.rollback()
        got = [c.getresponse().status for c in waiting]
    assert set(got) <= {201, 503} and got


def test_a_token_may_be_given_as_its_hash(store):
    import subprocess
    digest = subprocess.run(["b3sum", "--no-names"], input=b"s-ecret",
                            capture_output=True, check=True).stdout
    tokens = {f"blake3:{digest.decode().strip()}": ["acme"]}
    with Web(store, tokens=tokens) as web:
        assert web.get("/tenants/acme/refs", "s-ecret").status == 200
        assert web.get("/tenants/acme/refs", list(tokens)[0]).status == 404


BAD_STARTS = [
    (["--tokens", "none.json"], 3),
    (["--host", "0.0.0.0"], 2),
    (["--host", "no address"], 2),
    (["--port", "65536"], 2),
    (["--tls-cert", "x"], 2),
    (["--access-log", "xml"], 2),
]


@pytest.mark.parametrize("words, code", BAD_STARTS,
                         ids=[" ".join(w) for w, _ in BAD_STARTS])
def test_what_would_serve_wrongly_is_not_started(store, words, code):
    done = store("serve", "--port", "0", *words, code=None)
    assert done.code == code and done.err.startswith("ballast: ")


@pytest.mark.parametrize("text", ["", "{}", "[]", "{", '{"a": 1}',
                                  '{"a": {"reed": ["x"]}}',
                                  '{"a": {"read": ["*"], "expires": "soon"}}',
                                  '{"a": ["x"], "a": ["y"]}', '{"": ["x"]}',
                                  '{"blake3:12": ["x"]}', '{"a": ["no name"]}'])
def test_a_bad_tokens_file_is_refused_without_a_token_told(store, text):
    path = store.path / "tokens.json"
    path.write_text(text.replace('"a"', '"s-ecret"'))
    path.chmod(0o600)
    done = store("serve", "--port", "0", "--tokens", path, code=2)
    assert "tokens.json" in done.err and "s-ecret" not in done.err


def test_a_revoked_grant_and_a_forgotten_commit_are_refused_at_once(
        store, tmp_path):
    """On a connection that is open and has just read them."""
    other = Store(tmp_path, "other")
    other("grant", "main", "--to", "acme")
    store("merge", "main", "other:main", "-m", "both", "--ref", "both")
    gone = store("commit", adapter(tmp_path / "z", 9.0), "-m", "z", "--ref",
                 "gone", "--json").json["id"]
    both = "/tenants/acme/commits/both/adapter"
    with Web(store, tokens=TOKENS) as web:
        connection = http.client.HTTPConnection(web.host, web.port, timeout=60)
        ask = lambda path, **h: web.on(connection, "GET", path, READER, **h)
        first = ask(both)
        assert first.status == 200
        by_id = f"/tenants/acme/commits/{gone}/adapter"
        assert ask(by_id).status == 200
        loras = ask("/tenants/acme/loras").json
        assert {row["ref"] for row in loras["loras"]} >= {"both", "gone"}
        other("revoke", "main", "--to", "acme")
        store("forget", gone, "--reason", "r", "--yes")
        answer = ask(both, If_None_Match=first.headers["etag"])
        assert answer.status == 409
        answer = ask(by_id, If_None_Match=f'"{gone}"')
        assert answer.status == 404
        loras = ask("/tenants/acme/loras").json
        assert "both" in loras["skipped"]
        assert "gone" not in {row["ref"] for row in loras["loras"]}


def spooled(web):
    found = re.search(r"^ballast_spool_bytes (\d+)$",
                      web.get("/metrics").body.decode(), re.M)
    return int(found.group(1))


def test_what_others_forget_is_not_kept_ready_though_nobody_asks(store,
                                                                 tmp_path):
    gone = store("commit", adapter(tmp_path / "y", 11.0), "-m", "y", "--ref",
                 "y", "--json").json["id"]
    kept = "/tenants/acme/commits/main/adapter"
    with Web(store, tokens=TOKENS) as web:
        size = len(web.get(kept, READER).body)
        assert spooled(web) == size
        web.get(f"/tenants/acme/commits/{gone}/adapter", READER)
        assert spooled(web) > size
        store("forget", gone, "--reason", "r", "--yes")
        until = time.monotonic() + 30
        while spooled(web) > size and time.monotonic() < until:
            time.sleep(0.05)
        assert spooled(web) == size
