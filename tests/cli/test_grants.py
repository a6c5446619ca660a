"""Sharing between tenants, and taking it back."""

import json
import shutil
import subprocess

import pytest

from support import (BALLAST, Store, adapter, environment, files, load, run,
                     save)

STRACE = shutil.which("strace")


class Shared:
    """One store, several tenants: each has an adapter on ref `own`."""

    def __init__(self, path, *tenants):
        self.path = path
        self.of = {name: Store(path, name) for name in tenants}
        self.ids = {}
        for i, name in enumerate(tenants):
            adapter(path / name, i + 1.0)
            made = self.of[name]("commit", name, "-m", f"by {name}", "--ref",
                                 "own", "--json").json
            self.ids[name] = made["id"]

    def __call__(self, tenant, *args, **more):
        return self.of[tenant](*args, **more)

    def merge(self, tenant, *inputs, ref="main", **more):
        return self(tenant, "merge", *inputs, "-m", "view", "--ref", ref,
                    "--json", **more)

    def checkout(self, tenant, spec, out, **more):
        return self(tenant, "checkout", spec, "-o", self.path / out, **more)


@pytest.fixture
def two(tmp_path):
    return Shared(tmp_path, "acme", "partner")


@pytest.fixture
def three(tmp_path):
    return Shared(tmp_path, "acme", "partner", "client")


def short(identifier):
    return identifier[:12]


# ---- granting ----------------------------------------------------------------


def test_grant_says_who_may_do_what(two):
    done = two("acme", "grant", "own", "--to", "partner")
    assert done.out == (f"partner may build views over "
                        f"acme:{short(two.ids['acme'])}\n")
    assert done.err == ""


def test_grant_as_json_has_the_grant(two):
    got = two("acme", "grant", "own", "--to", "partner", "--json").json
    assert list(got) == ["schema", "owner", "manifest", "commit", "grantee",
                         "created_at", "revoked_at"]
    assert got["schema"] == "ballast/grant/1"
    assert got["owner"] == "acme" and got["grantee"] == "partner"
    assert got["commit"] == two.ids["acme"]
    assert got["manifest"] == two("acme", "show", "own", "--json").json[
        "manifest"]
    assert got["created_at"].endswith("Z") and got["revoked_at"] is None


def test_grants_are_listed_for_both_sides_live_ones_first(three):
    three("acme", "grant", "own", "--to", "client")
    three("acme", "revoke", "own", "--to", "client")
    three("acme", "grant", "own", "--to", "partner")
    own = short(three.ids["acme"])
    assert three("acme", "grants").out == (f"live  acme:{own} -> partner\n"
                                           f"revoked  acme:{own} -> client\n")
    assert three("partner", "grants").out == f"live  acme:{own} -> partner\n"
    listed = three("client", "grants", "--json").json
    assert [grant["grantee"] for grant in listed["grants"]] == ["client"]
    assert listed["grants"][0]["revoked_at"] is not None


def test_a_grantee_need_not_exist_yet(two):
    two("acme", "grant", "own", "--to", "later")
    late = Store(two.path, "later")
    late("merge", "acme:own", "-m", "view")
    late("checkout", "main", "-o", two.path / "out")


@pytest.mark.parametrize("words, code", [
    (("own", "--to", "acme"), 2), (("own", "--to", "no such"), 2),
    (("own", "--to", "a..b"), 2), (("own", "--to", "x" * 65), 2),
    (("own",), 2), (("nothing", "--to", "partner"), 3),
    (("partner:own", "--to", "partner"), 3),
])
def test_grants_that_are_refused(two, words, code):
    two("acme", "grant", *words, code=code)
    assert two("acme", "grants").out == ""


@pytest.mark.parametrize("name", ["a/b", "a..b", "", "x" * 65, "-x"])
def test_a_bad_name_for_a_tenant_is_told_the_same_everywhere(two, name):
    want = two("acme", "refs", f"--tenant={name}", code=2).err
    assert f"'{name}' is not a name for a tenant\nhint: letters" in want
    for command in ("grant", "revoke"):
        assert two("acme", command, "own", f"--to={name}", code=2).err == want
    got = two("acme", "config", "--", "tenant", name, code=2).err
    assert got == want.replace("ballast: ", "ballast: tenant: ")


