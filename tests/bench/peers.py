"""What other programs make of the same bytes, timed inside them: for section
codec of bench.py, by the Python of a venv that has them.

    peers.py zipnn FILE               ZipNN, one thread, bf16
    peers.py save TUNED BASE OUT      deltatensors, int4
    peers.py load FILE BASE OUT       and back, written as safetensors

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


if __name__ == "__main__":
    {"zipnn": zipnn, "save": save, "load": load}[sys.argv[1]](*sys.argv[2:])
