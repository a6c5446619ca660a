"""The C functions behind ballast.wdelta, and one call's hold on what they give.

A `Job` opens models and files, and frees them all, the last one first, when its
`with` block ends. Handles are plain addresses and are good until then.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ._native import (
    WATCH,
    Operation,
    bal_arrays,
    bal_wdelta_info,
    bal_wdelta_options,
    bal_wdelta_row,
    bal_wdelta_saved,
    call,
    create,
    decode,
    lib,
    path_bytes,
    texts,
)
from .tensors import DTYPE_NAMES, Loaned, array_rows, dtype_number

_Item = TypeVar("_Item")

_TENSOR = 0  # BAL_PART_TENSOR


class Tensor(NamedTuple):
    """An entry of a model: where it is there, and what it is."""

    at: int
    dtype: str  # as in safetensors, "BF16"
    shape: tuple[int, ...]
    size: int  # bytes


class Row(NamedTuple):
    """A tensor of a .wdelta file."""

    name: str
    strategy: str
    dtype: str  # "float32", or the base's where the file tells it
    shape: tuple[int, ...]


class Info(NamedTuple):
    """What a .wdelta file tells of itself."""

    size: int
    version: int
    strategy: str
    parent_hash: str
    rows: list[Row]

    @property
    def lossless(self) -> bool:
        return bool(self.rows) and self.rows[0].strategy == "lossless"


def _pointers(handles: Sequence[int]) -> Any:
    return (ctypes.c_void_p * max(1, len(handles)))(*handles)


class Job:
    """What one call opens, freed when its `with` block ends. Ctrl-C stops it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._kept: list[object] = []
        self._work = self._make(lib.bal_work_new, lib.bal_work_free, 0)
        lib.bal_work_watch(self._work, WATCH, None)
        self._threads: int = lib.bal_work_jobs(self._work)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def each(self, function: Callable[[_Item], object], items: Iterable[_Item]) -> None:
        """function(item) of all items, in threads. Raises what the first raised,
        once none runs any more."""
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _run(self, *words: Any) -> None:
        with Operation():
            call(*words)

    def _make(self, make: Any, free: Any, *args: Any) -> int:
        made = create(make, *args)
        self._stack.callback(free, made)
        return made

    # ---- models

    def model_at(self, path: str | os.PathLike[str]) -> int:
        """A folder of safetensors, or one file, as a model."""
        return self._make(
            lib.bal_model_from_path, lib.bal_model_free, path_bytes(path)
        )

    def model_of(self, name: str, arrays: Mapping[str, Loaned]) -> int:
        """Arrays in memory as a model called `name`; they are not copied."""
        rows = array_rows(arrays.items())
        given = bal_arrays(name=name.encode(), rows=rows, count=len(arrays))
        self._kept.append(arrays)
        return self._make(
            lib.bal_model_from_arrays, lib.bal_model_free, ctypes.byref(given)
        )

    def wide(self, model: int) -> int:
        """The model with its floats as F32."""
        return self._make(
            lib.bal_model_cast, lib.bal_model_free, model, dtype_number("F32")
        )

    def sum(self, model: int, files: Sequence[int]) -> int:
        """The model and what files, the oldest first, change of it."""
        return self._make(
            lib.bal_model_from_wdelta,
            lib.bal_model_free,
            model,
            _pointers(files),
            len(files),
        )

    def tensors(self, model: int) -> dict[str, Tensor]:
        """Its tensors, by name."""
        found: dict[str, Tensor] = {}
        for i in range(lib.bal_model_count(model)):
            entry = lib.bal_model_at(model, i).contents
            if entry.part == _TENSOR:
                shape = tuple(entry.shape[: entry.rank])
                found[decode(entry.name)] = Tensor(
                    i, DTYPE_NAMES[entry.dtype], shape, entry.size
                )
        return found

    @staticmethod
    def read(model: int, index: int, offset: int, to: int, size: int) -> None:
        """Bytes of an entry to an address. Any number of threads."""
        call(lib.bal_model_read, model, index, offset, to, size)

    # ---- .wdelta files

    def open(self, path: str | os.PathLike[str]) -> int:
        """A .wdelta file."""
        return self._make(
            lib.bal_wdelta_open, lib.bal_wdelta_free, path_bytes(path)
        )

    def info(self, file: int) -> Info:
        """What it tells of itself and of its tensors, in its order."""
        info = bal_wdelta_info()
        lib.bal_wdelta_info_get(ctypes.byref(info), file)
        row = bal_wdelta_row()
        rows = []
        for i in range(info.tensors):
            lib.bal_wdelta_at(ctypes.byref(row), file, i)
            rows.append(
                Row(
                    decode(row.name),
                    decode(row.strategy),
                    decode(row.dtype),
                    tuple(row.shape[: row.rank]),
                )
            )
        return Info(
            info.size,
            info.version,
            decode(info.strategy),
            decode(info.parent_hash),
            rows,
        )

    def verify(self, files: Sequence[int], base: int) -> None:
        """Raises Corrupt unless files are whole and fit base and one another."""
        self._run(
            lib.bal_wdelta_verify, _pointers(files), len(files), base, self._work, None
        )

    def save(
        self,
        out: str | os.PathLike[str],
        tuned: int,
        base: int,
        options: Mapping[str, float],
        strategy: str,
        parents: Sequence[int],
        avoid: Iterable[str | os.PathLike[str]],
    ) -> bal_wdelta_saved:
        """Writes tuned's difference to base and the parents on it."""
        apart = [path_bytes(path) for path in avoid]
        given = bal_wdelta_options(
            strategy=strategy.encode(),
            outlier_fraction=options.get("outlier_fraction", -1.0),
            sparsity=options.get("sparsity", -1.0),
            max_error=options.get("max_error", -1.0),
            parents=_pointers(parents),
            parent_count=len(parents),
            avoid=texts(apart),
            avoid_count=len(apart),
        )
        saved = bal_wdelta_saved()
        self._run(
            lib.bal_wdelta_save,
            path_bytes(out),
            tuned,
            base,
            ctypes.byref(given),
            ctypes.byref(saved),
            self._work,
        )
        return saved


