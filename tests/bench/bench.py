"""The figures of docs/benchmark.md, as ratios taken in one run.

    bench.py [--ballast PROGRAM] [--dir DIR] [--runs N] [--blocks N]
             [--mergekit VENV] [--peers VENV] [--layers N] [--gigabytes N]
             [SECTION…]

Sections: main adapter history memory grants fsck forget many codec lora
behaviour merge merge-memory serve remote python.
Each ratio is of whole processes, run in turn with what they are compared with,
files cached, the median of N pairs. `merge` is compared with the mergekit that
VENV holds (0.1.5), if one is given: what `merge` records (precise) and what
`import-mergekit` does (imported), over models of 0.13 GB and 0.1 GB a layer;
`merge-memory` merges models of so many gigabytes. `codec` compares ratios and speeds
on the same bytes with the zstd tool and, if --peers names a VENV that has them, with
ZipNN (0.5.4) and deltatensors (0.2.0); `lora` with the PEFT that is in VENV; `python` times the package beside
safetensors and deltatensors there; bench-codec is looked for beside PROGRAM, in tests/.
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

from package import package_section
from remote import remote_section
from serve import serve_section

GB = 1e9


class Bench:
    def __init__(self, options):
        self.program = os.path.abspath(options.ballast)
        self.folder, self.runs = options.dir, options.runs
        self.blocks, self.mergekit = options.blocks, options.mergekit
        self.layers, self.gigabytes = options.layers, options.gigabytes
        self.peers = options.peers
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


def run(command, env=None):
    """Wall seconds, CPU seconds, peak RSS in MiB of one whole process; what is
    given an environment of its own says nothing."""
    shell = isinstance(command, str)
    start = time.monotonic()
    process = subprocess.Popen(command, shell=shell, env=env,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL if env else None)
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


# The method's parameters, those of each input, whether there is a base, and how
# many times as fast as mergekit a merge has to be.
MERGES = {
    "linear": ({}, {"weight": 0.6}, False, 4),
    "ties": ({}, {"weight": 0.6, "density": 0.5}, True, 20),
    "slerp": ({"t": 0.4}, {}, False, 8),
    "breadcrumbs": ({}, {"weight": 0.6, "density": 0.5, "gamma": 0.01}, True, 20),
    "della": ({}, {"weight": 0.6, "density": 0.5, "epsilon": 0.1}, True, 20),
    "dare_ties": ({}, {"weight": 0.6, "density": 0.5}, True, 8),
    "model_stock": ({}, {}, True, 8),
    "sce": ({"select_topk": 0.5}, {}, True, 8),
}
MODELS = ("base", "m1", "m2")
OFFLINE = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")


def mergekit_recipe(models, method):
    """As YAML, of which JSON is a part."""
    common, own, based, _ = MERGES[method]
    recipe = {"merge_method": method, "dtype": "bfloat16", "parameters": common,
              "models": [{"model": f"{models}/{name}", "parameters": own}
                         for name in ("m1", "m2")]}
    if based or method == "slerp":
        recipe["base_model"] = f"{models}/{'base' if based else 'm1'}"
    return json.dumps(recipe)


def merge_words(method):
    """What `merge` is given for the same."""
    common, own, based, _ = MERGES[method]
    inputs = [",".join([name, *(f"{k}={v}" for k, v in own.items())])
              for name in ("m1", "m2")]
    options = [word for name, value in common.items()
               for word in ("--" + name.replace("_", "-"), str(value))]
    return [*inputs, "--method", method, *options,
            *(["--base", "base"] if based else []), "-m", method, "--ref", method]


def import_words(models, method, recipe):
    """The recipe as mergekit has it: its arithmetic, and its random numbers."""
    maps = [word for name in MODELS
            for word in ("--map", f"{models}/{name}={name}")]
    drawn = method in ("della", "dare_ties")
    return ["import-mergekit", recipe, *maps, "--ref", f"{method}-imported",
            *(["--mergekit-stream", "1"] if drawn else [])]


def median_of(b, command, before, env=None):
    """Wall and CPU seconds, peak MiB: the median of the runs."""
    rows = []
    for _ in range(b.runs):
        before()
        rows.append(run(command, env))
    return [statistics.median(row[i] for row in rows) for i in range(3)]


def told(row):
    return f"{row[0]:.2f} s, CPU {row[1]:.2f} s, {row[2]:.0f} MiB"


def merge_theirs(b, models, method, imported, ours):
    """The same by mergekit: how many times as long it takes, with its start and
    without; and what of it is not the same, by a run in one thread, since sums
    of many threads come out otherwise."""
    recipe, result = b.path(f"{method}.yml"), b.path("result")
    command = [f"{b.mergekit}/bin/mergekit-yaml", recipe, result,
               "--random-seed", "1", "--no-copy-tokenizer",
               "--no-write-model-card"]
    remove(result)
    run(command, {**OFFLINE, "OMP_NUM_THREADS": "1"})
    print(f"{method}: elements not as mergekit has them:", end=" ", flush=True)
    make("different", b.path("imported"), result)
    theirs = median_of(b, command, lambda: (remove(result), os.sync()), OFFLINE)
    for name, row in ours.items():
        b.say(f"mergekit-yaml / {method}, {name}", theirs[0] / row[0],
              MERGES[method][3], f"{told(theirs)} / {told(row)}; net of import "
              f"{(theirs[0] - imported[0]) / row[0]:.2f}", least=True)
    remove(result)


def merge_ours(b, models, store, method):
    """Recorded by `merge` and as an import, each written out."""
    recipe = b.path(f"{method}.yml")
    with open(recipe, "w") as file:
        file.write(mergekit_recipe(models, method))
    run(b.ballast(store, "merge", *merge_words(method)))
    run(b.ballast(store, *import_words(models, method, recipe)))
    rows = {}
    for name, ref, out in (("precise", method, b.path("out")),
                           ("imported", f"{method}-imported",
                            b.path("imported"))):
        command = b.ballast(store, "checkout", ref, "--no-cache", "-o", out)
        rows[name] = median_of(b, command,
                               lambda out=out: (remove(out), os.sync()))
    return rows


def merge_store(b, models):
    store = b.path("store-merge")
    remove(store)
    for name in MODELS:
        run(b.ballast(store, "commit", f"{models}/{name}", "-m", name,
                      "--ref", name))
    return store


def merge_section(b):
    """Views of whole models, resolved and written out."""
    models = b.path(f"tuned-{b.layers}")
    if not os.path.exists(models):
        make("tuned", models, b.layers)
    size, copy = size_of(f"{models}/m1"), b.path("copy")
    store = merge_store(b, models)
    print(f"two models of {size / GB:.2f} GB bf16")
    cp = median_of(b, f"cp -r {models}/m1 {copy} && sync",
                   lambda: (remove(copy), os.sync()))
    if b.mergekit:
        imported = median_of(b, [f"{b.mergekit}/bin/python", "-c",
                                 "import mergekit.scripts.run_yaml"],
                             lambda: None, OFFLINE)
        print(f"import of mergekit: {told(imported)}", flush=True)
    for method in MERGES:
        ours = merge_ours(b, models, store, method)
        if method == "linear":
            b.say("linear / cp + sync", ours["precise"][0] / cp[0], 2,
                  f"{told(ours['precise'])} / {told(cp)}")
        if b.mergekit:
            merge_theirs(b, models, method, imported, ours)
            continue
        for name, row in ours.items():
            print(f"{f'{method}, {name}':<52} {told(row)}", flush=True)
    remove(store, copy, b.path("out"), b.path("imported"))


def said(command):
    """The words that a process writes."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return (done.stdout + done.stderr).split()


