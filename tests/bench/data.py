"""Models for the benchmark: real-looking weights, made from a seed; and how two
models differ."""

import json
import os
import struct
import sys

import numpy as np

HIDDEN, LAYERS, INTERMEDIATE = 2048, 12, 5632


def bf16(values):
    """float32 to the bits of bfloat16, to nearest, ties to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def shapes(layers=LAYERS):
    """Llama-shaped, in bf16 0.13 GB and 0.1 GB a layer."""
    yield "model.embed_tokens.weight", (16000, HIDDEN)
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "mlp.down_proj.weight", (HIDDEN, INTERMEDIATE)
        yield at + "mlp.gate_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.up_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        for name in "kqvo":
            yield at + f"self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
    yield "lm_head.weight", (16000, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)


def write(path, tensors, dtype):
    """tensors: (name, shape, function that gives the bytes), in file order."""
    width = {"BF16": 2, "F32": 4}[dtype]
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _ in tensors:
        size = int(np.prod(shape)) * width
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, make in tensors:
            file.write(make())


def pair(folder, shards=3):
    """base/ and tuned/ under folder: tuned is base plus steps of 1e-3 of its
    size, one tensor in ten as it was."""
    names = list(shapes())
    parts = [names[i::shards] for i in range(shards)]
    for i, part in enumerate(parts):
        made = {}
        for kind in ("base", "tuned"):
            os.makedirs(f"{folder}/{kind}", exist_ok=True)
            path = f"{folder}/{kind}/model-{i + 1:05}-of-{shards:05}.safetensors"
            rng = np.random.default_rng(i)
            write(path, [(n, s, lambda n=n, s=s, kind=kind, rng=rng:
                          weights(n, s, kind, rng, made)) for n, s in part],
                  "BF16")
    for kind in ("base", "tuned"):
        index = {"metadata": {"total_size": 0}, "weight_map": {}}
        for i, part in enumerate(parts):
            for name, shape in part:
                file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
                index["weight_map"][name] = file
                index["metadata"]["total_size"] += 2 * int(np.prod(shape))
        with open(f"{folder}/{kind}/model.safetensors.index.json", "w") as out:
            json.dump(index, out, indent=2)
        with open(f"{folder}/{kind}/config.json", "w") as out:
            json.dump({"model_type": "llama", "_name_or_path": kind}, out)


def weights(name, shape, kind, rng, made):
    count = int(np.prod(shape))
    base = rng.standard_normal(count, dtype=np.float32) * np.float32(0.02)
    step = rng.standard_normal(count, dtype=np.float32) * np.float32(2e-5)
    if kind == "tuned" and hash_of(name) % 10:
        base = base + step
    return bf16(base).tobytes()


def hash_of(name):
    return sum(name.encode()) * 2654435761 % 1000


CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
          "hidden_size": HIDDEN,
          "intermediate_size": INTERMEDIATE, "num_attention_heads": 16,
          "num_key_value_heads": 16, "vocab_size": 16000, "rms_norm_eps": 1e-5,
          "max_position_embeddings": 4096, "tie_word_embeddings": False,
          "torch_dtype": "bfloat16"}


def tuned(folder, layers=LAYERS, count=2):
    """base/ and count models under folder, m1/ and on: whole models, each of the
    latter the base plus steps of its own, 1/40 of its size, in every tensor."""
    for kind in range(count + 1):
        to = f"{folder}/{f'm{kind}' if kind else 'base'}"
        os.makedirs(to, exist_ok=True)
        rng = np.random.default_rng(5)
        steps = kind and np.random.default_rng(10 + kind)
        write(f"{to}/model.safetensors",
              [(n, s, lambda s=s, rng=rng, steps=steps: stepped(s, rng, steps))
               for n, s in shapes(layers)], "BF16")
        with open(f"{to}/config.json", "w") as out:
            json.dump({**CONFIG, "num_hidden_layers": layers}, out, indent=2)


def stepped(shape, rng, steps):
    count = int(np.prod(shape))
    values = rng.standard_normal(count, dtype=np.float32) * np.float32(0.02)
    if steps:
        values += steps.standard_normal(count, dtype=np.float32) * np.float32(5e-4)
    return bf16(values).tobytes()


def bare(folder, megabytes=64):
    """BF16 without a header: base, and tuned-N by 1e-N of its size, with the byte
    planes of base XOR tuned-N as planes-N."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(9)
    values = rng.standard_normal(megabytes << 19, dtype=np.float32)
    base = bf16(values * np.float32(0.02))
    base.tofile(f"{folder}/base")
    near = (base.astype(np.uint32) << 16).view(np.float32)
    for power in (1, 2, 3):
        steps = rng.standard_normal(len(base), dtype=np.float32)
        now = bf16(near + steps * np.float32(0.02 * 10.0 ** -power))
        now.tofile(f"{folder}/tuned-{power}")
        changed = base ^ now
        with open(f"{folder}/planes-{power}", "wb") as file:
            file.write((changed >> 8).astype(np.uint8).tobytes())
            file.write(changed.astype(np.uint8).tobytes())


