"""Copies of blocks on this machine: --cache DIR."""

import os
import pathlib
import shutil

import numpy as np
import pytest
from test_journal import begin, clear

from support import Store, files, save


def weights(path, seed):
    data = np.random.default_rng(seed).bytes(64 << 10)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save(path, {"w": ("U8", (len(data),), data)})


@pytest.fixture(name="store")
def made(tmp_path):
    store = Store(tmp_path)
    for seed in (1, 2):
        weights(tmp_path / f"m{seed}" / "model.safetensors", seed)
        store("commit", f"m{seed}", "-m", f"m{seed}", "--ref", f"r{seed}")
    return store


def cached(store, *words, **more):
    return store(*words, "--cache", "near", **more)


def copies(store):
    return [path for path in (store.path / "near").rglob("*:*")]


def blocks(store):
    return [path for path in (store.root / "blocks").rglob("*")
            if path.is_file() and ".tmp" not in path.parts]


def hide(store):
    os.rename(store.root / "blocks", store.path / "hidden")


def test_a_second_checkout_needs_no_backend(store):
    cached(store, "checkout", "r1", "-o", "first")
    assert copies(store)
    hide(store)
    cached(store, "checkout", "r1", "-o", "second")
    first, second = files(store.path / "first"), files(store.path / "second")
    assert first == second
    assert first["model.safetensors"] == files(store.path / "m1")["model.safetensors"]


def test_a_damaged_copy_is_read_anew(store):
    cached(store, "checkout", "r1", "-o", "first")
    for path in copies(store):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    cached(store, "checkout", "r1", "-o", "second")
    assert files(store.path / "first") == files(store.path / "second")
    hide(store)
    cached(store, "checkout", "r1", "-o", "third")


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 1000])
def test_a_torn_copy_is_read_anew(store, cut):
    cached(store, "checkout", "r1", "-o", "first")
    for path in copies(store):
        path.write_bytes(path.read_bytes()[:cut])
    cached(store, "checkout", "r1", "-o", "second")
    assert files(store.path / "first") == files(store.path / "second")


def test_fsck_and_verify_look_at_the_store_and_not_at_copies(store):
    cached(store, "checkout", "r1", "-o", "first")
    for path in blocks(store):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    done = cached(store, "fsck", code=1)
    assert "corrupt" in done.out


def test_what_is_forgotten_is_no_copy_after_the_next_read(store):
    cached(store, "checkout", "r1", "-o", "first")
    cached(store, "checkout", "r2", "-o", "other")
    before = {path.name for path in copies(store)}
    # Without --cache, as another machine would.
    store("forget", "r1", "--reason", "asked for", "--yes")
    cached(store, "checkout", "r2", "-o", "again")
    left = {path.name for path in copies(store)}
    assert left < before
    data = (store.path / "m1" / "model.safetensors").read_bytes()[-4096:]
    assert not any(data in path.read_bytes() for path in copies(store))


def test_who_forgets_with_a_cache_has_no_copy_left(store):
    cached(store, "checkout", "r1", "-o", "first")
    cached(store, "forget", "r1", "--reason", "asked for", "--yes")
    data = (store.path / "m1" / "model.safetensors").read_bytes()[-4096:]
    assert not any(data in path.read_bytes() for path in copies(store))


def test_a_copy_that_a_slow_reader_kept_goes_with_the_bytes(store):
    """It asked for the block when the plan was there, and the bytes still were."""
    cached(store, "checkout", "r1", "-o", "first")
    kept = {path: path.read_bytes() for path in copies(store)}
    way = begin(store, "r1")
    cached(store, "checkout", "r2", "-o", "second")
    for path, data in kept.items():
        path.write_bytes(data)
    clear(*way)
    store("fsck")
    cached(store, "checkout", "r2", "-o", "third")
    data = (store.path / "m1" / "model.safetensors").read_bytes()[-4096:]
    assert any(data in copy for copy in kept.values())
    assert not any(data in path.read_bytes() for path in copies(store))


def test_a_link_to_a_folder_is_not_emptied(store, tmp_path):
    cached(store, "checkout", "r1", "-o", "first")
    (folder,) = (store.path / "near").iterdir()
    shutil.rmtree(folder)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "letter").write_text("kept")
    folder.symlink_to(precious)
    done = cached(store, "checkout", "r1", "-o", "second")
    assert "not a folder" in done.err
    assert [path.name for path in precious.iterdir()] == ["letter"]


def test_a_deletion_needs_no_cache_that_cannot_be(store):
    (store.path / "near").write_text("not a folder")
    cached(store, "forget", "r1", "--reason", "asked for", "--yes")
    assert store("fsck").out == "consistent\n"


def test_two_stores_share_a_folder_and_no_copies(store, tmp_path):
    other = Store(tmp_path / "other")
    weights(tmp_path / "other" / "m" / "model.safetensors", 1)
    other("commit", "m", "-m", "m", "--ref", "r1")
    cached(store, "checkout", "r1", "-o", "first")
    before = len(copies(store))
    other("checkout", "r1", "-o", "first", "--cache", store.path / "near")
    assert len(copies(store)) == 2 * before


def test_a_size_needs_a_folder(store):
    done = store("log", "r1", "--cache-size", "1G", code=2)
    assert "--cache-size" in done.err


def test_the_size_is_kept_to(store):
    for seed in range(3, 9):
        weights(store.path / f"m{seed}" / "model.safetensors", seed)
        store("commit", f"m{seed}", "-m", f"m{seed}", "--ref", f"r{seed}")
    for seed in range(1, 9):
        cached(store, "checkout", f"r{seed}", "-o", f"o{seed}",
               "--cache-size", "600K")
    size = sum(path.stat().st_size for path in copies(store))
    assert 0 < size <= 600 << 10


def test_a_cache_that_cannot_be_is_a_warning(store):
    pathlib.Path(store.path / "near").write_text("not a folder")
    done = cached(store, "checkout", "r1", "-o", "first")
    assert "near" in done.err