def coded_by_us(b, tuned, base=None):
    """Ratio, GB/s in, GB/s out."""
    program = os.path.join(os.path.dirname(b.program), "tests", "bench-codec")
    words = said([program, "--files", tuned, *([base] if base else [])])
    at = words.index("auto")
    return [float(word) for word in words[at + 2:at + 5]]


def coded_by_zstd(b, level, path):
    """As one frame, by processor time of whole processes that write to nowhere,
    the better one of two."""
    packed, size = b.path("packed.zst"), os.path.getsize(path)
    into = ["zstd", "-q", "-f", f"-{level}", "--single-thread", path]
    run([*into, "-o", packed])
    ratio = size / os.path.getsize(packed)
    rounds = 2 if level < 10 else 1
    speeds = [size / GB / min(run([*words, "-c"])[1] for _ in range(rounds))
              for words in (into, ["zstd", "-q", "-d", packed])]
    os.remove(packed)
    return [ratio, *speeds]


def tell_codec(name, row):
    print(f"{name:<52} {row[0]:8.3f} {row[1]:8.3f} {row[2]:8.3f}", flush=True)


def codec_alone(b, folder):
    base = f"{folder}/base"
    ours = coded_by_us(b, base)
    tell_codec("bf16", ours)
    for level in (3, 19):
        tell_codec(f"  zstd -{level}", coded_by_zstd(b, level, base))
    if not b.peers:
        return
    theirs = [float(word) for word in said(
        [f"{b.peers}/bin/python", peers_program(), "zipnn", base])]
    tell_codec("  ZipNN", theirs)
    for i, way in ((1, "compressing"), (2, "decompressing")):
        b.say(f"ours / ZipNN, {way}", ours[i] / theirs[i], 1.3, least=True)


