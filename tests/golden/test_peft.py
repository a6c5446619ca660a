"""Adapters folded onto a base: what PEFT's layers make of it, in float64. Each
case of peft/cases.tar.xz is committed and applied; folders that people meet and
that mean nothing, or something else, are refused or warned of by name."""

import json
import os
import pathlib
import subprocess
import tarfile

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent / "peft"
BALLAST = os.environ["BALLAST"]
NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
FACTS = json.loads((HERE / "facts.json").read_text())

# Of the largest value: five times PEFT's own error in float32.
NEAR = 1.1e-6
# Of a bf16 result: this many may be the neighbour of the nearest.
OFF = 1e-3


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    at = tmp_path_factory.mktemp("peft")
    with tarfile.open(HERE / "cases.tar.xz") as tar:
        tar.extractall(at)
    for base in sorted(at.glob("base/*-f32")):
        narrow(base, base.with_name(base.name.replace("-f32", "-bf16")))
    return at


def load(path):
    """{name: (dtype, array)} of a file."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (info["dtype"], np.frombuffer(
        raw[8 + length:][slice(*info["data_offsets"])],
        NUMPY[info["dtype"]]).reshape(info["shape"]))
            for name, info in header.items()}


def bf16(values):
    """Rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype("<u2")


def wide(tensor):
    dtype, array = tensor
    if dtype == "BF16":
        return (array.astype("<u4") << 16).view("<f4").astype(float)
    return array.astype(float)


