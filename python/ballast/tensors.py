"""Tensors into the library, and out of it.

In go numpy arrays (bfloat16 and the eight-bit floats by ml_dtypes), torch tensors
of any device and layout that has plain elements, and whatever has the buffer
protocol, ``__array__`` or DLPack. Memory that is contiguous and little-endian is
read where it is; anything else is copied once.

Out comes what is asked for: numpy arrays, or torch tensors. A dtype that numpy
does not have is ml_dtypes' where that can be imported; else it comes as the
unsigned integer of its width, bit for bit (bfloat16 as uint16, the eight-bit
floats as uint8). Elements of less than a byte (F4, F6) come as they are packed,
as a flat uint8 array. Without numpy a memoryview comes, by the same rule.

Neither numpy nor torch is imported before it is needed.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import importlib
import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from . import _html, errors
from . import _native as native
from ._progress import working
from .commit import TensorInfo

if TYPE_CHECKING:
    from .results import Written

__all__ = ["Checkout", "Model"]

# Name in safetensors: numpy's or ml_dtypes' name, torch's name, memoryview's
# format, bytes of an element.
DTYPES: dict[str, tuple[str, str, str, int]] = {
    "BOOL": ("bool", "bool", "?", 1),
    "U8": ("uint8", "uint8", "B", 1),
    "I8": ("int8", "int8", "b", 1),
    "F8_E5M2": ("float8_e5m2", "float8_e5m2", "B", 1),
    "F8_E4M3": ("float8_e4m3fn", "float8_e4m3fn", "B", 1),
    "F8_E8M0": ("float8_e8m0fnu", "float8_e8m0fnu", "B", 1),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", "float8_e4m3fnuz", "B", 1),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", "float8_e5m2fnuz", "B", 1),
    "I16": ("int16", "int16", "h", 2),
    "U16": ("uint16", "uint16", "H", 2),
    "F16": ("float16", "float16", "e", 2),
    "BF16": ("bfloat16", "bfloat16", "H", 2),
    "I32": ("int32", "int32", "i", 4),
    "U32": ("uint32", "uint32", "I", 4),
    "F32": ("float32", "float32", "f", 4),
    "C64": ("complex64", "complex64", "Q", 8),
    "F64": ("float64", "float64", "d", 8),
    "I64": ("int64", "int64", "q", 8),
    "U64": ("uint64", "uint64", "Q", 8),
}
_BY_NUMPY = {row[0]: name for name, row in DTYPES.items()}
_BY_TORCH = {row[1]: name for name, row in DTYPES.items()}
_FOREIGN = ("BF16", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
_RAW = {1: "uint8", 2: "uint16"}

DTYPE_NAMES = [
    native.decode(native.lib.bal_dtype_name(number))
    for number in range(native.BAL_DTYPES)
]
_NUMBERS = {name: number for number, name in enumerate(DTYPE_NAMES)}


def dtype_number(name: str) -> int:
    """A dtype by its name in safetensors. Usage: there is none."""
    number = _NUMBERS.get(name.upper())
    if number is None:
        raise errors.Usage(f"no dtype '{name}'", hint=", ".join(DTYPE_NAMES))
    return number


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# ---- in ----------------------------------------------------------------------


class Loaned:
    """Bytes of an array, and what keeps them where they are."""

    __slots__ = ("address", "dtype", "holder", "shape", "size")

    def __init__(
        self, dtype: str, shape: tuple[int, ...], address: int, size: int, holder: Any
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.address = address
        self.size = size
        self.holder = holder


def loan(name: str, value: Any) -> Loaned:
    """An array's memory. Usage: it has a dtype or layout that cannot be stored."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _from_torch(name, value, torch)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _from_numpy(name, numpy.asarray(value), numpy)
    try:
        view = memoryview(value)
    except TypeError:
        return _from_other(name, value)
    except ValueError as error:
        raise errors.Usage(f"tensor '{name}': {error}") from None
    return _from_buffer(name, view)


def array_rows(arrays: Iterable[tuple[str, Loaned]], more: int = 0) -> Any:
    """Rows of bal_array for C, and so many empty ones behind them. They borrow
    the memory that was loaned."""
    given = list(arrays)
    rows = (native.bal_array * (len(given) + more))()
    for row, (name, have) in zip(rows, given, strict=False):
        row.name = native.encode(name)
        row.part = native.BAL_PART_TENSOR
        row.dtype = _NUMBERS[have.dtype]
        row.rank = len(have.shape)
        row.shape = (ctypes.c_uint64 * max(len(have.shape), 1))(*have.shape)
        row.data = have.address
        row.size = have.size
    return rows


