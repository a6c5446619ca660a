"""sync-vllm where servers fail, are started anew, or have no room, and where it
is killed itself: what comes next ends where it should."""

import json
import signal
import subprocess
import threading
import time

import pytest

from fleets import LOAD, UNLOAD, Fleet, Proxy, emptied, engines, loaded
from servers import Fake
from support import BALLAST, environment

DEADLINE = 30


@pytest.fixture(name="fleet")
def made_fleet(tmp_path):
    return Fleet(tmp_path)


@pytest.fixture(name="started", scope="module")
def started_vllm():
    with engines("vllm") as fake:
        yield fake


@pytest.fixture(name="vllm")
def empty_vllm(started):
    return emptied(started)


def start(fleet, *words, urls):
    return subprocess.Popen(
        [BALLAST, "--root", fleet.root, "--tenant", fleet.tenant, "--json",
         *fleet.arguments(*words, urls=urls)],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def until(holds):
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


# What a server does to one request, where, and the exit status of the sync that
# meets it. The next one has to make good.
FAULTS = [
    ("500", "/v1/load", 4), ("500", "/v1/unload", 4), ("500", "/v1/models", 4),
    ("503", "/v1/load", 0), ("429", "/v1/unload", 0),
    ("drop", "/v1/load", 0), ("drop", "/v1/unload", 0),
    ("drop", "/v1/models", 0), ("cut", "/v1/models", 0),
    ("cut", "/v1/load", 0), ("cut", "/v1/unload", 0),
    ("junk", "/v1/models", 4), ("junk", "/v1/load", 0),
    ("hang", "/v1/load", 7), ("hang", "/v1/models", 7),
]


@pytest.mark.parametrize("how,where,code", FAULTS,
                         ids=[f"{row[0]}-{row[1]}" for row in FAULTS])
def test_a_request_that_fails_is_made_good(fleet, vllm, how, where, code):
    fleet.commit("a")
    kept = fleet.commit("b")
    fleet.sync(to=vllm)
    fleet.commit("a")
    # A refused load is tried again once the old version is gone.
    times = 2 if how == "500" and "/load" in where else 1
    vllm.set(fail=1, fail_how=how, fail_path=where, fail_times=times)
    words = ["--timeout", "0.5"] if how == "hang" else []
    fleet.sync(*words, to=vllm, code=code)
    vllm.set(fail=0)
    assert kept in loaded(vllm)
    fleet.sync(to=vllm)
    assert set(loaded(vllm)) == fleet.wanted()
    assert fleet.folders() == set(fleet.refs().values())


def test_a_folder_stays_until_its_unload_was_seen(fleet, vllm):
    old = fleet.commit("a")
    status = [500]

    def refuse(asked):
        if asked.path == UNLOAD["vllm"] and status:
            asked.say(status[0], {"error": {"message": "not\x1b[31m now"}})
            return True
        return False

    with Proxy(vllm.url, refuse) as proxy:
        fleet.sync(to=proxy)
        new = fleet.commit("a")
        done = fleet.sync(to=proxy, code=4)
        assert done["loaded"] == [new]
        assert done["failed"] == {
            old: "the server answered 500: not\\x1b[31m now"}
        # One that says that it did and did not.
        status[0] = 200
        assert fleet.sync(to=proxy, code=4)["failed"] == {
            old: "it is still listed after it was unloaded"}
        assert len(fleet.folders()) == 2 and len(loaded(vllm)) == 2
        status.clear()
        assert fleet.sync(to=proxy)["unloaded"] == [old]
        assert len(fleet.folders()) == 1 and set(loaded(vllm)) == {new}


def test_a_load_that_is_not_seen_has_failed(fleet, vllm):
    name = fleet.commit("a")

    def pretend(asked):
        if asked.path != LOAD["vllm"]:
            return False
        asked.say(200, b"Success")
        return True

    with Proxy(vllm.url, pretend) as proxy:
        assert fleet.sync(to=proxy, code=4)["failed"] == {
            name: "it is not listed after it was loaded"}
        proxy.hook = None
        assert fleet.sync(to=proxy)["loaded"] == [name]


class Slots:
    """Refuses what is more than so many."""

    def __init__(self, fake, count):
        self.fake, self.count = fake, count

    def __call__(self, asked):
        if asked.path != LOAD["vllm"] or \
                len(loaded(self.fake)) < self.count:
            return False
        asked.say(500, {"error": {"message": "no room"}})
        return True


@pytest.mark.parametrize("words", [[], ["--slots", "2"]],
                         ids=["not-told", "told"])
def test_old_versions_make_room_where_there_is_none(fleet, vllm, words):
    a, b = fleet.commit("a"), fleet.commit("b")
    with Proxy(vllm.url, Slots(vllm, 2)) as proxy:
        fleet.sync(*words, to=proxy)
        newer = [fleet.commit("a"), fleet.commit("b")]
        refused = len(proxy.asked)
        done = fleet.sync(*words, to=proxy)
        assert (done["loaded"], done["unloaded"]) == (newer, [a, b])
        loads = [row for row in proxy.asked[refused:]
                 if row.path == LOAD["vllm"]]
        assert len(loads) == (2 if words else 4)


def test_what_a_server_never_takes_leaves_the_older_version(fleet, vllm):
    old = fleet.commit("a")
    other = fleet.commit("b")
    fleet.sync(to=vllm)
    bad = fleet.commit("a", rank=4)
    vllm.set(max_lora_rank=2)
    fleet("forget", "b", "--reason", "test")
    for again in range(2):
        before = len(vllm.log())
        done = fleet.sync(to=vllm, code=4)
        assert list(done["failed"]) == [bad] and not done["loaded"]
        assert done["unloaded"] == ([] if again else [other])
        assert set(loaded(vllm)) == {old}
    # It was asked for once, and the old one was left alone.
    assert [row["path"] for row in vllm.log()[before:]].count(
        LOAD["vllm"]) == 1
    assert len(fleet.folders()) == 2
    vllm.set(max_lora_rank=16)
    assert fleet.sync(to=vllm)["unloaded"] == [old]
    assert set(loaded(vllm)) == {bad}


def test_a_server_that_was_started_anew_is_filled_again(fleet):
    with Fake() as fake:
        names = [fleet.commit("a"), fleet.commit("b")]
        fleet.sync(to=fake)
        port = fake.url.rsplit(":", 1)[1]
    gone = fleet.commit("c")
    with Fake("--port", port) as fake:
        assert fleet.sync(to=fake)["loaded"] == [*names, gone]
    # What went from the refs meanwhile is not there to be unloaded.
    fleet("forget", "b", "--reason", "test")
    with Fake("--port", port) as fake:
        done = fleet.sync(to=fake)
        assert (done["loaded"], done["unloaded"]) == ([names[0], gone], [])
        assert fleet.folders() == set(fleet.refs().values())
    assert {name for rows in fleet.state()["servers"].values()
            for name in rows} == fleet.wanted()


# Killed with the load noted and not asked for, or done and not noted; then with
# the same to be done, or something else.
@pytest.mark.parametrize("moved", [False, True], ids=["same", "moved"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_what_was_begun_when_it_was_killed_is_finished(fleet, vllm, done,
                                                       moved):
    name = fleet.commit("a")
    there = threading.Event()

    def stop(asked):
        if asked.path != LOAD["vllm"] or there.is_set():
            return False
        if done:
            proxy.ask(asked)
        there.set()
        asked.hang()
        return True

    with Proxy(vllm.url, stop) as proxy:
        process = start(fleet, urls=[proxy.url])
        assert there.wait(DEADLINE)
        process.kill()
        process.communicate()
        (rows,) = fleet.state()["servers"].values()
        assert rows[name]["loaded_at"] is None
        assert set(loaded(vllm)) == ({name} if done else set())
        new = fleet.commit("a") if moved else name
        came = fleet.sync(to=proxy)
        assert came["unloaded"] == ([name] if done and moved else [])
        assert came["loaded"] == ([] if done and not moved else [new])
        assert set(loaded(vllm)) == {new}
        assert fleet.folders() == set(fleet.refs().values())
        (rows,) = fleet.state()["servers"].values()
        assert list(rows) == [new] and rows[new]["loaded_at"]


class Watch:
    """A sync that goes on, and its lines."""

    def __init__(self, fleet, *words, urls):
        self.process = start(fleet, "--watch", *words, urls=urls)

    def line(self):
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        rest, errors = self.process.communicate(timeout=DEADLINE)
        assert (self.process.returncode, errors) == (0, b"")
        return rest

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_watching_follows_refs_and_servers(fleet):
    old = fleet.commit("a")
    with Fake() as fake, Watch(fleet, "--every", "0.3",
                               urls=[fake.url]) as watch:
        first = watch.line()
        assert first["schema"] == "ballast/sync-vllm/1"
        assert first["loaded"] == [old]
        new = fleet.commit("a")
        line = watch.line()
        assert (line["loaded"], line["unloaded"]) == ([new], [old])
        more = fleet.commit("b")
        assert watch.line()["loaded"] == [more]
        # It goes away, which is told, and comes back with nothing.
        fake.process.kill()
        fake.process.wait()
        assert list(watch.line()["failed"]) == [new, more]
        with Fake("--port", fake.url.rsplit(":", 1)[1]) as again:
            until(lambda: set(loaded(again)) == {new, more})
            while watch.line()["loaded"] != [new, more]:
                pass
            assert watch.stop() == b""


def test_watching_does_not_hammer_what_refuses(fleet, vllm):
    fleet.commit("a", rank=4)
    vllm.set(max_lora_rank=2)
    before = len(vllm.log(LOAD["vllm"]))
    with Watch(fleet, "--every", "600", urls=[vllm.url]) as watch:
        assert len(watch.line()["failed"]) == 1
        name = fleet.commit("b")
        assert watch.line()["loaded"] == [name], "others do not wait"
        watch.stop()
    assert len(vllm.log(LOAD["vllm"])) < before + 6