# ---- reading through a grant -------------------------------------------------


def test_a_view_reads_what_is_granted_and_stores_none_of_it(two):
    before = two("partner", "stats", "--json").json["blocks"]
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own@0.5", "own@0.5")
    two.checkout("partner", "main", "got")
    assert two("partner", "stats", "--json").json["blocks"] == before
    mine = Shared(two.path / "alone", "solo")
    for name in ("acme", "partner"):
        mine("solo", "commit", two.path / name, "-m", name, "--ref", name)
    mine.merge("solo", "acme@0.5", "partner@0.5")
    mine.checkout("solo", "main", "got")
    assert load(two.path / "got") == load(two.path / "alone" / "got")


@pytest.mark.parametrize("spec", ["own", "{id}", "{short}", "{short4}"])
def test_what_is_granted_goes_by_ref_id_and_prefix(two, spec):
    two("acme", "grant", "own", "--to", "partner")
    whole = two.ids["acme"]
    spec = spec.format(id=whole, short=whole[:12], short4=whole[:4])
    assert two.merge("partner", f"acme:{spec}").json["recipe"]["inputs"][0][
        "commit"] == whole


def test_steps_go_no_further_than_what_is_granted(two):
    for i in range(3):
        adapter(two.path / f"v{i}", 10.0 + i)
        two("acme", "commit", two.path / f"v{i}", "-m", f"v{i}", "--ref", "own")
    for spec in ("own", "own~1", "own~3"):
        two("acme", "grant", spec, "--to", "partner")
    wanted = two("acme", "show", "own~1", "--json").json["id"]
    for spec in ("own~1", "own^", "own~", "own^~0"):
        got = two.merge("partner", f"acme:{spec}", ref="x").json
        assert got["recipe"]["inputs"][0]["commit"] == wanted, spec
    # ~2 is not granted; ~3 is, and the way to it is not.
    for spec in ("own~2", "own^^", "own~3", "own~1~2", "own~4", "own~99999",
                 "own~18446744073709551615", "own@{0}", "own@{1}", "own~x",
                 "own~1x", "own~123456789012345678901"):
        failed = two.merge("partner", f"acme:{spec}", code=3)
        assert failed.error["message"] == (f"no ref or commit '{spec}' in "
                                           "tenant 'acme'"), spec


def test_a_grant_is_on_what_was_there_and_not_on_the_ref(two):
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own")
    adapter(two.path / "next", 9.0)
    two("acme", "commit", two.path / "next", "-m", "next", "--ref", "own")
    two.merge("partner", "acme:own", ref="new", code=3)
    two.checkout("partner", "main", "got")


def test_what_another_tenant_has_is_not_shown_by_any_command(two):
    two("acme", "grant", "own", "--to", "partner")
    for words in (["show"], ["ls"], ["log"], ["checkout", "-o", "x"],
                  ["diff", "own"], ["grant", "--to", "client"]):
        failed = two("partner", words[0], "acme:own", *words[1:], code=3)
        assert failed.err == ("ballast: no ref or commit 'own' in tenant "
                              "'acme'\n"), words


# ---- what may not be read does not exist -------------------------------------


def refusals(shared):
    """Specs of every kind that the partner may not read."""
    for i in range(40):  # so that some prefix is ambiguous
        shared("acme", "commit", shared.path / "acme", "-m", f"x{i}", "--ref",
               "many", "--allow-empty")
    ids = [line["id"] for line in shared("acme", "log", "many", "--json").lines]
    return {
        "no tenant": "nobody:own", "no ref": "acme:nowhere",
        "a ref": "acme:own", "a full id": f"acme:{shared.ids['acme']}",
        "no full id": f"acme:{'e' * 64}", "a prefix": f"acme:{ids[0][:4]}",
        "a short id": f"acme:{ids[1][:12]}", "a step": "acme:many~1",
        "a step too far": "acme:own~1", "a reflog": "acme:many@{0}",
        "no step": "acme:nowhere~1",
    }


