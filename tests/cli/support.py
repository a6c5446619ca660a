"""What the tests of the program share: running it, and safetensors by hand.

The reader and writer below are written from the format's description and know
nothing of ours: they are what our folders are compared with.
"""

import hashlib
import json
import os
import pathlib
import struct
import subprocess

import numpy as np
import pytest

BALLAST = os.environ["BALLAST"]
TREE = pathlib.Path(os.environ["BALLAST_TREE"])
LLAMA = TREE / "examples" / "llama"

# Where set, a postgresql: URL without a schema, or "postgresql" for the server of
# BALLAST_PG: stores that `run` makes keep their graph there, each in a schema of
# its own, dropped at the end.
DATABASE = os.environ.get("BALLAST_TEST_DB")
if DATABASE == "postgresql":
    DATABASE = os.environ["BALLAST_PG"]
SCHEMAS = f"t{os.getpid()}_"
# Where set, the folder of a tests/support/s3-server that is up: blocks of these
# stores are in its bucket, each store's in a prefix of its own.
S3 = os.environ.get("BALLAST_TEST_S3")
in_files = pytest.mark.skipif(bool(DATABASE or S3),
                              reason="of files in the root: graph or blocks")

# Bits an element, of every dtype of the format.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
    "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}


def read_place(folder):
    """What a server of S3 says of itself, as environment; None: none is there."""
    path = pathlib.Path(folder, "env")
    if not path.exists():
        return None
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def environment(extra=None):
    """The caller's, without what would change what ballast does."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("BALLAST_", "BAL_"))
           and key not in ("NO_COLOR", "PAGER")}
    env.update({"HOME": "/nonexistent", "TZ": "UTC"})
    env.update(read_place(S3) or {} if S3 else {})
    env.update(extra or {})
    return env


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.raw = done.stdout
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self):
        return json.loads(self.err)["error"]

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def elsewhere(args, cwd):
    """What says where graph and blocks are of a store that is not there yet."""
    words = [os.fspath(arg) for arg in args]
    env = {}
    if "--root" not in words:
        return env
    root = pathlib.Path(cwd or ".", words[words.index("--root") + 1]).resolve()
    if (root / "store.json").exists():
        return env
    name = SCHEMAS + hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    if DATABASE and "--db" not in words:
        env["BALLAST_DB"] = f"{DATABASE}?schema={name}"
    if S3 and "--backend" not in words:
        env["BALLAST_BACKEND"] = f"s3://{read_place(S3)['BALLAST_TEST_BUCKET']}/{name}"
    return env


def run(*args, cwd=None, env=None, code=0, **more):
    """Run the program; code None: any exit status will do."""
    env = {**elsewhere(args, cwd), **(env or {})}
    done = subprocess.run([BALLAST, *map(os.fspath, args)], cwd=cwd,
                          env=environment(env), capture_output=True,
                          timeout=120, stdin=subprocess.DEVNULL, check=False,
                          **more)
    result = Result(done)
    assert code is None or result.code == code, result
    return result


class Store:
    """A store of its own in a folder, with a tenant."""

    def __init__(self, path, tenant="acme"):
        self.path = pathlib.Path(path)
        self.root = self.path / "store"
        self.tenant = tenant

    def __call__(self, *args, code=0, **more):
        return run("--root", self.root, "--tenant", self.tenant, *args,
                   cwd=self.path, code=code, **more)


def size_of(dtype, shape):
    return int(np.prod(shape, dtype=np.int64)) * BITS[dtype] // 8


def save(path, tensors, metadata=None):
    """Write {name: (dtype, shape, bytes)} as one safetensors file."""
    header, at = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        assert len(data) == size_of(dtype, shape), name
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for _, _, data in tensors.values():
            file.write(data)
    return path


def load(path):
    """{name: (dtype, shape, bytes)} of a file, or of all files of a folder."""
    if path.is_dir():
        found = {}
        for file in sorted(path.glob("*.safetensors")):
            found.update(load(file))
        return found
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length:]
    return {name: (info["dtype"], tuple(info["shape"]),
                   data[slice(*info["data_offsets"])])
            for name, info in header.items()}


def f32(*values):
    return np.array(values, dtype="<f4").tobytes()


def model(path, values=(1, 2, 3, 4), name="w", config=None):
    """A folder with one F32 tensor and a config."""
    save(path / "model.safetensors", {name: ("F32", (len(values),),
                                             f32(*values))}, {"format": "pt"})
    (path / "config.json").write_text(json.dumps(config or {"a": 1}))
    return path


def adapter(path, scale=1.0, rank=2, width=4):
    """A plain LoRA adapter of one module, as PEFT writes it."""
    module = "base_model.model.model.layers.0.self_attn.q_proj"
    a = np.arange(rank * width, dtype="<f4") * np.float32(scale)
    b = np.arange(width * rank, dtype="<f4") * np.float32(0.5)
    save(path / "adapter_model.safetensors", {
        f"{module}.lora_A.weight": ("F32", (rank, width), a.tobytes()),
        f"{module}.lora_B.weight": ("F32", (width, rank), b.tobytes()),
    }, {"format": "pt"})
    (path / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "base_model_name_or_path": "tiny", "r": rank,
        "lora_alpha": rank, "target_modules": ["q_proj"],
        "task_type": "CAUSAL_LM", "bias": "none", "fan_in_fan_out": False,
        "use_dora": False, "use_rslora": False}))
    return path


def files(path):
    """{relative name: bytes} of everything below a folder."""
    return {str(file.relative_to(path)): file.read_bytes()
            for file in sorted(path.rglob("*")) if file.is_file()}
