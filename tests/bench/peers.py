"""What other programs make of the same bytes, timed inside them: for section
codec of bench.py, by the Python of a venv that has them.

    peers.py zipnn FILE               ZipNN, one thread, bf16
    peers.py save TUNED BASE OUT      deltatensors, int4
    peers.py load FILE BASE OUT       and back, written as safetensors
    peers.py imports                  what PEFT takes before it does anything
    peers.py fold BASE ADAPTER OUT    PEFT's merge_and_unload, saved
    peers.py svd BASE RANK OUT ADAPTER ADAPTER
                                      its add_weighted_adapter, by halves, saved

zipnn prints the ratio, and GB of FILE a second of processor time in and out, the
best of some rounds; save and load print seconds of wall time without imports.
"""

import sys
import time

ROUNDS = 5


def zipnn(path):
    from zipnn import ZipNN

    with open(path, "rb") as file:
        data = file.read()
    coder = ZipNN(bytearray_dtype="bfloat16", threads=1)
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        given = bytearray(data)  # it turns the bits of what it is given
        start = time.process_time()
        packed = coder.compress(given)
        between = time.process_time()
        back = coder.decompress(packed)
        end = time.process_time()
        best = [min(best[0], between - start), min(best[1], end - between)]
        if bytes(back) != data:
            raise SystemExit("zipnn: not what went in")
    print(len(data) / len(packed), *(len(data) / t / 1e9 for t in best))


def save(tuned, base, out):
    import deltatensors

    start = time.monotonic()
    deltatensors.save_delta_from_paths(out, tuned, base, strategy="int4")
    print(time.monotonic() - start)


def load(path, base, out):
    import deltatensors
    import torch
    from safetensors.torch import save_file

    start = time.monotonic()
    model = deltatensors.load_delta_from_paths(path, base)
    save_file({name: torch.from_numpy(value).to(torch.bfloat16)
               for name, value in model.items()}, out)
    print(time.monotonic() - start)


def imports():
    import peft  # noqa: F401
    import transformers  # noqa: F401


def with_adapters(base, *adapters):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    model = PeftModel.from_pretrained(model, adapters[0], adapter_name="a0")
    for i, path in enumerate(adapters[1:]):
        model.load_adapter(path, f"a{i + 1}")
    return model


def fold(base, adapter, out):
    with_adapters(base, adapter).merge_and_unload().save_pretrained(out)


def svd(base, rank, out, *adapters):
    model = with_adapters(base, *adapters)
    names = [f"a{i}" for i in range(len(adapters))]
    model.add_weighted_adapter(names, [1 / len(names)] * len(names), "merged",
                               combination_type="svd", svd_rank=int(rank))
    model.save_pretrained(out, selected_adapters=["merged"])


if __name__ == "__main__":
    {"zipnn": zipnn, "save": save, "load": load, "imports": imports,
     "fold": fold, "svd": svd}[sys.argv[1]](*sys.argv[2:])
