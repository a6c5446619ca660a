"""What must hold of deletions, grants and repairs that were cut short: before
or after, never between. Scenarios for crash.py, which see; `place` is its Place.

A scenario's prepare returns what it knows: `goes` (ids that may be lost),
`marks` (byte runs that a finished deletion leaves nowhere below the root),
`tree` (what the commit holds)."""

import copy
import json
import os
import shutil

MESSAGE = "Q-message-mark"
AUTHOR = "Q-author-mark"
REF = "Q-ref-mark"
SLICE = 40
KEY = ["--key", "key.pem"]
STRAY = "ab" * 32


class Broken(Exception):
    """A promise that was not kept."""


def need(holds, text):
    if not holds:
        raise Broken(text)


# ---- looking ----------------------------------------------------------------

def files(folder):
    """path -> bytes of every file below folder."""
    out = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                out[os.path.relpath(path, folder)] = file.read()
    return out


def blocks(place):
    return files(os.path.join(place.root, "blocks"))


def slices(data, count=12):
    """Byte runs from all over data."""
    step = max(1, (len(data) - SLICE) // count)
    return [data[at:at + SLICE] for at in range(0, len(data) - SLICE, step)]


def is_gone(place, marks):
    for name, data in files(place.root).items():
        for what, mark in marks:
            need(mark not in data, f"{what} is still in {name}")


def content(place, spec, tenant="acme"):
    """What a commit holds, read past the cache; None: it cannot be read."""
    out = os.path.join(place.folder, "out", "looked-at")
    done = place.run(["--no-cache", "checkout", spec, "-o", out],
                     tenant=tenant)
    if done.status in (3, 9):
        return None
    need(done.status == 0, f"checkout {spec}: {done}")
    got = files(out)
    got.pop("ballast.json", None)
    shutil.rmtree(out)
    return got


def only_theirs(place, facts, names):
    """Marks that blocks of others, which stay, do not have as well."""
    stay = [data for name, data in blocks(place).items() if name not in names]
    facts["marks"] = [(what, mark) for what, mark in facts["marks"]
                      if not any(mark in data for data in stay)]
    need(len(facts["marks"]) > 20, "there is little to look for")


def tip(place, spec="main"):
    return json.loads(place.must(["log", spec, "-n", "1", "--json"]).out)["id"]


# ---- deletions --------------------------------------------------------------

def keyed(place):
    place.must(["init", "--block-size", "8K"])
    place.must(["key", "generate", "-o", "key.pem"])


def secret(place, ref):
    """Commits `tuned` with marks everywhere."""
    before = blocks(place)
    place.must(["commit", "tuned", "-m", MESSAGE, "--author", AUTHOR,
                "--ref", ref])
    at_rest = [(f"a block's bytes at rest ({name[-64:][:8]})", run)
               for name, data in blocks(place).items() if name not in before
               for run in slices(data)]
    shard = os.path.join(place.folder, "tuned",
                         "model-00001-of-00002.safetensors")
    with open(shard, "rb") as file:
        raw = [("a tensor's bytes", run)
               for run in slices(file.read()[1024:])]
    words = [(word, word.encode()) for word in (MESSAGE, AUTHOR)]
    id = tip(place, ref)
    return {"goes": [id], "marks": words + raw + at_rest,
            "tree": content(place, id),
            "blocks": set(blocks(place)) - set(before)}


def one_of_three(place):
    keyed(place)
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    facts = secret(place, "main")
    place.must(["commit", "other", "-m", "child", "--ref", "main"])
    only_theirs(place, facts, facts["blocks"])
    place.must(["grant", facts["goes"][0], "--to", "partner"])
    place.must(["merge", f"{facts['goes'][0]}@1.0", "-m", "v", "--ref",
                "view"])
    place.must(["checkout", "view", "-o", "out/cached"])
    shutil.rmtree(os.path.join(place.folder, "out"))
    return facts


def all_of_acme(place):
    keyed(place)
    place.must(["commit", "other", "-m", "stays"], tenant="keeper")
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    first = tip(place)
    facts = secret(place, REF)
    facts["goes"].append(first)
    facts["blocks"] = {name for name in blocks(place) if "acme" in name}
    only_theirs(place, facts, facts["blocks"])
    return facts


# ---- blocks that are stored by their distance from others ------------------

def based(place):
    """How many blocks are: flags bit 1 of the header."""
    return sum(data[11:12] == b"\2" for data in blocks(place).values())


def near_to(place, name, to):
    """A model that differs a little from the other in its first shard."""
    shutil.copytree(os.path.join(place.folder, to),
                    os.path.join(place.folder, name))
    with open(os.path.join(place.folder, name,
                           "model-00001-of-00002.safetensors"), "r+b") as file:
        data = bytearray(file.read())
        for at in range(1024, len(data), 24):
            data[at] ^= 1
        file.seek(0)
        file.write(data)


def a_base(place):
    """What goes is what the commit that stays is stored by."""
    keyed(place)
    place.must(["config", "anchoring", "on"])
    near_to(place, "child", "tuned")
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    facts = secret(place, "main")
    before = blocks(place)
    place.must(["commit", "child", "-m", "child", "--ref", "main"])
    need(any(data[11:12] == b"\2" for name, data in blocks(place).items()
             if name not in before), "nothing is stored by what goes")
    only_theirs(place, facts, facts["blocks"])
    near_runs_left_out(place, facts)
    facts["stays"] = content(place, "main")
    return facts


def near_runs_left_out(place, facts):
    """What stays, or comes after a kill, is near to what goes, and stored by
    itself it has runs of bytes in common with that: those tell nothing."""
    steps = [forget_one(facts), ["commit", "other", "-m", "after", "--ref",
                                 "after"]]
    for order in (steps, steps[::-1]):
        rehearsal = copy.copy(place)
        rehearsal.root = place.root + "-rehearsal"
        shutil.copytree(place.root, rehearsal.root)
        for step in order:
            rehearsal.must(step)
        only_theirs(rehearsal, facts, set())
        shutil.rmtree(rehearsal.root)


def base_deleted(case, place, done):
    deleted(case, place, done)
    need(content(place, "main") == case.facts["stays"],
         "what was stored by what went is not whole")


def plain(place):
    """Three commits that are stored as they are, and now need not be."""
    place.must(["init", "--block-size", "8K", "--compression", "none"])
    trees = {}
    for name in ("base", "tuned", "other"):
        place.must(["commit", name, "-m", name, "--ref", name])
        trees[name] = content(place, name)
    need(not based(place), "something is stored by its distance")
    place.must(["config", "compression", "best"])
    return {"trees": trees, "blocks": set(blocks(place))}


def a_chain(place):
    """The same, of which one is stored by the next, whose base has gone."""
    place.must(["init", "--block-size", "8K"])
    place.must(["config", "anchoring", "on"])
    facts = {"trees": {}}
    for name in ("base", "tuned", "other"):
        place.must(["commit", name, "-m", name, "--ref", name])
        facts["trees"][name] = content(place, name)
    place.must(["forget", "base", "--reason", "r"])
    place.must(["commit", "base", "-m", "again", "--ref", "base"])
    need(based(place), "nothing is stored by its distance")
    facts["blocks"] = set(blocks(place))
    return facts


def recompressed(case, place, done):
    for name, tree in case.facts["trees"].items():
        need(content(place, name) == tree, f"{name} is not whole")
    need(set(blocks(place)) >= case.facts["blocks"], "a block went")
    need(based(place) or not done, "nothing is stored by its distance")


def forget_one(facts):
    return ["forget", facts["goes"][0], "--reason", "r", *KEY]


def forget_all(_):
    return ["forget", "--reason", "r", *KEY]


def deleted(case, place, done, proofs=(1,)):
    """All of it is there and there is no proof, or nothing and a proof."""
    goes = case.facts["goes"]
    seen = [id for id in goes if id not in place.lost(goes)]
    told = json.loads(place.must(["proofs", "--all", "--json"]).out)
    need(not told["pending"], f"it waits: {told}")
    need(not (seen and done), f"still there: {seen}")
    if seen:
        need(len(seen) == len(goes), f"only {seen} of {goes}")
        need(not told["proofs"], "a proof, and no deletion")
        need(content(place, goes[0]) == case.facts["tree"], "it is not whole")
        return
    need(len(told["proofs"]) in proofs, f"{len(told['proofs'])} proofs")
    attestation = told["proofs"][0]["attestation"]
    place.must(["verify", attestation, *KEY])
    is_gone(place, case.facts["marks"])


def tenant_deleted(case, place, done):
    # Done again after a commit, it has another to prove.
    deleted(case, place, done, (1, 2) if done else (1,))
    need(content(place, "main", "keeper") is not None, "another tenant's went")


def without_key(case, place):
    """The first command after it does not find the key: bytes go all the same,
    the proof waits."""
    goes = case.facts["goes"]
    key = os.path.join(place.folder, "key.pem")
    os.rename(key, f"{key}.away")
    if place.exists() and place.lost(goes):
        told = json.loads(place.must(["proofs", "--all", "--json"]).out)
        need(len(told["pending"]) + len(told["proofs"]) == 1,
             f"neither waiting nor proved: {told}")
        is_gone(place, case.facts["marks"])
        place.fsck({"pending-deletion"})
    os.rename(f"{key}.away", key)


# ---- grants -----------------------------------------------------------------

def shared(place):
    """A view of partner over main, cached."""
    place.must(["init", "--block-size", "8K"])
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    place.must(["grant", "main", "--to", "partner"])
    place.must(["merge", "acme:main@1.0", "-m", "v", "--ref", "view"],
               tenant="partner")
    place.must(["checkout", "view", "-o", "out/cached"], tenant="partner")
    shutil.rmtree(os.path.join(place.folder, "out"))
    return {"tree": content(place, "view", "partner")}


def live(place):
    told = json.loads(place.must(["grants", "--json"]).out)
    return sum(grant["revoked_at"] is None for grant in told["grants"])


def revoked(case, place, done):
    """By what `grants` says: the view is whole, or cannot be read, not even
    from the cache, and then nothing of it is left in there."""
    there = live(place)
    need(not (there and done), "it is still granted")
    got = place.run(["checkout", "view", "-o", "out/seen"], tenant="partner")
    need(got.status == (0 if there else 9), f"granted: {there}; {got}")
    shutil.rmtree(os.path.join(place.folder, "out"), ignore_errors=True)
    if there:
        need(content(place, "view", "partner") == case.facts["tree"],
             "the view is not whole")
    elif done:
        place.must(["gc"])
        cached = files(os.path.join(place.root, "cache"))
        need(set(cached) <= {".epoch"}, f"in the cache: {sorted(cached)}")


def granted(_, place, done):
    need(live(place) == 1 or not done, "it is not granted")


def own_view(place):
    place.must(["init", "--block-size", "8K"])
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    place.must(["merge", "main@1.0", "-m", "v", "--ref", "view"])
    return {"tree": content(place, "view")}


def read_well(case, place, _):
    """Twice: filled, and from what is there then."""
    for _ in range(2):
        place.must(["checkout", "view", "-o", "out/seen"])
        got = files(os.path.join(place.folder, "out", "seen"))
        shutil.rmtree(os.path.join(place.folder, "out", "seen"))
        got.pop("ballast.json", None)
        need(got == case.facts["tree"], "the cache has something else")


# ---- keys and repairs -------------------------------------------------------

def a_key(place):
    keyed(place)
    place.must(["commit", "base", "-m", "first", "--ref", "main"])


def trusted(_, place, done):
    """Deletions without it are refused from then on."""
    got = place.run(["forget", "main", "--reason", "r", "--dry-run"])
    need(got.status == 2 or (got.status == 0 and not done), f"trusted: {got}")


def strays(place):
    """Bytes that no row names, and a thing in the cache that is no entry."""
    own_view(place)
    place.must(["checkout", "view", "-o", "out/cached"])
    shutil.rmtree(os.path.join(place.folder, "out"))
    folder = os.path.join(place.root, "blocks", "acme", STRAY[0])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, STRAY), "wb") as file:
        file.write(b"stray")
    return {"tree": content(place, "view")}


