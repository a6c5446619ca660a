"""A graph in PostgreSQL: several machines, lost connections, a server that is
killed, rights. Machines are roots that share nothing but the two addresses.
"""

import json
import os
import socket
import subprocess
import threading

import pytest
from postgres import Server, bin_dir
from support import BALLAST, environment, files, model, run

pytestmark = pytest.mark.skipif(bin_dir() is None, reason="no initdb here")
ROUNDS = int(os.environ.get("BALLAST_ROUNDS", "12"))


@pytest.fixture(scope="module", name="server")
def fixture_server():
    with Server() as server:
        yield server


class Machine:
    """A root of its own; the graph and the blocks are everybody's."""

    def __init__(self, path, server, name="one", schema="s", url=None):
        self.path = path
        self.root = path / name
        self.places = ["--root", self.root, "--db",
                       f"{url or server.url}?schema={schema}",
                       "--backend", f"file:{path / 'blocks'}"]

    def words(self, *args):
        return [BALLAST, *self.places, "--tenant", "acme", *args]

    def __call__(self, *args, **more):
        return run(*self.words(*args)[1:], cwd=self.path, **more)

    def start(self, *args):
        words = [os.fspath(word) for word in self.words(*args)]
        return subprocess.Popen(words, cwd=self.path, env=environment(),
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)


@pytest.fixture(name="schema")
def fixture_schema(request):
    """One that no other test has."""
    return "s" + format(abs(hash(request.node.nodeid)), "x")


@pytest.fixture(name="machine")
def fixture_machine(tmp_path, server, schema):
    return Machine(tmp_path, server, "one", schema)


# ---- machines ----------------------------------------------------------------

@pytest.mark.parametrize("refs", [8, 1], ids=["eight refs", "one ref"])
def test_eight_writers_on_two_machines_lose_nothing(tmp_path, server, schema,
                                                    refs):
    machines = [Machine(tmp_path, server, name, schema)
                for name in ("one", "two")]
    for i in range(8):
        model(tmp_path / f"m{i}", (i, i + 1))
    running = [machines[i % 2].start("commit", f"m{i}", "-m", f"writer {i}",
                                     "--ref", f"r{i % refs}")
               for i in range(8)]
    ends = [(process.communicate(timeout=120)[1], process.returncode)
            for process in running]
    done = [f"writer {i}" for i, (_, code) in enumerate(ends) if code == 0]
    for err, code in ends:
        assert code == 0 or (refs == 1 and code == 5), err
    assert done
    for machine in machines:
        found = [row["message"] for ref in range(refs)
                 for row in machine("log", f"r{ref}", "--json").lines]
        assert sorted(found) == sorted(done)
        assert machine("fsck").out == "consistent\n"


def test_what_one_machine_forgets_is_gone_on_the_other(tmp_path, server,
                                                       schema, machine):
    other = Machine(tmp_path, server, "two", schema)
    machine("commit", model(tmp_path / "m"), "-m", "x")
    assert other("log").out
    proof = machine("forget", "main", "--reason", "asked", "--yes",
                    "--json").json
    assert other("log", code=3).out == ""
    assert other("verify", proof["attestation"]).code == 0
    assert machine("fsck").out == "consistent\n"


def test_a_gc_waits_for_writers_of_other_machines(tmp_path, server, schema,
                                                  machine):
    other = Machine(tmp_path, server, "two", schema)
    machine("init")
    running = []
    for i in range(6):
        model(tmp_path / f"m{i}", range(i, i + 4096))
        running.append(machine.start("commit", f"m{i}", "-m", "x", "--ref",
                                     f"r{i}"))
        running.append(other.start("gc"))
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(other("refs").out.splitlines()) == 6
    assert other("fsck").out == "consistent\n"


def test_a_fresh_root_finds_the_store(tmp_path, server, schema, machine):
    machine("commit", model(tmp_path / "m"), "-m", "there")
    fresh = Machine(tmp_path, server, "fresh", schema)
    assert [row["message"] for row in fresh("log", "--json").lines] == [
        "there"]
    assert not fresh.root.exists()


# ---- addresses ---------------------------------------------------------------