def _from_torch(name: str, tensor: Any, torch: Any) -> Loaned:
    unlike = tensor.is_quantized or tensor.is_meta or tensor.is_nested
    if tensor.layout != torch.strided or unlike:
        raise errors.Usage(f"tensor '{name}' has no plain elements")
    kind = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(int(size) for size in tensor.shape)
    dtype = _BY_TORCH.get(kind)
    if kind == "float4_e2m1fn_x2" and shape:
        dtype = "F4"
        shape = (*shape[:-1], 2 * shape[-1])
    if dtype is None:
        raise errors.Usage(
            f"tensor '{name}' is of dtype {kind}, which has no name here"
        )
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = plain.numel() * plain.element_size()
    return Loaned(dtype, shape, plain.data_ptr() if size else 0, size, plain)


def _from_numpy(name: str, array: Any, numpy: Any) -> Loaned:
    dtype = _BY_NUMPY.get(array.dtype.name)
    if dtype is None or array.dtype.fields is not None:
        raise errors.Usage(
            f"tensor '{name}' is of dtype {array.dtype}, which has no name here"
        )
    if array.dtype.byteorder == ">" or (
        array.dtype.byteorder == "=" and sys.byteorder == "big"
    ):
        array = array.astype(array.dtype.newbyteorder("<"))
    plain = numpy.asarray(array, order="C")
    address = plain.__array_interface__["data"][0] if plain.size else 0
    return Loaned(dtype, tuple(plain.shape), address, plain.nbytes, plain)


_BUFFER_KINDS = {"?": "BOOL", "e": "F16", "f": "F32", "d": "F64", "Zf": "C64"}


def _buffer_dtype(view: memoryview) -> str | None:
    order, kind = "", view.format
    if kind[:1] in "@=<>!":
        order, kind = kind[0], kind[1:]
    if order in (">", "!") and view.itemsize > 1:
        return None
    if kind in _BUFFER_KINDS:
        return _BUFFER_KINDS[kind]
    if kind == "c":
        return "U8"
    if kind in ("b", "h", "i", "l", "q", "n"):
        return f"I{8 * view.itemsize}"
    if kind in ("B", "H", "I", "L", "Q", "N"):
        return f"U{8 * view.itemsize}"
    return None


def _from_buffer(name: str, view: memoryview) -> Loaned:
    dtype = _buffer_dtype(view)
    if dtype is None or sys.byteorder == "big":
        raise errors.Usage(
            f"tensor '{name}' has elements '{view.format}', which have no name here"
        )
    shape = tuple(view.shape or ())
    if not view.c_contiguous:
        view = memoryview(view.tobytes())
    address, holder = _address(view)
    return Loaned(dtype, shape, address, view.nbytes, holder)


def _address(view: memoryview) -> tuple[int, Any]:
    if view.nbytes == 0:
        return 0, view
    if not view.readonly:
        start = ctypes.c_char.from_buffer(view.cast("B"))
        return ctypes.addressof(start), start
    numpy = _module("numpy")
    if numpy is not None:
        flat = numpy.frombuffer(view.cast("B"), numpy.uint8)
        return int(flat.__array_interface__["data"][0]), flat
    data = view.obj
    if not isinstance(data, bytes) or view.nbytes != len(data):
        data = view.tobytes()
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, data


def _from_other(name: str, value: Any) -> Loaned:
    if hasattr(value, "__array__") and _module("numpy") is not None:
        numpy = _module("numpy")
        return _from_numpy(name, numpy.asarray(value), numpy)
    if hasattr(value, "__dlpack__"):
        for module, take in (("torch", _from_torch), ("numpy", _from_numpy)):
            library = _module(module)
            if library is not None:
                return take(name, library.from_dlpack(value), library)
    raise errors.Usage(
        f"tensor '{name}' is a {type(value).__name__}, which is no array",
        hint="numpy arrays, torch tensors, buffers and DLPack are taken",
    )


def _plain_json(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "value"):
        return value.value
    return str(value)


