"""The figures of docs/benchmark.md, as ratios taken in one run.

    bench.py [--ballast PROGRAM] [--dir DIR] [--runs N] [--blocks N]
             [--mergekit VENV] [SECTION…]

Sections: main adapter history memory grants fsck forget many merge. Each ratio is of whole
processes, run in turn with what they are compared with, files cached, the median
of N pairs. `merge` is compared with the mergekit that VENV holds (0.1.5), if one is
given.
"""

import argparse
import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

GB = 1e9


class Bench:
    def __init__(self, program, folder, runs, blocks, mergekit=None):
        self.program, self.folder, self.runs = program, folder, runs
        self.blocks, self.mergekit = blocks, mergekit
        self.failed = 0

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def ballast(self, store, *words):
        return [self.program, "--root", store, "--tenant", "acme", "-q",
                "--progress", "never", *words]

    def say(self, name, value, limit, note="", least=False):
        good = value >= limit if least else value <= limit
        self.failed += not good
        sign = "≥" if least else "≤"
        print(f"{name:<52} {value:8.2f}  {sign} {limit:<6g}"
              f"{'' if good else ' MISSED'}  {note}", flush=True)

    def ratio(self, name, limit, ours, theirs, before=None, note=""):
        """Median of ours / theirs over the pairs; `before` prepares each."""
        pairs = []
        for _ in range(self.runs + 1):
            times = []
            for command in (theirs, ours):
                if before:
                    before()
                times.append(run(command)[0])
            pairs.append(times)
        pairs = pairs[1:]
        median = statistics.median(b / a for a, b in pairs)
        theirs = statistics.median(a for a, _ in pairs)
        ours = statistics.median(b for _, b in pairs)
        self.say(name, median, limit, f"{ours:.3f} s / {theirs:.3f} s {note}")


def run(command):
    """Wall seconds, CPU seconds, peak RSS in MiB of one whole process."""
    shell = isinstance(command, str)
    start = time.monotonic()
    process = subprocess.Popen(command, shell=shell, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: exit status {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def make(*words):
    """Data is made by a process of its own: the peak memory of a child counts
    what its parent had when it was forked."""
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, f"{here}/data.py", *map(str, words)],
                   check=True)


def size_of(folder):
    return sum(os.path.getsize(os.path.join(d, f))
               for d, _, files in os.walk(folder) for f in files)


def remove(*paths):
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def syncs_of(command, trace):
    """How often a process asks for what it wrote to be on the disk."""
    run(["strace", "-f", "-o", trace, "-e",
         "trace=fsync,fdatasync,syncfs,msync", *command])
    with open(trace) as file:
        return sum(bool(re.search(r"(fsync|fdatasync|syncfs|msync)\(", line))
                   for line in file)


def main_section(b):
    pair = b.path("pair")
    if not os.path.exists(pair):
        make("pair", pair)
    base, tuned = f"{pair}/base", f"{pair}/tuned"
    size = size_of(base)
    store, copy = b.path("store"), b.path("copy")
    fresh = lambda: (remove(store, copy), os.sync())
    cp = f"cp -r {base} {copy} && sync"
    print(f"model: {size / GB:.2f} GB bf16")

    b.ratio("commit --compression none / cp + sync", 1.3,
            " ".join(b.ballast(store, "init", "--compression", "none")) + " && "
            + " ".join(b.ballast(store, "commit", base, "-m", "m")), cp, fresh)
    best = 0
    for _ in range(b.runs):
        fresh()
        best = max(best, size / GB / run(b.ballast(
            store, "commit", base, "-m", "m", "--jobs", "1"))[1])
    stored = size_of(store)
    b.say("commit, GB of model a CPU second", best, 0.8,
          f"stored {stored / size:.3f} of it", least=True)
    b.ratio("re-commit of unchanged content / b3sum", 1.2,
            b.ballast(store, "commit", base, "-m", "m"),
            f"b3sum {base}/*", lambda: None)
    out = b.path("out")
    clean = lambda: (remove(copy, out), os.sync())
    b.ratio("checkout / cp + sync", 1.5,
            b.ballast(store, "checkout", "main", "-o", out), cp, clean)
    delta = b.path("store-delta")
    again = lambda: (remove(delta, copy), os.sync())
    run(b.ballast(delta, "delta", tuned, "--base", base, "-m", "m"))
    result = b.path("result")
    remove(result)
    shutil.copytree(f"{delta}/blocks", result)
    print(f"delta: {size_of(result) / size:.3f} of the tuned model at rest")
    b.ratio("delta / read both, write the result", 2,
            b.ballast(delta, "delta", tuned, "--base", base, "-m", "m"),
            f"cat {base}/* {tuned}/* >/dev/null && cp -r {result} {copy} && sync",
            again)
    b.ratio("apply / cp + sync", 1.5,
            b.ballast(delta, "apply", "main", "--base", base, "-o", out),
            f"cp -r {tuned} {copy} && sync", clean)


