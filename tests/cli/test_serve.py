"""What the routes answer, byte for byte where bytes are what is asked for."""

import functools
import http.client
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from support import (BALLAST, TREE, Store, adapter, environment, f32, load,
                     model, save)
from web import Web

T = "w-riter"
TOKENS = {T: {"write": ["acme"]}}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    made("commit", adapter(tmp_path / "a"), "-m", "one", "--ref", "one")
    made("commit", adapter(tmp_path / "b", 2.0), "-m", "two", "--ref", "two")
    return made


@pytest.fixture
def web(store):
    with Web(store, tokens=TOKENS) as made:
        yield made


def head_of(store, ref):
    return store("refs", "--json").json["refs"][ref]


def test_health_tells_nothing_else(web):
    answer = web.get("/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_refs_and_loras_are_the_store_s(store, web):
    one, two = head_of(store, "one"), head_of(store, "two")
    store("delta", model(store.path / "m", (1, 2)), "--base",
          model(store.path / "n", (1, 3)), "-m", "d", "--ref", "delta")
    store("merge", "one", "two", "-m", "both", "--ref", "both")
    answer = web.get("/tenants/acme/refs", T)
    assert answer.json == {"tenant": "acme", "refs": {
        "one": one, "two": two, "both": head_of(store, "both"),
        "delta": head_of(store, "delta")}}
    assert "no-cache" in answer.headers["cache-control"]
    got = web.get("/tenants/acme/loras", T).json
    assert got["tenant"] == "acme" and list(got["skipped"]) == ["delta"]
    rows = {row["ref"]: row for row in got["loras"]}
    assert list(rows) == ["both", "one", "two"]
    assert rows["one"] == {
        "ref": "one", "name": "acme-one", "commit": one,
        "int_id": int(one[:15], 16) % (2**31 - 1) + 1, "base_model": "tiny",
        "rank": 2, "url": f"/tenants/acme/commits/{one}/adapter"}
    assert rows["both"]["rank"] == 4
    # And as it is now, at the next request.
    store("reset", "one", "two")
    assert web.get("/tenants/acme/refs", T).json["refs"]["one"] == two


def test_an_etag_saves_the_body_until_something_changes(store, web):
    for path in ("/tenants/acme/refs", "/tenants/acme/loras",
                 "/tenants/acme/commits/one", "/tenants/acme/commits/one/config",
                 "/tenants/acme/commits/one/adapter"):
        first = web.get(path, T)
        etag = first.headers["etag"]
        for sent in (etag, f'"x", {etag}', f"W/{etag}", "*"):
            again = web.get(path, T, If_None_Match=sent)
            assert (again.status, again.body) == (304, b""), (path, sent)
            assert again.headers["etag"] == etag
        assert web.get(path, T, If_None_Match='"other"').status == 200
        head = web.ask("HEAD", path, T)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == str(len(first.body))
        head = web.ask("HEAD", path, T, Range="bytes=0-0")
        assert head.status == 200, path
        assert head.headers["content-length"] == str(len(first.body))
        store("reset", "one", "two")
        assert web.get(path, T, If_None_Match=etag).status == 200, path
        store("reset", "one", "one@{1}")


def test_an_adapter_comes_byte_for_byte_as_it_went_in(store, web):
    want = (store.path / "a" / "adapter_model.safetensors").read_bytes()
    one = head_of(store, "one")
    by_ref = web.get("/tenants/acme/commits/one/adapter", T)
    assert by_ref.body == want
    assert by_ref.headers["etag"] == f'"{one}"'
    assert by_ref.headers["x-ballast-commit"] == one
    assert int(by_ref.headers["x-ballast-int-id"]) == (
        int(one[:15], 16) % (2**31 - 1) + 1)
    assert "attachment" in by_ref.headers["content-disposition"]
    assert by_ref.headers["cache-control"] == "private, no-cache"
    assert by_ref.headers["content-type"] == "application/octet-stream"
    by_id = web.get(f"/tenants/acme/commits/{one}/adapter", T)
    assert by_id.body == want
    assert by_id.headers["cache-control"] == (
        "private, max-age=31536000, immutable")
    assert "authorization" in by_id.headers["vary"].lower()
    prefix = web.get(f"/tenants/acme/commits/{one[:10]}/adapter", T)
    assert prefix.body == want
    assert prefix.headers["cache-control"] == "private, no-cache"
    config = web.get("/tenants/acme/commits/one/config", T)
    assert config.body == (store.path / "a"
                           / "adapter_config.json").read_bytes()


def test_head_tells_the_length_and_prepares_nothing(store, web):
    want = (store.path / "a" / "adapter_model.safetensors").read_bytes()
    path = "/tenants/acme/commits/one/adapter"
    spooled = lambda: re.search(r"^ballast_spool_bytes (\d+)", web.get(
        "/metrics", T).body.decode(), re.M).group(1)
    head = web.ask("HEAD", path, T)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(want))
    assert spooled() == "0"
    got = web.get(path, T)
    assert got.body == want and spooled() == str(len(want))
    again = web.ask("HEAD", path, T)
    assert {k: v for k, v in head.headers.items() if k != "date"} == {
        k: v for k, v in again.headers.items() if k != "date"}


