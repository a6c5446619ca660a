"""The HTTP client against a server of which every byte is known."""

import json
import os
import signal
import subprocess
import threading

import pytest

from servers import BUILD, Server, clean, program


def ask(requests, env=None, **options):
    if isinstance(requests, str):
        requests = [{"url": requests}]
    return program("http-client", json.dumps(options), json.dumps(requests),
                   env=env)


def one(url, **options):
    code, rows = ask(url, **options)
    assert (code, len(rows)) == (0, 1), rows
    return rows[0]


def error(url, **options):
    code, rows = ask(url, **options)
    assert (code, len(rows)) == (1, 1), rows
    assert "\n" not in rows[0]["text"]
    return rows[0]


def hello(asked):
    asked.say(200, b"hello", [("Content-Type", "text/plain")])


def test_an_answer_is_status_type_and_body():
    with Server(hello) as server:
        assert one(server.url + "/x") == {
            "i": 0, "status": 200, "type": "text/plain", "body": "hello"}
        (asked,) = server.asked
        assert (asked.method, asked.path) == ("GET", "/x")
        assert "Authorization" not in asked.headers
        assert "Accept-Encoding" not in asked.headers


@pytest.mark.parametrize("status", [201, 204, 301, 302, 307, 400, 401, 404,
                                    500, 502, 504])
def test_any_status_is_an_answer_and_no_redirect_is_followed(status):
    def answer(asked):
        asked.say(status, b"", [("Location", "/elsewhere")])

    with Server(answer) as server:
        assert one(server.url)["status"] == status
        assert len(server.asked) == 1


def test_a_body_is_posted_whole_and_at_once():
    body = json.dumps({"text": "é\n" * 10000})
    with Server(lambda asked: asked.say(200, asked.body)) as server:
        requests = [{"url": server.url, "body": body}]
        code, rows = ask(requests, env={"TOKEN": "s3cret"})
        assert (code, rows[0]["body"]) == (0, body)
        (asked,) = server.asked
        assert asked.method == "POST"
        assert asked.headers["Content-Type"] == "application/json"
        assert asked.headers["Authorization"] == "Bearer s3cret"
        assert "Expect" not in asked.headers


def test_a_method_and_a_type_can_be_named():
    with Server(hello) as server:
        ask([{"url": server.url, "method": "PUT", "body": "x",
              "type": "text/plain"}, {"url": server.url, "method": "DELETE"}])
        put, delete = server.asked
        assert (put.method, put.headers["Content-Type"]) == ("PUT", "text/plain")
        assert (delete.method, delete.body) == ("DELETE", b"")


def test_requests_run_side_by_side_over_connections_that_are_kept():
    parallel = 8
    together = threading.Barrier(parallel)

    def answer(asked):
        together.wait(60)  # none is answered before all eight are there
        asked.say(200, asked.path.encode())

    with Server(answer) as server:
        count = 10 * parallel
        code, rows = ask([{"url": f"{server.url}/{i}"} for i in range(count)],
                         parallel=parallel)
        assert code == 0
        assert {row["i"]: row["body"] for row in rows} == {
            i: f"/{i}" for i in range(count)}
        assert server.connections <= parallel


def test_requests_begin_in_order():
    with Server(hello) as server:
        ask([{"url": f"{server.url}/{i}"} for i in range(20)], parallel=1)
        assert [asked.path for asked in server.asked] == [
            f"/{i}" for i in range(20)]


def cut(asked):
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")


def cut_chunk(asked):
    asked.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              b"64\r\nhalf")


def drop(asked):
    asked.raw(b"")


def cut_headers(asked):
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Le")


def busy(asked):
    asked.say(503, b"later")


def limited(asked):
    asked.say(429, b"later", [("Retry-After", "0")])


TROUBLE = [cut, cut_chunk, drop, busy, limited]


@pytest.mark.parametrize("trouble", TROUBLE)
def test_what_was_cut_off_or_put_off_is_tried_again(trouble):
    def answer(asked):
        (trouble if asked.number < 3 else hello)(asked)

    with Server(answer) as server:
        assert one(server.url)["body"] == "hello"
        assert len(server.asked) == 4


@pytest.mark.parametrize("trouble, words", [
    (cut, "cut off"), (cut_chunk, "c"), (drop, "without an answer"),
])
def test_what_stays_cut_off_is_told_after_the_last_try(trouble, words):
    with Server(trouble) as server:
        told = error(server.url + "/x", retries=2)
        assert told["error"] == "io"
        assert told["text"].startswith(f"'{server.url}/x'")
        assert words in told["text"]
        assert len(server.asked) == 3


@pytest.mark.parametrize("trouble, status", [(busy, 503), (limited, 429)])
def test_what_stays_put_off_is_an_answer(trouble, status):
    with Server(trouble) as server:
        assert one(server.url, retries=2)["status"] == status
        assert len(server.asked) == 3


def test_the_server_says_when_to_come_back():
    with Server(lambda asked: asked.say(
            503, b"", [("Retry-After", "100000")])) as server:
        assert one(server.url)["status"] == 503
        assert len(server.asked) == 1  # that is longer than anyone waits


def test_no_wait_goes_beyond_the_deadline():
    with Server(lambda asked: asked.say(
            503, b"", [("Retry-After", "30")])) as server:
        assert one(server.url, deadline=20)["status"] == 503
        assert len(server.asked) == 1


