"""gc takes what nothing needs and nothing else; stats add up."""

import fcntl

from support import Store, in_files, model
from test_damage import change
from test_heal import shared

KEYS = ("commits", "manifests", "blocks", "logical_bytes", "unique_bytes",
        "stored_bytes")


def stats(store, *more):
    told = store("--json", "stats", *more).json
    assert told["dedup_ratio"] == (told["logical_bytes"] /
                                   told["unique_bytes"]
                                   if told["unique_bytes"] else 1)
    return {key: told[key] for key in KEYS}


def test_stats_of_tenants_add_up_also_after_a_deletion(tmp_path):
    store = shared(tmp_path)
    other = Store(tmp_path, "zeta")
    for _ in range(2):
        one, two = stats(store), stats(other)
        assert stats(store, "--all") == {key: one[key] + two[key]
                                         for key in KEYS}
        store("forget", "--reason", "test", "--yes", code=None)
    assert not any(stats(store).values())
    stored = sum(file.stat().st_size
                 for file in store.root.glob("blocks/zeta/*/*"))
    assert stats(other)["stored_bytes"] == stored


def test_gc_takes_unused_rows_orphans_and_stale_cache(tmp_path):
    store = shared(tmp_path)
    other = Store(tmp_path, "zeta")
    other("checkout", "v", "-o", "out")
    cached = sorted(store.root.glob("cache/zeta/*/*"))
    assert cached
    assert other("gc").out == "freed 0 bytes\n"
    change(store, "DELETE FROM uses", "DELETE FROM inputs",
           "DELETE FROM refs", "DELETE FROM moves", "DELETE FROM commits",
           "DELETE FROM manifests",
           "DELETE FROM blocks WHERE number % 2")
    gone = sum(file.stat().st_size
               for file in [*store.root.glob("blocks/zeta/*/*"), *cached])
    assert other("gc", "--dry-run").out.startswith(f"freed {gone} bytes")
    assert other("gc").out == f"freed {gone} bytes\n"
    assert not list(store.root.glob("blocks/zeta"))
    assert not any(file.exists() for file in cached)
    assert list(store.root.glob("blocks/acme/*/*"))


@in_files
def test_gc_waits_for_a_writer_and_says_so(tmp_path):
    store = Store(tmp_path)
    store("commit", model(tmp_path / "m"), "-m", "m")
    with open(store.root / "lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        told = store("--wait", "0.1", "gc", code=8)
        assert "at work for another command" in told.err
    store("gc")
