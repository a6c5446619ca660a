"""sync-vllm: servers hold what refs say, and what others loaded stays. The
stand-in for vLLM and SGLang says what is loaded."""

import fcntl
import json
import os
import pathlib

import pytest

from fleets import (LOAD, UNLOAD, Fleet, Proxy, adapter, emptied, engines,
                    loaded)
from servers import Fake
from support import model

EMPTY = {"loaded": [], "unloaded": [], "unchanged": [], "skipped": {},
         "failed": {}}


@pytest.fixture(name="fleet")
def made_fleet(tmp_path):
    return Fleet(tmp_path)


@pytest.fixture(name="started", scope="module")
def started_servers():
    with engines("vllm") as vllm, engines("sglang") as sglang:
        vllm.engine, sglang.engine = "vllm", "sglang"
        yield {"vllm": vllm, "sglang": sglang}


@pytest.fixture(name="vllm")
def empty_vllm(started):
    return emptied(started["vllm"])


@pytest.fixture(name="fake", params=["vllm", "sglang"])
def empty(started, request):
    return emptied(started[request.param], request.param)


def said(**parts):
    return {**EMPTY, **parts}


def test_servers_follow_the_refs(fleet, fake):
    a, b = fleet.commit("a"), fleet.commit("b")
    assert fleet.sync(to=fake) == said(loaded=[a, b])
    folder = fleet.dir / "acme"
    assert loaded(fake) == {name: str(folder / fleet.refs()[ref])
                            for name, ref in ((a, "a"), (b, "b"))}
    before = len(fake.log())
    assert fleet.sync(to=fake) == said(unchanged=[a, b])
    (asked,) = fake.log()[before:]
    assert (asked["method"], asked["path"]) == ("GET", "/v1/models")

    newer = fleet.commit("a")
    assert fleet.sync(to=fake) == said(loaded=[newer], unchanged=[b],
                                       unloaded=[a])
    assert set(loaded(fake)) == {newer, b}
    assert fleet.folders() == set(fleet.refs().values())
    # The new one was there before the old one went.
    told = [row["path"] for row in fake.log()
            if row["path"] in (LOAD[fake.engine], UNLOAD[fake.engine])]
    assert told[-2:] == [LOAD[fake.engine], UNLOAD[fake.engine]]


def test_text_says_what_was_done(fleet, vllm):
    name = fleet.commit("a")
    words = fleet.arguments(urls=[vllm.url + "/"])
    assert fleet(*words, "--dry-run").out == f"loaded     {name}\n"
    assert fleet(*words).out == f"loaded     {name}\n"
    assert fleet(*words).out == f"unchanged  {name}\n"
    fleet("forget", "a", "--reason", "test")
    assert fleet(*words).out == f"unloaded   {name}\n"
    assert fleet(*words).out == "nothing to change\n"


def test_what_others_loaded_stays(fleet, vllm, tmp_path):
    other = Fleet(tmp_path, "acme-eu")
    theirs = other.commit("x")
    other.sync(to=vllm)
    folder = adapter(tmp_path / "by-hand")
    for name in ("acme-a-0123abcd", "acme", "other"):
        vllm.send(LOAD["vllm"], {"lora_name": name, "lora_path": str(folder)})
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    newer = fleet.commit("a")
    assert fleet.sync(to=vllm) == said(loaded=[newer], unloaded=[name])
    fleet("forget", "--reason", "test", "--yes")
    assert fleet.sync(to=vllm) == said(unloaded=[newer])
    assert set(loaded(vllm)) == {theirs, "acme-a-0123abcd", "acme", "other"}
    assert other.folders() == set(other.refs().values())


@pytest.mark.parametrize("spelt", ["{}/", "{}/.", "/.{}", "/{}",
                                   "{}/../{}"])
def test_a_folder_stays_that_a_server_has_by_another_spelling(fleet, vllm,
                                                              spelt):
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    path = pathlib.Path(loaded(vllm)[name])
    spelt = spelt.format(path, path.name)
    vllm.send(LOAD["vllm"], {"lora_name": "by-hand", "lora_path": spelt})
    newer = fleet.commit("a")
    assert fleet.sync(to=vllm) == said(loaded=[newer], unloaded=[name])
    assert loaded(vllm)["by-hand"] == spelt and path.is_dir()
    vllm.send(UNLOAD["vllm"], {"lora_name": "by-hand"})
    assert fleet.sync(to=vllm) == said(unchanged=[newer])
    assert not path.exists()


