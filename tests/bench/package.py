"""Section python of bench.py: the Python package beside safetensors and
deltatensors, in one process of an interpreter that has all of them.

    package.py adapter DIR RUNS      commit and checkout / save_file and load_file
    package.py calls RUNS            seconds of a call that does nothing
    package.py wdelta DIR RUNS       times of deltatensors / ours
    package.py peak DIR WHOSE STRATEGY WHAT    MiB that one save or load takes

Each prints one JSON object. Times are medians of pairs, taken in turn.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

HIDDEN, NARROW, WIDE, LAYERS, RANK = 4096, 1024, 14336, 32, 16
MODULES = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, NARROW), "v": (HIDDEN, NARROW),
           "o": (HIDDEN, HIDDEN), "gate": (HIDDEN, WIDE), "up": (HIDDEN, WIDE),
           "down": (WIDE, HIDDEN)}
STRATEGIES = ("sparse", "quantized", "int4")


def adapter_of_8b():
    """A rank 16 LoRA of all linear modules of an 8B Llama: 84 MB of bfloat16."""
    import ml_dtypes
    import numpy

    rng = numpy.random.default_rng(0)
    tensors = {}
    for layer in range(LAYERS):
        for name, (inputs, outputs) in MODULES.items():
            block = "self_attn" if len(name) == 1 else "mlp"
            at = f"base_model.model.model.layers.{layer}.{block}.{name}_proj."
            a = rng.uniform(-1, 1, (RANK, inputs)) / inputs ** 0.5
            b = rng.standard_normal((outputs, RANK)) * 0.005
            tensors[at + "lora_A.weight"] = a.astype(ml_dtypes.bfloat16)
            tensors[at + "lora_B.weight"] = b.astype(ml_dtypes.bfloat16)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK,
              "target_modules": [f"{name}_proj" for name in MODULES]}
    return tensors, config


def pairs(runs, theirs, ours, before=None):
    """(median of ours / theirs, seconds of theirs, of ours), after one pair that
    does not count."""
    rows = []
    for _ in range(runs + 1):
        row = []
        for call in (theirs, ours):
            if before:
                before()
            start = time.perf_counter()
            call()
            row.append(time.perf_counter() - start)
        rows.append(row)
    rows = rows[1:]
    return (statistics.median(b / a for a, b in rows),
            statistics.median(a for a, _ in rows),
            statistics.median(b for _, b in rows))


def adapter(folder, runs):
    from safetensors.numpy import load_file, save_file

    import ballast

    tensors, config = adapter_of_8b()
    root, path = f"{folder}/py-store", f"{folder}/adapter_model.safetensors"
    store = ballast.Store(root)

    def fresh():
        nonlocal store
        store.close()
        shutil.rmtree(root)
        store = ballast.Store(root)
        os.sync()

    def save():
        save_file(tensors, path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())

    def commit():
        store.commit("acme", tensors, config=config, message="m")

    def in_order():
        with store.checkout("acme") as found:
            return {name: found[name] for name in found}

    def whole():
        with store.checkout("acme") as found:
            return found.state_dict()

    told = {"commit": pairs(runs, save, commit, fresh)}
    commit()
    told["checkout"] = pairs(runs, lambda: load_file(path), in_order)
    told["state_dict"] = pairs(runs, lambda: load_file(path), whole)
    store.close()
    shutil.rmtree(root)
    return told


def calls(runs):
    """The least there is: a number that C knows, as a property and bare."""
    import timeit

    import ballast

    store = ballast.Store("py-calls")
    rows = {"store.jobs": lambda: store.jobs,
            "bal_dtype_name": lambda: ballast._native.lib.bal_dtype_name(0)}
    told = {name: min(timeit.repeat(call, number=10000, repeat=runs)) / 10000
            for name, call in rows.items()}
    store.close()
    shutil.rmtree("py-calls")
    return told


def library(whose):
    if whose == "ours":
        import ballast.wdelta as dt
    else:
        import deltatensors as dt
    return dt


def saver(whose, folder, strategy):
    dt = library(whose)
    return lambda: dt.save_delta_from_paths(
        f"{folder}/{whose}.wdelta", f"{folder}/m1", f"{folder}/base",
        strategy=strategy)


def loader(whose, folder):
    """Of what deltatensors saved last."""
    dt = library(whose)
    return lambda: dt.load_delta_from_paths(f"{folder}/theirs.wdelta",
                                            f"{folder}/base")


def wdelta(folder, runs):
    told = {}
    for strategy in STRATEGIES:
        told[f"save {strategy}"] = pairs(
            runs, *(saver(whose, folder, strategy) for whose in ("theirs", "ours")))
        told[f"load {strategy}"] = pairs(
            runs, *(loader(whose, folder) for whose in ("theirs", "ours")))
    return told


def peak(folder, whose, strategy, what):
    """What the peak grows by, over imports and, of a load, its result."""
    call = (loader(whose, folder) if what == "load"
            else saver(whose, folder, strategy))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = call()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    own = sum(value.nbytes for value in result.values()) if what == "load" else 0
    return {"mib": (grown - own / 1024) / 1024}


def package_section(b, make):
    """Needs --peers: a Python with numpy, ml_dtypes, safetensors, torch and
    deltatensors; the package is the tree's, over the library beside PROGRAM."""
    if not b.peers:
        print("no --peers VENV")
        return
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.dirname(b.program)
    env = dict(os.environ, PYTHONPATH=os.path.join(here, "..", "..", "python"),
               BALLAST_LIBRARY=os.path.join(beside, "libballast.so"))

    def ask(*words):
        done = subprocess.run(
            [f"{b.peers}/bin/python", os.path.abspath(__file__), *map(str, words)],
            env=env, cwd=b.folder, stdout=subprocess.PIPE, check=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    told = ask("adapter", b.folder, b.runs)
    rows = (("commit", "store.commit / save_file + fsync, 84 MB", 1.3),
            ("checkout", "checkout, in order / load_file", 1.5),
            ("state_dict", "checkout, state_dict / load_file", 1.5))
    for key, name, limit in rows:
        ratio, theirs, ours = told[key]
        b.say(name, ratio, limit, f"{ours:.3f} s / {theirs:.3f} s")
    for name, seconds in ask("calls", b.runs).items():
        b.say(f"a call of {name}, us", seconds * 1e6, 5)
    folder = b.path("py-models")
    if not os.path.exists(folder):
        make("tuned", folder, 2, 1)
    for name, (ratio, theirs, ours) in ask("wdelta", folder, b.runs).items():
        b.say(f"deltatensors / ballast.wdelta, {name}", 1 / ratio, 8,
              f"{theirs:.2f} s / {ours:.2f} s", least=True)
    for strategy in STRATEGIES:
        # load is of what deltatensors saved last.
        for what in ("save", "load")[: 1 + (strategy == STRATEGIES[-1])]:
            theirs, ours = (ask("peak", folder, whose, strategy, what)["mib"]
                            for whose in ("theirs", "ours"))
            b.say(f"extra memory, {what} {strategy}, ours / theirs",
                  ours / theirs, 0.05, f"{ours:.0f} MiB / {theirs:.0f} MiB")


if __name__ == "__main__":
    verbs = {"adapter": adapter, "calls": calls, "wdelta": wdelta, "peak": peak}
    given = [int(word) if word.isdigit() else word for word in sys.argv[2:]]
    print(json.dumps(verbs[sys.argv[1]](*given)))