SECRETS = [
    "postgresql://postgres:s3cr3t@{host}/postgres?schema={schema}",
    "postgresql://postgres@{host}/postgres?password=s3cr3t&schema={schema}",
    ("postgresql://{host}/postgres?schema={schema}&user=postgres"
     "&sslpassword=s3cr3t"),
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_password_is_neither_kept_nor_shown(tmp_path, server, schema, url):
    url = url.format(host=f"127.0.0.1:{server.port}", schema=schema)
    words = ["--root", tmp_path / "s", "--tenant", "acme"]
    model(tmp_path / "m")
    told = [run(*words, "--db", url, "commit", tmp_path / "m", "-m", "x"),
            run(*words, "--db", url, "log"), run(*words, "log"),
            run(*words, "config"), run(*words, "--db", url, "fsck", "--json"),
            run(*words, "--db", url.replace("/postgres", "/another"), "log",
                code=5)]
    for result in told:
        assert "s3cr3t" not in result.out + result.err
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or b"s3cr3t" not in file.read_bytes(), file
    assert "s3cr3t" not in server.ask(f"SELECT * FROM {schema}.settings")


BAD = [
    ("postgresql:", 2),
    ("postgresql:s3cr3t", 2),
    ("postgresql://u:s3cr3t@127.0.0.1:1/x", 7),
    ("postgresql://u:s3cr3t@127.0.0.1:none/x", 7),
    ("postgresql://u:s3cr3t/@127.0.0.1/x", 2),
    ("postgresql://u:a/s3cr3t@127.0.0.1/x", 2),
    ("postgresql://u:s3cr3t@127.0.0.1/x?nosuch=1", 2),
    ("postgresql://u:s3cr3t@127.0.0.1/x?s3cr3t", 2),
    ("postgresql://127.0.0.1/x?pass%77ord=s3cr3t", 2),
    ("postgresql://127.0.0.1/x?schema=", 2),
    ("postgresql://127.0.0.1/x?schema=pg_s3cr3t", 2),
    ("postgresql://127.0.0.1/x?schema=S3cr3t", 2),
    ("postgresql://127.0.0.1/x?schema=1s3cr3t", 2),
    ("postgresql://127.0.0.1/x?schema=a;drop--s3cr3t", 2),
    ("postgresql://127.0.0.1/x?schema=" + "s3cr3t" * 11, 2),
    ("postgres://u:s3cr3t@127.0.0.1/x", 2),
    ("host=127.0.0.1 user=u password=s3cr3t", 2),
    ("host=127.0.0.1 password=s3cr3t:more", 2),
]


@pytest.mark.parametrize("url, code", BAD)
def test_a_bad_address_is_refused_and_not_repeated(tmp_path, url, code):
    result = run("--root", tmp_path / "s", "--db", url, "init", code=code)
    assert "s3cr3t" not in result.out + result.err.lower()
    assert result.err.startswith("ballast: ")


def test_an_absent_database_or_schema_is_told(tmp_path, server):
    url = server.url.replace("/postgres", "/nosuch")
    words = ["--root", tmp_path / "s", "--tenant", "acme", "--db"]
    assert "nosuch" in run(*words, url, "init", code=7).err
    url = server.url + "?schema=nosuch"
    assert run(*words, url, "log", code=3).err


def test_a_schema_of_something_else_is_refused(server, machine, schema):
    server.ask(f"CREATE SCHEMA {schema}")
    server.ask(f"CREATE TABLE {schema}.customers (name TEXT)")
    assert "something else" in machine("init", code=9).err
    assert server.ask(f"SELECT COUNT(*) FROM {schema}.customers") == "0"


# ---- rights ------------------------------------------------------------------

def test_a_role_needs_no_more_than_its_own_schema(tmp_path, server, schema):
    server.ask(f"CREATE ROLE r{schema} LOGIN")
    server.ask(f"CREATE SCHEMA {schema} AUTHORIZATION r{schema}")
    url = server.url.replace("postgres@", f"r{schema}@")
    machine = Machine(tmp_path, server, "one", schema, url)
    machine("commit", model(tmp_path / "m"), "-m", "x")
    machine("forget", "main", "--reason", "asked", "--yes")
    machine("gc")
    assert machine("fsck").out == "consistent\n"


def test_a_role_without_rights_is_told_which(tmp_path, server, schema, machine):
    machine("commit", model(tmp_path / "m"), "-m", "x")
    server.ask(f"CREATE ROLE r{schema} LOGIN")
    url = server.url.replace("postgres@", f"r{schema}@")
    nobody = Machine(tmp_path, server, "two", schema, url)
    assert "permission denied" in nobody("log", code=7).err
    other = Machine(tmp_path, server, "three", schema + "x", url)
    assert "permission denied" in other("init", code=7).err


# ---- connections -------------------------------------------------------------

class Proxy:
    """Between a client and the server. Cuts both when the client says `word`:
    before the server hears of it, or when the server has answered; the first
    `spared` times it may."""

    def __init__(self, server, word, heard, spared=0):
        self.word, self.heard, self.cut = word, heard, 0
        self.spared = spared
        self.server = server
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.door.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,),
                             daemon=True).start()

    def carry(self, client):
        with client, socket.create_connection(
                ("127.0.0.1", self.server.port)) as up:
            asked, answered = threading.Event(), threading.Event()
            threading.Thread(target=self.answer, daemon=True,
                             args=(up, client, asked, answered)).start()
            while data := client.recv(1 << 16):
                if self.word not in data or self.spared:
                    self.spared -= self.word in data
                    up.sendall(data)
                    continue
                self.cut += 1
                if self.heard:
                    asked.set()
                    up.sendall(data)
                    answered.wait(10)
                client.shutdown(socket.SHUT_RDWR)
                up.shutdown(socket.SHUT_RDWR)
                return
            up.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def answer(up, client, asked, answered):
        try:
            while data := up.recv(1 << 16):
                if asked.is_set():
                    answered.set()
                    return
                client.sendall(data)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.close()


