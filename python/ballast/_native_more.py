"""What probes, runners, serving and training have in common over `_native`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any

from ._native import (
    Operation,
    bal_id,
    call,
    create,
    encode,
    lib,
    path_bytes,
)

if TYPE_CHECKING:
    from .store import Store

PROBES_ESCAPES = 1  # bal_probes_flags
FINGERPRINT_PARTIAL = 1  # bal_fingerprint_flags
ASK_PARTIAL, ASK_REUSE, ASK_STREAM = 1, 2, 4  # bal_ask_flags
EXPORT_ADAPT = 1  # bal_export_flags
OUTCOMES = ("refused", "wrong", "fatal", "adapted", "noted")  # bal_outcome


class Record(dict[str, Any]):
    """A JSON object whose members are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Owned:
    """Something that the library made, freed when nobody refers to it."""

    def __init__(
        self, free: Callable[[c_void_p], object], function: Any, *args: Any
    ) -> None:
        """Of `function(out, *args, err)`."""
        self._free = free
        self.pointer = c_void_p()
        with Operation():
            self.pointer = c_void_p(create(function, *args))

    @property
    def _as_parameter_(self) -> c_void_p:
        return self.pointer

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._free(self.pointer)


@contextlib.contextmanager
def tenant_of(store: Store, name: str | None) -> Iterator[Owned]:
    """The tenant of that name (None: the store's own), open; the store stays
    open as long."""
    with store._used():
        tenant = Owned(
            lib.bal_tenant_free, lib.bal_tenant_open, store._pointer, encode(name)
        )
        yield tenant
        del tenant


def resolve(tenant: Owned, spec: str) -> bal_id:
    """The commit that a spec means. NotFound, Usage."""
    out = bal_id()
    call(lib.bal_resolve, byref(out), tenant, encode(spec))
    return out


def model_of(tenant: Owned, what: str | os.PathLike[str]) -> Owned:
    """A model by its path, or by a spec of the tenant's, as commands take it: a
    text with a '/' in it, or of which there is a file, is a path."""
    if not isinstance(what, str) or "/" in what or os.path.exists(what):
        return Owned(lib.bal_model_free, lib.bal_model_from_path, path_bytes(what))
    commit = resolve(tenant, what)
    return Owned(
        lib.bal_model_free, lib.bal_model_from_commit, tenant, byref(commit)
    )
