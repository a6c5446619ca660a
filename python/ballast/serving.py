"""Adapters as folders that engines load."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from ctypes import byref
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._native import (
    bal_export_options,
    bal_exported_fn,
    bal_preflight_fn,
    bal_serving_options,
    decode,
    encode,
    hex_id,
    lib,
    maybe,
    path_bytes,
    walk,
)
from ._native_more import EXPORT_ADAPT, OUTCOMES, Record
from .commit import Commit
from .errors import Error

if TYPE_CHECKING:
    from .store import Source, Spec, Store, _Scope

__all__ = ["Exported", "Exports", "export", "lora_request"]


class Exported(Record):
    """One folder: the members that `ballast serve-export --json` has."""

    name: str
    """That a server is to know it by; never the same for two contents."""
    int_id: int
    """From 1 to 2^31 - 1."""
    path: str
    """Of the folder, absolute."""
    tenant: str
    ref: str | None
    """None: it was not asked for by a ref."""
    commit: str
    """64 hex digits."""
    manifest: str
    """64 hex digits."""
    base_model: str | None
    rank: int
    """The highest of its modules."""
    reused: bool
    """It was there, and was verified."""


class Exports(list[Exported]):
    """What was exported; `skipped` tells of the rest."""

    skipped: dict[str, str]
    """Ref -> why it was not exported: no adapter, a view that lost an input, or
    what the engine would refuse or misapply."""
    notes: list[dict[str, str]]
    """Rules that were met: `{"spec", "rule", "outcome", "engine", "where",
    "text"}`, outcome being refused, wrong, fatal, adapted or noted."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped = {}
        self.notes = []


# Code words of what is so of the store or the disk and not of one ref.
_GENERAL = ("io", "busy", "cancelled")


def export(
    store: Store,
    tenant: str | None = None,
    *,
    out: str | os.PathLike[str],
    specs: Spec | Iterable[Spec] | None = None,
    engine: str | None = None,
    base: Source | None = None,
    adapt: bool = False,
    max_rank: int | None = None,
) -> Exports:
    """Write adapter commits as `out/<tenant>/<commit>`, complete or not at all.

    specs: which; None: every ref, by name. engine: vllm, sglang, llama.cpp or
    peft, which is not given what it would refuse or misapply. base: the model
    that it serves, a folder or spec, for names and shapes. adapt: rewrite what
    the engine needs in another form, without changing the maths. max_rank: that
    it was started with.

    Returns a list of `Exported`. Where all refs were asked for, its `skipped`
    names those that were not exported, and why; a spec that was named and cannot
    be raises: NotFound, Unsupported (no adapter, a rule of the engine's, a view
    that lost an input), Conflict (another thing is there), Corrupt (what is there
    was changed). Usage: no such engine; llama.cpp without a base. IOFailure.
    """
    if engine is None and (adapt or base is not None or max_rank is not None):
        raise ValueError("base, max_rank and adapt go with an engine")
    if max_rank is not None and max_rank < 1:
        raise ValueError("max_rank: a rank is at least 1")
    made = Exports()
    if specs is None:
        asked = sorted(store.refs(tenant))
    else:
        named = [specs] if isinstance(specs, (str, Commit)) else specs
        asked = [spec.id if isinstance(spec, Commit) else spec for spec in named]
    with store.scope(tenant) as scope, contextlib.ExitStack() as stack:
        model = None if base is None else store._named(scope, base, stack).model
        options = bal_export_options(
            dir=path_bytes(out),
            serve=bal_serving_options(
                engine=encode(engine),
                base=model.pointer if model else None,
                max_rank=max_rank or 0,
            ),
            flags=EXPORT_ADAPT if adapt else 0,
        )
        for spec in dict.fromkeys(asked):
            try:
                _one(made, scope, spec, options)
            except Error as error:
                if specs is not None or error.code in _GENERAL:
                    raise
                made.skipped[spec] = str(error)
    return made


def _one(made: Exports, scope: _Scope, spec: str, options: Any) -> None:
    def rule(_ctx: int | None, row: Any) -> int:
        said = row.contents
        made.notes.append(
            {
                "spec": spec,
                "rule": decode(said.rule),
                "outcome": OUTCOMES[said.outcome],
                "engine": decode(said.engine),
                "where": decode(said.where),
                "text": decode(said.text),
            }
        )
        return 0

    def done(row: Any) -> None:
        said = row.contents
        made.append(
            Exported(
                name=decode(said.name),
                int_id=said.int_id,
                path=os.fsdecode(said.path),
                tenant=decode(said.tenant),
                ref=maybe(said.ref),
                commit=hex_id(said.commit),
                manifest=hex_id(said.manifest),
                base_model=maybe(said.base_model),
                rank=said.rank,
                reused=said.reused,
            )
        )

    told = bal_preflight_fn(rule)
    options.told = told
    walk(
        bal_exported_fn,
        done,
        lib.bal_export,
        scope.tenant,
        encode(spec),
        byref(options),
    )
    del told


def lora_request(item: Mapping[str, Any]) -> Any:
    """An `Exported` as a `vllm.lora.request.LoRARequest`. ImportError: no vLLM."""
    request: Any = import_module("vllm.lora.request")
    return request.LoRARequest(
        lora_name=item["name"],
        lora_int_id=item["int_id"],
        lora_path=item["path"],
    )