def test_refusals_are_one_text_one_status_one_code(two):
    for kind, spec in refusals(two).items():
        failed = two("partner", "merge", spec, "-m", "x", code=3)
        tenant, what = spec.split(":")
        assert (failed.out, failed.err) == (
            "", f"ballast: no ref or commit '{what}' in tenant '{tenant}'\n"), \
            kind
        failed = two("partner", "merge", spec, "-m", "x", "--json", code=3)
        assert failed.error == {
            "code": "not-found", "exit": 3,
            "message": f"no ref or commit '{what}' in tenant '{tenant}'",
            "hint": failed.error.get("hint")}, kind
        assert failed.error.get("hint") is None, kind


# What a process does with files; memory and threads have their own mind.
FILES = {"openat", "read", "pread64", "write", "pwrite64", "fcntl", "flock",
         "fstat", "newfstatat", "lseek", "fsync", "fdatasync", "access",
         "unlink", "ftruncate", "getdents64"}


def calls(shared, spec):
    """The system calls of one refused merge, by name, in order."""
    trace = shared.path / "trace"
    subprocess.run(
        [STRACE, "-f", "-o", trace, BALLAST, "--root", shared.of["acme"].root,
         "--tenant", "partner", "--jobs", "1", "merge", spec, "-m", "x"],
        env=environment(), capture_output=True, timeout=120, check=False)
    words = (line.split(None, 1)[1] for line in
             trace.read_text(errors="replace").splitlines())
    names = [word.split("(")[0] for word in words]
    return [name for name in names if name in FILES]


@pytest.mark.skipif(not STRACE, reason="strace is not installed")
@pytest.mark.parametrize("granted", [False, True], ids=["none", "some"])
def test_refusals_are_the_same_work(two, granted):
    kinds = refusals(two)
    if granted:  # something else: that acme is there is known then
        adapter(two.path / "other", 5.0)
        two("acme", "commit", two.path / "other", "-m", "o", "--ref", "other")
        two("acme", "grant", "other", "--to", "partner")
        kinds.pop("no tenant")
    wanted = calls(two, "acme:nowhere")
    assert "pread64" in wanted
    for kind, spec in kinds.items():
        assert calls(two, spec) == wanted, kind


# ---- taking back -------------------------------------------------------------


def test_revoke_breaks_the_view_and_says_so(two):
    two("acme", "grant", "own", "--to", "partner")
    view = two.merge("partner", "acme:own", "own").json["id"]
    two.checkout("partner", "main", "before")
    done = two("acme", "revoke", "own", "--to", "partner")
    assert done.out == "revoked; 1 view(s) in 'partner' can no longer resolve\n"
    failed = two.checkout("partner", "main", "after", code=9)
    assert failed.err == (
        f"ballast: commit '{short(view)}': view lost its input "
        f"'acme:{short(two.ids['acme'])}': the grant is missing or revoked\n")
    assert not (two.path / "after").exists()
    two.checkout("acme", "own", "own-still")


def test_revoke_as_json_names_the_views_in_full(two):
    two("acme", "grant", "own", "--to", "partner")
    view = two.merge("partner", "acme:own").json["id"]
    got = two("acme", "revoke", "own", "--to", "partner", "--json").json
    assert got == {"schema": "ballast/revoke/1", "revoked": 1,
                   "broken": [f"partner:{view}"]}


def test_revoke_goes_by_content_wherever_the_ref_is_now(two):
    two("acme", "grant", "own", "--to", "partner")
    again = two("acme", "commit", "acme", "-m", "again", "--ref", "other",
                "--json").json["id"]
    adapter(two.path / "next", 9.0)
    two("acme", "commit", two.path / "next", "-m", "next", "--ref", "own")
    two("acme", "revoke", "own", "--to", "partner", code=3)
    assert again != two.ids["acme"]
    assert "revoked; 0 view(s)" in two("acme", "revoke", "other", "--to",
                                       "partner").out
    two.merge("partner", f"acme:{two.ids['acme']}", code=3)


