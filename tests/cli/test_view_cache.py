"""Views that were resolved once are read from the cache, and never from a cache
that something was taken out of."""

import os
import pathlib
import re
import resource
import shutil

import pytest

from support import Store, adapter, f32, files, save

ROOT = os.geteuid() == 0
TRACE = {"BAL_TRACE": "store"}
# Of the view below: its header, the small tensor, four of the large one.
BLOCKS = 6


@pytest.fixture
def store(tmp_path):
    """A view `main` over two models of a large and a small tensor."""
    made = Store(tmp_path)
    made("init", "--block-size", "4K")
    for name, factor in (("a", 1), ("b", 3)):
        save(tmp_path / name / "model.safetensors", {
            "small": ("F32", (4,), f32(factor, 2, 3, 4)),
            "w": ("F32", (4096,), f32(*range(0, 4096 * factor, factor)))})
        made("commit", name, "-m", name, "--ref", name)
    made("merge", "a@0.5", "b@0.5", "-m", "view")
    return made


def cached(store):
    """The blocks in the cache, by path."""
    return sorted(path for path in (store.root / "cache").glob("*/*/*")
                  if not path.parent.parent.name.startswith("."))


def checkout(store, out, *words, ref="main", **more):
    """A checkout, and how many blocks came from the cache and from resolving."""
    told = store("checkout", ref, "-o", store.path / out, "--force", *words,
                 env=TRACE, **more).err
    return (len(re.findall("view-block=[0-9]+ cached", told)),
            len(re.findall("view-block=[0-9]+ resolved", told)))


def test_the_first_checkout_fills_and_the_second_reads(store):
    assert checkout(store, "one") == (0, BLOCKS)
    assert len(cached(store)) == BLOCKS
    assert checkout(store, "two") == (BLOCKS, 0)
    assert files(store.path / "one") == files(store.path / "two")


def test_what_comes_from_the_cache_is_what_is_resolved(store):
    checkout(store, "filled")
    checkout(store, "from-cache")
    assert checkout(store, "without", "--no-cache") == (0, 0)
    for out in ("filled", "from-cache"):
        assert files(store.path / out) == files(store.path / "without")


def test_no_cache_neither_reads_nor_fills(store):
    checkout(store, "one", "--no-cache")
    assert not (store.root / "cache").exists()
    checkout(store, "two")
    times = {path: path.parent.stat().st_mtime_ns for path in cached(store)}
    assert checkout(store, "three", "--no-cache") == (0, 0)
    assert times == {path: path.parent.stat().st_mtime_ns
                     for path in cached(store)}


@pytest.mark.parametrize("size", ["0", "16K"])
def test_a_cap_of_zero_or_too_small_for_the_view_turns_it_off(store, size):
    assert store("config", "view_cache").out == "4G\n"
    assert store("config", "view_cache", size).out == f"{size}\n"
    assert checkout(store, "one") == (0, 0)
    assert not (store.root / "cache").exists()


@pytest.mark.parametrize("value", ["", "much", "-1", "4X"])
def test_a_cap_that_is_no_size_is_refused(store, value):
    store("config", "view_cache", value, code=2)
    assert store("config", "view_cache").out == "4G\n"


def damage(path, how):
    raw = path.read_bytes()
    path.write_bytes(how(raw))


@pytest.mark.parametrize("how", [
    lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), lambda raw: raw[:-1],
    lambda raw: raw + b"x", lambda raw: b"", lambda raw: raw[:40],
    lambda raw: raw[:8] + bytes([raw[8] ^ 1]) + raw[9:],
    lambda raw: raw[:40] + bytes([raw[40] ^ 1]) + raw[41:],
    lambda raw: raw[:64] + bytes([raw[64] ^ 1]) + raw[65:],
    lambda raw: b"x" + raw[1:], lambda raw: bytes(len(raw)),
], ids=["bit", "cut", "longer", "empty", "head", "manifest", "number", "hash",
        "magic", "zeros"])
def test_a_damaged_block_is_passed_over_and_made_again(store, how):
    checkout(store, "one")
    damage(cached(store)[1], how)
    assert checkout(store, "two") == (BLOCKS - 1, 1)
    assert files(store.path / "one") == files(store.path / "two")
    assert checkout(store, "three") == (BLOCKS, 0)


def test_a_block_of_another_place_is_passed_over(store):
    checkout(store, "one")
    blocks = cached(store)
    shutil.copy(blocks[1], blocks[2])
    assert checkout(store, "two") == (BLOCKS - 1, 1)
    assert files(store.path / "one") == files(store.path / "two")


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_what_is_no_file_in_the_cache_does_no_harm(store, kind):
    checkout(store, "one")
    block = cached(store)[0]
    block.unlink()
    {"folder": block.mkdir, "fifo": lambda: os.mkfifo(block),
     "link": lambda: block.symlink_to("/nonexistent")}[kind]()
    checkout(store, "two")
    assert files(store.path / "one") == files(store.path / "two")


@pytest.mark.parametrize("command", [["gc"], ["fsck", "--repair"]])
def test_a_link_in_place_of_a_view_is_removed_and_not_what_it_leads_to(
        store, command):
    checkout(store, "one")
    elsewhere = store.path / "elsewhere"
    (elsewhere / "folder").mkdir(parents=True)
    (elsewhere / "0").write_text("mine")
    (elsewhere / "folder" / "x").write_text("mine")
    view = cached(store)[0].parent
    shutil.rmtree(view)
    view.symlink_to(elsewhere)
    store(*command, code=None)
    assert (elsewhere / "0").read_text() == "mine"
    assert (elsewhere / "folder" / "x").read_text() == "mine"
    assert not view.is_symlink()


