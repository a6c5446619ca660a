"""The commands on a real S3 server (tests/support/s3-server), which checks every
signature."""

import json
import pathlib
import subprocess
import uuid

import numpy as np
import pytest

from servers import BUILD, program
from support import TREE, Store, load, read_place, save

SERVER = TREE / "tests" / "support" / "s3-server"


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """The server of the test run, or one of our own."""
    found = read_place(pathlib.Path(BUILD) / "s3")
    if found:
        yield found
        return
    folder = tmp_path_factory.mktemp("s3")
    subprocess.run([SERVER, "up", folder], check=True)
    found = read_place(folder)
    if not found:
        pytest.skip("no S3 server is installed: scripts/deps test")
    yield found
    subprocess.run([SERVER, "down", folder], check=True)


class Remote(Store):
    """A store whose blocks are in a prefix of its own."""

    def __init__(self, path, place, prefix=None, name="store"):
        super().__init__(path)
        self.root = self.path / name
        self.url = (f"s3://{place['BALLAST_TEST_BUCKET']}/"
                    f"{prefix or uuid.uuid4().hex}")
        self.env = {**place, "AWS_MAX_ATTEMPTS": "3"}

    def __call__(self, *args, env=None, **more):
        return super().__call__(*args, env={**self.env, **(env or {})}, **more)

    def backend(self, *calls):
        return program("ask-backend", self.url, json.dumps(calls),
                       env=self.env)[1]

    def names(self):
        (row,) = self.backend(["list", ""])
        return sorted(name for name, _ in row["names"])


@pytest.fixture
def store(tmp_path, place):
    made = Remote(tmp_path, place)
    made("--backend", made.url, "init")
    return made


def model(path, seed, layers=6, rows=40_000):
    numbers = np.random.default_rng(seed)
    tensors = {}
    for i in range(layers):
        values = numbers.standard_normal(rows).astype("<f4")
        tensors[f"layers.{i}.w"] = ("F32", (rows,), values.tobytes())
    save(path / "model.safetensors", tensors)
    return path


def commit(store, path, message="m"):
    return store("commit", path, "-m", message, "--json").json["id"]


def test_what_is_committed_comes_back_and_is_in_the_bucket_alone(store):
    folder = model(store.path / "m", 1)
    commit(store, folder)
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(folder)
    assert store.names()
    assert not (store.root / "blocks").exists()
    store("fsck")


def test_another_root_with_the_same_database_reads_the_same(tmp_path, place):
    store = Remote(tmp_path, place)
    database = f"sqlite:{tmp_path / 'graph.db'}"
    store("--backend", store.url, "--db", database, "init")
    folder = model(tmp_path / "m", 1)
    commit(store, folder)
    other = Remote(tmp_path, place, name="other")
    other("--db", database, "checkout", "main", "-o", tmp_path / "out")
    assert load(tmp_path / "out") == load(folder)
    told = other("--backend", other.url, "--db", database, "init", code=5)
    assert store.url in told.err
    assert other.names() == []


def test_what_is_there_already_is_not_put_again(store):
    folder = model(store.path / "m", 1)
    commit(store, folder)
    before = store.names()
    commit(store, model(store.path / "n", 1), "again")
    assert store.names() == before


def test_what_is_forgotten_is_gone_and_proven(store):
    key = store.path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key],
                   check=True, capture_output=True)
    commit(store, model(store.path / "m", 1), "stays")
    stays = store.names()
    commit(store, model(store.path / "n", 2), "goes")
    assert len(store.names()) > len(stays)
    told = store("forget", "main", "--reason", "asked to", "--key", key,
                 "--json").json
    assert store.names() == stays
    proof = told["attestation"]
    store("verify", proof)
    store("forget", "--reason", "all of it", "--key", key, "--yes")
    assert store.names() == []


def test_gc_takes_what_nobody_names_and_fsck_names_it(store):
    commit(store, model(store.path / "m", 1))
    kept = store.names()
    orphan = "acme/3/3" + "0" * 63
    store.backend(["put", orphan, "not a block", 0])
    told = store("fsck", code=None)
    assert orphan.rsplit("/", 1)[1][:12] in told.out + told.err
    store("gc")
    assert store.names() == kept


def test_what_is_damaged_is_found_and_put_again(store):
    folder = model(store.path / "m", 1)
    commit(store, folder)
    store("checkout", "main", "-o", store.path / "copy")
    victim = store.names()[0]
    store.backend(["put", victim, "xxxxxxxx", 0])
    assert store("fsck", code=None).code != 0
    result = store("checkout", "main", "-o", store.path / "bad", code=None)
    assert result.code != 0 and not (store.path / "bad").exists()
    store("fsck", "--repair", "--from", store.path / "copy", code=None)
    store("fsck")
    store("checkout", "main", "-o", store.path / "out")
    assert load(store.path / "out") == load(folder)


