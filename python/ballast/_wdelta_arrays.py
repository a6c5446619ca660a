"""State dicts in and out of ballast.wdelta: torch tensors and arrays in, without
a copy where they lie as C has them; numpy arrays out."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import math
import mmap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import errors
from ._wdelta_native import Job, Tensor
from .tensors import DTYPES, Loaned, loan

if TYPE_CHECKING:
    import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]

# What float32 does not hold exactly: stays what it is.
_KEPT = frozenset(
    "BOOL I8 U8 I16 U16 I32 U32 I64 U64 F64 C64".split()
)

# What numpy reads them as: floats that it has not, as their bits.
_NUMPY = {
    dtype: "uint8" if dtype.startswith("F8") else row[0]
    for dtype, row in DTYPES.items()
} | {"BF16": "uint16"}

_CHUNK = 4 << 20  # elements read at once


def _loaned(name: str, value: Any) -> Loaned:
    """What has elements of a dtype; not what is only bytes."""
    if hasattr(value, "detach") and not hasattr(value, "data_ptr"):
        value = value.detach().cpu().numpy()
    if not hasattr(value, "dtype") and not hasattr(value, "__dlpack__"):
        raise TypeError(
            f"Cannot convert tensor '{name}' of type {type(value)} to numpy."
        )
    return loan(name, value)


def arrays_of(state: Mapping[str, Any]) -> dict[str, Loaned]:
    """The memory of a state dict, by name, sorted.

    Raises:
        TypeError: a value that is no tensor.
    """
    return {name: _loaned(name, state[name]) for name in sorted(state)}


def hash_of(arrays: Mapping[str, Loaned]) -> str:
    """SHA-256 over each array's name and bytes, in this order."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(name.encode("utf-8"))
        if array.size:
            digest.update((ctypes.c_char * array.size).from_address(array.address))
    return digest.hexdigest()


# ---- out

# Where a tensor is to be read.
_Place = tuple[int, Tensor]


def _floats(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """What was read as `_NUMPY` says, as float32: floats exactly, the rest rounded.

    Raises:
        Unsupported: float8, where neither ml_dtypes nor torch is installed.
    """
    import numpy as np

    if dtype == "BF16":
        upper: np.ndarray[Any, Any] = np.left_shift(bits, 16, dtype=np.uint32)
        return upper.view(np.float32)
    if not dtype.startswith("F8"):
        return bits.astype(np.float32)
    word = DTYPES[dtype][0]
    with contextlib.suppress(ImportError):
        ml_dtypes: Any = importlib.import_module("ml_dtypes")
        floats: np.ndarray[Any, Any] = bits.view(getattr(ml_dtypes, word))
        return floats.astype(np.float32)
    with contextlib.suppress(ImportError):
        torch: Any = importlib.import_module("torch")
        wide: Any = torch.from_numpy(bits).view(getattr(torch, word)).float()
        return np.asarray(wide.numpy())
    raise errors.Unsupported(
        f"{dtype} is read with ml_dtypes or torch, and neither is installed"
    )


def _read(job: Job, places: Mapping[str, _Place], kept: frozenset[str]) -> Arrays:
    """Tensors, read by as many threads as there are; in float32, but those of a
    dtype that is kept.

    Raises:
        Unsupported: a dtype that numpy has not.
    """
    import numpy as np

    out: Arrays = {}
    pieces = []
    for name, (model, tensor) in places.items():
        dtype = tensor.dtype
        if dtype not in _NUMPY:
            raise errors.Unsupported(f"tensor '{name}': numpy has no dtype {dtype}")
        raw = np.dtype(_NUMPY[dtype])
        to = np.empty(tensor.shape, raw if dtype in kept else np.float32)
        out[name] = to
        count = to.size
        for at in range(0, count, _CHUNK):
            part = to.reshape(-1)[at : min(at + _CHUNK, count)]
            pieces.append((model, tensor, raw, at, part))

    def read(piece: tuple[int, Tensor, Any, int, Any]) -> None:
        model, tensor, raw, at, part = piece
        bits = part if part.dtype == raw else np.empty(part.size, raw)
        job.read(
            model, tensor.at, at * raw.itemsize, bits.ctypes.data, bits.nbytes
        )
        if bits is not part:
            part[:] = _floats(bits, tensor.dtype)

    job.each(read, pieces)
    return out


def _others(job: Job, model: int, names: Iterable[str]) -> int:
    """The model with these tensors, which are no floats, as F32.

    C makes floats of floats alone. So they are converted here, in a model where
    the others are a place that nobody looks at.
    """
    import numpy as np

    tensors = job.tensors(model)
    sizes = {name: 4 * math.prod(tensor.shape) for name, tensor in tensors.items()}
    nowhere = mmap.mmap(-1, max(1, *sizes.values()))
    address = np.frombuffer(nowhere, np.uint8).ctypes.data
    arrays = {
        name: Loaned("F32", tensor.shape, address, sizes[name], nowhere)
        for name, tensor in tensors.items()
    }
    wide = _read(job, {name: (model, tensors[name]) for name in names}, frozenset())
    for name, array in wide.items():
        arrays[name] = loan(name, array)
    return job.model_of("base", arrays)


def summed(job: Job, base: int, files: Sequence[int], names: Sequence[str]) -> Arrays:
    """base and files on it, the oldest first, in float32, not rounded."""
    model = job.sum(job.wide(base), files)
    tensors = job.tensors(model)
    places = {name: (model, tensors[name]) for name in names}
    others = [name for name in names if tensors[name].dtype != "F32"]
    if others:
        model = job.sum(_others(job, base, others), files)
        tensors = job.tensors(model)
        places.update({name: (model, tensors[name]) for name in others})
    return _read(job, places, frozenset())


def exact(job: Job, model: int, names: Sequence[str]) -> Arrays:
    """Floats as float32, which holds them; what it does not hold as it is.

    Raises:
        Unsupported: a dtype that numpy has not.
    """
    tensors = job.tensors(model)
    return _read(job, {name: (model, tensors[name]) for name in names}, _KEPT)