def peers_program():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers.py")


def int4_times(b, models, ours, theirs, name, before):
    """Whole processes by turns: wall seconds and peak memory."""
    rows = []
    for _ in range(b.runs):
        before()
        theirs_now = run(theirs)
        before()
        rows.append((run(ours), theirs_now))
    wall = statistics.median(there[0] / here[0] for here, there in rows)
    memory = statistics.median(here[2] / there[2] for here, there in rows)
    told_now = " / ".join(told(row) for row in reversed(rows[-1]))
    b.say(f"deltatensors / ours, {name}, time", wall, 10, told_now, least=True)
    b.say(f"ours / deltatensors, {name}, peak memory", memory, 0.05)


def codec_int4(b):
    models, file = b.path(f"tuned-{b.layers}"), b.path("x.wdelta")
    if not os.path.exists(models):
        make("tuned", models, b.layers)
    tuned, base, out = f"{models}/m1", f"{models}/base", b.path("out")
    python = [f"{b.peers}/bin/python", peers_program()]
    fresh = lambda: (remove(out), os.path.exists(file) and os.remove(file),
                     os.sync())
    int4_times(b, models, [b.program, "-q", "--progress", "never", "wdelta",
                           "save", tuned, "--base", base, "-o", file],
               [*python, "save", tuned, base, file], "int4 save", fresh)
    print(f"int4: {os.path.getsize(file) / size_of(tuned):.3f} of the model")
    again = lambda: (remove(out), os.sync())
    int4_times(b, models, [b.program, "-q", "--progress", "never", "wdelta",
                           "load", file, "--base", base, "-o", out],
               [*python, "load", file, base, b.path("theirs.safetensors")],
               "int4 load", again)
    fresh()
    os.remove(b.path("theirs.safetensors"))


def codec_section(b):
    """What bytes become, and how fast on one core, ours and others'. zstd is
    given XOR planes where there is a base; -19, which takes minutes, once."""
    folder = b.path("bare")
    if not os.path.exists(folder):
        make("bare", folder)
    print(f"{'':<52} {'ratio':>8} {'GB/s in':>8} {'GB/s out':>8}")
    codec_alone(b, folder)
    for power in (1, 2, 3):
        ours = coded_by_us(b, f"{folder}/tuned-{power}", f"{folder}/base")
        tell_codec(f"bf16 on its base, r=1e-{power}", ours)
        for level in (3, 19) if power == 1 else (3,):
            tell_codec(f"  zstd -{level} of XOR planes",
                       coded_by_zstd(b, level, f"{folder}/planes-{power}"))
        b.say("encoding, GB/s", ours[1], 0.8, least=True)
        b.say("decoding, GB/s", ours[2], 2, least=True)
    if b.peers:
        codec_int4(b)


