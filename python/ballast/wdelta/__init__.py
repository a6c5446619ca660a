"""The .wdelta files of deltatensors, under deltatensors 0.2.0's own names.

    import ballast.wdelta as dt

    dt.save_delta_from_paths("x.wdelta", "tuned/", "base/", strategy="int4")
    tuned = dt.load_delta_from_paths("x.wdelta", "base/")

Functions, arguments, defaults, results and exceptions are those of
`deltatensors` 0.2.0; files go both ways. It is C that reads and writes, in
bounded memory and on all cores; a file appears complete or not at all.

What is more:

- `strategy="lossless"`: loses nothing, whatever the dtype. Only ballast reads
  such a file.
- `max_error=f`: for every tensor |got - tuned| <= f * |tuned - base|, stored in
  the smallest way that keeps it.
- Chains of any length, bfloat16 state dicts (and, lossless, those of every other
  dtype), single safetensors files in place of folders, files of format version 2,
  and files that deltatensors refuses because the fine-tune was split otherwise
  than the base.

What is different: progress goes to `logging` (`ballast.wdelta`), not to standard
output. An option that no strategy has is warned of. A chain is checked when a
link is saved. Exceptions but TypeError are `ballast.Error`s too.

A state dict here maps names to torch tensors or arrays, on any device and of any
strides; what is loaded maps names to numpy arrays.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from .. import _wdelta_arrays as _arrays
from .. import errors
from .._wdelta_arrays import Arrays
from .._wdelta_native import Info, Job, Tensor

if TYPE_CHECKING:
    from .training import DeltaTensorsCallback

__all__ = [
    "DeltaTensorsCallback",
    "hash_state_dict",
    "inspect",
    "inspect_chain",
    "load_delta",
    "load_delta_chain",
    "load_delta_from_paths",
    "save_delta",
    "save_delta_chain_from_paths",
    "save_delta_from_paths",
]

PathLike = Union[str, "os.PathLike[str]"]
StateDict = Mapping[str, Any]

_log = logging.getLogger("ballast.wdelta")

_STRATEGIES = ("sparse", "quantized", "int4", "lossless")
_OPTIONS = frozenset({"sparsity", "outlier_fraction", "max_error"})


# ---- errors



class _NoFile(errors.NotFound, FileNotFoundError):
    pass


class _NoTensor(errors.NotFound, KeyError):
    pass


class _TooNew(errors.Unsupported, ValueError):
    pass


# What deltatensors says of what C finds.
_SENTENCES = {
    "checksum mismatch": "Checksum mismatch: file may be corrupted or truncated.",
    "is not a .wdelta file": "Not a .wdelta file (bad magic).",
    "too short for a .wdelta": "Checksum mismatch: file may be corrupted or truncated.",
    "unsupported .wdelta version": "Unsupported .wdelta version.",
    "base model hash mismatch": "Base model hash mismatch.",
    "is not the base of": "Base model hash mismatch.",
    "parent hash mismatch": "Base model hash mismatch.",
}


@contextlib.contextmanager
def _as_there() -> Iterator[None]:
    """Errors of C as deltatensors raises them: its sentence, then ours."""
    try:
        yield
    except (errors.Corrupt, errors.Unsupported) as error:
        for ours, theirs in _SENTENCES.items():
            if ours in str(error):
                break
        else:
            raise
        kind = errors.Corrupt if isinstance(error, errors.Corrupt) else _TooNew
        raise kind(f"{theirs}\n  {error}") from error


def _check_path(path: PathLike) -> None:
    """Raises FileNotFoundError, as opening it does."""
    if not os.path.exists(path):
        raise _NoFile(f"no such file or directory: '{os.fspath(path)}'")


def _checksum(path: PathLike) -> None:
    """A file is as it was written: its last 32 bytes are the SHA-256 of the rest."""
    digest = hashlib.sha256()
    room = memoryview(bytearray(1 << 20))
    with open(path, "rb", buffering=0) as file:
        left = max(0, os.fstat(file.fileno()).st_size - 32)
        while left and (n := file.readinto(room[: min(left, len(room))])):
            digest.update(room[:n])
            left -= n
        same = file.read(32) == digest.digest()
    if not same:
        raise errors.Corrupt(
            "Checksum mismatch: file may be corrupted or truncated.\n"
            f"  '{os.fspath(path)}'"
        )


# ---- saving


def _numbers(strategy: str, given: dict[str, Any]) -> dict[str, float]:
    """Options as C has them, which takes less than 0 for none given."""
    if strategy not in _STRATEGIES:
        raise errors.Usage(
            f"Unknown strategy '{strategy}'. Choose 'sparse', 'quantized', 'int4' "
            "or 'lossless'."
        )
    for name in sorted(given.keys() - _OPTIONS):
        warnings.warn(f"ballast.wdelta: no option '{name}'", stacklevel=4)
    numbers = {}
    if strategy == "sparse" and "sparsity" in given:
        sparsity = float(given["sparsity"])
        if not 0.0 <= sparsity < 1.0:
            raise errors.Usage(f"sparsity must be in [0, 1), got {sparsity}")
        numbers["sparsity"] = sparsity
    if strategy == "int4" and "outlier_fraction" in given:
        numbers["outlier_fraction"] = max(0.0, float(given["outlier_fraction"]))
    if given.get("max_error") is not None:
        limit = float(given["max_error"])
        if not limit >= 0.0:
            raise errors.Usage(f"max_error must be 0 or more, got {limit}")
        numbers["max_error"] = limit
    return numbers


def _check_keys(
    tuned: Mapping[str, Tensor],
    base: Mapping[str, Tensor],
    strategy: str,
    whose: str = "finetuned and base",
) -> None:
    """deltatensors has no new and no removed tensors; lossless has new ones."""
    only_tuned = sorted(tuned.keys() - base.keys())
    only_base = sorted(base.keys() - tuned.keys())
    if strategy == "lossless":
        only_tuned = []
    if only_tuned or only_base:
        text = f"Key mismatch between {whose}."
        if only_tuned:
            text += f"\n  Only in finetuned: {only_tuned}"
        if only_base:
            text += f"\n  Only in base:      {only_base}"
        raise errors.Usage(text)
    for name, tensor in tuned.items():
        if strategy != "lossless" and tensor.shape != base[name].shape:
            raise errors.Usage(
                f"Shape mismatch for '{name}': finetuned {tensor.shape} vs base "
                f"{base[name].shape}."
            )


def _save(
    job: Job,
    out: PathLike,
    tuned: int,
    base: int,
    strategy: str,
    given: dict[str, Any],
    parents: Sequence[PathLike] = (),
    avoid: Iterable[PathLike] = (),
) -> str:
    numbers = _numbers(strategy, given)
    whose = "parent delta and finetuned model" if parents else "finetuned and base"
    _check_keys(job.tensors(tuned), job.tensors(base), strategy, whose)
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _as_there():
        links = [job.open(parent) for parent in parents]
        saved = job.save(path, tuned, base, numbers, strategy, links, avoid)
    _log.info(
        "saved %s  (%d tensors, %.1f MB, strategy=%s)",
        path.name, saved.tensors, saved.size / 1e6, strategy,
    )
    return str(saved.parent_hash.decode())


def save_delta(
    path: PathLike,
    finetuned: StateDict,
    base: StateDict,
    strategy: str = "sparse",
    use_gpu: bool = True,
    **kwargs: Any,
) -> str:
    """Saves the difference of two state dicts.

    Args:
        path: the file to write, by custom *.wdelta; replaced if it is there.
        finetuned, base: tensors by name; the same names and shapes.
        strategy: "sparse", "quantized", "int4" or "lossless" (which may have
            tensors that base has not, and other shapes).
        use_gpu: taken, and of no effect.
        **kwargs: sparsity=0.9, of sparse; outlier_fraction=0.01, of int4;
            max_error, of either.

    Returns:
        SHA-256 of the base, 64 hex digits.

    Raises:
        ValueError: other names or shapes, an unknown strategy, a bad number.
        TypeError: a value that is no tensor.
        Unsupported: a dtype that the strategy has no differences of, a max_error
            that it cannot keep.
    """
    ours, theirs = _arrays.arrays_of(finetuned), _arrays.arrays_of(base)
    with Job() as job:
        tuned = job.model_of("finetuned", ours)
        return _save(job, path, tuned, job.model_of("base", theirs), strategy, kwargs)


def save_delta_from_paths(
    out_path: PathLike,
    finetuned_dir: PathLike,
    base_dir: PathLike,
    strategy: str = "sparse",
    prefetch: int = 2,
    use_gpu: bool = True,
    **kwargs: Any,
) -> str:
    """Saves the difference of two folders of safetensors (or two such files).

    No more of a tensor is in memory than a tile a thread.

    Args:
        out_path: the file to write; may lie in finetuned_dir if it ends in
            .wdelta. Replaced if it is there.
        prefetch, use_gpu: taken, and of no effect.
        strategy, **kwargs: as of `save_delta`.

    Returns:
        SHA-256 of the base, 64 hex digits.

    Raises:
        ValueError, Unsupported: as `save_delta`; a file that is damaged.
        FileNotFoundError: no such folder.
    """
    with Job() as job:
        tuned, base = (_folder(job, path) for path in (finetuned_dir, base_dir))
        return _save(
            job, out_path, tuned, base, strategy, kwargs,
            avoid=[finetuned_dir, base_dir],
        )


def save_delta_chain_from_paths(
    out_path: PathLike,
    finetuned_dir: PathLike,
    parent_delta_path: PathLike | Sequence[PathLike],
    base_dir: PathLike,
    strategy: str = "sparse",
    use_gpu: bool = True,
    **kwargs: Any,
) -> str:
    """Saves the difference to what base and a .wdelta file give: the next link.

    Args:
        parent_delta_path: the link before; or all links before, the oldest
            first, which is what the third link and later ones need.
        out_path, strategy, use_gpu, **kwargs: as of `save_delta_from_paths`.

    Returns:
        SHA-256 of the parent model, 64 hex digits.

    Raises:
        ValueError: as `save_delta_from_paths`; a link that is damaged or was
            made against another model than what is before it.
        FileNotFoundError: no such file or folder.
    """
    if isinstance(parent_delta_path, (str, os.PathLike)):
        parents: list[PathLike] = [parent_delta_path]
    else:
        parents = list(parent_delta_path)
    for path in parents:
        _check_path(path)
    with Job() as job:
        tuned, base = (_folder(job, path) for path in (finetuned_dir, base_dir))
        return _save(
            job, out_path, tuned, base, strategy, kwargs, parents,
            [finetuned_dir, base_dir, *parents],
        )


# ---- loading


def _folder(job: Job, path: PathLike) -> int:
    _check_path(path)
    return job.model_at(path)


def _load(
    job: Job, paths: Sequence[PathLike], base: int, where: str, verify: bool
) -> Arrays:
    """base + files, the oldest first: the tensors that the last one has."""
    with _as_there():
        files = [job.open(path) for path in paths]
        infos = [job.info(file) for file in files]
        try:
            if verify:
                job.verify(files, base)
        except errors.Corrupt:
            _each_whole(paths)  # which is what is told first
            raise
        if not verify:
            _each_whole(paths)
        _check_tensors(infos, job.tensors(base), where)
        names = [row.name for row in infos[-1].rows]
        # What is stored without loss is a model of its own, of its own dtypes;
        # what comes after it is added up in float32 until the end.
        whole = max((i + 1 for i, info in enumerate(infos) if info.lossless), default=0)
        if whole:
            base = job.sum(base, files[:whole])
        if whole == len(files):
            return _arrays.exact(job, base, names)
        return _arrays.summed(job, base, files[whole:], names)


def _check_tensors(
    infos: Sequence[Info], base: Mapping[str, Tensor], where: str
) -> None:
    have = set(base)
    for info in infos:
        names = {row.name for row in info.rows}
        if not info.lossless:
            for name in sorted(names - have):
                raise _NoTensor(f"Tensor '{name}' not found in {where}.")
        have |= names


def _each_whole(paths: Sequence[PathLike]) -> None:
    for path in paths:
        _checksum(path)


def _told(paths: Sequence[PathLike], got: Arrays) -> Arrays:
    _log.info("loaded %s  (%d tensors)", Path(paths[-1]).name, len(got))
    return got


def _load_dict(paths: Sequence[PathLike], base: StateDict, verify: bool) -> Arrays:
    arrays = _arrays.arrays_of(base)
    for path in paths:
        _check_path(path)
    with Job() as job:
        model = job.model_of("base", arrays)
        return _told(paths, _load(job, paths, model, "base model", verify))


def _load_folder(paths: Sequence[PathLike], base: PathLike, verify: bool) -> Arrays:
    for path in paths:
        _check_path(path)
    with Job() as job:
        model = _folder(job, base)
        return _told(paths, _load(job, paths, model, os.fspath(base), verify))


def load_delta(path: PathLike, base: StateDict, verify: bool = True) -> Arrays:
    """The fine-tune that a .wdelta file and its base give.

    Args:
        base: tensors by name, those that the file was made against.
        verify: check that they are, and that the file is as it was written. The
            latter is checked anyway.

    Returns:
        float32 arrays by name, in the shapes of the base, not rounded to its
        dtypes. Of a lossless file: what was saved; bfloat16, float16 and float8
        as float32, which holds them; other dtypes as they are.

    Raises:
        ValueError: a damaged file, another base, a newer format.
        KeyError: base lacks a tensor.
        TypeError: a value that is no tensor.
        FileNotFoundError: no such file.
    """
    return _load_dict([path], base, verify)


def load_delta_from_paths(
    path: PathLike, base_dir: PathLike, verify: bool = True
) -> Arrays:
    """As `load_delta`, of a folder of safetensors (or a file).

    No more of the base is in memory than a tile a thread.
    """
    return _load_folder([path], base_dir, verify)


def load_delta_chain(
    delta_paths: Sequence[PathLike],
    base: PathLike | StateDict,
    verify: bool = True,
) -> Arrays:
    """What base and the files of a chain, the oldest first, give.

    Args:
        base: a folder of safetensors, a file, or tensors by name.
        verify: check each link against what is before it.

    Returns:
        As `load_delta`. Nothing but the last model is ever in memory.

    Raises:
        ValueError: no files; and as `load_delta`, for each link.
    """
    paths = list(delta_paths)
    if not paths:
        raise errors.Usage(
            "delta_paths is empty: at least one .wdelta file is needed"
        )
    if isinstance(base, (str, os.PathLike)):
        return _load_folder(paths, base, verify)
    return _load_dict(paths, base, verify)


def _verify(path: PathLike, base_dir: PathLike) -> None:
    """Reads a file and its base through, and a lossless one's result."""
    with Job() as job, _as_there():
        job.verify([job.open(path)], _folder(job, base_dir))


