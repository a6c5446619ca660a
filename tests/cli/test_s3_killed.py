"""Commands whose bucket fails them, or that are killed at it: nothing that was
acknowledged is lost, nothing is acknowledged that is not there."""

import json
import signal
import subprocess
import threading

import numpy as np
import pytest

from s3_fake import Bucket, refuse
from support import BALLAST, Store, environment, load, save

URL = "s3://bucket/p"


class Faked(Store):
    def __init__(self, path, bucket):
        super().__init__(path)
        self.bucket = bucket

    def __call__(self, *args, env=None, **more):
        return super().__call__(*args, env=self.bucket.env(**(env or {})),
                                **more)

    def start(self, *args):
        return subprocess.Popen(
            [BALLAST, "--root", self.root, "--tenant", self.tenant, *args],
            cwd=self.path, env=environment(self.bucket.env()),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def bucket():
    with Bucket() as made:
        yield made


@pytest.fixture
def store(tmp_path, bucket):
    made = Faked(tmp_path, bucket)
    made("--backend", URL, "init", "--block-size", "64K")
    return made


def model(path, seed, blocks=12):
    numbers = np.random.default_rng(seed)
    data = numbers.integers(0, 256, blocks << 16, dtype=np.uint8)
    save(path / "model.safetensors", {"w": ("U8", data.shape, data.tobytes())})
    return path


def blocks_of(bucket):
    return {key for key in bucket.keys if not key.endswith(".ballast")}


def stopping_at(bucket, number):
    """The put of this number, and all behind it, are never answered; the event
    tells that it came."""
    came, count, lock = threading.Event(), [0], threading.Lock()

    def fault(asked):
        if asked.method != "PUT" or asked.key.endswith(".ballast"):
            return False
        with lock:
            count[0] += 1
            if count[0] <= number:
                return False
        came.set()
        asked.hang()
        return True

    bucket.fault = fault
    return came


@pytest.mark.parametrize("after", [0, 1, 5, 11])
def test_a_commit_that_was_killed_leaves_what_fsck_names_and_gc_takes(
        store, bucket, after):
    first = model(store.path / "a", 1)
    store("commit", first, "-m", "stays")
    stays = blocks_of(bucket)
    came = stopping_at(bucket, after)
    with store.start("commit", model(store.path / "b", 2), "-m", "x") as killed:
        assert came.wait(60)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    bucket.fault = lambda asked: False
    assert [row["message"] for row in store("log", "--json").lines] == ["stays"]
    store("fsck", code=None)
    store("gc")
    assert blocks_of(bucket) == stays
    store("fsck")
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(first)


def test_a_commit_that_waits_for_its_bucket_can_be_told_to_stop(store, bucket):
    came = stopping_at(bucket, 2)
    with store.start("commit", model(store.path / "a", 1), "-m", "x") as asked:
        assert came.wait(60)
        asked.send_signal(signal.SIGINT)
        told = asked.communicate(timeout=20)[1]
    assert asked.returncode == 130 and b"interrupted" in told
    bucket.fault = lambda asked: False
    assert store("log", code=None).out == ""
    store("gc")
    assert not blocks_of(bucket)


@pytest.mark.parametrize("after", [0, 6])
def test_a_commit_that_is_refused_half_way_is_none(store, bucket, after):
    count = []

    def fault(asked):
        if asked.method != "PUT" or asked.key.endswith(".ballast"):
            return False
        count.append(asked.key)
        return len(count) > after and refuse(asked, 403, "AccessDenied")

    bucket.fault = fault
    told = store("commit", model(store.path / "a", 1), "-m", "x", code=None)
    assert told.code != 0 and "AccessDenied" in told.err
    bucket.fault = lambda asked: False
    assert store("log", code=None).out == ""
    store("commit", store.path / "a", "-m", "x")
    store("fsck")


def test_wrong_bytes_are_never_checked_out(store, bucket):
    folder = model(store.path / "a", 1)
    store("commit", folder, "-m", "x")
    keys = sorted(blocks_of(bucket))

    def other(asked):
        """Another block's bytes, whole and in good order."""
        if asked.method != "GET" or asked.key != keys[0]:
            return False
        asked.say(200, bucket.current(keys[1]))
        return True

    bucket.fault = other
    told = store("checkout", "main", "-o", store.path / "out", "--json",
                 code=None)
    assert told.code != 0 and not (store.path / "out").exists()
    assert told.error["code"] == "corrupt"
    bucket.fault = lambda asked: False
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(folder)


def key_file(path):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path],
                   check=True, capture_output=True)
    return path