def config_bytes(config: Any) -> bytes:
    """A config's JSON: of a mapping, of an object with ``to_dict`` (PEFT's
    LoraConfig), or a text that is JSON already."""
    given = isinstance(config, str | bytes | bytearray)
    try:
        if given:
            text = config if isinstance(config, str) else bytes(config).decode()
            config = json.loads(text, parse_constant=_no_constant)
        elif not isinstance(config, Mapping) and hasattr(config, "to_dict"):
            config = config.to_dict()
        if not isinstance(config, Mapping):
            kind = type(config).__name__
            raise errors.Usage(f"a config is a mapping, not a {kind}")
        if not given:
            text = json.dumps(
                dict(config),
                indent=2,
                sort_keys=True,
                ensure_ascii=False,
                allow_nan=False,
                default=_plain_json,
            )
        return text.encode()
    except errors.Error:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.Usage(f"config: {error}") from None


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _told_base(config: bytes) -> str | None:
    """The base model's name in an adapter's config."""
    try:
        name = json.loads(config)["base_model_name_or_path"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return name if name and isinstance(name, str) else None


def file_bytes(content: Any) -> bytes:
    """A side file's bytes: given as such, as text, or as a path to read."""
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    if isinstance(content, str):
        try:
            return content.encode()
        except UnicodeEncodeError as error:
            raise errors.Usage(f"a side file: {error.reason}") from None
    if isinstance(content, os.PathLike):
        with open(content, "rb") as stream:
            return stream.read()
    raise errors.Usage(f"a side file is bytes or a text, not {type(content).__name__}")


class Model(native.Handle):
    """A model that the library can read: many threads may at once.

    What ``from_path``, ``from_arrays`` and ``from_pointer`` make is freed by
    ``close``, by leaving ``with``, or when it is forgotten.
    """

    def __init__(self, pointer: int, *holds: native.Box, keep: Any = None) -> None:
        self._pointer = pointer
        # The library may read what is kept until the last model made of it goes.
        kept = [keep]

        def free() -> None:
            native.lib.bal_model_free(pointer)
            kept.clear()

        self._own("model", free, *holds)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Model:
        """A folder of safetensors, an adapter's folder, or one safetensors file.

        NotFound; Corrupt names the file, the tensor and the rule.
        """
        name = native.path_bytes(path)
        return cls(native.create(native.lib.bal_model_from_path, name))

    @classmethod
    def from_arrays(
        cls,
        tensors: Mapping[str, Any],
        *,
        config: Any = None,
        files: Mapping[str, Any] | None = None,
        base_model: str | None = None,
        name: str = "arrays",
    ) -> Model:
        """Arrays by name. With a config it is an adapter. Their memory is read
        when the model is, and must not change meanwhile."""
        for key in tensors:
            if not isinstance(key, str):
                kind = type(key).__name__
                raise errors.Usage(f"a tensor's name is a text, not {kind}")
        loaned = [(key, loan(key, value)) for key, value in tensors.items()]
        side = {key: file_bytes(value) for key, value in (files or {}).items()}
        if config is not None:
            side["adapter_config.json"] = config_bytes(config)
        adapter = "adapter_config.json" in side
        if adapter and not base_model:
            base_model = _told_base(side["adapter_config.json"])
        rows = array_rows(loaned, more=len(side))
        for row, (key, data) in zip(rows[len(loaned) :], side.items(), strict=True):
            row.name = native.encode(key)
            row.part = native.BAL_PART_FILE
            row.data = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
            row.size = len(data)
        arrays = native.bal_arrays(
            name=native.encode(name),
            kind=native.BAL_KIND_ADAPTER if adapter else native.BAL_KIND_WEIGHTS,
            base_model=native.encode(base_model),
            rows=rows,
            count=len(rows),
        )
        made = native.create(native.lib.bal_model_from_arrays, ctypes.byref(arrays))
        return cls(made, keep=(loaned, side))

    def used(self) -> contextlib.AbstractContextManager[None]:
        """While the ``with`` lasts it is not freed, whoever closes it. Who gives
        C the pointer of a model that others may close needs it. ValueError:
        closed."""
        return self._used()

    @property
    def pointer(self) -> int:
        """For C, while the model is not closed."""
        if self.closed:
            raise ValueError("the model is closed")
        return self._pointer

    @property
    def box(self) -> native.Box:
        """What a model that is made of this one holds."""
        return self._box

    @property
    def facts(self) -> Any:
        """The library's bal_facts of it."""
        return native.lib.bal_model_facts(self.pointer).contents

    def entries(self) -> Iterator[tuple[int, Any]]:
        """(index, bal_tensor) of each entry: tensors, side files, headers."""
        for i in range(native.lib.bal_model_count(self.pointer)):
            yield i, native.lib.bal_model_at(self.pointer, i).contents

    def read(self, i: int, offset: int, address: int, size: int) -> None:
        """Bytes [offset, offset + size) of entry i to an address."""
        with self._used():
            native.call(
                native.lib.bal_model_read, self._pointer, i, offset, address, size
            )

    def read_all(self, rows: Any, work: int, progress: Any = None) -> None:
        """Entries, whole, to addresses: an array of bal_entry_to."""
        with self._used(), working(progress):
            native.call(
                native.lib.bal_model_read_all, self._pointer, rows, len(rows), work
            )

    def read_bytes(self, i: int, size: int) -> bytearray:
        """The first size bytes of entry i."""
        data = bytearray(size)
        if size:
            self.read(i, 0, _address(memoryview(data))[0], size)
        return data


# ---- out ---------------------------------------------------------------------


def _numpy_dtype(dtype: str, numpy: Any) -> Any:
    """numpy's dtype, ml_dtypes', or the unsigned integer of the same width."""
    name, _, _, width = DTYPES[dtype]
    if dtype not in _FOREIGN:
        return numpy.dtype(name)
    foreign = getattr(_module("ml_dtypes"), name, None)
    return numpy.dtype(_RAW[width] if foreign is None else foreign)


def new_numpy(info: TensorInfo) -> tuple[Any, int]:
    """An array to be filled, and its address."""
    numpy = _module("numpy")
    if info.dtype in DTYPES:
        array = numpy.empty(info.shape, _numpy_dtype(info.dtype, numpy))
    else:
        array = numpy.empty(info.bytes, numpy.uint8)
    return array, array.__array_interface__["data"][0]


def new_torch(info: TensorInfo) -> tuple[Any, int]:
    """A tensor to be filled, in memory of its own, and its address."""
    torch = _module("torch")
    if torch is None:
        raise ImportError("torch=True needs torch")
    shape = info.shape
    name = DTYPES[info.dtype][1] if info.dtype in DTYPES else "uint8"
    if info.dtype == "F4" and shape and shape[-1] % 2 == 0:
        name, shape = "float4_e2m1fn_x2", (*shape[:-1], shape[-1] // 2)
    elif info.dtype not in DTYPES:
        shape = (info.bytes,)
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise errors.Unsupported(
            f"this torch has no dtype for {info.dtype} (tensor '{info.name}')"
        )
    tensor = torch.empty(shape, dtype=dtype)
    return tensor, tensor.data_ptr()


def new_buffer(info: TensorInfo) -> tuple[Any, int]:
    """A memoryview of new memory, flat where it cannot have the shape, and its
    address."""
    view: Any = memoryview(bytearray(info.bytes))
    address = _address(view)[0] if info.bytes else 0
    if info.dtype not in DTYPES:
        return view, address
    kind = DTYPES[info.dtype][2]
    return (view.cast(kind, info.shape) if info.bytes else view.cast(kind)), address


# What is read ahead at most, in bytes: some blocks for each of a few threads.
_AHEAD = 16 << 20


class Checkout(Mapping[str, Any]):
    """What a commit holds: name -> array, each read when it is asked for.

    ``checkout[name]`` is a new numpy array (or torch tensor) of the recorded
    shape and dtype. Who asks for one after the other, in order, has them read
    ahead by the store's threads, 16 MiB at most, and what was asked for is not
    kept here. A view resolves tensor by tensor as it is read, never ahead.
    ``info(name)`` tells shape and dtype without reading.
    Threads may share one. It keeps its store open until it is closed.

    Raises KeyError for a name that is not there, Unsupported for a view that
    lost an input, Corrupt for bytes that are not those recorded.
    """

    def __init__(
        self, model: Model, commit: Any, writer: Any, torch: bool, work: int
    ) -> None:
        self._model = model
        self._work = work
        # Guards the three that follow; a signal's handler may read, too.
        self._lock = threading.RLock()
        self._next = 0
        self._single = 0
        self._ahead: dict[str, Any] = {}
        self.commit = commit
        self._writer = writer
        self._torch = torch
        self._infos: dict[str, TensorInfo] = {}
        self._indexes: dict[str, int] = {}
        self._files: dict[str, tuple[int, int]] = {}
        listed = (native.BAL_FORM_WHOLE, native.BAL_FORM_DIFFERENCE)
        for i, entry in model.entries():
            name = native.decode(entry.name)
            if entry.part == native.BAL_PART_FILE and (
                entry.form == native.BAL_FORM_WHOLE
            ):
                self._files[name] = (i, entry.size)
            elif entry.part == native.BAL_PART_TENSOR and entry.form in listed:
                self._indexes[name] = i
                self._infos[name] = TensorInfo(
                    name,
                    DTYPE_NAMES[entry.dtype],
                    tuple(entry.shape[: entry.rank]),
                    entry.size,
                )
        self._names = list(self._infos)
        self._places = {name: i for i, name in enumerate(self._names)}

    def __reduce__(self) -> NoReturn:
        raise native.not_copied("checkout")

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the model. What was read stays. May be called again."""
        self._model.close()
        self._ahead = {}

    @property
    def closed(self) -> bool:
        """True once :meth:`close` was called."""
        return self._model.closed

    @property
    def model(self) -> Model:
        """The library's model behind it."""
        return self._model

    # What Mapping asks for.

    def __getitem__(self, name: str) -> Any:
        if self.commit.kind == "view":
            return self.read(name, torch=self._torch)
        # First whether it may be used at all: after a fork the lock may be held
        # by a thread that is not there.
        with self._model.used():
            with self._lock:
                ahead = self._take_ahead(name)
            return self.read(name, torch=self._torch) if ahead is None else ahead

    def _take_ahead(self, name: str) -> Any:
        """The tensor, if the one before it was asked for last; else None."""
        place = self._places[name]
        in_order = place and place == self._next
        self._next = place + 1
        if not in_order:
            self._ahead = {}
            return None
        if name not in self._ahead:
            self._ahead = {}
            names = self._some_from(place) if place >= self._single else []
            if len(names) > 1:
                try:
                    self._ahead = self._read_all(names, self._torch)
                except errors.Error:
                    # What is damaged is told of when it is asked for itself, and
                    # what is around it is not read again and again until then.
                    self._single = place + len(names)
        ahead = self._ahead.pop(name, None)
        if ahead is not None and not self._may_read(name):
            ahead = None
        if ahead is None or self.closed:
            self._ahead = {}
        return ahead

    def _may_read(self, name: str) -> bool:
        """Still? A commit may be forgotten while tensors of it wait here."""
        try:
            self._model.read(self._indexes[name], 0, 0, 0)
        except (errors.Error, ValueError):  # taken back, or closed meanwhile
            return False
        return True

    def _some_from(self, place: int) -> list[str]:
        names = []
        size = 0
        for name in self._names[place:]:
            size += self._infos[name].bytes
            if size > _AHEAD:
                break
            names.append(name)
        return names

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def info(self, name: str) -> TensorInfo:
        """Shape, dtype and size of a tensor, without reading it. KeyError."""
        return self._infos[name]

    def read(self, name: str, *, torch: bool = False) -> Any:
        """A tensor as a numpy array, or as a torch tensor. KeyError."""
        return self._read_all([name], torch)[name]

    def _read_all(self, names: list[str], torch: bool, progress: Any = None) -> Any:
        new = new_torch if torch else new_numpy if _module("numpy") else new_buffer
        made = {name: new(self._infos[name]) for name in names}
        rows = {name: address for name, (_, address) in made.items()}
        self._fill(rows, progress)
        return {name: array for name, (array, _) in made.items()}

    def _fill(self, places: Mapping[str, int], progress: Any = None) -> None:
        """Tensors into memory: where to, by name."""
        filled = [name for name in places if self._infos[name].bytes]
        if not filled:
            return
        if len(filled) == 1 and self._infos[filled[0]].bytes <= _AHEAD:
            i, size = self._indexes[filled[0]], self._infos[filled[0]].bytes
            self._model.read(i, 0, places[filled[0]], size)
            return
        rows = (native.bal_entry_to * len(filled))()
        for row, name in zip(rows, filled, strict=True):
            row.entry = self._indexes[name]
            row.to = places[name]
        self._model.read_all(rows, self._work, progress)

    @property
    def files(self) -> dict[str, bytes]:
        """The side files, read: path below the model's folder -> bytes."""
        return {name: self.file(name) for name in self._files}

    def file(self, name: str) -> bytes:
        """One side file. KeyError."""
        i, size = self._files[name]
        return bytes(self._model.read_bytes(i, size))

    @property
    def config(self) -> dict[str, Any] | None:
        """``adapter_config.json``, or ``config.json`` of a whole model; None."""
        for name in ("adapter_config.json", "config.json"):
            if name in self._files:
                value: dict[str, Any] = json.loads(self.file(name))
                return value
        return None

    def state_dict(
        self, *, torch: bool | None = None, progress: Any = None
    ) -> dict[str, Any]:
        """All tensors, read by the store's threads, block by block."""
        as_torch = self._torch if torch is None else torch
        read: dict[str, Any] = self._read_all(self._names, as_torch, progress)
        return read

    def load_into(self, module: Any, *, strict: bool = True) -> list[str]:
        """Read the tensors into a live torch module.

        Each goes into the parameter or buffer of its name, with that one's dtype
        and device: straight into its memory where that is the host's and has the
        dtype, else by way of one that is in memory at a time. Returns the names of
        the module that were not filled. With strict (the default) a name that either
        side lacks is a KeyError, before anything is copied. ValueError: a shape that differs, or one on the meta
        device, which has no memory to read into (``module.to_empty(device=…)``).
        """
        torch = _module("torch")
        if torch is None:
            raise ImportError("load_into needs torch")
        every = module.state_dict(keep_vars=True)  # extra state is anything
        places = {
            name: place
            for name, place in every.items()
            if isinstance(place, torch.Tensor)
        }
        missing = [name for name in every if name not in self]
        unknown = [name for name in self if name not in places]
        if strict and (missing or unknown):
            raise KeyError(
                f"not in the commit: {missing[:5]}; not in the module: {unknown[:5]}"
            )
        for name in self:
            if name in places and tuple(places[name].shape) != self.info(name).shape:
                raise ValueError(
                    f"tensor '{name}' has shape {self.info(name).shape}, the "
                    f"module's {tuple(places[name].shape)}"
                )
            if name in places and places[name].is_meta:
                raise ValueError(f"the module's '{name}' is on the meta device")
        direct = self._direct(places, torch)
        self._fill(direct)
        with torch.no_grad():
            for name in self:
                if name in places and name not in direct:
                    places[name].copy_(self.read(name, torch=True))
        return missing

    def _direct(self, places: Mapping[str, Any], torch: Any) -> dict[str, int]:
        """Addresses of those that have the bytes in their own memory as they are
        stored; of several that share it, none."""
        found: dict[str, int] = {}
        shared = collections.Counter(place.data_ptr() for place in places.values())
        for name in self:
            place = places.get(name)
            if place is None or type(place.data) is not torch.Tensor:
                continue
            wanted = DTYPES.get(self._infos[name].dtype, ("", "", "", 0))[1]
            plain = (
                place.device.type == "cpu"
                and place.layout is torch.strided
                and place.is_contiguous()
                and not (place.is_conj() or place.is_neg())
            )
            same = place.dtype is getattr(torch, wanted or "uint8", None)
            if plain and wanted and same and shared[place.data_ptr()] == 1:
                found[name] = place.data_ptr()
        return found

    def write(
        self, out: str | os.PathLike[str], *, force: bool = False, progress: Any = None
    ) -> Written:
        """Write it as a folder that PEFT or transformers loads, with ballast.json.

        The folder appears complete or not at all. Conflict: it is there and not
        empty (``force`` replaces it).
        """
        written: Written = self._writer(self._model, out, force, progress)
        return written

    def __repr__(self) -> str:
        total = sum(info.bytes for info in self._infos.values())
        return (
            f"<Checkout {self.commit.tenant}:{self.commit.id[:12]} "
            f"{len(self)} tensors, {total:,} bytes>"
        )

    def _repr_html_(self) -> str:
        of = self.commit
        members: dict[str, Any] = {
            "commit": of.id,
            "kind": of.kind,
            "message": of.message,
            "tensors": len(self),
            "bytes": sum(info.bytes for info in self._infos.values()),
        }
        if self._files:
            members["files"] = list(self._files)
        word = f" {_html.badge('plain', 'closed')}" if self.closed else ""
        title = f"Checkout of {_html.escaped(of.tenant)}{word}"
        rows = [(i.name, i.dtype, i.shape, i.bytes) for i in self._infos.values()]
        shown = _html.table(("name", "dtype", "shape", "bytes"), rows)
        return _html.block(title, members) + _html.details("tensors", shown)