@pytest.mark.parametrize("words", [["own"], ["--all"]])
def test_nothing_live_to_revoke_is_not_found_and_changes_nothing(two, words):
    failed = two("acme", "revoke", *words, "--to", "partner", code=3)
    assert failed.out == "" and "granted to 'partner'" in failed.err
    two("acme", "grant", "own", "--to", "partner")
    two("acme", "revoke", *words, "--to", "partner")
    listed = two("acme", "grants", "--json").json
    two("acme", "revoke", *words, "--to", "partner", code=3)
    assert two("acme", "grants", "--json").json == listed


def test_revoke_all_takes_back_every_grant_to_one_tenant(three):
    adapter(three.path / "more", 7.0)
    three("acme", "commit", three.path / "more", "-m", "more", "--ref", "more")
    for to in ("partner", "client"):
        three("acme", "grant", "own", "--to", to)
        three("acme", "grant", "more", "--to", to)
        three.merge(to, "acme:own", ref="a")
        three.merge(to, "acme:more", ref="b")
    got = three("acme", "revoke", "--all", "--to", "partner", "--json").json
    assert got["revoked"] == 2 and len(got["broken"]) == 2
    for ref in ("a", "b"):
        three.checkout("partner", ref, f"p{ref}", code=9)
        three.checkout("client", ref, f"c{ref}")


@pytest.mark.parametrize("words", [
    [], ["own"], ["own", "--all", "--to", "partner"], ["--to", "partner"],
    ["own", "--to", "acme"], ["own", "--to", "a/b"]])
def test_revocations_that_are_refused(two, words):
    two("acme", "grant", "own", "--to", "partner")
    two("acme", "revoke", *words, code=2)
    assert two("acme", "grants").out.startswith("live")


def test_what_was_revoked_can_be_granted_again(two):
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own")
    two("acme", "revoke", "own", "--to", "partner")
    two.checkout("partner", "main", "no", code=9)
    two("acme", "grant", "own", "--to", "partner")
    two.checkout("partner", "main", "yes")
    assert two("acme", "grants").out.count("\n") == 1


# ---- over several hops -------------------------------------------------------


def chain(shared):
    """acme -> partner -> client, each view over the one before; the client
    has no grant from acme."""
    shared("acme", "grant", "own", "--to", "partner")
    shared.merge("partner", "acme:own@0.5", "own@0.5")
    shared("partner", "grant", "main", "--to", "client")
    shared.merge("client", "partner:main@0.5", "own@0.5")
    shared.merge("client", "main@0.5", "own@0.5", ref="top")


def test_a_view_over_a_view_reads_by_the_grants_of_each_hop(three):
    chain(three)
    three.checkout("client", "top", "got")
    assert load(three.path / "got")
    three.merge("client", "acme:own", ref="x", code=3)
    assert three("acme", "grants").out.count("client") == 0


def test_revoking_the_first_hop_breaks_what_is_three_hops_away(three):
    chain(three)
    three.checkout("client", "top", "before")
    got = three("acme", "revoke", "own", "--to", "partner", "--json").json
    # The client's views broke as well; that they are there is not told.
    assert [view.split(":")[0] for view in got["broken"]] == ["partner"]
    for tenant, ref in (("partner", "main"), ("client", "main"),
                        ("client", "top")):
        failed = three.checkout(tenant, ref, "after", code=9)
        own = tenant == "partner"
        assert (f"'acme:{short(three.ids['acme'])}': the grant is missing or "
                "revoked" in failed.err) == own
        # What its input stands on is the partner's to know.
        assert ("it can be resolved no more" in failed.err) == (not own)
        assert ("acme" in failed.err) == own
        told = three(tenant, "fsck", "--json").json["expected"]
        assert told and ("acme:" in told[0]["detail"]) == own
    assert not list(three.path.glob("store/cache/*/*/*"))
    assert not (three.path / "after").exists()


