"""Tiny models for random merges: random weights in the shapes that four
architectures have, with word lists as tokenizers and two adapters.

Sizes are odd, so that sums have tails, and small, since there are many merges.
"""

import json
import zlib

import numpy as np
import torch
from safetensors.torch import save_file

HIDDEN, INNER, WORDS = 20, 26, 23

LLAMA_LAYER = {
    "self_attn.q_proj.weight": (HIDDEN, HIDDEN),
    "self_attn.k_proj.weight": (10, HIDDEN),
    "self_attn.v_proj.weight": (10, HIDDEN),
    "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
    "mlp.gate_proj.weight": (INNER, HIDDEN),
    "mlp.up_proj.weight": (INNER, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, INNER),
    "input_layernorm.weight": (HIDDEN,),
    "post_attention_layernorm.weight": (HIDDEN,),
}
QWEN_LAYER = LLAMA_LAYER | {
    "self_attn.q_proj.bias": (HIDDEN,),
    "self_attn.k_proj.bias": (10,),
    "self_attn.v_proj.bias": (10,),
}
GPT2_LAYER = {
    "ln_1.weight": (HIDDEN,), "ln_1.bias": (HIDDEN,),
    "attn.c_attn.weight": (HIDDEN, 3 * HIDDEN),
    "attn.c_attn.bias": (3 * HIDDEN,),
    "attn.c_proj.weight": (HIDDEN, HIDDEN), "attn.c_proj.bias": (HIDDEN,),
    "ln_2.weight": (HIDDEN,), "ln_2.bias": (HIDDEN,),
    "mlp.c_fc.weight": (HIDDEN, INNER), "mlp.c_fc.bias": (INNER,),
    "mlp.c_proj.weight": (INNER, HIDDEN), "mlp.c_proj.bias": (HIDDEN,),
}
NEOX_LAYER = {
    "input_layernorm.weight": (HIDDEN,), "input_layernorm.bias": (HIDDEN,),
    "post_attention_layernorm.weight": (HIDDEN,),
    "post_attention_layernorm.bias": (HIDDEN,),
    "attention.query_key_value.weight": (3 * HIDDEN, HIDDEN),
    "attention.query_key_value.bias": (3 * HIDDEN,),
    "attention.dense.weight": (HIDDEN, HIDDEN),
    "attention.dense.bias": (HIDDEN,),
    "attention.bias": (1, 1, 4, 4), "attention.masked_bias": (1,),
    "attention.rotary_emb.inv_freq": (5,),
    "mlp.dense_h_to_4h.weight": (INNER, HIDDEN),
    "mlp.dense_h_to_4h.bias": (INNER,),
    "mlp.dense_4h_to_h.weight": (HIDDEN, INNER),
    "mlp.dense_4h_to_h.bias": (HIDDEN,),
}
LLAMA_CONFIG = {
    "hidden_size": HIDDEN, "intermediate_size": INNER, "head_dim": 10,
    "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": WORDS,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
}