def lora_times(b, runs, name, least, commands):
    """Ours against PEFT's, whole processes by turns, each of which makes `out`;
    the start of PEFT apart."""
    rows = []
    for _ in range(runs):
        pair = []
        for command, env in zip(commands, (None, OFFLINE)):
            remove(b.path("out"))
            os.sync()
            pair.append(run(command, env))
        rows.append(pair)
    wall = statistics.median(there[0] / here[0] for here, there in rows)
    start = run([f"{b.peers}/bin/python", peers_program(), "imports"], OFFLINE)[0]
    net = statistics.median((there[0] - start) / here[0] for here, there in rows)
    told_now = " / ".join(told(row) for row in reversed(rows[-1]))
    b.say(f"PEFT / ours, {name}", wall, least, f"{told_now}; net of import "
          f"({start:.1f} s) {net:.2f}", least=True)
    b.say(f"ours, {name}, peak memory in MiB", max(row[0][2] for row in rows),
          300)


def lora_made(b, store, layers, refs):
    """A base, and adapters of it in the store."""
    models = b.path(f"tuned-{layers}")
    if not os.path.exists(models):
        make("tuned", models, layers)
    folders = []
    for i, ref in enumerate(refs):
        folders.append(b.path(f"lora-{layers}-{i}"))
        if not os.path.exists(folders[-1]):
            make("lora", folders[-1], layers, i)
        run(b.ballast(store, "commit", folders[-1], "-m", "m", "--ref", ref))
    print(f"base of {size_of(f'{models}/base') / GB:.2f} GB bf16")
    return f"{models}/base", folders


def lora_section(b):
    """An adapter of rank 16 on every linear module, folded; and two of them merged
    by singular values, once and of one layer: PEFT decomposes whole matrices."""
    store, out = b.path("store-lora"), b.path("out")
    remove(store)
    if not b.peers:
        print("no --peers: nothing to compare with")
        return
    python = [f"{b.peers}/bin/python", peers_program()]
    base, (folder,) = lora_made(b, store, b.layers, ["large"])
    lora_times(b, b.runs, "fold", 3, [
        b.ballast(store, "apply", "large", "--base", base, "-o", out),
        [*python, "fold", base, folder, out]])
    base, folders = lora_made(b, store, 1, ["a0", "a1"])
    merge = b.ballast(store, "merge", "a0@0.5", "a1@0.5", "--rank", "16", "-m", "m",
                      "--ref", "svd")
    checkout = b.ballast(store, "checkout", "svd", "-o", out)
    lora_times(b, 1, "merge by svd", 5, [
        " ".join(merge) + " && " + " ".join(checkout),
        [*python, "svd", base, "16", out, *folders]])
    remove(store, out)