def test_a_huge_file_in_the_cache_is_read_in_pieces(store):
    checkout(store, "one")
    block = cached(store)[0]
    head = block.read_bytes()[:56] + (1 << 31).to_bytes(8, "little")
    with open(block, "wb") as file:
        file.write(head)
        file.truncate(96 + (1 << 31))
    done = store("fsck", "--json", code=1)
    assert [p["kind"] for p in done.json["problems"]] == ["stale-cache"]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20


def test_the_cap_takes_the_view_that_was_used_longest_ago(store):
    for i, weight in enumerate((0.1, 0.2, 0.3, 0.4)):
        store("merge", f"a@{weight}", "b", "-m", "x", "--ref", f"v{i}")
    store("config", "view_cache", "64K")  # three views of 16 KiB and a bit
    for i in (0, 1, 2):
        checkout(store, "out", ref=f"v{i}")
    assert checkout(store, "out", ref="v0") == (BLOCKS, 0)
    checkout(store, "out", ref="v3")
    assert sum(path.stat().st_size for path in cached(store)) <= 64 << 10
    assert checkout(store, "out", ref="v0") == (BLOCKS, 0)
    assert checkout(store, "out", ref="v1")[1] == BLOCKS


def test_revoke_takes_the_broken_views_out_and_leaves_the_others(store):
    other = Store(store.path, "partner")
    store("grant", "a", "--to", "partner")
    other("merge", "acme:a", "-m", "view")
    checkout(other, "theirs")
    checkout(store, "mine")
    assert {path.parent.parent.name for path in cached(store)} == {
        "acme", "partner"}
    store("revoke", "a", "--to", "partner")
    assert {path.parent.parent.name for path in cached(store)} == {"acme"}
    assert checkout(store, "again") == (BLOCKS, 0)
    other("checkout", "main", "-o", "no", code=9)
    store("grant", "a", "--to", "partner")
    assert checkout(other, "once-more")[0] == 0


def test_a_cache_of_an_older_epoch_is_emptied_before_it_is_used(store):
    """As where another root with the same database has revoked."""
    checkout(store, "one")
    old = store.path / "old-cache"
    shutil.copytree(store.root / "cache", old)
    store("grant", "a", "--to", "partner")
    store("revoke", "a", "--to", "partner")
    store("grant", "a", "--to", "partner")
    store("revoke", "a", "--to", "partner")
    shutil.rmtree(store.root / "cache")
    shutil.copytree(old, store.root / "cache")
    assert checkout(store, "two") == (0, BLOCKS)
    assert checkout(store, "three") == (BLOCKS, 0)


@pytest.mark.parametrize("text", [None, "", "x", "-1", "9" * 100])
def test_a_cache_that_does_not_tell_its_epoch_is_emptied(store, text):
    checkout(store, "one")
    epoch = store.root / "cache" / ".epoch"
    epoch.unlink() if text is None else epoch.write_text(text)
    assert checkout(store, "two") == (0, BLOCKS)
    assert checkout(store, "three") == (BLOCKS, 0)


def test_what_a_killed_writer_left_goes_with_the_next_that_writes(store):
    checkout(store, "one")
    left = store.root / "cache" / ".tmp" / "acme:00:1"
    left.write_bytes(b"x")
    also = store.root / "cache" / ".epoch.tmp-1234"
    also.write_bytes(b"x")
    store("merge", "a", "b", "-m", "another", "--ref", "y")
    assert not left.exists() and not also.exists()
    assert len(cached(store)) == BLOCKS


def test_a_cache_that_cannot_be_made_is_done_without(store):
    (store.root / "cache").write_bytes(b"a file is in the way")
    checkout(store, "one")
    checkout(store, "two", "--no-cache")
    assert files(store.path / "one") == files(store.path / "two")


@pytest.mark.skipif(ROOT, reason="root writes everywhere")
def test_a_store_that_cannot_be_written_is_read(store):
    checkout(store, "one", "--no-cache")
    store.root.chmod(0o555)
    try:
        checkout(store, "two")
    finally:
        store.root.chmod(0o755)
    assert not (store.root / "cache").exists()
    assert files(store.path / "one") == files(store.path / "two")


def test_a_view_of_views_is_kept_as_one(store):
    store("merge", "main@0.5", "a@0.5", "-m", "upper", "--ref", "upper")
    assert checkout(store, "one", ref="upper")[1] == BLOCKS
    assert len({path.parent for path in cached(store)}) == 1
    assert checkout(store, "two", ref="upper") == (BLOCKS, 0)
    assert files(store.path / "one") == files(store.path / "two")


def test_one_tensor_of_a_view_resolves_its_own_blocks_alone(store):
    store("cat", "main", "small")
    assert len(cached(store)) == 1


def test_adapters_come_out_of_the_cache_as_they_went_in(tmp_path):
    made = Store(tmp_path)
    for name, scale in (("x", 1.0), ("y", 2.0)):
        adapter(tmp_path / name, scale)
        made("commit", name, "-m", name, "--ref", name)
    made("merge", "x", "y@0.5", "--no-normalize", "-m", "both")
    one, two = (made.path / name for name in ("one", "two"))
    made("checkout", "main", "-o", one)
    assert cached(made)
    made("checkout", "main", "-o", two)
    assert files(one) == files(two)


def test_no_path_of_the_machine_is_in_the_cache(store):
    checkout(store, "one")
    for path in pathlib.Path(store.root / "cache").rglob("*"):
        if path.is_file():
            assert os.fsencode(store.path) not in path.read_bytes()