def damaged(place):
    own_view(place)
    tree = content(place, "view")
    names = sorted(blocks(place))
    for name, change in zip(names[:2], (lambda data: data[:-1] + b"?",
                                        lambda data: None)):
        path = os.path.join(place.root, "blocks", name)
        with open(path, "rb") as file:
            data = change(file.read())
        os.unlink(path)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
    return {"tree": tree}


def mended(case, place, done):
    if done:
        place.fsck()
        need(content(place, "view") == case.facts["tree"], "not mended")


# ---- answers ----------------------------------------------------------------

PROMPT = "Q-prompt-mark of somebody"
ASK = ["fingerprint", "main", "--probes", "probes.txt", "--command",
       "sed 's/\\(\"id\":\"[^\"]*\"\\).*/\\1,\"output\":\"said\"}/'"]


def probes_at_hand(place):
    place.must(["init", "--block-size", "8K"])
    place.must(["commit", "base", "-m", "first", "--ref", "main"])
    with open(os.path.join(place.folder, "probes.txt"), "w",
              encoding="utf-8") as file:
        file.write(PROMPT + "\nanother\n")


def answered(place):
    probes_at_hand(place)
    place.must(ASK)
    sets = json.loads(place.must(["probes", "--json"]).out)["probe_sets"]
    return {"set": sets[0]["id"], "marks": [("the prompt", PROMPT.encode())]}