def through(machine, server, schema, url):
    """The store's root, told of another way to its database."""
    (machine.root / "store.json").write_text(json.dumps(
        {"schema": "ballast/store/1", "db": f"{url}?schema={schema}"}))
    server.ask(f"UPDATE {schema}.settings SET value = '{url}"
               f"?schema={schema}' WHERE key = 'db'")
    cut = Machine(machine.path, server, "two", schema, url)
    cut.places = ["--root", machine.root, *cut.places[2:]]
    return cut


@pytest.mark.parametrize("heard", [True, False])
def test_a_commit_whose_answer_is_lost_is_not_told_as_done(
        tmp_path, server, schema, machine, heard):
    machine("commit", model(tmp_path / "m"), "-m", "first")
    model(tmp_path / "n", (5, 6))
    # What is written last before the answer: the ref's move.
    with Proxy(server, b"UPDATE changes", heard) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        cut = through(machine, server, schema, url)
        result = cut("commit", "n", "-m", "second", code=None)
        assert proxy.cut
    assert result.code == 7
    assert "not known" in result.err and "done again" not in result.out


@pytest.mark.parametrize("spared, planned", [(0, False), (1, True)])
def test_who_has_lost_the_hold_on_the_store_takes_nothing_away(
        tmp_path, server, schema, machine, spared, planned):
    machine("commit", model(tmp_path / "m"), "-m", "x")
    before = files(tmp_path / "blocks")
    # What asks on the connection that has the hold.
    with Proxy(server, b"SELECT 1\0", False, spared) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        cut = through(machine, server, schema, url)
        result = cut("forget", "main", "--reason", "r", "--yes", code=7)
        assert proxy.cut and "hold on the store" in result.err
        assert files(tmp_path / "blocks") == before
    machine = through(machine, server, schema, server.url)
    assert machine("fsck").out == "consistent\n"
    machine("log", code=3 if planned else 0)
    assert (files(tmp_path / "blocks") == before) != planned


# ---- a server that is killed -------------------------------------------------

class Restarted(threading.Thread):
    """Kills the server again and again, and starts it."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.enough, self.kills = server, threading.Event(), 0

    def run(self):
        while not self.enough.is_set():
            self.server.kill()
            self.kills += 1
            self.server.start()
            self.enough.wait(0.1 * (1 + self.kills % 12))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.enough.set()
        self.join()


def rows_of(machine):
    """Oldest first; asked until there is a server to answer."""
    while True:
        result = machine("log", "--json", code=None)
        assert result.code in (0, 7, 8), result
        if result.code == 0:
            return [(row["message"], row["id"]) for row in result.lines][::-1]


def test_what_is_acknowledged_survives_a_killed_server(tmp_path):
    with Server() as server:
        machine = Machine(tmp_path, server)
        machine("commit", model(tmp_path / "m"), "-m", "first")
        done, gone = {"first"}, set()
        with Restarted(server) as restarted:
            for turn in range(ROUNDS):
                name = f"x{turn}"
                model(tmp_path / name, (turn, turn + 1))
                if machine("commit", name, "-m", name, code=None).code == 0:
                    done.add(name)
                machine("gc", code=None)
                if turn % 3 < 2:
                    continue
                name, commit = rows_of(machine)[-1]
                if name == "first":
                    continue
                # One that was cut short may have begun, and goes on later.
                done.discard(name)
                if machine("forget", commit, "--reason", "asked", "--yes",
                           code=None).code == 0:
                    gone.add(name)
        assert restarted.kills
        found = rows_of(machine)
        names = [name for name, _ in found]
        assert done <= set(names) and not gone & set(names)
        assert len(names) == len(set(names))
        for name, commit in found:
            machine("checkout", commit, "-o", f"out-{name}")
        machine("gc")
        assert machine("fsck").out == "consistent\n"
