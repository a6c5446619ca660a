"""Paths are what has __fspath__, everywhere; handles are context managers."""

import json
import os
import sys

import numpy
import pytest

import ballast
import ballast.wdelta as dt
from ballast.tensors import Model


class Place:
    """A path and nothing else: neither text nor pathlib's."""

    def __init__(self, path):
        self.path = os.fspath(path)

    def __fspath__(self):
        return self.path


def weights(more=0.0):
    rng = numpy.random.default_rng(0)
    made = {f"layers.{i}.w": rng.standard_normal((4, 6), "f4") for i in range(2)}
    return {name: tensor + numpy.float32(more) for name, tensor in made.items()}


CONFIG = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q"]}


@pytest.fixture
def here(store, tmp_path, program):
    """A base and a tuned model as folders and commits, and files of other kinds."""
    for name, more in (("base", 0), ("tuned", 0.5)):
        store.commit("acme", weights(more), message="m", ref=name)
        store.checkout("acme", name).write(tmp_path / name)
    store.delta("acme", "tuned", base="base", message="m", ref="delta")
    front = "base_model.model.model.layers.0.self_attn.q"
    factors = {
        f"{front}.lora_A.weight": numpy.ones((2, 6), "f4"),
        f"{front}.lora_B.weight": numpy.ones((5, 2), "f4"),
    }
    store.commit("lora", factors, config=CONFIG, message="m", ref="main")
    (tmp_path / "side.txt").write_text("beside")
    (tmp_path / "probes.txt").write_text("one\ntwo\n")
    key = tmp_path / "key.pem"
    program("key", "generate", "-o", str(key), root=store.root)
    return tmp_path


def proof_file(store, here):
    proof = store.forget("acme", "delta", reason="asked", key=here / "key.pem")
    (here / "proof.json").write_text(json.dumps(proof.envelope))
    return proof


def with_side_file(store, here, path):
    del path  # a text is the file's content
    files = {"NOTES.md": Place(here / "side.txt")}
    store.commit("acme", weights(), message="m", ref="side", files=files)
    return store.checkout("acme", "side").file("NOTES.md") == b"beside"


def forgotten(store, here, path):
    return store.forget(
        "acme", "delta", reason="asked", key=path(here / "key.pem")
    ).signed


def verified(store, here, path):
    proof_file(store, here)
    key = path(here / "key.pem")
    return bool(store.verify(path(here / "proof.json"), key=key))


def saved(store, here, path):
    file = path(here / "x.wdelta")
    dt.save_delta_from_paths(
        file, path(here / "tuned"), path(here / "base"), strategy="lossless"
    )
    got = dt.load_delta_from_paths(file, path(here / "base"))
    told = dt.inspect(file)["path"] == os.fspath(file)
    chain = dt.load_delta_chain([file], path(here / "base"))
    return told and set(got) == set(chain) == set(weights())


def from_wdelta(store, here, path):
    dt.save_delta_from_paths(
        here / "x.wdelta", here / "tuned", here / "base", strategy="lossless"
    )
    made = store.commit(
        "acme", path(here / "x.wdelta"), base=path(here / "base"), message="m", ref="w"
    )
    return not store.diff("acme", made, "tuned").differs


def answered(store, here, path):
    words = [path(sys.executable), "-c", ANSWER]
    runner = ballast.runners.ProcessRunner(words, base=path(here / "base"))
    probes = ballast.ProbeSet.of("one")
    made = ballast.fingerprint(store, "acme", "delta", probes, runner)
    return made is not None


ANSWER = (
    "import json, os, sys\nassert os.path.isdir(os.environ['BALLAST_BASE'])\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps({'id': json.loads(line)['id'], 'output': 'x'}))\n"
)