@pytest.mark.parametrize("options", [{"timeout": 0.3}, {"deadline": 0.3}])
def test_a_server_that_hangs_is_left(options):
    with Server(lambda asked: asked.hang()) as server:
        told = error(server.url, **options)
        assert told["error"] == "io"
        assert "no answer within 0.3 s" in told["text"]
        assert len(server.asked) == 1  # it may be at work on it


def test_an_answer_that_drips_is_left():
    def drip(asked):
        def pieces():
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
            while not asked.handler.server.over.wait(0.02):
                yield b"x"
        asked.stream(pieces())

    with Server(drip) as server:
        assert "no answer within" in error(server.url, timeout=0.3)["text"]


def endless(head, piece):
    def answer(asked):
        def pieces():
            yield head
            for _ in range(1 << 15):  # 128 MiB
                yield piece
        answer.taken = asked.stream(pieces())
    answer.taken = None
    return answer


ENDLESS = {
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 4096,
             "more than 100000 bytes"),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
               b"1000\r\n" + b"x" * 4096 + b"\r\n", "more than 100000 bytes"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"A: " + b"x" * 4091 + b"\r\n",
                "headers of more than"),
    "header": (b"HTTP/1.1 200 OK\r\n", b"A" * 4096, ""),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 164,
                 "headers of more than"),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_an_endless_answer_is_not_kept(case):
    head, piece, words = ENDLESS[case]
    answer = endless(head, piece)
    with Server(answer) as server:
        told = error(server.url, answer_max=100000)
        assert told["error"] == "io"
        assert words in told["text"]


def test_as_many_bytes_as_may_be_are_taken():
    with Server(lambda asked: asked.say(200, b"x" * 100000)) as server:
        assert len(one(server.url, answer_max=100000)["body"]) == 100000
        assert "100000" not in one(server.url, answer_max=100001)["body"]
        assert "more than 99999 bytes" in error(
            server.url, answer_max=99999)["text"]


@pytest.mark.parametrize("data", [
    b"SSH-2.0-OpenSSH_9.2\r\n", b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00",
    b"HTTP/9.9 200 OK\r\n\r\n"])
def test_what_is_not_http_is_said_to_be_none(data):
    with Server(lambda asked: asked.raw(data)) as server:
        assert error(server.url, retries=1)["error"] == "io"


def test_a_server_that_is_not_there_is_named():
    with Server(hello) as server:
        url = server.url
    told = error(url + "/v1", retries=1)
    assert told["text"] == f"'{url}/v1' cannot be reached: connection refused"
    told = error("http://no-such-host.invalid/", retries=1)
    assert told["text"] == (
        "'http://no-such-host.invalid/': the host's name is not known")


@pytest.mark.parametrize("url", [
    "", "x", "localhost:8000", "127.0.0.1", "://", "http://", "http:///",
    "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/",
    "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "http://a b/",
    "http://a\nb/", "http://" + "a" * 9000, "http://[::1", "dict://127.0.0.1",
])
def test_what_is_no_url_of_http_is_refused(url):
    assert error(url)["error"] == "usage"


@pytest.mark.parametrize("url", [
    "http://me:s3cret@127.0.0.1:1/", "http://s3cret@127.0.0.1:1/",
    "me:s3cret@127.0.0.1:1", "https://me:s3cret@[::1]:1/x",
    "ftp://me:s3cret@127.0.0.1/", "http://me:s3cret@/"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url):
    told = error(url)
    assert told["error"] == "usage"
    assert "s3cret" not in json.dumps(told)


def test_a_query_is_sent_and_not_told():
    with Server(drop) as server:
        told = error(server.url + "/x?key=s3cret", retries=1)
        assert server.asked[0].path == "/x?key=s3cret"
        assert "s3cret" not in json.dumps(told)


@pytest.mark.parametrize("trouble", [drop, cut, hello])
def test_the_token_is_never_told(trouble):
    with Server(trouble) as server:
        _, rows = ask(server.url, env={"TOKEN": "s3cret"}, retries=1)
        assert server.asked[0].headers["Authorization"] == "Bearer s3cret"
        assert "s3cret" not in json.dumps(rows)


@pytest.mark.parametrize("token", ["a\r\nX: y", "a b", "é", "x" * 9000])
def test_a_token_that_no_header_can_hold_is_refused(token):
    code, rows = ask("http://127.0.0.1:1/", env={"TOKEN": token})
    assert (code, rows[0]["error"]) == (1, "usage")
    assert token not in json.dumps(rows, ensure_ascii=False)


def test_proxies_are_for_others_than_this_machine():
    with Server(hello) as server, Server(hello) as proxy:
        env = {"http_proxy": proxy.url, "no_proxy": ""}
        for host in ("127.0.0.1", "localhost"):
            code, rows = ask(f"http://{host}:{server.port}/", env=env)
            assert (code, rows[0]["body"]) == (0, "hello"), host
        for host in ("127.1.2.3", "[::1]", "a.localhost"):
            ask(f"http://{host}:{server.port}/", env=env, retries=1)
        assert not proxy.asked
        ask("http://example.invalid/x", env=env)
        assert proxy.asked[0].path == "http://example.invalid/x"


def test_an_interrupt_ends_the_waiting():
    there = threading.Event()

    def answer(asked):
        there.set()
        asked.hang()

    with Server(answer) as server:
        with subprocess.Popen(
                [os.path.join(BUILD, "tests", "http-client"), "{}",
                 json.dumps([{"url": server.url}])],
                stdout=subprocess.PIPE, env=clean()) as process:
            assert there.wait(60)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        assert json.loads(out)["error"] == "cancelled"
