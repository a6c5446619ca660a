"""What the tests of anchored commits share: models that are near each other,
and blocks at rest, read by docs/format.md."""

import dataclasses
import shutil
import struct

import numpy as np

import support
from support import load, save

HEADER, HEAD, SPAN = 64, 8, 56


class Store(support.Store):
    """One that stores commits by their distance."""

    def __call__(self, *args, code=0, **more):
        made = (self.root / "store.json").exists()
        init = "init" in args[:3]
        if not made and not init:
            super().__call__("init")
        done = None if not init else super().__call__(*args, code=code, **more)
        if not made and (self.root / "store.json").exists():
            super().__call__("config", "anchoring", "on")
        return done or super().__call__(*args, code=code, **more)


DEPTH_MAX = 6


def weights(seed, count=8192, tensors=2):
    """BF16 tensors as bit patterns, as a freshly made model has them."""
    rng = np.random.default_rng(seed)
    return {f"layers.{i}.weight": bf16(rng.normal(0, 0.02, count))
            for i in range(tensors)}


def bf16(values):
    return (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2")


def tuned(tensors, seed, part=0.3):
    """The same, of which a part is some steps away."""
    rng = np.random.default_rng(1000 + seed)
    out = {}
    for name, bits in tensors.items():
        steps = rng.integers(-2, 3, bits.shape)
        steps *= rng.random(bits.shape) < part
        wide = bits.astype(np.int64) + steps
        out[name] = wide.clip(0).astype(bits.dtype)
    return out


def chain(versions, seed=1, **more):
    """Each tuned from the one before it."""
    out = [weights(seed, **more)]
    for number in range(1, versions):
        out.append(tuned(out[-1], number))
    return out


def write(path, tensors, dtype="BF16", config=None):
    save(path / "model.safetensors",
         {name: (dtype, bits.shape, bits.tobytes())
          for name, bits in tensors.items()}, {"format": "pt"})
    (path / "config.json").write_text(config or "{}")
    return path


def commit(store, name, *args):
    return store("--json", "commit", name, "-m", name, *args).json


def commit_all(store, models, *args):
    """Each as m0, m1 …; what was told of each."""
    for number, tensors in enumerate(models):
        write(store.path / f"m{number}", tensors,
              config=f'{{"mark": "Q-mark-of-{number}-"}}')
    return [commit(store, f"m{number}", *args)
            for number in range(len(models))]


def comes_back(store, spec, name):
    """A checkout has what the folder of that name has, bit for bit."""
    out = store.path / "out"
    shutil.rmtree(out, ignore_errors=True)
    store("--no-cache", "checkout", spec, "-o", "out")
    return load(out) == load(store.path / name)


@dataclasses.dataclass
class AtRest:
    codec: int
    depth: int
    bases: set
    size: int


def at_rest(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89BALBLK\n" and data[8] == 1
    (extra,) = struct.unpack_from("<I", data, 12)
    based = data[11] == 2
    assert based == (extra > 0) and data[11] in (0, 2)
    bases = {data[at:at + 32].hex()
             for at in range(HEADER + HEAD, HEADER + extra, SPAN)}
    return AtRest(data[9], data[HEADER] if based else 0, bases, len(data))


def blocks(store, tenant="acme"):
    """id: what it is at rest."""
    return {path.name: at_rest(path)
            for path in store.root.glob(f"blocks/{tenant}/*/*")}


def are_sound(found):
    """Each block is deeper than what it is coded by, which is there."""
    for block in found.values():
        assert block.depth <= DEPTH_MAX
        for base in block.bases:
            assert found[base].depth < block.depth
    return True


def based(found):
    return sum(bool(block.bases) for block in found.values())