def narrow(base, to):
    """The same model in bf16."""
    to.mkdir()
    header, at, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for name, (_, array) in load(base / "model.safetensors").items():
        parts.append(bf16(array).tobytes())
        header[name] = {"dtype": "BF16", "shape": list(array.shape),
                        "data_offsets": [at, at + len(parts[-1])]}
        at += len(parts[-1])
    text = json.dumps(header).encode()
    (to / "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + b"".join(parts))
    (to / "config.json").write_bytes((base / "config.json").read_bytes())


def ballast(root, *words, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BALLAST_")}
    env.update(settings)
    return subprocess.run([BALLAST, "--root", root, "--tenant", "acme",
                           *map(str, words)], capture_output=True, text=True,
                          env=env, timeout=60, check=False)


def fold(tmp_path, adapter, base, *words, **settings):
    """Commit and apply: (the run that failed or the last, its folder, all that
    was said)."""
    out = tmp_path / "out"
    root = tmp_path / "store"
    made = ballast(root, "commit", adapter, "-m", "an adapter", "--kind",
                   "adapter", "--ref", "a")
    if made.returncode:
        return made, out, made.stderr
    done = ballast(root, "apply", "a", "--base", base, "-o", out, *words,
                   **settings)
    return done, out, made.stderr + done.stderr


# ---- what PEFT makes of it --------------------------------------------------

CASES = json.loads((HERE / "folds.json").read_text())


def check_others(got, base, want):
    """All that the adapter does not speak of is the base's, byte for byte."""
    for name, (dtype, array) in base.items():
        if name not in want:
            assert got[name][0] == dtype
            assert got[name][1].tobytes() == array.tobytes(), name
    assert set(got) <= set(base) | set(want)


def missing(name, case, base):
    """A head that is its embedding's need not be there as well."""
    return (name == "lm_head.weight" and name not in base
            and case["config"].get("tie_word_embeddings", True))


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_fold_is_what_peft_computes_in_float64(data, tmp_path, name):
    case = CASES[name]
    base = data / "base" / (case["base"] + "-f32")
    done, out, _ = fold(tmp_path, data / case["adapter"], base)
    if "refused" in case:
        assert done.returncode == 9
        assert case["refused"] in done.stderr
        assert not out.exists()
        return
    assert done.returncode == 0, done.stderr
    got = load(out / "model.safetensors")
    old = load(base / "model.safetensors")
    want = load(data / "folded" / name / "f32.safetensors")
    for tensor, expected in want.items():
        if tensor not in got and missing(tensor, case, old):
            continue
        assert got[tensor][0] == "F32"
        assert got[tensor][1].shape == expected[1].shape
        error = np.abs(wide(got[tensor]) - wide(expected)).max()
        assert error <= NEAR * np.abs(wide(expected)).max(), tensor
    check_others(got, old, want)
    config = json.loads((base / "config.json").read_text())
    config.update(case["config"])
    assert json.loads((out / "config.json").read_text()) == config


def steps(a, b):
    """Between bf16 bit patterns, in the order of their values."""
    def order(bits):
        signed = bits.astype(np.int32)
        return np.where(signed & 0x8000, 0x8000 - signed, signed)
    return np.abs(order(a) - order(b))


@pytest.mark.parametrize("name", sorted(
    name for name, case in CASES.items()
    if case["bf16"] and "refused" not in case))
def test_a_bf16_fold_is_rounded_once(data, tmp_path, name):
    case = CASES[name]
    base = data / "base" / (case["base"] + "-bf16")
    done, out, _ = fold(tmp_path, data / case["adapter"], base)
    assert done.returncode == 0, done.stderr
    got = load(out / "model.safetensors")
    want = load(data / "folded" / name / "bf16.safetensors")
    off, count = 0, 0
    for tensor, expected in want.items():
        far = steps(got[tensor][1], expected[1])
        close = (np.abs(wide(got[tensor]) - wide(expected))
                 <= 1e-6 * np.abs(wide(expected)).max())
        assert ((far <= 1) | close).all(), tensor
        off += int((far > 0).sum())
        count += far.size
    assert off <= max(2, OFF * count)
    check_others(got, load(base / "model.safetensors"), want)


@pytest.mark.parametrize("name", ["lora-alpha-zero", "lora-untrained"])
def test_an_update_of_nothing_changes_no_bit(data, tmp_path, name):
    base = data / "base" / "llama-f32"
    done, out, _ = fold(tmp_path, data / "adapters" / name, base)
    assert done.returncode == 0
    assert ((out / "model.safetensors").read_bytes()
            == (base / "model.safetensors").read_bytes())


@pytest.mark.parametrize("name", ["lora-all", "gpt2-dora", "lokr", "loha",
                                  "dora-embed", "experts-gptoss"])
def test_a_fold_has_the_same_bytes_on_any_machine(data, tmp_path, name):
    case = CASES[name]
    base = data / "base" / (case["base"] + "-f32")
    seen = set()
    for jobs, isa in (("1", "base"), ("1", ""), ("4", "base"), ("4", "")):
        at = tmp_path / f"{jobs}{isa}"
        at.mkdir()
        settings = {"BALLAST_ISA": isa} if isa else {}
        done, out, _ = fold(at, data / case["adapter"], base, "--jobs", jobs,
                            **settings)
        assert done.returncode == 0, done.stderr
        seen.add((out / "model.safetensors").read_bytes())
    assert len(seen) == 1


# ---- folders that people meet -----------------------------------------------

@pytest.mark.parametrize("name", sorted(FACTS["refused"]))
def test_what_cannot_be_folded_is_refused_by_name(data, tmp_path, name):
    done, out, said = fold(tmp_path, data / name, data / "base" / "llama-f32")
    assert done.returncode > 1
    assert not out.exists()
    for fact in FACTS["refused"][name]:
        assert fact in said


@pytest.mark.parametrize("name", sorted(FACTS["folded"]))
def test_what_is_unusual_is_folded_and_told(data, tmp_path, name):
    base = data / "base" / "llama-f32"
    done, out, said = fold(tmp_path, data / name, base)
    assert done.returncode == 0, done.stderr
    for fact in FACTS["folded"][name]:
        assert fact in said
    if not FACTS["folded"][name]:
        assert not done.stderr
    got = load(out / "model.safetensors")
    want = load(data / "folded" / "plain.safetensors")
    for tensor, expected in want.items():
        error = np.abs(wide(got[tensor]) - wide(expected)).max()
        assert error <= NEAR * np.abs(wide(expected)).max()
    check_others(got, load(base / "model.safetensors"), want)


def test_a_missing_alpha_is_8_as_in_peft(data, tmp_path):
    base = data / "base" / "llama-f32"
    done, out, said = fold(tmp_path, data / "malformed" / "alpha-missing", base)
    assert done.returncode == 0 and "lora_alpha=missing taken=8" in said
    name = "model.layers.1.self_attn.v_proj"
    old = wide(load(base / "model.safetensors")[name + ".weight"])
    factors = load(data / "malformed" / "alpha-missing"
                   / "adapter_model.safetensors")
    prefix = f"base_model.model.{name}.lora_"
    update = (wide(factors[prefix + "B.weight"])
              @ wide(factors[prefix + "A.weight"])) * 8 / 2
    got = wide(load(out / "model.safetensors")[name + ".weight"])
    assert np.abs(got - old - update).max() <= NEAR * np.abs(got).max()


def test_a_whole_tensor_that_nothing_declares_is_folded_and_told(data, tmp_path):
    adapter = data / "malformed" / "whole-tensor-undeclared"
    done, out, said = fold(tmp_path, adapter, data / "base" / "llama-f32")
    assert done.returncode == 0 and "undeclared=lm_head.weight" in said
    got = load(out / "model.safetensors")["lm_head.weight"][1]
    want = load(adapter / "adapter_model.safetensors")
    assert (got == want["base_model.model.lm_head.weight"][1]).all()


# ---- stored whole -----------------------------------------------------------

def adapters():
    return sorted(set(
        [case["adapter"] for case in CASES.values()]
        + [name for name in FACTS["refused"] if name.startswith(
            ("refused/", "recognise/"))] + ["malformed/config-unknown-keys"]))


@pytest.mark.parametrize("name", adapters())
def test_every_adapter_comes_back_byte_for_byte(data, tmp_path, name):
    root = tmp_path / "store"
    assert not ballast(root, "commit", data / name, "-m", "x", "--ref",
                       "a").returncode
    assert not ballast(root, "checkout", "a", "-o",
                       tmp_path / "out").returncode
    shown = json.loads(ballast(root, "show", "a", "--json").stdout)
    assert shown["kind"] == "adapter"
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        assert ((tmp_path / "out" / file).read_bytes()
                == (data / name / file).read_bytes())
