"""Threads share a store; forks do not; Ctrl-C stops the work in C."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import ballast
from ballast import _native as native


def noise(seed, megabytes=1):
    rng = numpy.random.default_rng(seed)
    return {"w": rng.standard_normal(megabytes << 18, "f4")}


def test_two_threads_commit_at_once(store):
    def work(tenant):
        for i in range(8):
            store.commit(tenant, noise(len(tenant) * 100 + i), message=str(i))
        return [row.message for row in store.log(tenant)]

    with ThreadPoolExecutor(2) as pool:
        logs = list(pool.map(work, ["one", "three"]))
    assert logs == [[str(i) for i in range(7, -1, -1)]] * 2
    assert store.fsck()


def test_many_threads_commit_to_one_ref_and_lose_nothing(store):
    def work(i):
        return store.commit("acme", {"w": numpy.full(4, i)}, message=str(i)).id

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(work, range(24)))
    assert sorted(row.id for row in store.log("acme")) == sorted(made)


def test_many_threads_read_one_checkout(store):
    want = {f"w{i}": numpy.full(5000, i, "f4") for i in range(40)}
    store.commit("acme", want, message="m")
    checkout = store.checkout("acme")

    def work(name):
        return numpy.array_equal(checkout[name], want[name])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, list(want) * 5))


def test_closing_while_others_read_ends_nobody_s_call(store):
    store.commit("acme", noise(1, 8), message="m")
    for _ in range(20):
        checkout = store.checkout("acme")
        seen = []

        def work(checkout=checkout, seen=seen):
            try:
                while True:
                    seen.append(checkout["w"].size)
            except ValueError:
                seen.append("closed")

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.005)
        checkout.close()
        thread.join(20)
        assert seen[-1] == "closed"


def in_a_process_of_its_own(code, *args):
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "call",
    [
        "got.write(out, force=True)",
        "store.diff('acme', got, 'two')",
        "store.diff('acme', got.model, 'two')",
        "store.commit('acme', got.model, message='x', ref='x')",
    ],
)
def test_what_c_works_on_is_not_freed_by_closing_it(tmp_path, call):
    code = f"""if True:
        import sys, threading
        import numpy, ballast
        rng = numpy.random.default_rng(0)
        one = {{f"w{{i}}": rng.standard_normal((64, 256), "f4") for i in range(40)}}
        two = {{name: 2 * array for name, array in one.items()}}
        store = ballast.Store(sys.argv[1] + "/s", jobs=2)
        out = sys.argv[1] + "/out"
        store.commit("acme", one, message="one")
        store.commit("acme", two, message="two", ref="two")
        for _ in range(20):
            got = store.checkout("acme")
            def work():
                try:
                    {call}
                except ValueError as error:
                    assert "closed" in str(error), error
            thread = threading.Thread(target=work)
            thread.start()
            threading.Event().wait(rng.random() / 50)
            got.close()
            thread.join()
        print("whole", bool(store.fsck()))
    """
    assert in_a_process_of_its_own(code, tmp_path) == ["whole", "True"]


def test_the_interpreter_goes_on_during_a_call(store):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    store.commit("acme", noise(2, 64), message="m")
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = sum(begin < at < end for at in ticks)
    assert inside > (end - begin) / 0.002 / 20


def test_progress_is_told_in_the_calling_thread(store):
    told = []

    def progress(done, total):
        told.append((done, total, threading.get_ident()))

    while not told:
        data = noise(len(store.log("acme")) if store.refs("acme") else 0, 192)
        store.commit("acme", data, message="m", progress=progress)
    assert {ident for _, _, ident in told} == {threading.get_ident()}
    assert all(done <= total for done, total, _ in told if total)


def slow(store, progress):
    """A call that takes longer than the library waits before it asks."""
    for seed in range(5):
        store.commit("acme", noise(seed, 256), message="m", progress=progress)


def test_progress_that_says_false_cancels_and_nothing_is_there(store):
    with pytest.raises(ballast.Cancelled):
        slow(store, lambda done, total: False)
    assert store.refs("acme") == {}
    assert store.fsck()


def test_an_exception_in_progress_is_raised_as_it_is(store):
    def progress(done, total):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        slow(store, progress)
    assert store.refs("acme") == {}


def test_a_program_is_interrupted_in_the_middle_of_a_commit(tmp_path):
    code = """if True:
        import sys, threading, time, os, signal
        import numpy, ballast
        store = ballast.Store(sys.argv[1])
        store.commit("acme", {"w": numpy.zeros(4)}, message="before")
        handler = signal.getsignal(signal.SIGINT)
        rng = numpy.random.default_rng(0)
        data = {"w": rng.standard_normal(256 << 18, "f4")}
        def kill():
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
        killer = threading.Thread(target=kill)
        begin = time.perf_counter()
        try:
            killer.start()
            store.commit("acme", data, message="during")
            print("not interrupted")
        except KeyboardInterrupt as error:
            print(type(error).__name__, time.perf_counter() - begin < 5)
        assert signal.getsignal(signal.SIGINT) is handler
        print([row.message for row in store.log("acme")], bool(store.fsck()))
    """
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "s"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["KeyboardInterrupt True", "['before'] True"]
    assert done.stderr == ""


def test_a_signal_s_own_handler_runs_and_work_goes_on(store):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        store.commit("acme", noise(3, 128), message="m")
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
    assert len(store.log("acme")) == 1


def test_an_interrupt_in_a_walk_is_not_lost(store):
    for i in range(3):
        store.commit("acme", {"w": numpy.full(4, i)}, message=str(i))

    def row(pointer):
        os.kill(os.getpid(), signal.SIGINT)

    with store.scope("acme") as scope, pytest.raises(KeyboardInterrupt):
        native.walk(
            native.bal_commit_fn,
            row,
            native.lib.bal_log,
            scope.tenant,
            scope.resolve("main"),
            0,
        )
    assert len(store.log("acme")) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_must_open_its_own(store):
    store.commit("acme", noise(4), message="m")
    checkout = store.checkout("acme")
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        texts = []
        for call in (
            lambda: store.refs("acme"),
            lambda: checkout["w"],
            lambda: store.commit("acme", noise(5), message="m"),
        ):
            try:
                call()
                texts.append("went through")
            except RuntimeError as error:
                texts.append("fork" if "fork" in str(error) else str(error))
            except BaseException as error:
                texts.append(repr(error))
        checkout.close()
        store.close()
        with ballast.Store(store.root) as own:
            texts.append(str(len(own.log("acme"))))
        os.write(writes, " ".join(texts).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as stream:
        assert stream.read() == "fork fork fork 1"
    assert os.waitpid(child, 0)[1] == 0
    assert len(store.log("acme")) == 1
    assert checkout["w"].size == 1 << 18


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_is_given_nothing_that_was_read_ahead(tmp_path):
    code = """if True:
        import os, signal, sys, threading
        import numpy, ballast
        store = ballast.Store(sys.argv[1])
        given = {f"w{i}": numpy.full(4000, i, "f4") for i in range(40)}
        store.commit("acme", given, message="m")
        got = store.checkout("acme")
        names = list(got)
        got[names[0]], got[names[1]]
        def tell(name):
            signal.alarm(20)
            try:
                got[name]
                word = "given"
            except RuntimeError as error:
                word = "fork" if "fork" in str(error) else repr(error)
            os.write(1, word.encode() + b"\\n")
            os._exit(0)
        with got._lock:
            for name in (names[2], names[7]):
                child = os.fork()
                if child == 0:
                    thread = threading.Thread(target=tell, args=(name,))
                    thread.start()
                    thread.join()
                assert os.waitpid(child, 0)[1] == 0
    """
    assert in_a_process_of_its_own(code, tmp_path) == ["fork", "fork"]


def test_a_signal_s_handler_may_read_the_checkout_that_is_read(store):
    store.commit("acme", {f"w{i}": numpy.full(4, i) for i in range(4)}, message="m")
    got = store.checkout("acme")
    seen = []

    def handler():
        with got._lock:  # as while it reads ahead
            seen.append(got["w0"][0])

    thread = threading.Thread(target=handler, daemon=True)
    thread.start()
    thread.join(20)
    assert seen == [0]