def test_a_range_is_that_part_of_it(store, web):
    want = (store.path / "a" / "adapter_model.safetensors").read_bytes()
    path, size = "/tenants/acme/commits/one/adapter", len(want)
    etag = f'"{head_of(store, "one")}"'
    for text, a, b in [("0-0", 0, 1), ("5-", 5, size), ("-7", size - 7, size),
                       ("3-10", 3, 11), (f"8-{size + 99}", 8, size),
                       (f"-{size + 9}", 0, size)]:
        answer = web.get(path, T, Range=f"bytes={text}")
        assert (answer.status, answer.body) == (206, want[a:b]), text
        assert answer.headers["content-range"] == f"bytes {a}-{b - 1}/{size}"
        assert answer.headers["etag"] == etag
    answer = web.get(path, T, Range=f"bytes={size}-")
    assert answer.status == 416
    assert answer.headers["content-range"] == f"bytes */{size}"
    answer = web.get(path, T, Range="bytes=1-2", If_Range=etag)
    assert answer.status == 206
    answer = web.get(path, T, Range="bytes=1-2", If_Range='"old"')
    assert (answer.status, answer.body) == (200, want)


def test_a_view_is_what_checkout_writes(store, web):
    store("merge", "one", "two@0.5", "-m", "both", "--ref", "both")
    store("checkout", "both", "-o", "out")
    answer = web.get("/tenants/acme/commits/both/adapter", T)
    assert answer.body == (store.path / "out"
                           / "adapter_model.safetensors").read_bytes()
    config = web.get("/tenants/acme/commits/both/config", T)
    assert config.json == json.loads(
        (store.path / "out" / "adapter_config.json").read_bytes())
    commit = web.get("/tenants/acme/commits/both", T).json
    assert commit["kind"] == "view" and commit["recipe"]["method"] == "linear"
    assert set(commit["tensors"]) == set(load(store.path / "out"))


def test_a_commit_is_as_show_has_it(store, web):
    want = store("show", "one", "--json").json
    got = web.get("/tenants/acme/commits/one", T).json
    tensors = got.pop("tensors")
    assert {k: want[k] for k in got} == got
    assert tensors == {t["name"]: {"dtype": t["dtype"], "shape": t["shape"]}
                       for t in want["tensors"]}


def test_commits_come_in_pages(store, web):
    for i in range(7):
        store("commit", adapter(store.path / f"p{i}", 3.0 + i), "-m", f"p{i}",
              "--ref", "one")
    want = [row["id"] for row in store("log", "one", "--json").lines]
    got, after, pages = [], None, 0
    while True:
        path = "/tenants/acme/commits?ref=one&limit=3"
        answer = web.get(path + (f"&after={after}" if after else ""), T).json
        got += [row["id"] for row in answer["commits"]]
        after, pages = answer["next"], pages + 1
        if after is None:
            break
    assert got == want and pages == 3
    assert web.get("/tenants/acme/commits?ref=none", T).status == 404


def test_a_diff_is_as_diff_has_it(store, web):
    want = store("diff", "one", "two", "--json").json
    got = web.get("/tenants/acme/diff/one/two", T).json
    assert {k: want[k] for k in got} == got
    assert len(got["changed"]) == 1


def upload(web, data, query="message=m&ref=up", **headers):
    return web.ask("POST", f"/tenants/acme/commits?{query}", T, data, **headers)