def asked(b):
    """A thousand probes through a server that takes 100 ms for each, eight at
    once: how much longer it takes than the server does."""
    store, probes = b.path("store-asked"), b.path("probes.txt")
    count, seconds, parallel = 1000, 0.1, 8
    remove(store)
    with open(probes, "w", encoding="utf-8") as file:
        file.writelines(f"What is {i} times {i}?\n" for i in range(count))
    folder = b.path("asked")
    make("adapter", folder)
    run(b.ballast(store, "commit", folder, "-m", "m"))
    here = os.path.dirname(os.path.abspath(__file__))
    server = subprocess.Popen(
        [sys.executable, f"{here}/server.py", "served", str(seconds), "32", "20"],
        stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    command = b.ballast(store, "fingerprint", "main", "--probes", probes, "--url",
                        url, "--model", "served", "--concurrency", str(parallel))
    rows = [run(command) for _ in range(b.runs)]
    server.kill()
    own = count * seconds / parallel
    b.say("1,000 probes by HTTP / the server's own time",
          statistics.median(row[0] for row in rows) / own, 1.1,
          f"{own:.1f} s its own; {told(rows[-1])}")
    remove(store, folder)


def behaviour_section(b):
    """Asking by HTTP; and comparing two models, all of which changed, and one
    tensor of which changed, with reading and hashing both."""
    asked(b)
    pair, store = b.path("pair"), b.path("store-diff")
    if not os.path.exists(pair):
        make("pair", pair)
    base, tuned = f"{pair}/base", f"{pair}/tuned"
    remove(store)
    for ref, folder in (("base", base), ("tuned", tuned)):
        run(b.ballast(store, "commit", folder, "-m", "m", "--ref", ref))
    sums = f"b3sum --num-threads 2 {base}/* {tuned}/*"
    b.ratio("diff of two commits / b3sum of both", 1.3,
            b.ballast(store, "diff", "base", "tuned", "--jobs", "2"), sums)
    near = b.path("near")
    remove(near)
    shutil.copytree(base, near)
    last = max(name for name in os.listdir(near) if name.endswith(".safetensors"))
    with open(f"{near}/{last}", "r+b") as file:
        file.seek(-2, os.SEEK_END)
        file.write(b"\0\x3f")
    run(b.ballast(store, "commit", near, "-m", "m", "--ref", "near"))
    b.ratio("diff of two that have all but one block / b3sum", 0.1,
            b.ballast(store, "diff", "base", "near", "--jobs", "2"), sums)
    remove(store, near)


def merge_memory_section(b):
    """Peak memory of a merge of 2 and of 8 inputs."""
    store, out, peaks = b.path("store-merge"), b.path("out"), {}
    remove(store)
    for i in range(9):
        folder = b.path("input")
        remove(folder)
        make("large", folder, b.gigabytes, i)
        run(b.ballast(store, "commit", folder, "-m", "m", "--ref", f"m{i}"))
        remove(folder)
    for count in (2, 8):
        inputs = [f"m{i},density=0.5" for i in range(1, count + 1)]
        run(b.ballast(store, "merge", *inputs, "--method", "ties", "--base", "m0",
                      "-m", "ties", "--ref", f"ties{count}"))
        remove(out)
        peaks[count] = run(b.ballast(store, "checkout", f"ties{count}",
                                     "--no-cache", "-o", out, "--jobs", "2"))[2]
    b.say(f"ties of 8 inputs of {b.gigabytes} GB: peak RSS, MiB", peaks[8], 400)
    b.say("ties: growth from 2 inputs to 8, MiB", peaks[8] - peaks[2], 64)
    remove(store, out)


SECTIONS = {"main": main_section, "adapter": adapter_section,
            "history": history_section, "memory": memory_section,
            "grants": grants_section, "fsck": fsck_section,
            "forget": forget_section, "many": many_section,
            "codec": codec_section, "lora": lora_section,
            "behaviour": behaviour_section,
            "merge": merge_section, "merge-memory": merge_memory_section,
            "serve": lambda b: serve_section(b, make, run),
            "remote": remote_section,
            "python": lambda b: package_section(b, make)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ballast", default=os.environ.get("BALLAST", "ballast"))
    parser.add_argument("--dir", default="/tmp/ballast-bench")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mergekit", metavar="VENV")
    parser.add_argument("--peers", metavar="VENV")
    parser.add_argument("--layers", type=int, default=8,
                        help="of the models that section merge merges")
    parser.add_argument("--gigabytes", type=int, default=2,
                        help="of the models that section merge-memory merges")
    parser.add_argument("--blocks", type=int, default=100000,
                        help="that many are removed by section many")
    parser.add_argument("sections", nargs="*", default=list(SECTIONS))
    options = parser.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    bench = Bench(options)
    for section in options.sections or SECTIONS:
        print(f"-- {section}")
        SECTIONS[section](bench)
    raise SystemExit(bench.failed > 0)


if __name__ == "__main__":
    main()