def adapter_section(b):
    folder = b.path("adapter")
    if not os.path.exists(folder):
        make("adapter", folder)
    size = size_of(folder)
    store, copy = b.path("store-adapter"), b.path("copy")
    fresh = lambda: (remove(store, copy), os.sync())
    print(f"adapter: {size / 1e6:.0f} MB, 448 tensors")
    b.ratio("adapter commit / cp + sync", 1.5,
            b.ballast(store, "commit", folder, "-m", "m"),
            f"cp -r {folder} {copy} && sync", fresh)
    fresh()
    b.say("adapter commit, fsyncs", syncs_of(
        b.ballast(store, "commit", folder, "-m", "m"), b.path("trace")), 60)


def history_section(b):
    store = b.path("store-history")
    make = os.path.join(os.path.dirname(b.program), "tests", "bench-history")
    remove(store)
    run([make, store, "100000"])
    version = [b.program, "--version"]
    b.say("start of the program, ms", fastest(version, b.runs), 5)
    for words in (["log", "-n", "20"], ["refs"], ["show", "main"],
                  ["show", "main~500"]):
        ms = fastest(b.ballast(store, *words), b.runs)
        b.say(f"{' '.join(words)} on 100,000 commits, ms", ms, 30)


def fastest(command, runs):
    """Median milliseconds; a process start is too short for one look."""
    return 1000 * statistics.median(run(command)[0] for _ in range(4 * runs))


def memory_section(b):
    peaks = {}
    for gigabytes in (1, 8):
        base, tuned = b.path(f"base{gigabytes}"), b.path(f"tuned{gigabytes}")
        if not os.path.exists(base):
            make("large", base, gigabytes)
            make("large", tuned, gigabytes, 1)
        store, out = b.path("store-memory"), b.path("out")
        steps = {
            "commit": ["commit", base, "-m", "m", "--ref", "base"],
            "delta": ["delta", tuned, "--base", base, "-m", "m", "--ref", "d"],
            "checkout": ["checkout", "base", "-o", out],
            "apply": ["apply", "d", "--base", base, "-o", out],
            "diff": ["diff", base, tuned],
        }
        remove(store)
        for name, words in steps.items():
            remove(out)
            peaks[name, gigabytes] = run(
                b.ballast(store, *words, "--jobs", "2"))[2]
        remove(store, out, base, tuned)
    for name in steps:
        one, eight = peaks[name, 1], peaks[name, 8]
        b.say(f"{name}: peak RSS at 8 GB, MiB", eight, 256, f"{one:.0f} at 1 GB")
        b.say(f"{name}: growth from 1 GB to 8 GB, MiB", eight - one, 32)


def grants_section(b):
    folder = b.path("adapter")
    if not os.path.exists(folder):
        make("adapter", folder)
    root = b.path("store-grants")
    remove(root)
    bench = os.path.join(os.path.dirname(b.program), "tests", "bench-grants")
    done = subprocess.run([bench, root, folder], check=True,
                          stdout=subprocess.PIPE, text=True)
    ratio, guarded, plain = map(float, done.stdout.split())
    b.say("view of another's 448 tensors, guarded / not", ratio, 1.05,
          f"{guarded:.4f} s / {plain:.4f} s")


