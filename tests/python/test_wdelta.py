"""ballast.wdelta stands where deltatensors 0.2.0 stood.

The files that deltatensors wrote and what it read from them are in
tests/golden/wdelta; where it is installed, it is asked itself. Safetensors are
written and hashes taken here, by numpy and hashlib alone.
"""

import contextlib
import hashlib
import io
import json
import logging
import signal
import struct
import subprocess
import sys
import threading
import types
from inspect import signature
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

import ballast  # noqa: E402
import ballast.wdelta as dt  # noqa: E402

GOLDEN = Path(__file__).parents[1] / "golden" / "wdelta"
EXPECTED = json.loads((GOLDEN / "expected" / "index.json").read_text())
LOSSY = [("int4", {}), ("int4", {"outlier_fraction": 0.05}), ("sparse", {}),
         ("sparse", {"sparsity": 0.0}), ("quantized", {})]
SHAPES = {"a": (70, 33), "b": (501,), "c": (2, 1), "z": (64, 100), "ü": (8, 3, 5)}
NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16",
         "int64": "I64", "bool": "BOOL", "float64": "F64", "uint8": "U8"}


# ---- models ------------------------------------------------------------------

def bits_of(value):
    """bfloat16, for want of one in numpy: the upper half of a float32."""
    bits = np.ascontiguousarray(value, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def widened(bits):
    return (bits.astype("<u4") << 16).view("<f4")


def write(folder, tensors, shards=1):
    """{name: array, or (dtype, array of its bits)} as safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(tensors)
    for i in range(shards):
        header, data = {}, b""
        for name in names[i::shards]:
            value = tensors[name]
            word, value = value if isinstance(value, tuple) else (
                NAMES[value.dtype.name], value)
            header[name] = {"dtype": word, "shape": list(value.shape),
                            "data_offsets": [len(data), len(data) + value.nbytes]}
            data += value.tobytes()
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / f"m{i}.safetensors").write_bytes(
            struct.pack("<Q", len(text)) + text + data)
    return folder


def steps(count=2, seed=3, sigma=1e-3):
    """State dicts of float32, each a little off the one before."""
    rng = np.random.default_rng(seed)
    now = {name: rng.normal(0, 0.02, shape).astype(np.float32)
           for name, shape in SHAPES.items()}
    found = []
    for _ in range(count):
        found.append(now)
        now = {name: (value + rng.normal(0, sigma, value.shape)).astype(np.float32)
               for name, value in now.items()}
    return found


def folders(where, dtype, count=2):
    """The same as folders, and as float32 what is in them."""
    paths, values = [], []
    for i, state in enumerate(steps(count)):
        if dtype == "BF16":
            tensors = {n: ("BF16", bits_of(v)) for n, v in state.items()}
            values.append({n: widened(v[1]) for n, v in tensors.items()})
        else:
            tensors = {n: v.astype(dtype) for n, v in state.items()}
            values.append({n: v.astype("f4") for n, v in tensors.items()})
        paths.append(write(where / f"{i}", tensors))
    return paths, values


def same(got, want):
    assert list(got) == list(want)
    for name, value in want.items():
        assert got[name].dtype == value.dtype and got[name].shape == value.shape
        assert got[name].tobytes() == value.tobytes(), name


def expected(name):
    data = (GOLDEN / "expected" / f"{name}.f32").read_bytes()
    return {key: np.frombuffer(data, "<f4", int(np.prod(row["shape"])),
                               row["off"]).reshape(row["shape"])
            for key, row in EXPECTED[name].items()}


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@pytest.fixture
def peer():
    pytest.importorskip("torch")
    return pytest.importorskip("deltatensors")


# ---- as deltatensors ---------------------------------------------------------

FILES = {"v1_paths": "base_bf16", "v1_f16": "base_f16", "v1_f32": "base_f32",
         "v2_spec": "base_bf16"}


@pytest.mark.parametrize("strategy", ["int4", "sparse", "quantized"])
@pytest.mark.parametrize("kind", FILES)
def test_files_load_to_the_values_that_deltatensors_loads(kind, strategy):
    name = f"{kind}_{strategy}"
    got = dt.load_delta_from_paths(GOLDEN / f"{name}.wdelta", GOLDEN / FILES[kind])
    same(got, expected(name))


def test_a_file_that_deltatensors_refuses_itself_loads():
    same(dt.load_delta_from_paths(GOLDEN / "v1_othershards_int4.wdelta",
                                  GOLDEN / "base_bf16"),
         expected("v1_othershards_int4"))


def test_a_chain_of_deltatensors_loads_to_its_values():
    same(dt.load_delta_chain([GOLDEN / "v1_chain_step1_int4.wdelta",
                              GOLDEN / "v1_chain_step2_int4.wdelta"],
                             GOLDEN / "base_bf16_oneshard"),
         expected("v1_chain"))


def test_every_function_has_the_arguments_of_deltatensors(peer):
    for name in peer.__all__:
        ours, theirs = signature(getattr(dt, name)), signature(getattr(peer, name))
        assert list(ours.parameters) == list(theirs.parameters), name
        for key, row in theirs.parameters.items():
            assert ours.parameters[key].default == row.default, (name, key)
            assert ours.parameters[key].kind == row.kind, (name, key)


@pytest.mark.parametrize("dtype", ["float32", "float16", "BF16"])
@pytest.mark.parametrize("strategy,options", LOSSY)
def test_each_reads_what_the_other_wrote_to_the_same_bits(
        tmp_path, peer, dtype, strategy, options):
    (base, tuned), _ = folders(tmp_path, dtype)
    with quiet():
        theirs = peer.save_delta_from_paths(tmp_path / "t.wdelta", tuned, base,
                                            strategy=strategy, **options)
    ours = dt.save_delta_from_paths(tmp_path / "o.wdelta", tuned, base,
                                    strategy=strategy, **options)
    assert ours == theirs
    for name in ("t.wdelta", "o.wdelta"):
        with quiet():
            want = peer.load_delta_from_paths(tmp_path / name, base)
        same(dt.load_delta_from_paths(tmp_path / name, base), want)


@pytest.mark.parametrize("strategy,options", LOSSY[:3] + LOSSY[4:])
def test_state_dicts_give_the_file_that_deltatensors_writes(
        tmp_path, peer, strategy, options):
    base, tuned = steps()
    for state in (base, tuned):  # JSON may write its name in two ways
        state["u"] = state.pop("ü")
    with quiet():
        theirs = peer.save_delta(tmp_path / "t.wdelta", tuned, base, strategy,
                                 **options)
    assert dt.save_delta(tmp_path / "o.wdelta", tuned, base, strategy,
                         **options) == theirs
    assert (tmp_path / "t.wdelta").read_bytes() == (
        tmp_path / "o.wdelta").read_bytes()
    with quiet():
        want = peer.load_delta(tmp_path / "t.wdelta", base)
    same(dt.load_delta(tmp_path / "t.wdelta", base), want)


def test_inspect_tells_what_deltatensors_tells(tmp_path, peer):
    base, tuned = steps()
    path = tmp_path / "x.wdelta"
    dt.save_delta(path, tuned, base, "int4")
    assert dt.inspect(path) == peer.inspect(path)
    assert list(dt.inspect(path)) == list(peer.inspect(path))
    assert dt.inspect_chain([path, path]) == peer.inspect_chain([path, path])


@pytest.mark.parametrize("second", ["ours", "theirs"])
def test_a_chain_goes_both_ways(tmp_path, peer, second):
    (base, one, two), _ = folders(tmp_path, "BF16", 3)
    paths = [tmp_path / "1.wdelta", tmp_path / "2.wdelta"]
    save = {"ours": dt, "theirs": peer}[second].save_delta_chain_from_paths
    with quiet():
        dt.save_delta_from_paths(paths[0], one, base, "int4")
        save(paths[1], two, paths[0], base, "int4", outlier_fraction=0.05)
        want = peer.load_delta_chain(paths, base)
    same(dt.load_delta_chain(paths, base), want)


def test_integers_and_masks_come_as_deltatensors_has_them(tmp_path, peer):
    base = {"w": np.ones((40, 5), np.float32), "d": np.ones(9) / 3,
            "n": np.arange(60), "m": np.arange(11) % 2 == 0}
    tuned = {"w": base["w"] * 2, "d": base["d"] / 7, "n": base["n"] * 3,
             "m": ~base["m"]}
    folder = write(tmp_path / "base", base)
    with quiet():
        peer.save_delta(tmp_path / "x.wdelta", tuned, base, "int4")
        want = peer.load_delta(tmp_path / "x.wdelta", base)
    same(dt.load_delta(tmp_path / "x.wdelta", base), want)
    same(dt.load_delta_from_paths(tmp_path / "x.wdelta", folder), want)
    same(dt.load_delta_chain([tmp_path / "x.wdelta"], folder, verify=False), want)


def test_the_hash_of_a_state_dict_is_that_of_names_and_bytes():
    state = dict(reversed(steps(1)[0].items()))
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode() + state[name].tobytes())
    assert dt.hash_state_dict(state) == digest.hexdigest()


# ---- errors ------------------------------------------------------------------

@pytest.fixture
def saved(tmp_path):
    """A file, its base, and where they are."""
    (base, tuned), _ = folders(tmp_path, "float32")
    dt.save_delta_from_paths(tmp_path / "x.wdelta", tuned, base)
    return types.SimpleNamespace(path=tmp_path / "x.wdelta", base=base, tuned=tuned)


def test_another_base_is_a_value_error(saved):
    with pytest.raises(ValueError, match="Base model hash mismatch") as caught:
        dt.load_delta_from_paths(saved.path, saved.tuned)
    assert isinstance(caught.value, ballast.Error)
    dt.load_delta_from_paths(saved.path, saved.tuned, verify=False)
    with pytest.raises(ValueError, match="Base model hash mismatch"):
        dt.load_delta(saved.path, steps()[1])


def test_links_in_the_wrong_order_are_a_value_error(tmp_path):
    (base, one, two), _ = folders(tmp_path, "float32", 3)
    a, b = tmp_path / "a.wdelta", tmp_path / "b.wdelta"
    dt.save_delta_from_paths(a, one, base)
    dt.save_delta_chain_from_paths(b, two, a, base)
    dt.load_delta_chain([a, b], base)
    with pytest.raises(ValueError, match="hash mismatch"):
        dt.load_delta_chain([b, a], base)
    dt.load_delta_chain([b, a], base, verify=False)
    with pytest.raises(ValueError, match="hash mismatch"):
        dt.save_delta_chain_from_paths(tmp_path / "c.wdelta", two, b, base)


def test_a_flipped_bit_is_a_value_error_whoever_reads(saved):
    data = bytearray(saved.path.read_bytes())
    data[-40] ^= 1
    saved.path.write_bytes(data)
    for read in (lambda: dt.inspect(saved.path),
                 lambda: dt.load_delta_from_paths(saved.path, saved.base),
                 lambda: dt.load_delta(saved.path, steps()[0], verify=False)):
        with pytest.raises(ValueError, match="Checksum mismatch"):
            read()


def test_what_is_no_such_file_or_a_newer_one_is_a_value_error(saved):
    data = saved.path.read_bytes()
    saved.path.write_bytes(data[:7] + b"\x63" + data[8:])
    with pytest.raises(ValueError, match="Unsupported .wdelta version"):
        dt.inspect(saved.path)
    saved.path.write_bytes(b"x" + data[1:])
    with pytest.raises(ValueError, match="Not a .wdelta file"):
        dt.inspect(saved.path)
    saved.path.write_bytes(b"")
    with pytest.raises(ValueError, match="Checksum mismatch"):
        dt.load_delta_from_paths(saved.path, saved.base)


def test_what_is_not_there_is_a_file_not_found_error(saved, tmp_path):
    missing = tmp_path / "none"
    for read in (lambda: dt.inspect(missing),
                 lambda: dt.load_delta(missing, steps()[0]),
                 lambda: dt.load_delta_from_paths(saved.path, missing),
                 lambda: dt.load_delta_chain([missing], saved.base),
                 lambda: dt.save_delta_from_paths(saved.path, missing, saved.base),
                 lambda: dt.save_delta_chain_from_paths(
                     tmp_path / "o", saved.tuned, missing, saved.base)):
        with pytest.raises(FileNotFoundError) as caught:
            read()
        assert isinstance(caught.value, ballast.Error)


def test_a_base_that_lacks_a_tensor_is_a_key_error(saved):
    base = steps()[0]
    del base["b"]
    with pytest.raises(KeyError, match="'b' not found in base model"):
        dt.load_delta(saved.path, base, verify=False)


def test_a_base_that_lacks_a_tensor_is_another_base_first(saved):
    base = steps()[0]
    del base["b"]
    with pytest.raises(ValueError, match="Base model hash mismatch"):
        dt.load_delta(saved.path, base)
    damaged = saved.path.with_name("damaged.wdelta")
    damaged.write_bytes(saved.path.read_bytes()[:-1] + b"?")
    for verify in (False, True):
        with pytest.raises(ValueError, match="Checksum mismatch"):
            dt.load_delta(damaged, base, verify=verify)


def test_other_names_and_shapes_are_value_errors_and_leave_no_file(tmp_path):
    base, tuned = steps()
    out = tmp_path / "x.wdelta"
    with pytest.raises(ValueError, match="Key mismatch") as caught:
        dt.save_delta(out, {"new": tuned["a"], **tuned},
                      {"old": base["a"], **base})
    assert "Only in finetuned: ['new']" in str(caught.value)
    assert "Only in base:      ['old']" in str(caught.value)
    with pytest.raises(ValueError, match="Shape mismatch for 'a'"):
        dt.save_delta(out, {**tuned, "a": tuned["a"].T}, base)
    with pytest.raises(ValueError, match="Unknown strategy 'zip'"):
        dt.save_delta(out, tuned, base, "zip")
    for sparsity in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="sparsity must be in"):
            dt.save_delta(out, tuned, base, sparsity=sparsity)
    with pytest.raises(TypeError, match="Cannot convert tensor 'a'"):
        dt.save_delta(out, {**tuned, "a": [1.0]}, base)
    with pytest.raises(ValueError, match="empty"):
        dt.load_delta_chain([], base)
    assert not list(tmp_path.iterdir())


def test_an_option_that_is_none_is_warned_of(tmp_path):
    base, tuned = steps()
    with pytest.warns(UserWarning, match="outlier_frac'") as caught:
        dt.save_delta(tmp_path / "x.wdelta", tuned, base, "int4", outlier_frac=0.1)
    assert caught[0].filename == __file__


# ---- what is more ------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float16", "BF16"])
def test_lossless_gives_back_every_bit(tmp_path, dtype):
    (base, tuned), (_, want) = folders(tmp_path, dtype)
    path = tmp_path / "x.wdelta"
    dt.save_delta_from_paths(path, tuned, base, strategy="lossless")
    same(dt.load_delta_from_paths(path, base), want)
    assert path.stat().st_size < (tuned / "m0.safetensors").stat().st_size


def test_lossless_keeps_what_float32_does_not_hold(tmp_path):
    base = {"d": np.ones(9), "n": np.arange(2**60, 2**60 + 50)}
    tuned = {"d": base["d"] / 3, "n": base["n"] + 1,
             "m": np.array([True, False]), "-": np.array([-0.0, np.nan], "f4")}
    dt.save_delta(tmp_path / "x.wdelta", tuned, base, "lossless")
    same(dt.load_delta(tmp_path / "x.wdelta", base), dict(sorted(tuned.items())))


def test_lossy_links_follow_lossless_ones(tmp_path):
    (base, one, two), (_, middle, _) = folders(tmp_path, "BF16", 3)
    paths = [tmp_path / f"{i}.wdelta" for i in range(3)]
    dt.save_delta_from_paths(paths[0], one, base, strategy="lossless")
    dt.save_delta_chain_from_paths(paths[1], two, paths[0], base, strategy="int4")
    got = dt.load_delta_chain(paths[:2], base)
    dt.save_delta_from_paths(paths[2], two, one, strategy="int4")
    same(got, dt.load_delta_from_paths(paths[2], one))
    assert any((got[n].view("u4") & 0xFFFF).any() for n in got), "not rounded"
    same(dt.load_delta_chain(paths[:1], base), middle)


def test_a_chain_may_be_longer_than_two(tmp_path):
    models, values = folders(tmp_path, "BF16", 5)
    paths = [tmp_path / f"{i}.wdelta" for i in range(1, 5)]
    for i, path in enumerate(paths):
        if i:
            dt.save_delta_chain_from_paths(path, models[i + 1], paths[:i],
                                           models[0], "int4")
        else:
            dt.save_delta_from_paths(path, models[1], models[0], "int4")
    got = dt.load_delta_chain(paths, models[0])
    for name, value in values[-1].items():
        assert np.abs(got[name] - value).max() < 1e-3


@pytest.mark.parametrize("limit", [0.5, 0.01, 0.001])
def test_a_limit_on_the_error_is_kept(tmp_path, limit):
    base, tuned = steps()
    dt.save_delta(tmp_path / "x.wdelta", tuned, base, "int4", max_error=limit)
    got = dt.load_delta(tmp_path / "x.wdelta", base)
    for name in base:
        error, delta = (np.linalg.norm((x - tuned[name]).astype("f8"))
                        for x in (got[name], base[name]))
        assert error <= limit * delta * (1 + 1e-6), name


@pytest.mark.parametrize("strategy", ["lossless", "sparse"])
def test_torch_tensors_of_any_dtype_and_strides_are_taken(tmp_path, strategy):
    torch = pytest.importorskip("torch")
    base = {"0": torch.tensor(3.0), "half": torch.ones(7).bfloat16(),
            "p": torch.nn.Parameter(torch.ones(2, 2)),
            "t": torch.arange(12.0).reshape(3, 4).t()}
    if strategy == "lossless":
        base["x"] = torch.ones(5).to(torch.float8_e4m3fn)
    tuned = {name: (value.detach().float() * 2).to(value.dtype)
             for name, value in base.items()}
    path = tmp_path / "x.wdelta"
    dt.save_delta(path, tuned, base, strategy, sparsity=0.0)
    same(dt.load_delta(path, base),
         {name: value.float().numpy() for name, value in tuned.items()})


def test_arrays_of_other_orders_of_bytes_and_elements_are_taken(tmp_path):
    base, tuned = steps()
    odd = {"a": np.asfortranarray(tuned["a"]), "b": tuned["b"].astype(">f4"),
           "z": np.repeat(tuned["z"], 2, axis=1)[:, ::2]}
    dt.save_delta(tmp_path / "x.wdelta", {**tuned, **odd}, base)
    dt.save_delta(tmp_path / "y.wdelta", tuned, base)
    assert (tmp_path / "x.wdelta").read_bytes() == (
        tmp_path / "y.wdelta").read_bytes()


def test_a_large_tensor_is_read_in_pieces(tmp_path):
    rng = np.random.default_rng(1)
    base = {"w": rng.normal(size=(3, 3_000_001)).astype(np.float32)}
    tuned = {"w": base["w"] + rng.normal(0, 1e-3, base["w"].shape).astype("f4")}
    dt.save_delta(tmp_path / "x.wdelta", tuned, base, "lossless")
    same(dt.load_delta(tmp_path / "x.wdelta", base), tuned)
    dt.save_delta(tmp_path / "x.wdelta", tuned, base, "sparse", sparsity=0.0)
    got = dt.load_delta(tmp_path / "x.wdelta", base)
    assert np.array_equal(got["w"], base["w"] + (tuned["w"] - base["w"]))


def test_importing_it_needs_neither_numpy_nor_torch():
    code = ("import sys; sys.modules.update(numpy=None, torch=None, "
            "transformers=None)\nimport ballast.wdelta as dt\n"
            f"print(dt.inspect({str(GOLDEN / 'v1_f32_int4.wdelta')!r})['strategy'])\n"
            "dt.DeltaTensorsCallback('base')")
    done = subprocess.run([sys.executable, "-c", code], text=True,
                          capture_output=True, check=True)
    assert done.stdout == "int4\n"


def test_an_interrupt_stops_the_work_and_leaves_nothing(tmp_path):
    rng = np.random.default_rng(1)
    base = {f"{i}": rng.normal(size=(1 << 20)).astype(np.float32) for i in range(8)}
    tuned = {name: value[::-1] for name, value in base.items()}
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            dt.save_delta(tmp_path / "x.wdelta", tuned, base, "lossless")
            (tmp_path / "x.wdelta").unlink()
    timer.join()
    assert not list(tmp_path.glob("*.tmp-*"))


# ---- the callback ------------------------------------------------------------

def saving(folder, step):
    return types.SimpleNamespace(output_dir=str(folder)), \
        types.SimpleNamespace(global_step=step), None


@pytest.mark.parametrize("delete", [False, True])
def test_the_callback_saves_a_checkpoint_beside_itself(tmp_path, delete):
    (base, tuned), (_, want) = folders(tmp_path, "BF16")
    folder = tmp_path / "checkpoint-7"
    tuned.rename(folder)
    (folder / "optimizer.pt").write_bytes(b"\x80\x02}q\x00.")
    (folder / "trainer_state.json").write_text("{}")
    callback = dt.DeltaTensorsCallback(base, strategy="lossless",
                                       delete_full_checkpoint=delete)
    callback.on_save(*saving(tmp_path, 7))
    same(dt.load_delta_from_paths(folder / "model.wdelta", base), want)
    assert bool(list(folder.glob("*.safetensors"))) != delete
    assert (folder / "optimizer.pt").exists()


def test_the_callback_lets_training_go_on(tmp_path, caplog):
    (base, tuned), _ = folders(tmp_path, "float32")
    callback = dt.DeltaTensorsCallback(tmp_path / "none", delete_full_checkpoint=True)
    with caplog.at_level(logging.WARNING, "ballast.wdelta"):
        callback.on_save(*saving(tmp_path, 1))
        (tmp_path / "checkpoint-2").mkdir()
        callback.on_save(*saving(tmp_path, 2))
        tuned.rename(tmp_path / "checkpoint-3")
        callback.on_save(*saving(tmp_path, 3))
    said = [record.getMessage() for record in caplog.records]
    assert "not found" in said[0] and "no .safetensors" in said[1]
    assert "failed at step 3" in said[2] and len(said) == 3
    assert list((tmp_path / "checkpoint-3").glob("*.safetensors"))
    args, state, control = saving(tmp_path, 4)
    state.is_world_process_zero = False
    callback.on_save(args, state, control)
    assert len(caplog.records) == 3


def test_a_trainer_takes_the_callback(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    callback = dt.DeltaTensorsCallback(tmp_path / "base", strategy="int4",
                                       outlier_fraction=0.05)
    assert isinstance(callback, transformers.TrainerCallback)
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, vocab_size=32)
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path / "base")
    ids = torch.arange(8) % 32
    rows = [{"input_ids": ids, "labels": ids} for _ in range(4)]
    transformers.Trainer(
        model=model, train_dataset=rows, callbacks=[callback],
        args=transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=4, save_steps=2,
            use_cpu=True, report_to=[], disable_tqdm=True),
    ).train()
    for step in (2, 4):
        got = dt.load_delta_from_paths(
            tmp_path / "out" / f"checkpoint-{step}" / "model.wdelta",
            tmp_path / "base")
        assert set(got) >= {"model.embed_tokens.weight", "lm_head.weight"}
    want = model.state_dict()["lm_head.weight"].float().numpy()
    assert np.abs(got["lm_head.weight"] - want).max() < 1e-3