def recorded(_, place, done):
    """All answers or none."""
    sets = json.loads(place.must(["probes", "--json"]).out)["probe_sets"]
    need([row["probes"] for row in sets] in ([], [2]), f"half a set: {sets}")
    need(sets or not done, "nothing is recorded")


def probes_gone(case, place, done):
    if done:
        is_gone(place, case.facts["marks"])


# name, and what crash.py's Scenario takes.
ROWS = {
    "fingerprint": dict(prepare=probes_at_hand, args=ASK, promise=recorded,
                        spare=()),
    "probes-forget": dict(prepare=answered, again=(0, 3), promise=probes_gone,
                          args=lambda facts: ["probes", "forget",
                                              facts["set"][:12]]),
    "forget": dict(prepare=one_of_three, args=forget_one, again=(0, 3),
                   promise=deleted),
    "forget-base": dict(prepare=a_base, args=forget_one, again=(0, 3),
                        promise=base_deleted),
    "recompress": dict(prepare=plain, args=["gc", "--recompress"],
                       promise=recompressed),
    "recompress-chain": dict(prepare=a_chain, args=["gc", "--recompress"],
                             promise=recompressed),
    "forget-tenant": dict(prepare=all_of_acme, args=forget_all, again=(0, 3),
                          promise=tenant_deleted),
    "forget-keyless": dict(prepare=one_of_three, args=forget_one,
                           again=(0, 3), promise=deleted, first=without_key),
    "revoke": dict(prepare=shared, args=["revoke", "main", "--to", "partner"],
                   again=(0, 3), promise=revoked),
    "grant": dict(prepare=a_key, args=["grant", "main", "--to", "partner"],
                  promise=granted),
    "view-checkout": dict(prepare=own_view,
                          args=["checkout", "view", "-o", "out/model"],
                          out="out/model", promise=read_well,
                          spare=("fsync store",)),
    "key-trust": dict(prepare=a_key, args=["key", "trust", "key.pem"],
                      promise=trusted),
    "repair": dict(prepare=strays, args=["fsck", "--repair"],
                   kinds={"orphan-block"}, promise=mended),
    "heal": dict(prepare=damaged,
                 args=["fsck", "--repair", "--from", "base"],
                 kinds={"corrupt-block", "missing-block"}, promise=mended),
}
