"""The HTTP server under test, and requests byte by byte."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

from support import BALLAST, environment


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {}
        for name, value in headers:
            self.headers.setdefault(name.lower(), value)

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]}"


class Web:
    """A server of a store, until the end of the block."""

    def __init__(self, store, *words, tokens=None, env=None):
        words = list(words)
        self.tokens = store.path / "tokens.json"
        if tokens is not None:
            self.write(tokens)
            words += ["--tokens", self.tokens]
        self.process = subprocess.Popen(
            [BALLAST, "--root", store.root, "serve", "--port", "0",
             *map(os.fspath, words)], stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, cwd=store.path, env=environment(env))
        self.said, self.lines = [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        found = self.wait_for(r"listening on (https?)://(\S+):(\d+)$")
        self.scheme, self.host = found.group(1), found.group(2).strip("[]")
        self.port = int(found.group(3))
        self.url = f"{self.scheme}://{found.group(2)}:{self.port}"

    def write(self, tokens):
        text = tokens if isinstance(tokens, str) else json.dumps(tokens)
        self.tokens.write_text(text)
        self.tokens.chmod(0o600)

    def read(self):
        for line in self.process.stderr:
            with self.lines:
                self.said.append(line.decode(errors="replace").rstrip("\n"))
                self.lines.notify_all()
        with self.lines:
            self.said.append(None)
            self.lines.notify_all()

    def wait_for(self, pattern, seconds=30):
        """The first line on stderr that matches, from now or before."""
        def search():
            for line in self.said:
                if line is None:
                    raise AssertionError(f"the server ended: {self.said}")
                found = re.search(pattern, line)
                if found:
                    return found
            return None
        with self.lines:
            found = self.lines.wait_for(search, seconds)
        assert found, f"no line like {pattern}: {self.said}"
        return found

    def ask(self, method, path, token=None, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, self.port,
                                                timeout=60)
        try:
            return self.on(connection, method, path, token, body, **headers)
        finally:
            connection.close()

    @staticmethod
    def on(connection, method, path, token=None, body=None, **headers):
        headers = {name.replace("_", "-"): value
                   for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())

    def get(self, path, token=None, **headers):
        return self.ask("GET", path, token, **headers)

    def connect(self):
        made = socket.create_connection((self.host, self.port), 30)
        made.settimeout(30)
        return made

    def raw(self, data):
        """Everything that comes back for these bytes."""
        with self.connect() as made:
            made.sendall(data)
            return drain(made)

    def stop(self, sent=signal.SIGTERM):
        self.process.send_signal(sent)
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise


def drain(made):
    """What comes until the other side ends the connection."""
    got = b""
    try:
        while True:
            piece = made.recv(1 << 16)
            if not piece:
                return got
            got += piece
    except ConnectionResetError:
        return got


def status_of(answer):
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found.group(1)) if found else 0
