"""ballast: version control for what a model has learned.

    >>> store = ballast.Store("./store")
    >>> commit = store.commit("acme", tensors, config=config, message="support")
    >>> store.checkout("acme", "main")["lm_head.weight"]

See :class:`Store`. Importing this needs neither numpy nor torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _native, errors
from .commit import Commit, TensorInfo
from .comparing import Diff
from .errors import (
    Busy,
    Cancelled,
    Conflict,
    Corrupt,
    Denied,
    Error,
    IOFailure,
    NotFound,
    Unsupported,
    Usage,
)
from .results import Grant, Proof
from .store import Store
from .tensors import Checkout

if TYPE_CHECKING:
    from . import peft, probes, runners, serving, training, wdelta
    from .fingerprinting import fingerprint
    from .peft import load_adapter, save_adapter
    from .probes import ProbeSet

__version__ = _native.decode(_native.lib.bal_version())

_LATER = {
    "ProbeSet": "probes",
    "fingerprint": "fingerprinting",
    "load_adapter": "peft",
    "save_adapter": "peft",
}
_MODULES = ("peft", "probes", "runners", "serving", "training", "wdelta")

__all__ = [
    "Busy",
    "Cancelled",
    "Checkout",
    "Commit",
    "Conflict",
    "Corrupt",
    "Denied",
    "Diff",
    "Error",
    "Grant",
    "IOFailure",
    "NotFound",
    "ProbeSet",
    "Proof",
    "Store",
    "TensorInfo",
    "Unsupported",
    "Usage",
    "errors",
    "fingerprint",
    "load_adapter",
    "peft",
    "probes",
    "runners",
    "save_adapter",
    "serving",
    "training",
    "version",
    "wdelta",
]


def version() -> str:
    """The library's version, "0.1.0"."""
    return __version__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Submodules, and what they export, when they are asked for."""
        module = name if name in _MODULES else _LATER.get(name)
        if module is None:
            raise AttributeError(f"module 'ballast' has no attribute '{name}'")
        found = importlib.import_module(f"ballast.{module}")
        return found if name in _MODULES else getattr(found, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
