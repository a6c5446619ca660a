"""Rounds of opening, committing, reading and closing leave nothing behind.

BALLAST_ROUNDS says how many: 10000 is what the package promises. They are done in
a process that has done nothing else.
"""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy
import pytest

import ballast

ROUNDS = int(os.environ.get("BALLAST_ROUNDS", "1000"))
WARM_UP = 200
GROWTH = 2 << 20
PREFIX = "base_model.model.model.layers.0.self_attn.q_proj"
CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}


def held():
    """Bytes in memory, open files, threads (of C, too).

    What was freed is given back first: SQLite needs some MB every thousandth page
    or so that it writes, and where they lay the heap stays large.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as stream:
        rss = int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return (
        rss,
        len(os.listdir("/proc/self/fd")),
        len(os.listdir("/proc/self/task")),
        threading.active_count(),
    )


def adapter(number):
    a = numpy.full((4, 64), number, "f4")
    b = numpy.full((64, 4), -number, "f4")
    return {f"{PREFIX}.lora_A.weight": a, f"{PREFIX}.lora_B.weight": b}


def work(root, first, count):
    """Each round its own commit; what it gives is read in part and dropped."""
    name = f"{PREFIX}.lora_A.weight"
    for number in range(first, first + count):
        with ballast.Store(root, jobs=2) as store:
            store.commit("acme", adapter(number), config=CONFIG, message=str(number))
            checkout = store.checkout("acme")
            assert checkout[name][0, 0] == number
            if number % 2:
                checkout.close()


def is_instrumented():
    """AddressSanitizer keeps what is freed, and tells of leaks itself."""
    with open("/proc/self/maps") as stream:
        return "libasan" in stream.read()


def report(root, rounds):
    """What is held after the warm-up and each thousand rounds, a line each."""
    work(root, 0, WARM_UP)
    print(0, *held())
    for first in range(0, rounds, 1000):
        count = min(1000, rounds - first)
        work(root, WARM_UP + first, count)
        print(first + count, *held(), flush=True)


@pytest.mark.skipif(is_instrumented(), reason="freed memory is kept")
def test_rounds_of_commit_and_checkout_leave_nothing_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, __file__, tmp_path / "s", str(ROUNDS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert rows[-1][0] == ROUNDS
    for _, rss, *others in rows:
        assert others == rows[0][2:], done.stdout
        assert rss - rows[0][1] < GROWTH, done.stdout


if __name__ == "__main__":
    report(sys.argv[1], int(sys.argv[2]))