def test_a_name_that_is_taken_is_left_alone(fleet, vllm, tmp_path):
    name = fleet.commit("a")
    folder = str(adapter(tmp_path / "by-hand"))
    vllm.send(LOAD["vllm"], {"lora_name": name, "lora_path": folder})
    done = fleet.sync(to=vllm, code=4)
    assert done == said(failed={name: f"the name is taken by '{folder}'"})
    assert loaded(vllm) == {name: folder}


def test_an_export_prunes_nothing_that_was_forgotten_and_is_loaded(fleet,
                                                                   vllm):
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    fleet("forget", "a", "--reason", "test", "--yes")
    done = fleet("--json", "serve-export", "-o", fleet.dir, "--prune")
    assert done.json["pruned"] == [] and len(fleet.folders()) == 1
    assert fleet.sync(to=vllm) == said(unloaded=[name])
    assert fleet.folders() == set()


def test_the_folder_of_another_store_is_refused(fleet, vllm, tmp_path):
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    other = Fleet(tmp_path / "other")
    other.path.mkdir()
    other.commit("b")
    other.dir = fleet.dir
    done = other(*other.arguments(urls=[vllm.url]), code=5)
    assert "another store" in done.err
    assert set(loaded(vllm)) == {name} and len(fleet.folders()) == 1


def test_named_refs_do_not_touch_the_others(fleet, vllm):
    a, b = fleet.commit("a"), fleet.commit("b")
    fleet.sync(to=vllm)
    kept = fleet.refs()["b"]
    newer, _ = fleet.commit("a"), fleet.commit("b")
    assert fleet.sync("a", to=vllm) == said(loaded=[newer], unloaded=[a])
    assert set(loaded(vllm)) == {newer, b}
    assert fleet.folders() == {kept, fleet.refs()["a"]}
    done = fleet.sync("a", "nothing", to=vllm, code=4)
    assert list(done["skipped"]) == ["nothing"]


def test_no_prune_unloads_and_removes_nothing(fleet, vllm):
    a = fleet.commit("a")
    fleet.sync(to=vllm)
    newer = fleet.commit("a")
    assert fleet.sync("--no-prune", to=vllm) == said(loaded=[newer])
    assert set(loaded(vllm)) == {a, newer}
    assert len(fleet.folders()) == 2
    assert fleet.sync(to=vllm) == said(unchanged=[newer], unloaded=[a])


def files(path):
    return {str(at): at.read_bytes() for at in sorted(path.rglob("*"))
            if at.is_file()}


def test_a_dry_run_changes_nothing(fleet, fake):
    a, b = fleet.commit("a"), fleet.commit("b")
    assert fleet.sync("--dry-run", to=fake) == \
        said(loaded=[a, b], dry_run=True)
    assert not fleet.dir.exists() and not loaded(fake)
    fleet.sync(to=fake)
    newer = fleet.commit("a")
    before = files(fleet.dir)
    plan = fleet.sync("--dry-run", to=fake)
    assert plan.pop("dry_run") and files(fleet.dir) == before
    assert set(loaded(fake)) == {a, b}
    assert fleet.sync(to=fake) == plan == said(loaded=[newer], unchanged=[b],
                                               unloaded=[a])


def test_a_dry_run_skips_what_a_run_would_skip(fleet, vllm):
    old = fleet.commit("a")
    fleet.sync(to=vllm)
    folder = adapter(fleet.path / "dora")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(
        json.dumps({**config, "use_dora": True}))
    fleet("commit", folder, "-m", "dora", "--ref", "a")
    planned = fleet.sync("--dry-run", to=vllm, code=4)
    assert planned.pop("dry_run") is True
    assert planned == fleet.sync(to=vllm, code=4)
    assert list(planned["skipped"]) == ["a"] and old in loaded(vllm)


@pytest.mark.parametrize("place", [".", "exports"])
def test_exports_do_not_go_into_the_store(fleet, vllm, place):
    fleet.commit("a")
    before = files(fleet.root)
    fleet.dir = fleet.root / place
    done = fleet(*fleet.arguments(urls=[vllm.url]), code=2)
    assert "inside the store" in done.err
    assert files(fleet.root).keys() == before.keys()