# What is in front of the layers, a layer, what is behind; the key that counts
# layers; the rest of config.json.
FAMILIES = {
    "llama": {
        "class": "LlamaForCausalLM", "type": "llama",
        "front": {"model.embed_tokens.weight": (WORDS, HIDDEN)},
        "stem": "model.layers.", "layer": LLAMA_LAYER,
        "back": {"model.norm.weight": (HIDDEN,)},
        "head": "lm_head.weight", "count": "num_hidden_layers",
        "config": LLAMA_CONFIG,
    },
    "qwen": {
        "class": "Qwen2ForCausalLM", "type": "qwen2",
        "front": {"model.embed_tokens.weight": (WORDS, HIDDEN)},
        "stem": "model.layers.", "layer": QWEN_LAYER,
        "back": {"model.norm.weight": (HIDDEN,)},
        "head": "lm_head.weight", "count": "num_hidden_layers",
        "config": LLAMA_CONFIG,
    },
    "gpt2": {
        "class": "GPT2LMHeadModel", "type": "gpt2",
        "front": {"transformer.wte.weight": (WORDS, HIDDEN),
                  "transformer.wpe.weight": (16, HIDDEN)},
        "stem": "transformer.h.", "layer": GPT2_LAYER,
        "back": {"transformer.ln_f.weight": (HIDDEN,),
                 "transformer.ln_f.bias": (HIDDEN,)},
        "head": "lm_head.weight", "count": "n_layer",
        "config": {"n_embd": HIDDEN, "n_head": 2, "n_inner": INNER,
                   "n_positions": 16, "vocab_size": WORDS},
    },
    "neox": {
        "class": "GPTNeoXForCausalLM", "type": "gpt_neox",
        "front": {"gpt_neox.embed_in.weight": (WORDS, HIDDEN)},
        "stem": "gpt_neox.layers.", "layer": NEOX_LAYER,
        "back": {"gpt_neox.final_layer_norm.weight": (HIDDEN,),
                 "gpt_neox.final_layer_norm.bias": (HIDDEN,)},
        "head": "embed_out.weight", "count": "num_hidden_layers",
        "config": {"hidden_size": HIDDEN, "intermediate_size": INNER,
                   "num_attention_heads": 2, "vocab_size": WORDS,
                   "max_position_embeddings": 64},
    },
}

# Name: family, layers, dtype, tied, how it differs from the family's base.
# "wide" is the base's own kind of weights, but another draw.
MODELS = {
    "la-base": ("llama", 3, "bfloat16", False, "base"),
    "la-dense": ("llama", 3, "bfloat16", False, "dense"),
    "la-sparse": ("llama", 3, "bfloat16", False, "sparse"),
    "la-wide": ("llama", 3, "bfloat16", False, "wide"),
    "la-near": ("llama", 3, "bfloat16", False, "near"),
    "la-f32": ("llama", 3, "float32", False, "dense"),
    "la-f32-base": ("llama", 3, "float32", False, "base"),
    "la-f16": ("llama", 3, "float16", False, "dense"),
    "la-deep": ("llama", 12, "bfloat16", False, "dense"),
    "la-deep-base": ("llama", 12, "bfloat16", False, "base"),
    "la-tied": ("llama", 3, "bfloat16", True, "dense"),
    "la-tied-base": ("llama", 3, "bfloat16", True, "base"),
    "la-words": ("llama", 3, "bfloat16", False, "dense"),
    "la-more": ("llama", 3, "float32", False, "dense"),
    "qw-base": ("qwen", 2, "bfloat16", True, "base"),
    "qw-dense": ("qwen", 2, "bfloat16", True, "dense"),
    "qw-sparse": ("qwen", 2, "float16", False, "sparse"),
    "qw-words": ("qwen", 2, "bfloat16", True, "wide"),
    "gp-base": ("gpt2", 4, "float32", True, "base"),
    "gp-dense": ("gpt2", 4, "float32", True, "dense"),
    "gp-wide": ("gpt2", 4, "float16", False, "wide"),
    "nx-base": ("neox", 2, "float16", False, "base"),
    "nx-dense": ("neox", 2, "float16", False, "dense"),
    "nx-wide": ("neox", 2, "float32", False, "wide"),
}
# Tokens: how many there are, which words come first. Models that are not
# here have the family's words.
VOCABULARIES = {"la-words": (25, 7), "la-more": (21, 0), "qw-words": (26, 11)}
ADAPTERS = {"ad-plain": ("float32", False), "ad-scaled": ("bfloat16", True)}


def random_of(*words):
    return np.random.default_rng(zlib.crc32(" ".join(words).encode()))


def draw(family, tensor, shape):
    """A weight of the base of a family."""
    values = random_of(family, tensor).standard_normal(shape) * 0.06
    return values + 1 if "norm" in tensor or ".ln_" in tensor else values


