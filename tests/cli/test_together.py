"""Several at once, signals, full and read-only disks, closed pipes."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from support import (BALLAST, Store, environment, files, in_files, model, run,
                     save)

ROOT = os.geteuid() == 0


def start(store, *args, **more):
    words = [BALLAST, "--root", store.root, "--tenant", store.tenant, *args]
    # What a shell starts in the background ignores SIGINT, and hands that on.
    more.setdefault("preexec_fn",
                    lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    return subprocess.Popen([os.fspath(word) for word in words],
                            cwd=store.path, env=environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **more)


@pytest.mark.parametrize("made", [True, False], ids=["store", "no-store"])
def test_eight_writers_of_one_ref_lose_nothing(tmp_path, made):
    store = Store(tmp_path)
    if made:
        store("init")
    for i in range(8):
        model(tmp_path / f"m{i}", (i, i + 1))
    running = [start(store, "commit", f"m{i}", "-m", f"writer {i}", "--json")
               for i in range(8)]
    ends = [(process.communicate(timeout=120), process.returncode)
            for process in running]
    done = [i for i, (_, code) in enumerate(ends) if code == 0]
    for (_, err), code in ends:
        assert code in (0, 5, 8), err
    assert done
    messages = [row["message"] for row in store("log", "--json").lines]
    assert sorted(messages) == sorted(f"writer {i}" for i in done)
    assert len(store("reflog", "main").out.splitlines()) == len(done)
    assert store("fsck").out == "consistent\n"


def test_eight_writers_of_eight_refs_all_succeed(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m")
    running = [start(store, "commit", "m", "-m", f"x{i}", "--ref", f"r{i}")
               for i in range(8)]
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert len(store("refs").out.splitlines()) == 8
    assert store("fsck").out == "consistent\n"


def test_fsck_finds_nothing_wrong_with_writers_at_work(tmp_path):
    store = Store(tmp_path)
    store("init")
    started = 0
    for turn in range(6):
        running = []
        for i in range(4):
            values = range(started, started + 4096)
            model(tmp_path / f"m{started}", values)
            running.append(start(store, "commit", f"m{started}", "-m", "x",
                                 "--ref", f"r{i}"))
            started += 1
        while any(process.poll() is None for process in running):
            assert store("fsck").out == "consistent\n", turn
        for process in running:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err


def test_a_gc_at_once_with_the_first_writers_takes_nothing(tmp_path):
    for turn in range(4):
        (tmp_path / f"t{turn}").mkdir()
        store = Store(tmp_path / f"t{turn}")
        store("init")
        running = []
        for i in range(4):
            model(store.path / f"m{i}", range(i, i + 4096))
            running.append(start(store, "commit", f"m{i}", "-m", "x", "--ref",
                                 f"r{i}"))
            running.append(start(store, "gc"))
        for process in running:
            _, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
        assert store("fsck").out == "consistent\n"


def test_two_checkouts_to_one_folder_leave_one_whole(tmp_path):
    store = Store(tmp_path)
    model(tmp_path / "m", range(4096))
    store("commit", "m", "-m", "x")
    running = [start(store, "checkout", "main", "-o", "out")
               for _ in range(4)]
    codes = []
    for process in running:
        process.communicate(timeout=120)
        codes.append(process.returncode)
    assert 0 in codes and set(codes) <= {0, 5}
    got = files(tmp_path / "out")
    got.pop("ballast.json")
    assert got == files(tmp_path / "m")
    assert not [name for name in os.listdir(tmp_path)
                if name not in ("m", "out", "store")]


def large(path, size, seed=0):
    """One BF16 tensor of noise: work that lasts."""
    data = np.random.default_rng(seed).bytes(size)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save(path, {f"w{seed}": ("BF16", (size // 2,), data)})


@pytest.mark.parametrize("number, status", [
    (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_things_as_they_were(tmp_path, number, status):
    store = Store(tmp_path)
    model(tmp_path / "small")
    store("commit", "small", "-m", "before")
    large(tmp_path / "big" / "model.safetensors", 768 << 20)
    stopped = 0
    # How long it works depends on the machine: try until it was caught at it.
    # What it has stored once it need not store again, so early tries come first.
    for delay in [0.02, 0.05, 0.1, 0.2] + [0.01 * n for n in range(1, 40)]:
        if stopped == 2:
            break
        process = start(store, "commit", "big", "-m", "after", "-j", "1")
        time.sleep(delay)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        # A signal may come before the program listens, or too late.
        assert process.returncode in (status, -number, 0), err
        if process.returncode == status:
            stopped += 1
            assert out == "" and err.startswith("ballast: ")
            assert len(store("log").out.splitlines()) == 1
        if process.returncode == 0:
            store("reset", "main", "main~1")
    assert stopped
    assert store("fsck").out == "consistent\n"
    store("commit", "small", "-m", "next", "--allow-empty")
    left = [file for file in store.root.rglob("*") if "tmp" in file.name
            and file.is_file()]
    assert left == []


def test_a_signal_in_checkout_leaves_no_folder(tmp_path):
    store = Store(tmp_path)
    large(tmp_path / "big" / "model.safetensors", 256 << 20)
    store("commit", "big", "-m", "x", "--ref", "big")
    before = set(os.listdir(tmp_path))
    for delay in (0.03, 0.06, 0.12):
        process = start(store, "checkout", "big", "-o", "out", "--json")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == 130:
            assert '"code":"cancelled"' in err and '"exit":130' in err
            assert set(os.listdir(tmp_path)) == before
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_the_reader_may_go_away(tmp_path):
    store = Store(tmp_path)
    tensors = {f"layer{i:06}": ("F32", (0,), b"") for i in range(20000)}
    save(tmp_path / "many.safetensors", tensors)
    store("commit", "many.safetensors", "-m", "x")
    process = start(store, "ls", "main")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (0, -signal.SIGPIPE, 141)
    assert err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("words", [["log"], ["show", "main"], ["cat", "main",
                                   "w"], ["help"], ["--version"],
                                   ["stats", "--json"]])
def test_a_result_that_cannot_be_written_is_7(tmp_path, words):
    store = Store(tmp_path)
    model(tmp_path / "m")
    store("commit", "m", "-m", "x")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [BALLAST, "--root", store.root, "--tenant", "acme", *words],
            stdout=full, stderr=subprocess.PIPE, env=environment(),
            check=False)
    assert done.returncode == 7
    assert b"no space left" in done.stderr


def test_a_closed_stdout_is_7(tmp_path):
    done = subprocess.run(["sh", "-c", 'exec "$0" help >&-', BALLAST],
                          capture_output=True, env=environment(), check=False)
    assert done.returncode == 7


@pytest.fixture(name="small_disk")
def mounted(tmp_path):
    """A tmpfs of 8 MiB; only root can have one."""
    if not ROOT:
        pytest.skip("only root mounts")
    path = tmp_path / "disk"
    path.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, b"size=8m"):
        pytest.skip("no mounts here")
    yield path
    libc.umount2(os.fsencode(path), 2)


def test_a_full_disk_is_a_clear_error_and_nothing_is_lost(tmp_path,
                                                          small_disk):
    store = Store(small_disk)
    model(tmp_path / "small")
    tensors = {"w": ("U8", (32 << 20,), os.urandom(32 << 20))}
    save(tmp_path / "big" / "model.safetensors", tensors)
    save(tmp_path / "more" / "model.safetensors",
         {"w": ("U8", (32 << 20,), bytes(32 << 20))})
    store("commit", tmp_path / "small", "-m", "before")
    done = store("commit", tmp_path / "big", "-m", "after", "--json", code=7)
    assert done.error["code"] == "io"
    assert len(store("log").out.splitlines()) == 1
    assert store("fsck").out == "consistent\n"
    store("commit", tmp_path / "more", "-m", "zeros fit", "--ref", "more")
    store("checkout", "more", "-o", "out", code=7)
    assert sorted(os.listdir(small_disk)) == ["store"]
    store("checkout", "main", "-o", "out")
    assert store("fsck").out == "consistent\n"


def test_a_file_that_a_disk_has_no_room_for_is_named(tmp_path, small_disk):
    rng = np.random.default_rng(1)
    for name in ("base", "tuned"):
        save(tmp_path / name / "model.safetensors",
             {"w": ("BF16", (8 << 20,), rng.bytes(16 << 20))})
    store = Store(tmp_path)
    done = store("wdelta", "save", "tuned", "--base", "base", "--strategy",
                 "lossless", "-o", small_disk / "x.wdelta", code=7)
    assert "x.wdelta" in done.err and "no space left" in done.err
    assert os.listdir(small_disk) == []


def drop_root():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


@pytest.fixture(name="program", scope="module")
def copied(tmp_path_factory):
    """The program where anybody may run it."""
    path = pathlib.Path("/tmp") / f"ballast-test-{os.getpid()}"
    path.mkdir(mode=0o755)
    shutil.copy(BALLAST, path / "ballast")
    yield path
    shutil.rmtree(path)


@in_files
def test_read_only_places_are_7_and_untouched(program):
    store = Store(program)
    model(program / "m")
    model(program / "n", (5, 6))
    store("commit", "m", "-m", "x")
    os.mkdir(program / "locked", 0o555)
    # Opening a store's database to read it may write beside it.
    for folder, _, _ in os.walk(program):
        if folder != str(program / "locked"):
            os.chmod(folder, 0o755)

    def as_nobody(*args):
        words = [program / "ballast", "--root", store.root, "--tenant",
                 "acme", *args, "--json"]
        return subprocess.run([os.fspath(word) for word in words],
                              cwd=program, capture_output=True, text=True,
                              env=environment(), check=False,
                              preexec_fn=drop_root if ROOT else None)

    rows = [("commit", "n", "-m", "y"), ("reset", "other", "main"),
            ("--root", program / "locked" / "s", "commit", "n", "-m", "y"),
            ("checkout", "main", "-o", program / "locked" / "out")]
    if not ROOT:
        rows = rows[2:]
    for row in rows:
        done = as_nobody(*row)
        assert done.returncode == 7, (row, done)
        assert '"code":"io"' in done.stderr
    assert os.listdir(program / "locked") == []
    assert len(store("log").out.splitlines()) == 1
    assert store("fsck").out == "consistent\n"
