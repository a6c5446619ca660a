"""Exports, against what the program exports, and json and hashlib."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

import pytest

import ballast.serving as serving
from ballast import errors
from ballast.store import Store

TREE = pathlib.Path(__file__).parents[2]
ADAPTERS = TREE / "tests" / "data" / "adapters"
LLAMA = TREE / "examples" / "llama"
MEMBERS = [
    "name", "int_id", "path", "tenant", "ref", "commit", "manifest", "base_model",
    "rank", "reused",
]  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as store:
        for name, ref in (("lora_r8_qv", "tone"), ("lora_r16_all_rslora", "tools")):
            store.commit("acme", ADAPTERS / name, message=name, ref=ref)
        yield store


def test_every_ref_is_a_folder_that_peft_knows(store, tmp_path):
    items = serving.export(store, "acme", out=tmp_path / "out")
    assert [item.ref for item in items] == ["tone", "tools"] and not items.skipped
    for item, source in zip(items, ("lora_r8_qv", "lora_r16_all_rslora")):
        folder = pathlib.Path(item.path)
        assert folder == tmp_path / "out" / "acme" / item.commit
        for name in ("adapter_model.safetensors", "adapter_config.json"):
            want = (ADAPTERS / source / name).read_bytes()
            assert (folder / name).read_bytes() == want


def test_an_item_has_the_members_of_the_programs_json(store, tmp_path):
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=["tone"])
    assert list(item) == MEMBERS and json.loads(json.dumps(item)) == item
    commit = store.show("acme", "tone")
    assert (item.commit, item["manifest"]) == (commit.id, commit.manifest)
    # What the header says of the number that an engine knows it by.
    assert item.int_id == int(commit.id[:15], 16) % (2**31 - 1) + 1
    assert item.name == f"acme-tone-{commit.id[:8]}"
    assert (item.rank, item.base_model, item.reused) == (8, "base", False)
    with pytest.raises(AttributeError):
        item.nothing


def test_a_commit_may_stand_for_a_spec(store, tmp_path):
    commit = store.show("acme", "tone")
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=commit)
    assert (item.ref, item.name) == (None, f"acme-{commit.id[:12]}")


def test_the_program_exports_the_same(store, tmp_path):
    program = os.environ.get("BALLAST") or shutil.which("ballast")
    if not program:
        pytest.skip("no ballast program")
    items = serving.export(store, "acme", out=tmp_path / "out")
    told = subprocess.run(
        [program, "--root", store.root, "--tenant", "acme", "--json", "serve-export",
         "-o", tmp_path / "out"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = json.loads(told.stdout)["exported"]
    assert rows == [{**item, "reused": True} for item in items]


def test_what_is_there_is_used_again(store, tmp_path):
    (first,) = serving.export(store, "acme", out=tmp_path / "out", specs="tone")
    weights = pathlib.Path(first.path, "adapter_model.safetensors")
    before = weights.stat().st_mtime_ns
    (again,) = serving.export(store, "acme", out=tmp_path / "out", specs="tone")
    assert again.reused and weights.stat().st_mtime_ns == before
    assert {**again, "reused": False} == first


def test_a_ref_that_is_no_adapter_is_skipped_and_one_that_is_named_raises(
    store, tmp_path
):
    store.commit("acme", LLAMA / "base", message="base", ref="base")
    items = serving.export(store, "acme", out=tmp_path / "out")
    assert len(items) == 2 and "only adapters" in items.skipped["base"]
    with pytest.raises(errors.Unsupported, match="only adapters"):
        serving.export(store, "acme", out=tmp_path / "out", specs=["base"])
    with pytest.raises(errors.NotFound):
        serving.export(store, "acme", out=tmp_path / "out", specs=["nothing"])


def test_a_view_of_adapters_is_served(store, tmp_path):
    store.merge("acme", "linear", ["tone", "tools"], message="both", ref="both")
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=["both"])
    config = json.loads(pathlib.Path(item.path, "adapter_config.json").read_text())
    assert item.rank == 24 and config["peft_type"] == "LORA"


def test_rules_of_an_engine_are_told_and_answered(store, tmp_path):
    store.commit("acme", ADAPTERS / "lora_r4_patterns", message="p", ref="odd")
    given = {"out": tmp_path / "as-is", "engine": "sglang", "base": LLAMA / "base"}
    items = serving.export(store, "acme", **given)
    assert "odd" in items.skipped
    assert any(n["spec"] == "odd" and n["outcome"] in ("refused", "wrong", "fatal")
               for n in items.notes)
    given["out"] = tmp_path / "adapted"
    items = serving.export(store, "acme", adapt=True, **given)
    assert "odd" in [item.ref for item in items]
    config = json.loads(pathlib.Path(
        next(item.path for item in items if item.ref == "odd"), "adapter_config.json"
    ).read_text())
    assert not config["rank_pattern"] and not config["alpha_pattern"]


def test_a_rank_above_the_servers_is_refused(store, tmp_path):
    given = {"out": tmp_path / "out", "engine": "vllm", "specs": ["tools"]}
    assert serving.export(store, "acme", max_rank=16, **given)
    given["out"] = tmp_path / "low"
    with pytest.raises(errors.Unsupported, match="rank"):
        serving.export(store, "acme", max_rank=8, **given)


@pytest.mark.parametrize(
    "given", [{"adapt": True}, {"base": "x"}, {"max_rank": 8},
              {"engine": "nonesuch"}, {"engine": "llama.cpp"},
              {"engine": "vllm", "max_rank": 0}]
)
def test_what_makes_no_sense_is_refused(store, tmp_path, given):
    with pytest.raises(ValueError):
        serving.export(store, "acme", out=tmp_path / "out", specs=["tone"], **given)


def test_without_vllm_a_request_is_an_import_error(store, tmp_path):
    if "vllm" in sys.modules:
        pytest.skip("vllm is here")
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=["tone"])
    with pytest.raises(ImportError, match="vllm"):
        serving.lora_request(item)


def test_a_request_has_what_vllms_class_is_documented_to_take(
    store, tmp_path, monkeypatch
):
    @dataclasses.dataclass
    class LoRARequest:
        lora_name: str
        lora_int_id: int
        lora_path: str = ""
        base_model_name: str | None = None
        tensorizer_config_dict: dict | None = None

        def __post_init__(self):
            if self.lora_int_id < 1:
                raise ValueError(f"id must be > 0, got {self.lora_int_id}")
            assert self.lora_path, "lora_path cannot be empty"

    for name in ("vllm", "vllm.lora", "vllm.lora.request"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["vllm.lora.request"].LoRARequest = LoRARequest
    (item,) = serving.export(store, "acme", out=tmp_path / "out", specs=["tone"])
    request = serving.lora_request(item)
    assert request == LoRARequest(item.name, item.int_id, item.path)
    assert [type(v) for v in dataclasses.astuple(request)[:3]] == [str, int, str]
    assert os.path.exists(os.path.join(request.lora_path, "adapter_config.json"))
