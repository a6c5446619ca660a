"""What probes, runners and serving have in common over `_native`."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_void_p
from typing import Any

from ._native import Operation, create

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