def test_what_a_killed_sync_was_writing_goes(fleet, vllm):
    fleet.dir.mkdir()
    left = fleet.dir / ".ballast-sync.json.tmp-0123456789abcdef"
    left.write_text("{")
    others = fleet.dir / "notes.tmp-0123456789abcdef"
    others.write_text("mine")
    fleet.commit("a")
    fleet.sync(to=vllm)
    assert not left.exists() and others.exists()


def test_several_servers_are_brought_to_the_same(fleet, vllm):
    name = fleet.commit("a")
    with Fake() as second:
        urls = [vllm.url, second.url]
        done = fleet.sync(to=[vllm, second])
        assert done == said(loaded=[f"{name}@{url}" for url in urls])
        newer = fleet.commit("a")
        fleet.sync(to=vllm)
        # The other one still has it, and would die without its folder.
        assert len(fleet.folders()) == 2
        text = fleet(*fleet.arguments(urls=urls)).out
        assert f"loaded     {newer} ({second.url})\n" in text
        assert set(loaded(second)) == {newer}
        assert len(fleet.folders()) == 1


def test_a_server_that_is_away_does_not_stop_the_others(fleet, vllm):
    name = fleet.commit("a")
    with Fake() as away:
        fleet.sync(to=[away, vllm])
    newer = fleet.commit("a")
    (fleet.dir / ".ballast-sync.json").unlink()
    done = fleet.sync(to=[away, vllm], code=7)
    assert done["loaded"] == [f"{newer}@{vllm.url}"]
    assert done["unloaded"] == [f"{name}@{vllm.url}"]
    assert list(done["failed"]) == [f"{newer}@{away.url}"]
    assert len(fleet.folders()) == 2, "who knows what it has loaded"


def test_a_server_of_the_other_engine_is_refused(fleet, vllm):
    fleet.commit("a")
    with engines("sglang") as other:
        done = fleet("--json", *fleet.arguments(urls=[vllm.url, other.url]),
                     code=2)
        assert "different engines" in done.error["message"]
        assert not loaded(vllm) and not loaded(other)


def test_keys_are_sent_and_not_told(fleet):
    with Fake("--api-key", "s3cret") as fake:
        name = fleet.commit("a")
        done = fleet.sync(to=fake, code=4)
        assert done == said(
            failed={name: "the server wants another API key"})
        key = fleet.path / "key"
        key.write_text("s3cret\n")
        key.chmod(0o644)
        words = fleet.arguments("--api-key-file", key, urls=[fake.url])
        first = fleet(*words)
        assert first.out == f"loaded     {name}\n"
        assert "can be read by others" in first.err
        key.chmod(0o600)
        assert fleet(*words).err == ""
        for variable in ("BALLAST_API_KEY", "VLLM_API_KEY"):
            done = fleet.sync(to=fake, env={variable: "s3cret"})
            assert done == said(unchanged=[name])
        assert all("s3cret" not in text.decode("utf-8", "replace")
                   for text in files(fleet.dir).values())
        key.write_text("two keys")
        assert "one API key" in fleet(*words, code=2).err


def test_a_state_that_cannot_be_read_is_not_replaced(fleet, vllm):
    fleet.commit("a")
    fleet.sync(to=vllm)
    path = fleet.dir / ".ballast-sync.json"
    good = path.read_text()
    rows = [
        (good[:-20], 6), ("", 6), ("[]", 6), ("{}", 6),
        ('{"schema": "ballast/sync/2", "servers": {}}', 9),
        ('{"schema": "ballast/sync/1", "servers": []}', 6),
        ('{"schema": "ballast/sync/1", "servers": {"u": {"n": 1}}}', 6),
        (good.replace('"path": "/', '"path": "'), 6),
        (good.replace('"commit": "', '"commit": "g'), 6),
    ]
    for text, code in rows:
        path.write_text(text)
        done = fleet("--json", *fleet.arguments(urls=[vllm.url]), code=code)
        assert str(path) in done.error["message"], text
        assert path.read_text() == text
    path.write_text(good)
    fleet.sync(to=vllm)