def fsck_section(b):
    """Every byte of every block, against b3sum of the same files."""
    pair = b.path("pair")
    if not os.path.exists(pair):
        make("pair", pair)
    store = b.path("store-fsck")
    remove(store)
    run(b.ballast(store, "commit", f"{pair}/base", "-m", "base"))
    b.ratio("fsck / b3sum of the block files", 1.25,
            b.ballast(store, "fsck"),
            f"find {store}/blocks -type f -size +0 -print0 | xargs -0 b3sum")
    remove(store)


def sync_once(path):
    """Seconds of a small write and its fsync."""
    with open(path, "wb") as file:
        file.write(b"x" * 4096)
        file.flush()
        start = time.monotonic()
        os.fsync(file.fileno())
        return time.monotonic() - start


def forget_section(b):
    """One small commit: plan, remove, sign, append to the log, verify."""
    store, key, trace = b.path("store-forget"), b.path("key.pem"), b.path("trace")
    remove(store)
    if not os.path.exists(key):
        run([b.program, "key", "generate", "-o", key])
    forget = b.ballast(store, "forget", "main", "--reason", "r", "--key", key)
    ours, theirs = [], []
    for i in range(b.runs + 2):
        make("noise", b.path("small"), 16, i)
        run(b.ballast(store, "commit", b.path("small"), "-m", "m"))
        os.sync()
        if i == 0:
            syncs = syncs_of(forget, trace)
            continue
        ours.append(run(forget)[0])
        theirs.append(statistics.median(sync_once(trace) for _ in range(20)))
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    b.say("forget of a small commit, signed: syncs", syncs, 20)
    b.say("forget of a small commit, signed / one fsync", ours / theirs, 200,
          f"{ours:.3f} s / {theirs:.5f} s")


def forget_many(b):
    """All of a tenant, its blocks of 4 KiB in a file each."""
    store, copy, data = b.path("store-many"), b.path("copy-many"), b.path("noise")
    remove(store, copy, data)
    make("noise", data, b.blocks)
    run(b.ballast(store, "init", "--block-size", "4K", "--compression", "none"))
    run(b.ballast(store, "commit", data, "-m", "m"))
    shutil.copytree(f"{store}/blocks", copy)
    os.sync()
    theirs = 2 * run(["rm", "-r", copy])[0] + 2
    os.sync()
    ours = run(b.ballast(store, "forget", "--reason", "r", "--yes"))[0]
    b.say(f"forget of a tenant with {b.blocks:,} blocks / 2 rm -r + 2 s",
          ours / theirs, 1, f"{ours:.2f} s / {theirs:.2f} s")
    remove(store, data)


def many_section(b):
    """A million rows and tiny files, listed; a tenth of them, removed."""
    bench = os.path.join(os.path.dirname(b.program), "tests", "bench-many")
    store, copy = b.path("store-many"), b.path("copy-many")
    forget_many(b)
    remove(store, copy)
    run(b.ballast(store, "init"))
    run([bench, store, str(b.blocks)])
    shutil.copytree(f"{store}/blocks", copy)
    with sqlite3.connect(f"{store}/graph.db") as db:
        db.execute("DELETE FROM uses")
        db.execute("DELETE FROM manifests")
    db.close()
    os.sync()
    theirs = run(["rm", "-r", copy])[0]
    os.sync()
    ours = run(b.ballast(store, "gc"))[0]
    b.say(f"gc of {b.blocks:,} blocks, seconds", ours, 2 * theirs + 2,
          f"rm -r {theirs:.2f} s")
    run([bench, store, str(10 * b.blocks)])
    run(b.ballast(store, "fsck", "--fast"))
    b.say(f"fsck --fast of {10 * b.blocks:,} blocks, seconds",
          run(b.ballast(store, "fsck", "--fast"))[0], 10)
    remove(store)


