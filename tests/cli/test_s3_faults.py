"""What a server does wrong is an error or is tried again: never a wrong answer,
never a run that is not whole."""

import hashlib
import os
import socket
import ssl
import subprocess

import pytest

from s3_fake import SECRET, Bucket, calls, once, refuse, say_xml

PUT = ["put", "a/b", "hello", 1]
GET = ["get", "a/b", 0, 0]
RANGE = ["get", "a/b", 1, 3]


def only(method, answer):
    """The fault of requests by this method for a run."""
    def fault(asked):
        return bool(asked.method == method and asked.key == "p/a/b"
                    and not answer(asked))
    return fault


def status(code, name="Slow", **more):
    return lambda asked: not refuse(asked, code, name, **more)


def cut(asked):
    """Half of what was announced."""
    asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")


def closed(asked):
    asked.raw(b"")


def reset(asked):
    asked.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                        b"\x01\0\0\0\0\0\0\0")
    asked.raw(b"")
    asked.handler.connection.close()


PASSING = {"500": status(500), "502": status(502), "503": status(503),
           "504": status(504), "429": status(429), "cut": cut,
           "closed": closed, "reset": reset}
LASTING = {"400": 400, "401": 401, "403": 403, "405": 405, "409": 409,
           "410": 410, "411": 411, "418": 418, "451": 451}


@pytest.fixture
def bucket():
    with Bucket() as made:
        made.put("p/a/b", b"hello")
        yield made


@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_tried_again_and_the_answer_is_right(bucket, fault):
    bucket.fault = once(only("GET", PASSING[fault]))
    assert calls(bucket, GET, RANGE, ["size", "a/b"]) == [
        {"text": "hello"}, {"text": "ell"}, {"size": 5}]


@pytest.mark.parametrize("fault", PASSING)
def test_a_put_is_tried_again_and_is_whole(bucket, fault):
    bucket.keys.clear()
    bucket.fault = once(only("PUT", PASSING[fault]))
    assert calls(bucket, PUT) == [{"kept": False}]
    assert bucket.current("p/a/b") == b"hello"


def test_a_put_whose_answer_was_lost_is_there_once(bucket):
    def lost(asked):
        bucket.put(asked.key, asked.body)
        asked.raw(b"")

    bucket.keys.clear()
    bucket.fault = once(only("PUT", lost))
    assert calls(bucket, PUT, GET) == [{"kept": True}, {"text": "hello"}]


@pytest.mark.parametrize("code", LASTING)
@pytest.mark.parametrize("call", [GET, RANGE, ["size", "a/b"]])
def test_what_is_refused_is_not_tried_again_nor_taken_for_absent(bucket, code,
                                                                 call):
    bucket.fault = only("GET", status(LASTING[code], "Refused"))
    (row,) = calls(bucket, call)
    assert row["error"] == "io" and "Refused" in row["text"]
    assert len(bucket.asked) == 1


@pytest.mark.parametrize("fault", PASSING)
def test_what_does_not_pass_is_an_error_in_the_end(bucket, fault):
    bucket.fault = only("GET", PASSING[fault])
    (row,) = calls(bucket, GET, AWS_MAX_ATTEMPTS="2")
    assert row["error"] == "io"
    assert len(bucket.asked) == 2


@pytest.mark.parametrize("code", ["NoSuchBucket", "AccessDenied", "", "NoSuch"])
def test_only_a_key_that_is_said_to_be_absent_is_absent(bucket, code):
    bucket.fault = only("GET", status(404, code))
    assert [row["error"] for row in calls(bucket, GET, ["size", "a/b"])] == [
        "io", "io"]


def test_a_page_of_a_proxy_is_not_an_absent_key(bucket):
    bucket.fault = only("GET", lambda asked: asked.say(
        404, b"<html><body>not found</body></html>"))
    assert [row["error"] for row in calls(bucket, GET, ["size", "a/b"])] == [
        "io", "io"]


