"""Servers for tests of clients: one that does what a function says, with the
sockets in its hands, and the stand-in for vLLM and SGLang."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.request

from support import TREE

FAKE = TREE / "tests" / "support" / "fake-vllm"
BUILD = os.environ.get("BALLAST_BUILD", "")


class Asked:
    """A request as it came, and ways to answer it."""

    def __init__(self, handler, body):
        self.method, self.path = handler.command, handler.path
        self.headers, self.body = handler.headers, body
        self.handler = handler
        self.number = 0

    @property
    def json(self):
        return json.loads(self.body)

    def say(self, status=200, body=b"", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = [("Content-Type", "application/json"), *headers]
        handler = self.handler
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def raw(self, data):
        """Bytes and the end of the connection."""
        self.handler.close_connection = True
        with contextlib.suppress(OSError):
            self.handler.wfile.write(data)

    def stream(self, pieces):
        """As raw, piece by piece; True if all were taken."""
        self.handler.close_connection = True
        try:
            for piece in pieces:
                self.handler.wfile.write(piece)
        except OSError:
            return False
        return True

    def hang(self):
        """Until the server ends."""
        self.handler.close_connection = True
        self.handler.server.over.wait()


class Server:
    """Calls answer(asked) for every request; self.asked keeps them."""

    def __init__(self, answer):
        self.asked, self.connections, self.lock = [], 0, threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                with outer.lock:
                    outer.connections += 1

            def log_message(self, *_):
                pass

            def any(self):
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(self, self.rfile.read(length))
                with outer.lock:
                    asked.number = len(outer.asked)
                    outer.asked.append(asked)
                answer(asked)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = any

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass  # a client that leaves is what is tested

        self.server = Listener(("127.0.0.1", 0), Handler)
        self.server.over = threading.Event()
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,),
                         daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()


class Fake:
    """A fake-vllm of its own."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [sys.executable, FAKE, *map(os.fspath, args)],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("ready "), line
        self.url = line.split()[1]

    def send(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text[:1] in b"[{" else text

    def set(self, **settings):
        self.send("/fake/set", settings)

    def log(self, path="/"):
        return [row for row in self.send("/fake/log")
                if row["path"].startswith(path)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def program(name, *args, env=None):
    """(exit status, rows) of a small program that prints JSON Lines."""
    done = subprocess.run(
        [os.path.join(BUILD, "tests", name), *map(os.fspath, args)],
        capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
        check=False, env=clean(env))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    failed = any("error" in row for row in rows)
    assert done.returncode == failed, (done.stdout, done.stderr)
    return done.returncode, rows


def clean(env=None):
    """The caller's environment without proxies and keys."""
    kept = {key: value for key, value in os.environ.items()
            if "proxy" not in key.lower() and "API_KEY" not in key}
    kept.update(env or {})
    return kept