def test_revoking_the_second_hop_leaves_the_first(three):
    chain(three)
    got = three("partner", "revoke", "main", "--to", "client", "--json").json
    assert {view.split(":")[0] for view in got["broken"]} == {"client"}
    assert len(got["broken"]) == 2
    three.checkout("partner", "main", "partners")
    three.checkout("client", "main", "clients", code=9)


def test_an_owners_own_views_do_not_break(three):
    three("acme", "grant", "own", "--to", "partner")
    three.merge("acme", "own@0.5", "own@0.5", ref="mine")
    got = three("acme", "revoke", "own", "--to", "partner", "--json").json
    assert got["broken"] == []
    three.checkout("acme", "mine", "got")


def test_a_view_that_comes_back_to_its_owner_is_told_to_it(two):
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own@0.5", "own@0.5")
    two("partner", "grant", "main", "--to", "acme")
    two.merge("acme", "partner:main", ref="back")
    got = two("acme", "revoke", "own", "--to", "partner")
    assert got.out == "revoked; 1 view(s) in 'partner' can no longer resolve\n"
    two.checkout("acme", "back", "got", code=9)


@pytest.mark.parametrize("turn", range(4))
def test_nothing_lands_in_the_cache_or_in_a_folder_after_revoke(two, turn):
    big = two.path / "big"
    save(big / "model.safetensors", {
        f"w{i}": ("F32", (40000,), bytes([i % 7]) * 160000) for i in range(30)})
    two("acme", "commit", big, "-m", "big", "--ref", "big")
    two("acme", "grant", "big", "--to", "partner")
    two.merge("partner", "acme:big@0.5", "acme:big@0.5")
    words = [BALLAST, "--root", two.of["acme"].root, "--tenant", "partner",
             "checkout", "main", "-o"]
    running = [subprocess.Popen([*words, two.path / f"out{i}"],
                                env=environment(), stderr=subprocess.PIPE)
               for i in range(6)]
    for process in running[:turn]:  # the cache is more or less full then
        process.wait(120)
    two("acme", "revoke", "big", "--to", "partner")
    there = {path.name for path in two.path.glob("out?")}
    for process in running:
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, 9), err
    assert {path.name for path in two.path.glob("out?")} == there
    assert not list(two.path.glob("store/cache/partner/*"))
    assert not list(two.path.glob("store/cache/.tmp/*"))


def test_fsck_is_clean_with_grants_and_expects_what_was_revoked(three):
    chain(three)
    assert three("acme", "fsck", "--all").out == "consistent\n"
    three("acme", "revoke", "own", "--to", "partner")
    checked = three("acme", "fsck", "--all", "--json").json
    assert checked["ok"] and checked["problems"] == []


def test_diff_log_and_apply_see_what_checkout_sees(two):
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own@0.5", "own@0.5")
    assert "tensors:" in two("partner", "diff", "own", "main").out
    two("acme", "revoke", "own", "--to", "partner")
    two("partner", "diff", "own", "main", code=9)
    two("partner", "ls", "main", code=9)
    assert "view" in two("partner", "log", "main").out


def test_an_input_that_was_forgotten_is_called_so(two):
    two.merge("partner", "own", ref="top")
    two("partner", "forget", "own", "--reason", "asked to", "--yes")
    failed = two.checkout("partner", "top", "got", code=9)
    assert failed.err.endswith(
        f"view lost its input 'partner:{short(two.ids['partner'])}': it was "
        "forgotten\n")


def test_provenance_tells_whose_the_inputs_are(two):
    two("acme", "grant", "own", "--to", "partner")
    two.merge("partner", "acme:own", "own")
    two.checkout("partner", "main", "got")
    told = json.loads((two.path / "got" / "ballast.json").read_text())
    assert [row["tenant"] for row in told["recipe"]["inputs"]] == [
        "acme", "partner"]
    assert files(two.path / "got").keys() >= {"adapter_model.safetensors"}


def test_a_store_without_the_tenant_says_the_same(tmp_path):
    Store(tmp_path)("init")
    failed = run("--root", tmp_path / "store", "--tenant", "a", "merge",
                 "b:main", "-m", "x", code=3)
    assert failed.err == "ballast: no ref or commit 'main' in tenant 'b'\n"
