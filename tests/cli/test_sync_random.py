"""sync-vllm over random histories: whatever happened to the store, the servers
and the syncs between, one that nothing disturbs ends where the refs are; what
others loaded is never touched; and no server ever lists an adapter whose folder
is gone, which would end a vLLM."""

import os
import random

import pytest

from fleets import LOAD, Fleet, Proxy, adapter, engines, loaded

ROUNDS = 30
REFS = ["a", "b", "c"]


class History:
    """A fleet of one server, and things that happen to it."""

    def __init__(self, path, engine, seed):
        self.random = random.Random(seed)
        self.engine, self.fake, self.trouble = engine, None, None
        self.fleet = Fleet(path)
        self.owner = Fleet(path, "owner")
        self.views, self.granted = set(), True
        self.hand = adapter(path / "by-hand")
        self.foreign = {}
        self.owner.commit("x")
        self.owner.commit("y")
        for ref in ("x", "y"):
            self.owner("grant", ref, "--to", "acme")
        self.restart()
        self.proxy = Proxy(self.fake.url, self.disturb)

    def disturb(self, asked):
        if not self.trouble or self.random.random() < 0.5:
            return False
        if self.trouble == "drop":
            asked.raw(b"")
        elif self.trouble == "done":
            self.proxy.ask(asked)
            asked.say(500)
        else:
            asked.say(500, {"error": "trouble"})
        return True

    # What happens, each by a name that chance picks.

    def restart(self):
        if self.fake:
            self.fake.__exit__()
        self.fake = engines(self.engine)
        self.foreign.clear()
        if hasattr(self, "proxy"):
            self.proxy.to = self.proxy.to._replace(
                netloc=self.fake.url.split("//")[1])

    def move(self):
        self.fleet.commit(self.random.choice(REFS))

    def back(self):
        refs = self.fleet.refs()
        if not refs:
            return
        ref = self.random.choice(sorted(refs))
        self.fleet("reset", ref, f"{ref}@{{1}}", code=None)

    def forget(self):
        refs = self.fleet.refs()
        if refs:
            self.fleet("forget", self.random.choice(sorted(refs)),
                       "--reason", "chance")

    def view(self):
        if self.granted:
            done = self.fleet(
                "--json", "merge", "owner:x@0.5", "owner:y@0.25", "-m",
                f"view {len(self.views)}", "--ref", self.random.choice(REFS))
            self.views.add(done.json["id"])

    def revoke(self):
        self.owner("revoke" if self.granted else "grant", "x", "--to", "acme")
        self.granted = not self.granted

    def load_by_hand(self):
        name = self.random.choice(["acme-a-01234567", "acme-a", "hand"])
        if name not in self.foreign:
            self.fake.send(LOAD[self.engine], {
                "lora_name": name, "lora_path": str(self.hand)})
            self.foreign[name] = str(self.hand)

    def unload_by_hand(self):
        names = sorted(set(loaded(self.fake)) - set(self.foreign))
        if names:
            self.fake.send(LOAD[self.engine].replace("load", "unload", 1),
                           {"lora_name": self.random.choice(names)})

    def lose_state(self):
        (self.fleet.dir / ".ballast-sync.json").unlink(missing_ok=True)

    def sync(self):
        words = self.random.choice([[], [], ["a"], ["b", "c"], ["--no-prune"],
                                    ["--slots", "3"], ["--dry-run"]])
        self.trouble = self.random.choice([None, "500", "drop", "done"])
        self.fleet.sync(*words, to=self.proxy, code=None)
        self.trouble = None

    def step(self):
        acts = [self.move] * 5 + [self.sync] * 5 + [
            self.back, self.forget, self.view, self.revoke, self.restart,
            self.load_by_hand, self.unload_by_hand, self.lose_state]
        act = self.random.choice(acts)
        act()
        return act.__name__

    # What has to hold.

    def wanted(self):
        refs = self.fleet.refs()
        return {self.fleet.name(ref, commit) for ref, commit in refs.items()
                if self.granted or commit not in self.views}

    def check(self):
        there = loaded(self.fake)
        assert {name: there.get(name) for name in self.foreign} == self.foreign
        for path in there.values():
            assert os.path.isdir(path), path


@pytest.mark.parametrize("engine,seed", [("vllm", 1), ("sglang", 2)])
def test_any_history_ends_where_the_refs_are(tmp_path, engine, seed):
    history = History(tmp_path, engine, seed)
    acts = []
    try:
        for _ in range(ROUNDS):
            acts.append(history.step())
            history.check()
        history.fleet.sync(to=history.proxy, code=None)
        history.check()
        there = set(loaded(history.fake)) - set(history.foreign)
        assert there == history.wanted(), acts
        before = len(history.proxy.asked)
        again = history.fleet.sync(to=history.proxy, code=None)
        assert set(again["unchanged"]) == there
        assert not again["loaded"] + again["unloaded"]
        assert len(history.proxy.asked) == before + 1
        assert history.fleet.folders() == {
            commit for commit in history.fleet.refs().values()
            if history.granted or commit not in history.views}
    finally:
        history.proxy.__exit__()
        history.fake.__exit__()