def test_what_is_uploaded_is_committed_as_it_is(store, web):
    path = save(store.path / "u" / "x.safetensors",
                {"w": ("BF16", (2, 3), bytes(range(12)))}, {"k": "v"})
    answer = upload(web, path.read_bytes(),
                    "message=from%20afar&ref=up&base_model=llama"
                    "&metadata=%7B%22run%22%3A%2041%7D")
    assert answer.status == 201
    got = answer.json
    assert got["ref"] == "up" and got["message"] == "from afar"
    assert got["base_model"] == "llama" and got["metadata"] == {"run": 41}
    assert got["id"] == head_of(store, "up")
    store("checkout", "up", "-o", "out")
    (file,) = (store.path / "out").glob("*.safetensors")
    assert file.read_bytes() == path.read_bytes()


def test_an_upload_with_a_config_is_an_adapter(store, web):
    folder = adapter(store.path / "c", 4.0)
    config = json.dumps(json.loads((folder / "adapter_config.json")
                                   .read_text()), separators=(",", ":"))
    from urllib.parse import quote
    answer = upload(web, (folder / "adapter_model.safetensors").read_bytes(),
                    f"message=m&ref=up&config={quote(config)}")
    assert answer.status == 201 and answer.json["kind"] == "adapter"
    assert "up" in {r["ref"] for r in web.get("/tenants/acme/loras",
                                              T).json["loras"]}


def test_a_body_may_come_in_chunks(store, web):
    data = (store.path / "a" / "adapter_model.safetensors").read_bytes()
    connection = http.client.HTTPConnection(web.host, web.port, timeout=60)
    connection.request(
        "POST", "/tenants/acme/commits?message=m&ref=up",
        iter([data[i:i + 7] for i in range(0, len(data), 7)]),
        {"Authorization": f"Bearer {T}"}, encode_chunked=True)
    assert connection.getresponse().status == 201


def test_a_ref_moves_only_from_where_it_is_said_to_be(store, web):
    data = lambda i: save(store.path / f"m{i}" / "x.safetensors",
                          {"w": ("F32", (1,), f32(i))}).read_bytes()
    first = upload(web, data(1)).json["id"]
    assert upload(web, data(2), If_Match='"' + "0" * 64 + '"').status == 412
    assert head_of(store, "up") == first
    second = upload(web, data(2), If_Match=f'"{first}"')
    assert second.status == 201 and second.json["parent"] == first
    assert upload(web, data(3), If_Match="rubbish").status in (400, 412)


BAD_UPLOADS = ["ref=up", "message=&ref=up", "message=m&ref=a/b",
               "message=m&metadata=%5B%5D", "message=m&metadata=%7B",
               "message=m&config=%7B", "message=m&what=1"]


@pytest.mark.parametrize("query", BAD_UPLOADS)
def test_a_bad_upload_is_a_400_that_commits_nothing(store, web, query):
    before = store("refs").out
    data = (store.path / "a" / "adapter_model.safetensors").read_bytes()
    answer = upload(web, data, query)
    assert answer.status == 400 and answer.json["error"]["message"]
    assert store("refs").out == before


def merge(web, **members):
    body = {"inputs": [{"spec": "one", "weight": 0.5}, {"spec": "two"}],
            "message": "m", "ref": "both", **members}
    return web.ask("POST", "/tenants/acme/merges", T, body)


def test_a_merge_is_recorded(store, web):
    answer = merge(web, parameters={"normalize": False})
    assert answer.status == 201 and answer.json["kind"] == "view"
    store("checkout", "both", "-o", "out")
    got = load(store.path / "out")
    a = next(v for k, v in got.items() if k.endswith("lora_A.weight"))
    assert a[1] == (4, 4)
    b = np.frombuffer(next(v for k, v in got.items()
                           if k.endswith("lora_B.weight"))[2], "<f4")
    assert np.isfinite(b).all()


BAD_MERGES = [
    ({"inputs": []}, 400), ({"inputs": "one"}, 400), ({"inputs": [1]}, 400),
    ({"inputs": [{"weight": 1}]}, 400), ({"inputs": [{"spec": 7}]}, 400),
    ({"method": "blend"}, 400), ({"method": 7}, 400),
    ({"parameters": []}, 400), ({"parameters": {"sharpness": 1}}, 400),
    ({"parameters": {"normalize": "perhaps"}}, 400), ({"message": ""}, 400),
    ({"ref": "a b"}, 400), ({"seed": "x"}, 400), ({"what": 1}, 400),
    ({"inputs": [{"spec": "nothing"}]}, 404),
]


@pytest.mark.parametrize("members, status", BAD_MERGES)
def test_a_bad_merge_has_its_status_and_records_nothing(
        store, web, members, status):
    before = store("refs").out
    answer = merge(web, **members)
    assert answer.status == status and answer.json["error"]["message"]
    assert store("refs").out == before


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"a": 1, "a": 2}',
                                  b"\xff", b"7", b"[" * 100000])