CALLS = {
    "Store": lambda store, here, path: ballast.Store(path(here / "new")).root
    == os.fspath(here / "new"),
    "commit": lambda store, here, path: store.commit(
        "acme", path(here / "tuned"), message="m", ref="new", base=path(here / "base")
    ).tensors
    == 2,
    "commit, one file": lambda store, here, path: store.commit(
        "acme", path(here / "tuned" / "model.safetensors"), message="m", ref="new"
    ).tensors
    == 2,
    "commit, a side file": with_side_file,
    "commit, a .wdelta": from_wdelta,
    "delta": lambda store, here, path: store.delta(
        "acme", path(here / "tuned"), base=path(here / "base"), message="m", ref="new"
    ).changed
    == 2,
    "apply": lambda store, here, path: store.apply(
        "acme", "delta", base=path(here / "base"), out=path(here / "out"), verify=True
    ).exact,
    "write": lambda store, here, path: store.checkout("acme", "base")
    .write(path(here / "out"))
    .out
    == os.fspath(here / "out"),
    "write, there already": lambda store, here, path: store.checkout("acme", "base")
    .write(path(here / "base"))
    .exact,
    "diff": lambda store, here, path: len(
        store.diff("acme", path(here / "base"), path(here / "tuned")).changed
    )
    == 2,
    "fsck": lambda store, here, path: store.fsck(
        repair=True, source=path(here / "base")
    ).ok,
    "forget": forgotten,
    "verify": verified,
    "Model": lambda store, here, path: Model.from_path(path(here / "base")).facts.kind
    == 0,
    "ProbeSet": lambda store, here, path: len(
        ballast.ProbeSet.open(path(here / "probes.txt"))
    )
    == 2,
    "export": lambda store, here, path: len(
        ballast.serving.export(store, "lora", out=path(here / "out"))
    )
    == 1,
    "wdelta": saved,
    "ProcessRunner": answered,
}


@pytest.mark.parametrize("kind", [os.fspath, Place], ids=["text", "path"])
@pytest.mark.parametrize("name", CALLS)
def test_a_path_is_a_text_or_what_has_one(store, here, name, kind):
    assert CALLS[name](store, here, kind)


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux")
def test_a_name_that_is_no_text_is_a_path_too(store, tmp_path):
    out = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    store.commit("acme", weights(), message="m")
    written = store.checkout("acme").write(out)
    assert os.path.exists(os.path.join(out, "model.safetensors"))
    assert written.out == out
    diff = store.diff("acme", out, "main")
    assert not diff.differs and "\ufffd" in diff.a
    repr(diff).encode()
    diff._repr_html_().encode()


def test_what_is_a_wdelta_is_the_model_that_it_makes_of_its_base(
    store, here, program, tmp_path
):
    file = tmp_path / "x.wdelta"
    dt.save_delta_from_paths(file, here / "tuned", here / "base", strategy="lossless")
    ours = store.commit("acme", file, base="base", message="m", ref="ours")
    args = ("--json", "--tenant", "acme", "commit", str(file), "--base", "base")
    text = program(*args, "-m", "m", "--ref", "theirs", root=store.root)
    theirs = json.loads(text)
    for name in ("manifest", "kind", "base_model", "tensors", "anchor"):
        assert getattr(ours, name) == theirs.get(name), name
    with pytest.raises(ballast.Usage, match="base"):
        store.commit("acme", file, message="m")
    with pytest.raises(ballast.Corrupt):
        store.commit("acme", file, base="tuned", message="m")


def test_a_base_is_what_the_program_makes_of_it(store, here, program):
    ours = store.commit("acme", here / "tuned", base="base", message="m", ref="ours")
    args = ("--json", "--tenant", "acme", "commit", str(here / "tuned"))
    text = program(
        *args, "--base", "base", "-m", "m", "--ref", "theirs", root=store.root
    )
    theirs = json.loads(text)
    for name in ("manifest", "base_model", "anchor"):
        assert getattr(ours, name) == theirs.get(name), name


@pytest.mark.parametrize("dtype", [None, "F16"])
def test_what_was_written_is_read_back_when_asked(store, here, monkeypatch, dtype):
    given = {"base": "base", "verify": True, "dtype": dtype}
    assert store.apply("acme", "delta", out=here / "good", **given)
    write = ballast.Store._write

    def damage(self, *args, **more):
        written = write(self, *args, **more)
        file = here / "bad" / "model.safetensors"
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        return written

    monkeypatch.setattr(ballast.Store, "_write", damage)
    with pytest.raises(ballast.Corrupt, match=r"layers\.1\.w"):
        store.apply("acme", "delta", out=here / "bad", **given)


@pytest.mark.parametrize(
    "open_it",
    [
        lambda store, here: ballast.Store(store.root),
        lambda store, here: store.checkout("acme", "base"),
        lambda store, here: Model.from_path(here / "base"),
    ],
    ids=["Store", "Checkout", "Model"],
)
def test_a_handle_is_closed_when_its_block_ends(store, here, open_it):
    with open_it(store, here) as handle:
        assert not handle.closed
    assert handle.closed
    handle.close()
    with pytest.raises(ZeroDivisionError), open_it(store, here) as handle:
        raise ZeroDivisionError
    assert handle.closed
