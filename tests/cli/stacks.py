"""Tiny models of layers, made by numpy, and what becomes of them."""

import json

import numpy as np

from support import load, save

EMBED, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", \
    "lm_head.weight"
# Of each layer.
PIECES = ("mlp.up_proj.weight", "self_attn.q_proj.weight")
SHAPE = (4, 5)
TORCH = {"F32": "float32", "BF16": "bfloat16", "F16": "float16",
         "F64": "float64"}


def in_layer(number, piece=PIECES[0]):
    return f"model.layers.{number}.{piece}"


def names(layers, head=True):
    """In the order of the model."""
    return [EMBED, *(in_layer(i, piece) for i in range(layers)
                     for piece in PIECES),
            NORM, *([HEAD] if head else [])]


def raw(values, dtype="F32"):
    """Values that the dtype holds, as its bytes."""
    if dtype == "BF16":
        return (np.ascontiguousarray(values, "<f4").view("<u4")
                >> 16).astype("<u2").tobytes()
    kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]
    return np.ascontiguousarray(values, kind).tobytes()


def numbers(dtype, shape, data):
    if dtype == "BF16":
        wide = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return wide.astype("<f8").reshape(shape)
    kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}[dtype]
    return np.frombuffer(data, kind).astype("<f8").reshape(shape)


def put(path, tensors, dtype="F32", config=None):
    """A folder with these arrays; returns it."""
    save(path / "model.safetensors",
         {name: (dtype, np.shape(value), raw(value, dtype))
          for name, value in tensors.items()}, {"format": "pt"})
    layers = {name.split(".")[2] for name in tensors if ".layers." in name}
    told = {"architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": len(layers), "torch_dtype": TORCH[dtype],
            "tie_word_embeddings": HEAD not in tensors}
    (path / "config.json").write_text(json.dumps(told | (config or {})))
    return path


def full(value, layers=3, head=True):
    """Every tensor full of one number."""
    return {name: np.full(SHAPE, value) for name in names(layers, head)}


def drawn(seed, layers=3, head=True):
    """Numbers that BF16 holds."""
    rng = np.random.default_rng(seed)
    return {name: rng.integers(-64, 64, SHAPE) / 32.0
            for name in names(layers, head)}


def commit(store, name, tensors, **more):
    """Make a model and commit it by its name."""
    put(store.path / name, tensors, **more)
    store("commit", name, "-m", name, "--ref", name)
    return tensors


def taken(folder):
    """{name: numbers} of a folder."""
    return {name: numbers(*told) for name, told in load(folder).items()}


def result(store, spec, *words):
    """What a commit's tensors are, checked out."""
    out = store.path / "out"
    store("checkout", spec, "-o", out, "--force", *words)
    return taken(out)


def config_of(store, spec):
    out = store.path / "out"
    store("checkout", spec, "-o", out, "--force")
    return json.loads((out / "config.json").read_text())


def depth(name, layers):
    """How far a tensor is into its layers."""
    if ".layers." not in name:
        return 0.0
    number = int(name.split("layers.")[1].split(".")[0])
    return number / (layers - 1) if layers > 1 else 1.0


def along(values, at):
    """A gradient's value, numpy's."""
    return float(np.interp(at * (len(values) - 1), range(len(values)), values))


def bring(store, text, *more, ref="x", code=0):
    """Import a configuration whose models are called as our refs."""
    path = store.path / "recipe.yml"
    path.write_text(text)
    words = []
    for name in store("refs", "--json").json["refs"]:
        words += ["--map", f"{name}={name}"]
    return store("import-mergekit", path, *words, "--ref", ref, "--json",
                 *more, code=code)


def ends(store, spec="x"):
    """The one value of each tensor; layers in a list."""
    got = result(store, spec)
    flat = {}
    for name, value in got.items():
        assert (value == value.flat[0]).all(), name
        flat[name] = float(value.flat[0])
    count = sum(PIECES[0] in name for name in flat)
    layers = [flat.pop(in_layer(i)) for i in range(count)]
    assert [flat.pop(in_layer(i, PIECES[1])) for i in range(count)] == layers
    return flat.pop(EMBED), layers, flat.pop(NORM), flat.pop(HEAD, None)


def near(got, want):
    for one, two in zip(got, want, strict=True):
        assert np.allclose(one, two, rtol=1e-6), (got, want)