# ---- looking


def inspect(path: PathLike) -> dict[str, Any]:
    """What a .wdelta file tells of itself.

    Returns:
        {"path", "size_mb" (10^6 bytes, two decimals), "parent_hash", "strategy",
        "n_tensors", "tensors": {name: {"shape", "dtype"}}}. dtype is "float32",
        or the base's where the file has it (format version 2).

    Raises:
        ValueError: a damaged file, a newer format.
        FileNotFoundError: no such file.
    """
    _check_path(path)
    with Job() as job, _as_there():
        info = job.info(job.open(path))
    _checksum(path)
    return {
        "path": os.fspath(path),
        "size_mb": round(info.size / 1e6, 2),
        "parent_hash": info.parent_hash,
        "strategy": info.strategy,
        "n_tensors": len(info.rows),
        "tensors": {
            row.name: {"shape": list(row.shape), "dtype": row.dtype}
            for row in info.rows
        },
    }


def inspect_chain(delta_paths: Sequence[PathLike]) -> list[dict[str, Any]]:
    """`inspect` of each file, with its place in the list as "step", from 0.

    The links are not checked: `load_delta_chain` does.
    """
    return [dict(inspect(path), step=i) for i, path in enumerate(delta_paths)]


def hash_state_dict(state_dict: StateDict) -> str:
    """SHA-256 over each tensor's name and bytes, by name, 64 hex digits.

    Raises:
        TypeError: a value that is no tensor.
    """
    return _arrays.hash_of(_arrays.arrays_of(state_dict))


def __getattr__(name: str) -> Any:
    # transformers is imported when it is asked for.
    if name == "DeltaTensorsCallback":
        from .training import DeltaTensorsCallback

        return DeltaTensorsCallback
    raise AttributeError(f"module 'ballast.wdelta' has no attribute '{name}'")
