"""deltatensors 0.2.0 reads what ballast writes, and ballast what it writes."""

import os
import subprocess

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import deltatensors as dt

GOLDEN = os.path.join(os.environ["BALLAST_TREE"], "tests", "golden", "wdelta")
STRATEGIES = [("int4", {}), ("int4", {"outlier_fraction": 0.05}),
              ("sparse", {}), ("sparse", {"sparsity": 0.5}),
              ("quantized", {})]
SHAPES = [(300, 101), (70, 33), (501,), (2, 1), (8, 3, 5), (64, 1000)]


def ballast(*words, cwd):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("BALLAST_")}
    done = subprocess.run([os.environ["BALLAST"], *words], cwd=cwd,
                          env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def models(folder, dtype, sigma=1e-3):
    """base, tuned and later, of one file each."""
    rng = np.random.default_rng(21)
    now = {f"t{i}.w": torch.from_numpy(
        rng.normal(0, 0.02, shape).astype(np.float32)).to(dtype)
        for i, shape in enumerate(SHAPES)}
    for name in ("base", "tuned", "later"):
        os.makedirs(folder / name)
        save_file(now, folder / name / "model.safetensors")
        now = {key: (value.float() + torch.from_numpy(
            rng.normal(0, sigma, value.shape).astype(np.float32))).to(dtype)
            for key, value in now.items()}


def options(kwargs):
    return [word for key, value in kwargs.items()
            for word in ("--" + key.replace("_", "-"), str(value))]


def loaded(folder, dtype, *names):
    ballast("wdelta", "load", *names, "--base", "base", "-o", "got", cwd=folder)
    return load_file(folder / "got" / "model.safetensors")


def same(got, want, dtype):
    assert sorted(got) == sorted(want)
    for name, value in want.items():
        assert torch.equal(got[name], torch.from_numpy(value).to(dtype)), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16,
                                   torch.float32])
@pytest.mark.parametrize("strategy,kwargs", STRATEGIES)
def test_what_it_writes_loads_to_its_bits(tmp_path, dtype, strategy, kwargs):
    models(tmp_path, dtype)
    dt.save_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "tuned",
                             tmp_path / "base", strategy=strategy, **kwargs)
    want = dt.load_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "base")
    same(loaded(tmp_path, dtype, "x.wdelta"), want, dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16,
                                   torch.float32])
@pytest.mark.parametrize("strategy,kwargs", STRATEGIES)
def test_it_loads_what_ballast_writes_to_the_same_bits(tmp_path, dtype,
                                                       strategy, kwargs):
    models(tmp_path, dtype)
    ballast("wdelta", "save", "tuned", "--base", "base", "-o", "x.wdelta",
            "--strategy", strategy, *options(kwargs), cwd=tmp_path)
    want = dt.load_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "base")
    same(loaded(tmp_path, dtype, "x.wdelta"), want, dtype)


@pytest.mark.parametrize("strategy,kwargs", STRATEGIES)
def test_without_ties_both_write_the_same_file(tmp_path, strategy, kwargs):
    models(tmp_path, torch.float32)
    dt.save_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "tuned",
                             tmp_path / "base", strategy=strategy, **kwargs)
    ballast("wdelta", "save", "tuned", "--base", "base", "-o", "y.wdelta",
            "--strategy", strategy, *options(kwargs), cwd=tmp_path)
    assert (tmp_path / "x.wdelta").read_bytes() == (
        tmp_path / "y.wdelta").read_bytes()


@pytest.mark.parametrize("limit", ["0.5", "0.05", "0.001", "0"])
def test_it_loads_files_of_several_strategies(tmp_path, limit):
    models(tmp_path, torch.bfloat16)
    ballast("wdelta", "save", "tuned", "--base", "base", "-o", "x.wdelta",
            "--max-error", limit, cwd=tmp_path)
    want = dt.load_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "base")
    same(loaded(tmp_path, torch.bfloat16, "x.wdelta"), want, torch.bfloat16)


def test_it_follows_a_chain_of_ours_and_we_one_of_its(tmp_path):
    models(tmp_path, torch.bfloat16)
    ballast("wdelta", "save", "tuned", "--base", "base", "-o", "1.wdelta",
            cwd=tmp_path)
    ballast("wdelta", "save", "later", "--base", "base", "-o", "2.wdelta",
            "--parent", "1.wdelta", cwd=tmp_path)
    dt.save_delta_chain_from_paths(tmp_path / "3.wdelta", tmp_path / "later",
                                   tmp_path / "1.wdelta", tmp_path / "base",
                                   strategy="sparse")
    for second in ("2.wdelta", "3.wdelta"):
        want = dt.load_delta_chain([tmp_path / "1.wdelta", tmp_path / second],
                                   tmp_path / "base")
        ballast("wdelta", "load", "1.wdelta", second, "--base", "base", "-o",
                "of-" + second, cwd=tmp_path)
        same(load_file(tmp_path / ("of-" + second) / "model.safetensors"), want,
             torch.bfloat16)


def test_it_checks_a_base_of_several_files_as_we_hash_it(tmp_path):
    ballast("wdelta", "save", os.path.join(GOLDEN, "ft1_bf16"), "--base",
            os.path.join(GOLDEN, "base_bf16"), "-o", "x.wdelta", cwd=tmp_path)
    dt.load_delta_from_paths(tmp_path / "x.wdelta",
                             os.path.join(GOLDEN, "base_bf16"))


def test_it_refuses_what_is_ours_alone(tmp_path):
    models(tmp_path, torch.bfloat16)
    ballast("wdelta", "save", "tuned", "--base", "base", "-o", "x.wdelta",
            "--strategy", "lossless", cwd=tmp_path)
    with pytest.raises(ValueError, match="Unsupported"):
        dt.load_delta_from_paths(tmp_path / "x.wdelta", tmp_path / "base")
