"""Stores that earlier programs made still open, and say what they said; the same
model has the same ids whatever computes them."""

import filecmp
import json
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
STORES = sorted(HERE.glob("store-*"))
BALLAST = os.environ["BALLAST"]


def ballast(root, *words, isa=None, code=0):
    env = {k: v for k, v in os.environ.items() if not k.startswith("BALLAST_")}
    if isa:
        env["BALLAST_ISA"] = isa
    done = subprocess.run([BALLAST, "--root", root, "--tenant", "acme", "--json",
                           *map(str, words)], capture_output=True, text=True,
                          env=env)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(params=STORES, ids=lambda path: path.name)
def golden(request, tmp_path):
    """A copy, for opening one may write beside it."""
    shutil.copytree(request.param, tmp_path / "golden")
    return tmp_path / "golden"


def test_a_golden_store_is_consistent(golden):
    assert ballast(golden / "store", "fsck")[0]["ok"]


def test_a_golden_store_has_the_same_refs_and_reflog(golden):
    refs = ballast(golden / "store", "refs")[0]["refs"]
    moves = ballast(golden / "store", "reflog")
    told = [[m["ref"], m["op"], m["old"], m["new"]] for m in moves]
    want = json.loads((golden / "want.json").read_text())
    assert refs == want["refs"] and told == want["reflog"]


@pytest.mark.parametrize("label", ["one", "two"])
def test_a_golden_delta_still_gives_its_model(golden, tmp_path, label):
    spec = {"one": "one@{1}", "two": "two"}[label]
    ballast(golden / "store", "apply", spec, "--base", golden / "base", "-o",
            tmp_path / "out")
    for name in ("model.safetensors", "config.json"):
        assert filecmp.cmp(golden / label / name, tmp_path / "out" / name,
                           shallow=False)


def test_a_golden_store_takes_new_commits(golden):
    made = ballast(golden / "store", "commit", golden / "base", "-m", "again")[0]
    assert made["new_blocks"] == 0


@pytest.mark.parametrize("isa", ["base", "v3", "v4"])
@pytest.mark.parametrize("jobs", [1, 8])
def test_ids_do_not_depend_on_processor_or_threads(golden, tmp_path, isa, jobs):
    """An instruction set that this machine lacks falls back, which is fine."""
    want = json.loads((golden / "want.json").read_text())["manifests"]
    ballast(tmp_path / "new", "init", "--block-size", "16K")
    for label in ("one", "two"):
        made = ballast(tmp_path / "new", "delta", golden / label, "--base",
                       golden / "base", "-m", label, "--ref", label, "-j", jobs,
                       isa=isa)[0]
        assert made["manifest"] == want[label]