def test_a_deletion_that_is_refused_proves_nothing_and_goes_on_later(store,
                                                                     bucket):
    store("commit", model(store.path / "a", 1), "-m", "x")
    bucket.fault = lambda asked: ("delete" in asked.query
                                  and refuse(asked, 403, "AccessDenied"))
    key = key_file(store.path / "key.pem")
    told = store("forget", "main", "--reason", "r", "--key", key, code=None)
    assert told.code != 0 and "AccessDenied" in told.err
    bucket.fault = lambda asked: False
    store("gc", env={"BALLAST_SIGNING_KEY": str(key)})
    assert not blocks_of(bucket)
    (proof,) = store("proofs", "--json").json["proofs"]
    store("verify", proof["attestation"])


def test_a_deletion_that_cannot_see_what_there_is_does_not_begin(store, bucket):
    folder = model(store.path / "a", 1)
    store("commit", folder, "-m", "x")
    bucket.fault = lambda asked: ("list-type" in asked.query
                                  and refuse(asked, 403, "AccessDenied"))
    told = store("forget", "main", "--reason", "r", "--key",
                 key_file(store.path / "key.pem"), code=None)
    assert told.code != 0 and "AccessDenied" in told.err
    bucket.fault = lambda asked: False
    assert store("proofs", "--json").json["proofs"] == []
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(folder)


def test_a_proof_is_not_verified_by_a_bucket_that_does_not_answer(store, bucket):
    store("commit", model(store.path / "a", 1), "-m", "x")
    key = key_file(store.path / "key.pem")
    proof = store("forget", "main", "--reason", "r", "--key", key,
                  "--json").json["attestation"]
    for code in (403, 404, 503):
        bucket.fault = lambda asked: refuse(asked, code, "AccessDenied")
        told = store("verify", proof, code=None)
        assert told.code != 0, told


@pytest.mark.parametrize("left", ["version", "marker"])
def test_a_version_that_comes_back_fails_the_proof(tmp_path, left):
    with Bucket(versioned=True) as bucket:
        store = Faked(tmp_path, bucket)
        store("--backend", URL, "init")
        store("commit", model(tmp_path / "a", 1), "-m", "x")
        key, body = next((key, bucket.current(key))
                         for key in blocks_of(bucket))
        proof = store("forget", "main", "--reason", "r", "--key",
                      key_file(tmp_path / "key.pem"),
                      "--json").json["attestation"]
        assert not blocks_of(bucket)
        if left == "version":
            bucket.put(key, body)
        bucket.put(key, None)
        told = store("verify", proof, code=None)
        assert (told.code != 0) == (left == "version"), told


def test_recompressing_goes_on_where_it_was_refused(store, bucket):
    folder = model(store.path / "a", 1)
    store("commit", folder, "-m", "x")
    bucket.fault = lambda asked: (asked.method == "PUT"
                                  and refuse(asked, 403, "AccessDenied"))
    store("gc", "--recompress", code=None)
    bucket.fault = lambda asked: False
    store("gc", "--recompress")
    store("fsck")
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(folder)


def test_json_of_a_refusal_is_one_object(store, bucket):
    bucket.fault = lambda asked: refuse(asked, 403, "AccessDenied")
    told = store("commit", model(store.path / "a", 1), "-m", "x", "--json",
                 code=None)
    assert json.loads(told.err)["error"]["code"] == "io"


def alike(path, seed, change):
    """Models of which the second is coded by the first."""
    numbers = np.random.default_rng(seed)
    values = numbers.standard_normal(6 << 14).astype("<f4")
    values[::97] += np.float32(change)
    save(path / "model.safetensors", {"w": ("F32", values.shape,
                                            values.tobytes())})
    return path


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_recompression_that_was_killed_loses_nothing(store, bucket, after):
    folders = [alike(store.path / f"m{i}", 7, i) for i in range(2)]
    for folder in folders:
        store("commit", folder, "-m", folder.name)
    store("config", "compression", "best")
    came = stopping_at(bucket, after)
    with store.start("gc", "--recompress") as killed:
        assert came.wait(60)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    bucket.fault = lambda asked: False
    store("gc")
    store("fsck")
    for spec, folder in (("main~1", folders[0]), ("main", folders[1])):
        store("checkout", spec, "-o", store.path / folder.name / "out")
        assert load(store.path / folder.name / "out") == load(folder)