def test_a_merge_that_is_no_json_object_is_a_400(web, body):
    answer = web.ask("POST", "/tenants/acme/merges", T, body,
                     Content_Type="application/json")
    assert answer.status == 400


def test_forgetting_gives_a_proof_that_holds(store, web):
    two = head_of(store, "two")
    path = f"/tenants/acme/commits/{two}"
    assert web.ask("DELETE", path, T).status == 400
    assert web.ask("DELETE", "/tenants/acme/commits/two?reason=r",
                   T).status == 400
    assert web.ask("DELETE", f"/tenants/acme/commits/{two[:12]}?reason=r",
                   T).status == 400
    answer = web.ask("DELETE", path + "?reason=it%20was%20time", T)
    assert answer.status == 200
    got = answer.json
    assert got["verified"] and got["commits"] == 1 and not got["problems"]
    assert got["statement"]["predicate"]["reason"] == "it was time"
    assert web.get(path, T).status == 404
    assert web.ask("DELETE", path + "?reason=r", T).status == 404
    assert store("verify", got["attestation"], code=None).code in (0, 1)


def test_the_document_names_every_route(web):
    got = web.get("/openapi.json").json
    assert got["openapi"].startswith("3.")
    assert {f"{method.upper()} {path}" for path, row in got["paths"].items()
            for method in row if method != "parameters"} >= {
        "GET /health", "GET /metrics", "GET /tenants/{t}/refs",
        "GET /tenants/{t}/loras", "GET /tenants/{t}/commits",
        "GET /tenants/{t}/commits/{spec}",
        "GET /tenants/{t}/commits/{spec}/adapter",
        "GET /tenants/{t}/commits/{spec}/config",
        "GET /tenants/{t}/diff/{a}/{b}", "POST /tenants/{t}/commits",
        "POST /tenants/{t}/merges", "DELETE /tenants/{t}/commits/{spec}"}


def test_metrics_count_what_was_asked(web):
    for _ in range(3):
        web.get("/tenants/acme/refs", T)
    # A request is counted when it has ended, which its client may see before.
    for _ in range(1000):
        text = web.get("/metrics", T).body.decode()
        rows = dict(line.rsplit(" ", 1) for line in text.splitlines()
                    if line and line[0] != "#")
        asked = sum(float(value) for name, value in rows.items()
                    if "requests" in name and "/refs" in name and "200" in name)
        if asked >= 3:
            break
    assert asked == 3


def test_tls_is_spoken_with_the_key_that_is_given(store, tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    key.chmod(0o600)
    with Web(store, "--tls-cert", cert, "--tls-key", key,
             tokens=TOKENS) as web:
        assert web.scheme == "https"
        import ssl
        context = ssl.create_default_context(cafile=cert)
        context.check_hostname = False
        connection = http.client.HTTPSConnection(web.host, web.port,
                                                 context=context, timeout=60)
        answer = web.on(connection, "GET", "/tenants/acme/commits/one/adapter",
                        T)
        assert answer.body == (store.path / "a"
                               / "adapter_model.safetensors").read_bytes()


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")
def test_the_readme_s_commands_work_as_they_are_written(store, tmp_path):
    """But for the port, which somebody else may have."""
    text = (TREE / "README.md").read_text()
    text = text[text.index("## Serving"):text.index("A fleet of vLLM")]
    first, curls = re.findall(r"```sh\n(.*?)```", text, re.S)
    commit, tokens, serve = first.splitlines()
    folder = tmp_path / "examples" / "llama"
    folder.mkdir(parents=True)
    (tmp_path / "tests").symlink_to(TREE / "tests")
    shell = functools.partial(
        subprocess.run, cwd=folder, capture_output=True,
        check=True, env=environment({"BALLAST_ROOT": str(store.root)}))
    for line in (commit, tokens):
        shell(["sh", "-ec", line.replace("ballast ", BALLAST + " ", 1)])
    assert serve == "ballast serve --port 8080 --tokens tokens.json &"
    with Web(store, "--tokens", folder / "tokens.json") as web:
        lines = curls.replace("\\\n", "").splitlines()
        assert len(lines) == 4
        for line in lines:
            shell(["sh", "-ec", line.replace("8080", str(web.port))])
    assert {"tone", "uploaded", "half"} <= set(
        store("refs", "--json").json["refs"])
