#!/usr/bin/env python3
"""Kill the writer at every step, and let every call fail, one after the other.

A step is an fsync, rename, unlink, mkdir or one of their kin; preload/ counts
them inside the program and sends SIGKILL before or after the Nth, or in the
midst of the Nth write to the database or its log. What must hold after each:

  the store opens, or does not exist yet
  fsck finds nothing
  every commit acknowledged before is in the log
  the output folder is absent or complete
  the same command again succeeds, and after one more that writes no temporary
  and no block without a name is left, in the store or beside the output
  what promises.py says of deletions, grants, keys and repairs

A failing call (disk full, I/O error) must end in exit 7 with one line, or, where
the call is one that may be done without, in success; with the same things true.

  BALLAST=build/ballast tests/torture/crash.py [--scenario NAME] [--quick]

The last line is "N passed, N failed"."""

import argparse
import concurrent.futures
import dataclasses
import errno
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import typing

sys.dont_write_bytecode = True
import promises  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 60

# ---- models -----------------------------------------------------------------


def tensor_bytes(seed, size):
    """Bytes as weights have them, more or less: no NaN, little to compress."""
    out = bytearray()
    block = seed.encode()
    while len(out) < size:
        block = hashlib.sha256(block).digest()
        out += block
    for i in range(1, size, 2):
        out[i] = 0x3F & out[i]
    return bytes(out[:size])


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, bytes)."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def model(folder, changed):
    """Two shards of BF16, one tensor over several blocks; side files."""
    os.makedirs(folder)
    shapes = {"embed": [128, 128], "up": [96, 32], "norm": [32],
              "down": [32, 96], "bias": [7]}
    shards = (["embed", "norm"], ["up", "down", "bias"])
    places = {}
    for i, names in enumerate(shards):
        name = f"model-{i + 1:05}-of-00002.safetensors"
        tensors = {}
        for tensor in names:
            size = 2
            for length in shapes[tensor]:
                size *= length
            data = bytearray(tensor_bytes(tensor, size))
            if tensor in changed:
                for at in range(0, size, 16):
                    data[at] ^= changed[tensor]
            tensors[tensor] = ("BF16", shapes[tensor], bytes(data))
            places[tensor] = name
        write_safetensors(os.path.join(folder, name), tensors)
    texts = {
        "model.safetensors.index.json": {"metadata": {}, "weight_map": places},
        "config.json": {"model_type": "llama", "hidden_size": 32},
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(text, file)


def tree(folder):
    """path -> digest of each file below folder; None if it is not there."""
    if not os.path.isdir(folder):
        return None
    out = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            out[os.path.relpath(path, folder)] = digest
    return out


# ---- the program ------------------------------------------------------------


Failure = promises.Broken
need = promises.need


class Done:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"exit {self.status}: {self.err.strip() or self.out.strip()}"


class Place:
    """A copy of a scenario's beginning: store, models, outputs."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.root = os.path.join(folder, "store")

    def run(self, args, extra=None, jobs="2", tenant="acme"):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("BALLAST")}
        env.update(LC_ALL="C.UTF-8", HOME=self.folder, **(extra or {}))
        done = subprocess.run(
            [self.program, "--root", self.root, "--tenant", tenant, "-j", jobs,
             *args], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=TIMEOUT, check=False)
        return Done(done.returncode, done.stdout.decode(errors="replace"),
                    done.stderr.decode(errors="replace"))

    def must(self, args, **more):
        done = self.run(args, **more)
        need(done.status == 0, f"{' '.join(args)}: {done}")
        return done

    def exists(self):
        done = self.run(["refs", "--json"])
        need(done.status in (0, 3), f"the store does not open: {done}")
        return done.status == 0

    def refs(self):
        return json.loads(self.must(["refs", "--json"]).out)["refs"]

    def lost(self, ids):
        """Those of ids that the log does not have any more; they need not be
        where a ref leads to."""
        return [id for id in sorted(ids)
                if self.run(["log", id, "-n", "1"]).status != 0]

    def log(self):
        """Every commit that some ref leads to."""
        ids = set()
        for ref in self.refs():
            lines = self.must(["log", ref, "--json"]).out.splitlines()
            ids.update(json.loads(line)["id"] for line in lines)
        return ids

    def fsck(self, known=()):
        """known: kinds of problem that are there from the beginning."""
        done = self.run(["fsck", "--all", "--json"])
        need(done.status in (0, 1), f"fsck: {done}")
        kinds = {problem["kind"]
                 for problem in json.loads(done.out)["problems"]}
        need(kinds <= set(known) and (kinds or done.status == 0),
             f"fsck: {' '.join(sorted(kinds))}")

    def temporaries(self):
        """What only a killed process leaves. A lock is no temporary: it would
        be a race to remove it."""
        out = []
        for at, folders, names in os.walk(self.folder):
            inside = ".tmp" in os.path.relpath(at, self.folder).split(os.sep)
            for name in folders + names:
                if name in (".tmp", "lock"):
                    continue
                if (inside or "tmp" in name or "asking.ballast" in name
                        or name.endswith("-journal")):
                    out.append(os.path.relpath(os.path.join(at, name),
                                               self.folder))
        return out


# ---- scenarios --------------------------------------------------------------


@dataclasses.dataclass
class Scenario:
    """prepare builds what is there before and may return what it knows of it;
    args, or what it gives for that, is what is killed."""
    name: str
    prepare: typing.Callable
    args: typing.Any
    out: str = None  # a folder it makes
    again: tuple = (0,)  # exit statuses of the same command afterwards
    kinds: frozenset = frozenset()  # what fsck says at the beginning
    first: typing.Callable = None  # (case, place), right after the kill
    promise: typing.Callable = None  # (case, place, is it done?)
    most: int = None  # cases of each walk, None: all
    spare: tuple = ()  # calls, and of what, that it may do without


def one_commit(place):
    place.must(["init", "--block-size", "8K"])
    place.must(["commit", "base", "-m", "first", "--ref", "main"])


def two_commits(place):
    one_commit(place)
    place.must(["config", "anchoring", "on"])
    place.must(["commit", "tuned", "-m", "second", "--ref", "main"])
    return {"based": promises.based(place)}


def stored_by_distance(case, place, done):
    """Some blocks more than before are stored by their distance."""
    need(promises.based(place) > case.facts["based"] or not done,
         "nothing is stored by its distance")


def a_delta(place):
    one_commit(place)
    place.must(["delta", "tuned", "--base", "base", "-m", "d", "--ref", "a"])


def two_deltas(place):
    a_delta(place)
    place.must(["delta", "other", "--base", "base", "-m", "e", "--ref", "b"])


def garbage(place):
    """A commit whose rows somebody took out, as forgetting does, and a byte run
    that no row names."""
    one_commit(place)
    place.must(["commit", "tuned", "-m", "goes", "--ref", "gone"])
    db = sqlite3.connect(os.path.join(place.root, "graph.db"))
    db.execute("PRAGMA foreign_keys = ON")
    gone, = db.execute("SELECT commit_number FROM refs WHERE name = 'gone'"
                       ).fetchone()
    manifest, = db.execute("SELECT manifest FROM commits WHERE number = ?",
                           (gone,)).fetchone()
    db.execute("DELETE FROM refs WHERE name = 'gone'")
    db.execute("DELETE FROM moves WHERE ref = 'gone'")
    db.execute("DELETE FROM commits WHERE number = ?", (gone,))
    db.execute("DELETE FROM manifests WHERE number = ?", (manifest,))
    db.commit()
    db.close()


# A deletion has hundreds of calls, for it writes the database anew: of each
# walk through one, these many, at equal distances.
MOST = 40

SCENARIOS = [
    Scenario("first-commit", lambda place: None,
             ["commit", "base", "-m", "first", "--ref", "main"]),
    Scenario("init", lambda place: None, ["init", "--block-size", "8K"]),
    Scenario("second-commit", one_commit,
             ["commit", "tuned", "-m", "second", "--ref", "main"]),
    Scenario("anchored-commit", two_commits,
             ["commit", "other", "-m", "third", "--ref", "main", "--base",
              "main~1"], promise=stored_by_distance),
    Scenario("delta", one_commit,
             ["delta", "tuned", "--base", "base", "-m", "d", "--ref", "a"]),
    Scenario("merge", two_deltas,
             ["merge", "a@0.6", "b@0.4", "-m", "blend", "--ref", "blend"]),
    Scenario("reset", two_deltas, ["reset", "a", "b"]),
    Scenario("checkout", one_commit, ["checkout", "main", "-o", "out/model"],
             "out/model"),
    Scenario("apply", a_delta,
             ["apply", "a", "--base", "base", "-o", "out/model"],
             "out/model"),
    Scenario("gc", garbage, ["gc"]),
    *(Scenario(name, most=MOST, **row)
      for name, row in promises.ROWS.items()),
]

# ---- checking ---------------------------------------------------------------


OPTIONAL = ("unlink", "unlinkat", "rmdir", "remove", "sync_file_range",
            "ftruncate", "ftruncate64")


class Case:
    """A scenario with its beginning made and its end known."""

    def __init__(self, scenario, program, models, preload, work):
        self.scenario, self.program, self.preload = scenario, program, preload
        self.work = work
        self.begin = os.path.join(work, "begin")
        shutil.copytree(models, self.begin)
        place = Place(program, self.begin)
        self.facts = scenario.prepare(place) or {}
        self.args = (scenario.args(self.facts) if callable(scenario.args)
                     else scenario.args)
        self.acknowledged = place.log() if place.exists() else set()
        self.acknowledged -= set(self.facts.get("goes", ()))
        self.wanted = None
        place = self.copy()
        count = os.path.join(work, "count")
        place.must(self.args, extra={"LD_PRELOAD": preload,
                                     "BALLAST_CRASH_COUNT": count})
        with open(count, encoding="utf-8") as file:
            self.steps, self.calls, self.logged = map(int, file.read().split())
        if scenario.out:
            self.wanted = tree(os.path.join(place.folder, scenario.out))
        self.check_promise(place, True)
        self.check_after(place)

    def copy(self):
        folder = os.path.join(self.work, "at")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.begin, folder)
        return Place(self.program, folder)

    def check_promise(self, place, done):
        if self.scenario.promise:
            self.scenario.promise(self, place, done)

    def check_now(self, place, done=False):
        """Right after it was killed, has failed or made do."""
        if not place.exists():
            need(not self.acknowledged, "the store is gone")
        else:
            lost = place.lost(self.acknowledged)
            need(not lost, f"lost {lost}")
            place.fsck(self.scenario.kinds)
            self.check_promise(place, done)
        if self.scenario.out:
            got = tree(os.path.join(place.folder, self.scenario.out))
            need(got is None or got == self.wanted,
                 f"half an output: {sorted(got or [])}")

    def check_after(self, place):
        """After commands that go through: nothing is left of what did not."""
        place.must(["commit", "other", "-m", "after", "--ref", "after"])
        place.fsck()
        left = place.temporaries()
        need(not left, f"left: {left}")
        lost = place.lost(self.acknowledged)
        need(not lost, f"lost at last: {lost}")
        place.must(["gc"])
        freed = json.loads(place.must(["gc", "--json"]).out)
        need(freed["blocks"] == 0, f"gc twice: {freed}")
        if self.scenario.out:
            got = tree(os.path.join(place.folder, self.scenario.out))
            need(got == self.wanted, f"the output at last: {got}")

    def check_orphans(self, place):
        """The next command that writes takes what nobody named; gc is not
        needed for it."""
        if self.scenario.name in ("gc", "init") or self.scenario.kinds:
            return
        place.must(["commit", "other", "-m", "after", "--ref", "after"])
        freed = json.loads(place.must(["gc", "--dry-run", "--json"]).out)
        need(freed["blocks"] == 0 and freed["bytes_freed"] == 0,
             f"orphans: {freed}")

    def again(self, place):
        """The same command goes through now. What it makes may be there."""
        done = place.run(self.args)
        made = self.scenario.out is not None
        need(done.status in self.scenario.again or (made and done.status == 5),
             f"again: {done}")
        self.check_promise(place, True)

    def killed(self, at, by="BALLAST_CRASH_AT"):
        place = self.copy()
        done = place.run(self.args, jobs="1",
                         extra={"LD_PRELOAD": self.preload, by: at})
        need(done.status in (0, -signal.SIGKILL), f"not killed: {done}")
        if done.status == 0:
            return False
        if self.scenario.first:
            self.scenario.first(self, place)
        self.check_now(place)
        self.check_orphans(place)
        self.again(place)
        self.check_after(place)
        return True

    def failed(self, at, number, on):
        place = self.copy()
        note = os.path.join(place.folder, "note")
        done = place.run(self.args, jobs="1", extra={
            "LD_PRELOAD": self.preload, "BALLAST_FAIL_NOTE": note,
            "BALLAST_FAIL_AT": f"{at},{number}{',on' if on else ''}"})
        if not os.path.exists(note):
            need(done.status == 0, f"without a fault: {done}")
            return False
        with open(note, encoding="utf-8") as file:
            what = file.read().strip()
        try:
            self.check_told(done, what)
            self.check_now(place, done.status == 0)
            self.again(place)
            self.check_after(place)
        except Failure as failure:
            raise Failure(f"{what}: {failure}") from failure
        return True

    def check_told(self, done, what):
        function, path = what.split(" ", 1)
        name = os.path.basename(path)
        # Cleaning up and hints may fail without harm, and so may SQLite's folding
        # of its log into the database: the log has it all. SQLite does not look
        # at whether the sync of its directory, the store's root, went well.
        # What is not kept is resolved again.
        optional = (function in OPTIONAL or name.startswith("graph.db")
                    or "/store/cache" in path
                    or f"{function} {name}" in self.scenario.spare
                    or (function == "fdatasync" and name == "store"))
        need(done.status == 7 or (optional and done.status == 0),
             f"not told: {done}")
        if done.status == 0:
            return
        # What could not be cleared away is warned of, beside what went wrong.
        lines = [line for line in done.err.splitlines()
                 if not line.startswith("ballast: warning: left-over=")]
        told = [line for line in lines if line.startswith("ballast: ")]
        rest = [line for line in lines if not line.startswith(("ballast: ",
                                                               "hint: "))]
        need(len(told) == 1 and not rest, f"not one clear line: {lines}")


class Tally:
    def __init__(self, verbose):
        self.passed = self.failed = 0
        self.verbose = verbose
        self.lock = threading.Lock()  # guards the counts and stdout

    def say(self, text, passed=0, failed=0):
        with self.lock:
            self.passed += passed
            self.failed += failed
            if failed or self.verbose or not passed:
                print(text, flush=True)

    def one(self, name, check, *args):
        """False when there is nothing more at this number."""
        try:
            more = check(*args)
        except (Failure, OSError, ValueError, KeyError,
                subprocess.TimeoutExpired) as problem:
            self.say(f"FAIL {name}: {problem}", failed=1)
            return True
        if more:
            self.say(f"ok   {name}", passed=1)
        return more


def walk(case, tally, every):
    name = case.scenario.name

    def stride(count):
        most = case.scenario.most or count
        return max(every, -(-count // most))

    tally.say(f"     {name}: {case.steps} steps, {case.calls} calls, "
              f"{case.logged} writes of the database")
    for after in ("", ",after"):
        at = 1
        while tally.one(f"{name} killed at step {at}{after}", case.killed,
                        f"{at}{after}"):
            at += stride(case.steps)
    at = 1
    while tally.one(f"{name} killed in write {at} of the database",
                    case.killed, str(at), "BALLAST_CRASH_LOG"):
        at += stride(case.logged)
    for number, on in ((errno.EIO, False), (errno.ENOSPC, True)):
        at = 1
        while at <= case.calls + 50 and tally.one(
                f"{name} {errno.errorcode[number]} at call {at}", case.failed,
                at, number, on):
            at += stride(case.calls)


def run(scenario, program, models, preload, folder, tally, every):
    work = os.path.join(folder, scenario.name)
    os.makedirs(work)
    try:
        case = Case(scenario, program, models, preload, work)
    except (Failure, OSError, ValueError, KeyError) as problem:
        tally.say(f"FAIL {scenario.name} undisturbed: {problem}", failed=1)
        return
    walk(case, tally, every)


def build_preload(folder):
    out = os.path.join(folder, "preload.so")
    source = os.path.join(HERE, "preload", "crash_preload.c")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_GNU_SOURCE",
                    "-O2", "-shared", "-fPIC", "-o", out, source, "-ldl"],
                   check=True)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenario", action="append")
    parser.add_argument("--quick", action="store_true",
                        help="every fifth step and call")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    program = os.environ.get("BALLAST")
    if not program:
        sys.exit("crash.py: BALLAST is to name the program")
    # A killed process loses nothing that it has written, synced or not, so
    # memory does as well as a disk and is faster.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="ballast-crash-", dir=memory)
    tally = Tally(options.verbose)
    try:
        preload = build_preload(folder)
        models = os.path.join(folder, "models")
        model(os.path.join(models, "base"), {})
        model(os.path.join(models, "tuned"), {"embed": 1, "norm": 3})
        model(os.path.join(models, "other"), {"up": 2, "bias": 5})
        chosen = [scenario for scenario in SCENARIOS
                  if scenario.name in (options.scenario or [scenario.name])]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(run, scenario, os.path.abspath(program),
                                     models, preload, folder, tally,
                                     5 if options.quick else 1)
                         for scenario in chosen]:
                done.result()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