def test_without_a_state_our_own_are_known_by_place_and_name(fleet, vllm):
    a, b = fleet.commit("a"), fleet.commit("b")
    fleet.sync(to=vllm)
    place = fleet.dir / "acme" / fleet.refs()["a"]
    vllm.send(LOAD["vllm"], {"lora_name": "acme-by-hand",
                             "lora_path": str(place)})
    (fleet.dir / ".ballast-sync.json").unlink()
    newer = fleet.commit("a")
    done = fleet.sync(to=vllm)
    assert done == said(loaded=[newer], unchanged=[b], unloaded=[a])
    assert set(loaded(vllm)) == {newer, b, "acme-by-hand"}
    assert place.is_dir(), "a server has it loaded, by whatever name"


def test_a_lock_that_is_taken_is_told(fleet, vllm):
    fleet.commit("a")
    fleet.sync(to=vllm)
    with open(fleet.dir / ".ballast-sync.lock", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fleet("--wait", "0", *fleet.arguments(urls=[vllm.url]), code=8)


def test_a_moved_folder_is_loaded_from_where_it_is(fleet, vllm):
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    fleet.dir = fleet.dir.rename(fleet.path / "moved")
    assert fleet.sync(to=vllm) == said(loaded=[name])
    assert loaded(vllm)[name].startswith(str(fleet.dir))


def test_what_may_not_be_served_any_more_is_unloaded(fleet, vllm, tmp_path):
    owner = Fleet(tmp_path, "owner")
    owner.commit("x")
    owner("grant", "x", "--to", "acme")
    mine = fleet.commit("mine")
    view = fleet("--json", "merge", "owner:x@0.5", "mine@0.5", "-m", "both",
                 "--ref", "both").json["id"]
    both = fleet.name("both", view)
    assert fleet.sync(to=vllm)["loaded"] == [both, mine]
    owner("revoke", "x", "--to", "acme")
    done = fleet.sync(to=vllm, code=4)
    assert (done["unloaded"], done["unchanged"]) == ([both], [mine])
    assert list(done["skipped"]) == ["both"]
    assert set(loaded(vllm)) == {mine}


def test_what_cannot_be_exported_leaves_the_older_version(fleet, vllm):
    name = fleet.commit("a")
    fleet.sync(to=vllm)
    model(fleet.path / "whole")
    fleet("commit", "whole", "-m", "no adapter", "--ref", "a")
    done = fleet.sync(to=vllm, code=4)
    assert list(done["skipped"]) == ["a"] and not done["unloaded"]
    assert set(loaded(vllm)) == {name} and len(fleet.folders()) == 1


USAGE = [
    (["--url", "ftp://x"], "http"),
    (["--url", "http://u:p@127.0.0.1:1"], "password"),
    (["--url", "http://127.0.0.1:1/?x"], "'?'"),
    (["--engine", "peft"], "engine"),
    (["--every", "1"], "--watch"),
    (["--watch", "--every", "0"], "--every"),
    (["--watch", "--dry-run"], "--dry-run"),
    (["--slots", "0"], "--slots"),
    (["--timeout", "0"], "--timeout"),
]


@pytest.mark.parametrize("words,names", USAGE,
                         ids=[" ".join(row[0]) for row in USAGE])
def test_what_is_asked_for_wrongly_is_told(fleet, words, names):
    fleet.commit("a")
    done = fleet("--json", *fleet.arguments(*words,
                                            urls=["http://127.0.0.1:1"]),
                 code=2)
    assert names in done.error["message"]
    assert not fleet.dir.exists()


def test_a_server_may_lie_behind_a_path(fleet, vllm):
    name = fleet.commit("a")

    def strip(asked):
        assert asked.path.startswith("/deep/down/v1/"), asked.path
        asked.path = asked.path[len("/deep/down"):]

    with Proxy(vllm.url, strip) as proxy:
        for end in ("", "/", "//", "/v1", "/v1/"):
            fleet.sync(to=f"{proxy.url}/deep/down{end}")
    assert set(loaded(vllm)) == {name}
    assert len(json.loads(
        (fleet.dir / ".ballast-sync.json").read_text())["servers"]) == 1
    assert os.stat(fleet.dir / ".ballast-sync.json").st_size < 1000