def lora(folder, layers=LAYERS, seed=1, rank=16):
    """A PEFT adapter of every linear module of tuned()'s models, in F32."""
    rng = np.random.default_rng([21, seed])
    tensors, modules = [], set()
    for name, shape in shapes(layers):
        if "_proj" not in name:
            continue
        module = name.removesuffix(".weight")
        modules.add(module.rsplit(".", 1)[1])
        for side, size in (("A", (rank, shape[1])), ("B", (shape[0], rank))):
            values = rng.standard_normal(size, dtype=np.float32)
            tensors.append((f"base_model.model.{module}.lora_{side}.weight", size,
                            (values * np.float32(0.02)).tobytes))
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/adapter_model.safetensors", tensors, "F32")
    with open(f"{folder}/adapter_config.json", "w") as out:
        json.dump({"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank,
                   "lora_alpha": 2 * rank, "target_modules": sorted(modules),
                   "bias": "none", "base_model_name_or_path": "bench"}, out)


def adapter(folder, layers=32, rank=16):
    """A PEFT adapter of 14 tensors a layer, 8B-shaped, about 80 MB in bf16."""
    targets = {"self_attn.q_proj": (4096, 4096), "self_attn.k_proj": (1024, 4096),
               "self_attn.v_proj": (1024, 4096), "self_attn.o_proj": (4096, 4096),
               "mlp.gate_proj": (14336, 4096), "mlp.up_proj": (14336, 4096),
               "mlp.down_proj": (4096, 14336)}
    rng = np.random.default_rng(7)
    tensors = []
    for i in range(layers):
        for module, (out, inner) in targets.items():
            at = f"base_model.model.model.layers.{i}.{module}."
            for part, shape in (("lora_A", (rank, inner)), ("lora_B", (out, rank))):
                tensors.append((at + part + ".weight", shape, lambda s=shape: bf16(
                    rng.standard_normal(int(np.prod(s)), dtype=np.float32)
                    * np.float32(0.01)).tobytes()))
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/adapter_model.safetensors", sorted(tensors, key=lambda t: t[0]),
          "BF16")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 32,
              "base_model_name_or_path": "llama-8b",
              "target_modules": sorted(m.split(".")[1] for m in targets)}
    with open(f"{folder}/adapter_config.json", "w") as out:
        json.dump(config, out, indent=2)


def large(folder, gigabytes, nudge=0):
    """A model of many gigabytes that repeats itself, so that making it and
    keeping it costs little; nudge changes every tensor a little."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(3)
    chunk = bf16(rng.standard_normal(32 << 20, dtype=np.float32) * np.float32(0.02))
    chunk[::1000] += nudge
    data = chunk.tobytes()
    count = gigabytes * 16
    write(f"{folder}/model.safetensors",
          [(f"layers.{i:04}.weight", (8192, 4096), lambda: data)
           for i in range(count)], "BF16")


def noise(folder, pages, seed=5):
    """So many times 4 KiB, none of them twice."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(seed)
    write(f"{folder}/model.safetensors",
          [("w", (pages, 1024), lambda: rng.bytes(pages << 12))], "F32")


def tensors_of(folder):
    """Name to the elements' bits, of a folder's files of BF16."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        data = np.memmap(f"{folder}/{name}", np.uint8, "r")
        end = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:end].tobytes())
        header.pop("__metadata__", None)
        for key, row in header.items():
            first, last = row["data_offsets"]
            found[key] = data[end + first:end + last].view("<u2")
    return found


def different(one, other):
    """Say how many elements of two models differ."""
    one, other = tensors_of(one), tensors_of(other)
    if one.keys() != other.keys():
        raise SystemExit("the results have different tensors")
    count = sum(int(np.count_nonzero(one[name] != other[name])) for name in one)
    print(count, "of", sum(len(values) for values in one.values()))


if __name__ == "__main__":
    # data.py pair|tuned|bare|adapter|lora|large|noise FOLDER [NUMBERS…]
    # data.py different FOLDER FOLDER
    if sys.argv[1] == "different":
        different(*sys.argv[2:])
    else:
        {"pair": pair, "tuned": tuned, "bare": bare, "adapter": adapter,
         "lora": lora, "large": large, "noise": noise}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