# The method's parameters, those of each input, and whether there is a base.
MERGES = {
    "linear": ({}, {"weight": 0.6}, False),
    "ties": ({}, {"weight": 0.6, "density": 0.5}, True),
    "slerp": ({"t": 0.4}, {}, False),
    "breadcrumbs": ({}, {"weight": 0.6, "density": 0.5, "gamma": 0.01}, True),
    "della": ({}, {"weight": 0.6, "density": 0.5, "epsilon": 0.1}, True),
    "dare_ties": ({}, {"weight": 0.6, "density": 0.5}, True),
    "model_stock": ({}, {}, True),
    "sce": ({"select_topk": 0.5}, {}, True),
}


def mergekit_recipe(models, method):
    """As YAML, of which JSON is a part."""
    common, own, based = MERGES[method]
    recipe = {"merge_method": method, "dtype": "bfloat16", "parameters": common,
              "models": [{"model": f"{models}/{name}", "parameters": own}
                         for name in ("one", "two")]}
    if based or method == "slerp":
        recipe["base_model"] = f"{models}/{'base' if based else 'one'}"
    return json.dumps(recipe)


def merge_words(method):
    """What `merge` is given for the same."""
    common, own, based = MERGES[method]
    inputs = [",".join([name, *(f"{k}={v}" for k, v in own.items())])
              for name in ("one", "two")]
    options = [word for name, value in common.items()
               for word in ("--" + name.replace("_", "-"), str(value))]
    return [*inputs, "--method", method, *options,
            *(["--base", "base"] if based else []), "-m", method, "--ref", method]


def merge_section(b):
    """Views of whole models, resolved and written out."""
    models, store, out = b.path("tuned"), b.path("store-merge"), b.path("out")
    if not os.path.exists(models):
        make("tuned", models)
    size = size_of(f"{models}/one")
    remove(store)
    for name in ("base", "one", "two"):
        run(b.ballast(store, "commit", f"{models}/{name}", "-m", name,
                      "--ref", name))
    print(f"two models of {size / GB:.2f} GB bf16")
    for method in MERGES:
        run(b.ballast(store, "merge", *merge_words(method)))
        ours = b.ballast(store, "checkout", method, "--no-cache", "-o", out)
        again = lambda: (remove(out), os.sync())
        if b.mergekit:
            recipe = b.path(f"{method}.yml")
            with open(recipe, "w") as file:
                file.write(mergekit_recipe(models, method))
            b.ratio(f"{method} / mergekit-yaml", 1, ours,
                    f"{b.mergekit}/bin/mergekit-yaml {recipe} {out} --random-seed 1"
                    " --no-copy-tokenizer --no-write-model-card 2>/dev/null", again)
            continue
        times = []
        for _ in range(b.runs):
            again()
            times.append(run(ours)[0])
        seconds = statistics.median(times)
        print(f"{method:<52} {seconds:8.2f}  s, "
              f"{size / GB / seconds:.2f} GB of result a second", flush=True)
    remove(store, out)


SECTIONS = {"main": main_section, "adapter": adapter_section,
            "history": history_section, "memory": memory_section,
            "grants": grants_section, "fsck": fsck_section,
            "forget": forget_section, "many": many_section,
            "merge": merge_section}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ballast", default=os.environ.get("BALLAST", "ballast"))
    parser.add_argument("--dir", default="/tmp/ballast-bench")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mergekit", metavar="VENV")
    parser.add_argument("--blocks", type=int, default=100000,
                        help="that many are removed by section many")
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    bench = Bench(os.path.abspath(options.ballast), options.dir, options.runs,
                  options.blocks, options.mergekit)
    for section in options.sections or SECTIONS:
        print(f"-- {section}")
        SECTIONS[section](bench)
    raise SystemExit(bench.failed > 0)


if __name__ == "__main__":
    main()
