"""Rounds of opening, committing, reading and closing leave nothing behind.

BALLAST_ROUNDS says how many: 10000 is what the package promises.
"""

import ctypes
import gc
import os
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


@pytest.mark.skipif(is_instrumented(), reason="freed memory is kept")
def test_rounds_of_commit_and_checkout_leave_nothing_behind(tmp_path):
    work(tmp_path / "s", 0, WARM_UP)
    rss, *rest = held()
    done = 0
    while done < ROUNDS:
        count = min(1000, ROUNDS - done)
        work(tmp_path / "s", WARM_UP + done, count)
        done += count
        now, *others = held()
        print(f"after {done}: {(now - rss) / 1024:+.0f} KiB of {rss >> 10}")
        assert others == rest
        assert now - rss < GROWTH, f"after {done} rounds"