WRONG = {
    "whole": (200, b"hello", []),
    "shifted": (206, b"hel", [("Content-Range", "bytes 0-2/5")]),
    "short": (206, b"el", [("Content-Range", "bytes 1-3/5")]),
    "long": (206, b"ello", [("Content-Range", "bytes 1-4/5")]),
    "none said": (206, b"ell", []),
    "no range": (206, b"ell", [("Content-Range", "bytes")]),
    "backwards": (206, b"ell", [("Content-Range", "bytes 3-1/5")]),
    "beyond": (206, b"ell", [("Content-Range", "bytes 1-3/2")]),
    "too large": (206, b"ell", [("Content-Range",
                                 "bytes 1-3/99999999999999999999999")]),
    "other unit": (206, b"ell", [("Content-Range", "items 1-3/5")]),
    "moved": (302, b"", [("Location", "http://127.0.0.1:1/")]),
    "nothing": (204, b"", []),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_to_another_question_is_an_error(bucket, wrong):
    code, body, headers = WRONG[wrong]
    bucket.fault = only("GET", lambda asked: asked.say(code, body, headers))
    (row,) = calls(bucket, RANGE)
    assert row["error"] == "io", row


def test_a_run_without_a_length_is_not_taken_for_whole(bucket):
    bucket.fault = only("GET", lambda asked: asked.raw(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhel"))
    (row,) = calls(bucket, GET)
    assert row["error"] == "io" and "not as long" in row["text"]


def test_a_redirect_names_the_region_and_is_not_followed(bucket):
    bucket.fault = only("GET", status(
        301, "PermanentRedirect",
        headers=[("x-amz-bucket-region", "eu-west-3"),
                 ("Location", "http://127.0.0.1:1/")]))
    (row,) = calls(bucket, GET)
    assert row["error"] == "io"
    assert row["hint"] == ("the bucket is in region 'eu-west-3': "
                           "AWS_REGION=eu-west-3")
    assert len(bucket.asked) == 1


@pytest.mark.parametrize("code, hint", [
    ("SignatureDoesNotMatch", "secret key"),
    ("InvalidAccessKeyId", "access key"),
    ("RequestTimeTooSkewed", "clock"),
    ("ExpiredToken", "too old"),
])
def test_what_to_do_is_said(bucket, code, hint):
    bucket.fault = only("GET", status(403, code))
    (row,) = calls(bucket, GET)
    assert code in row["text"] and hint in row["hint"]


def test_what_an_answer_says_is_shown_without_controls(bucket):
    bucket.fault = only("GET", lambda asked: say_xml(
        asked, "<Error><Code>Bad\x9b</Code><Message>a&#xA;b&#x9b;c"
               "</Message></Error>", 403))
    (row,) = calls(bucket, GET)
    assert "\n" not in row["text"] and "\x9b" not in row["text"]


@pytest.mark.parametrize("fault", [*PASSING, "403"])
def test_secrets_are_in_no_message_no_trace_and_no_url(bucket, fault):
    answers = {**PASSING, "403": status(403, "SignatureDoesNotMatch")}
    bucket.fault = lambda asked: not answers[fault](asked)
    rows = calls(bucket, GET, PUT, ["list", ""], AWS_SESSION_TOKEN="tok-3n",
                 BALLAST_TRACE="s3,http", AWS_MAX_ATTEMPTS="2")
    assert {row["error"] for row in rows} == {"io"}
    for secret in (SECRET, "tok-3n", "Authorization"):
        assert secret not in str(rows)
        assert all(secret not in asked.path for asked in bucket.asked)


# ---- puts that leave what is there -------------------------------------------


@pytest.mark.parametrize("conditional", ["honours", "ignores", "unknown"])
def test_what_is_there_stays_whatever_the_server_knows(conditional):
    with Bucket(conditional) as bucket:
        rows = calls(bucket, ["claim", "one", 1], PUT,
                     ["put", "a/b", "other", 1], GET,
                     ["put", "a/b", "third", 0], GET)
        assert rows[1:] == [{"kept": False}, {"kept": True},
                            {"text": "hello"}, {"kept": False},
                            {"text": "third"}]


def test_a_server_that_does_not_know_is_asked_once():
    with Bucket("unknown") as bucket:
        calls(bucket, *(["put", f"a/{i}", "x", 1] for i in range(5)))
        conditional = [asked for asked in bucket.asked
                       if "If-None-Match" in asked.headers]
        assert len(conditional) == 1


def test_where_another_writer_is_first_the_other_stays(bucket):
    def other(asked):
        bucket.put(asked.key, b"first")
        refuse(asked, 409, "ConditionalRequestConflict")

    bucket.keys.clear()
    bucket.fault = once(only("PUT", other))
    assert calls(bucket, PUT, GET) == [{"kept": True}, {"text": "first"}]


# ---- whose it is -------------------------------------------------------------


def test_a_prefix_of_another_store_is_refused(bucket):
    assert calls(bucket, ["claim", "one", 1]) == [{}]
    first, *rest = calls(bucket, ["claim", "two", 1], GET, PUT, ["list", ""],
                         ["remove", ["a/b"]])
    assert {row["error"] for row in (first, *rest)} == {"conflict"}
    assert calls(bucket, ["claim", "one", 0], GET)[1] == {"text": "hello"}
    assert calls(bucket, ["claim", "two", 1], url="s3://bucket/q") == [{}]


@pytest.mark.parametrize("mark", [b"", b"{", b"[]", b'{"store": "one"}',
                                  b'{"schema": "ballast/backend/2"}',
                                  b'{"schema": "ballast/backend/1"}'])
def test_a_mark_that_is_not_understood_is_not_passed_over(bucket, mark):
    bucket.put("p/.ballast", mark)
    (row,) = calls(bucket, ["claim", "one", 1])
    assert row["error"] in ("corrupt", "unsupported")
    assert bucket.current("p/.ballast") == mark


def test_a_mark_that_cannot_be_read_is_not_written(bucket):
    bucket.fault = lambda asked: (asked.key == "p/.ballast"
                                  and refuse(asked, 403, "AccessDenied"))
    (row,) = calls(bucket, ["claim", "one", 1])
    assert row["error"] == "io"
    assert {asked.method for asked in bucket.asked} == {"GET"}


# ---- the environment ---------------------------------------------------------


def test_without_keys_nothing_is_asked(bucket):
    (row,) = calls(bucket, GET, AWS_ACCESS_KEY_ID="")
    assert row["error"] == "io" and "no keys" in row["text"]
    assert not bucket.asked


def test_a_server_that_is_not_there_is_an_error(bucket):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    (row,) = calls(bucket, GET, AWS_MAX_ATTEMPTS="2",
                   AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    assert row["error"] == "io" and f"127.0.0.1:{port}" in row["text"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True)
    return folder


@pytest.fixture
def sealed(bucket, certificate):
    """The bucket's server, spoken to by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    listener = bucket.server.server
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    return {"AWS_ENDPOINT_URL": f"https://localhost:{bucket.server.port}",
            "AWS_CA_BUNDLE": os.fspath(certificate / "cert.pem")}


def test_over_tls_a_body_is_not_hashed_twice(bucket, sealed):
    bucket.keys.clear()
    assert calls(bucket, PUT, GET, **sealed) == [{"kept": False},
                                                 {"text": "hello"}]
    by_method = {asked.method: asked.headers for asked in bucket.asked}
    assert by_method["PUT"]["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


def test_without_tls_a_body_is_signed(bucket):
    bucket.keys.clear()
    calls(bucket, PUT)
    (headers,) = [asked.headers for asked in bucket.asked
                  if asked.method == "PUT"]
    assert (headers["x-amz-content-sha256"]
            == hashlib.sha256(b"hello").hexdigest())


def test_who_is_not_trusted_is_sent_nothing(bucket, sealed):
    (row,) = calls(bucket, PUT, **{**sealed, "AWS_CA_BUNDLE": "",
                                   "AWS_MAX_ATTEMPTS": "1"})
    assert row["error"] == "io" and "certificate" in row["text"]
    assert not bucket.asked


def test_a_session_token_is_sent_and_signed(bucket):
    calls(bucket, GET, AWS_SESSION_TOKEN="tok-3n/+=")
    (asked,) = bucket.asked
    assert asked.headers["x-amz-security-token"] == "tok-3n/+="
    assert ";x-amz-security-token" in asked.headers["Authorization"]