def test_a_block_that_is_missing_is_told_and_committed_again(store):
    folder = model(store.path / "m", 1)
    commit(store, folder)
    before = store.names()
    store.backend(["remove", before[:2]])
    told = store("fsck", code=None)
    assert told.code != 0
    commit(store, folder, "again")
    assert store.names() == before
    store("fsck")


# ---- what is refused ---------------------------------------------------------


def test_a_prefix_that_another_store_has_is_refused(store, tmp_path, place):
    prefix = store.url.rsplit("/", 1)[1]
    other = Remote(tmp_path, place, prefix, "other")
    told = other("--backend", other.url, "init", "--json", code=5)
    assert "another store's" in told.error["message"]
    assert not (other.root / "store.json").exists()
    other("--backend", other.url + "/below", "init")


def test_another_backend_than_the_recorded_one_is_refused(store, tmp_path,
                                                          place):
    other = Remote(tmp_path, place)
    told = store("--backend", other.url, "log", code=5)
    assert store.url in told.err
    assert other.names() == []


WRONG = {
    "secret": ({"AWS_SECRET_ACCESS_KEY": "n0t-it"}, "SignatureDoesNotMatch"),
    "key": ({"AWS_ACCESS_KEY_ID": "nobody:here"}, "403"),
    "none": ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
             "no keys"),
    "region": ({"AWS_REGION": "eu-west-3"}, "Authorization"),
    "place": ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "127.0.0.1:1"),
    "profile": ({"AWS_PROFILE": "nobody"}, "nobody"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_keys_and_places_make_no_store_and_tell_no_secret(
        wrong, tmp_path, place):
    env, said = WRONG[wrong]
    store = Remote(tmp_path, place)
    told = store("--backend", store.url, "init", code=None,
                 env={"AWS_MAX_ATTEMPTS": "1", **env})
    assert told.code not in (0, 5), told
    assert said in told.err, told
    for secret in ("n0t-it", place["AWS_SECRET_ACCESS_KEY"]):
        assert secret not in told.err.replace("tests/", "")
    assert not (store.root / "store.json").exists()
    store("--backend", store.url, "init")


def test_a_bucket_that_is_not_there_is_told(tmp_path, place):
    store = Remote(tmp_path, place)
    told = store("--backend", "s3://no-such-bucket-here/x", "init", code=None)
    assert told.code != 0 and "NoSuchBucket" in told.err


@pytest.mark.parametrize("url", [
    "s3://KEY:S3CR3T@bucket/x", "s3://b", "s3:bucket", "s3://Bucket/x",
    "s3://bucket//x", "s3://bucket/../x", "s3://bucket/x?y=S3CR3T",
    "s3://bucket/.x", "s3:///x", "s3://" + "b" * 64, "S3://KEY:S3CR3T@bucket",
    "s4://KEY:S3CR3T@bucket"])
def test_what_names_no_bucket_is_refused_and_not_repeated(url, tmp_path, place):
    store = Remote(tmp_path, place)
    told = store("--backend", url, "init", code=None)
    assert told.code == 2 and "S3CR3T" not in told.err + told.out
    assert not (store.root / "store.json").exists()


def test_the_graph_is_read_without_the_bucket(store):
    commit(store, model(store.path / "m", 1))
    away = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "",
            "AWS_SECRET_ACCESS_KEY": "", "AWS_MAX_ATTEMPTS": "1"}
    store("log", env=away)
    told = store("checkout", "main", "-o", store.path / "out", env=away,
                 code=None)
    assert told.code != 0 and not (store.path / "out").exists()


# ---- the backend itself ------------------------------------------------------

ODD = ["a b", "a+b", "a%2Bb", "a&b", "a<b>", "a'b\"", "é", "a;b=c", "a?b",
       "a#b", "~a", "a:b@c", "a,b!$*()", "%41", "a=b", "日本"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_signed_as_the_server_reads_them(store, name):
    key = f"x/{name}"
    rows = store.backend(["put", key, "hello", 1], ["get", key, 1, 2],
                         ["list", "x/"], ["remove", [key]], ["size", key])
    assert rows[:4] == [{"kept": False}, {"text": "el"},
                        {"names": [[key, 5]]}, {"freed": 5}]
    assert rows[4]["error"] == "not-found"


def test_what_is_long_goes_in_parts_and_comes_back(store):
    size = 64 * 1024 * 1024 + 1
    rows = store.backend(["put", "a/b", size, 1], ["put", "a/b", "other", 1],
                         ["size", "a/b"], ["get", "a/b", size - 3, 0],
                         ["get", "a/b", 32 * 1024 * 1024 - 1, 2],
                         ["list", "a/"], ["sweep", 1], ["remove", ["a/b"]],
                         ["size", "a/b"])
    assert rows[:8] == [{"kept": False}, {"kept": True}, {"size": size},
                        {"text": "xxx"}, {"text": "xx"},
                        {"names": [["a/b", size]]}, {"bytes": 0},
                        {"freed": size}]
    assert rows[8]["error"] == "not-found"