def change(kind, name, tensor, values):
    """What a model has for a base's weight."""
    rng = random_of(name, tensor)
    noise = rng.standard_normal(values.shape)
    if kind == "dense":
        return values + noise * 0.01
    if kind == "sparse":
        some = rng.random(values.shape) < (0.2 if "layers.1" in tensor else 0)
        return values + some * noise * 0.02
    if kind == "wide":
        return noise * 0.06
    return values + noise * 1e-4 if kind == "near" else values


def shapes_of(name):
    family, layers, _, tied, _ = MODELS[name]
    row = FAMILIES[family]
    words = VOCABULARIES.get(name, (WORDS, 0))[0]
    shapes = dict(row["front"])
    for i in range(layers):
        shapes |= {f"{row['stem']}{i}.{key}": shape
                   for key, shape in row["layer"].items()}
    shapes |= row["back"]
    if not tied:
        shapes[row["head"]] = (WORDS, HIDDEN)
    return {key: (words, *shape[1:]) if shape[0] == WORDS else shape
            for key, shape in shapes.items()}


def rounded(values, dtype):
    return torch.from_numpy(values).to(getattr(torch, dtype)).contiguous()


def make_tensors(name):
    family, _, dtype, _, kind = MODELS[name]
    return {key: rounded(change(kind, name, key, draw(family, key, shape)),
                         dtype)
            for key, shape in shapes_of(name).items()}


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1))


def write_words(folder, count, first):
    """A word list: four marks, one of which transformers would add for Qwen2,
    and words in an order of their own."""
    marks = ["<unk>", "<s>", "</s>", "<|endoftext|>"]
    words = [f"w{first + i:02d}" for i in range(count - len(marks))]
    vocabulary = {word: i for i, word in enumerate(marks + words[::-1])}
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": i, "content": mark, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
            for i, mark in enumerate(marks)],
        "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary,
                  "unk_token": "<unk>"}})
    write_json(folder / "tokenizer_config.json", {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
        "tokenizer_class": "TokenizersBackend", "backend": "tokenizers"})


def write_model(folder, name):
    family, layers, dtype, tied, _ = MODELS[name]
    row = FAMILIES[family]
    words, first = VOCABULARIES.get(name, (WORDS, 0))
    folder.mkdir()
    save_file(make_tensors(name), folder / "model.safetensors",
              {"format": "pt"})
    write_json(folder / "config.json", row["config"] | {
        "architectures": [row["class"]], "model_type": row["type"],
        row["count"]: layers, "dtype": dtype, "vocab_size": words,
        "tie_word_embeddings": tied, "bos_token_id": 1, "eos_token_id": 2})
    write_words(folder, words, first)


def write_adapter(folder, name):
    dtype, scaled = ADAPTERS[name]
    rng = random_of(name)
    tensors = {}
    for i in (0, 2):
        for module in ("self_attn.q_proj", "mlp.down_proj"):
            rows, columns = LLAMA_LAYER[f"{module}.weight"]
            stem = f"base_model.model.model.layers.{i}.{module}"
            for part, shape in (("A", (3, columns)), ("B", (rows, 3))):
                tensors[f"{stem}.lora_{part}.weight"] = rounded(
                    rng.standard_normal(shape) * 0.1, dtype)
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    write_json(folder / "adapter_config.json", {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 3,
        "base_model_name_or_path": "la-base", "lora_alpha": 5,
        "use_rslora": scaled, "target_modules": ["q_proj", "down_proj"],
        "layers_to_transform": [0, 2], "bias": "none", "lora_dropout": 0.0,
        "fan_in_fan_out": False, "inference_mode": True})


def write_all(folder):
    for name in MODELS:
        write_model(folder / name, name)
    for name in ADAPTERS:
        write_adapter(folder / name, name)
    return folder


def family_of(name):
    return MODELS[name][0]


def layers_of(name):
    return MODELS[name.split("+")[0]][1]
