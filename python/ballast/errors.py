"""What can go wrong: one class for each code word of the library.

Every class is an :class:`Error` and also the built-in exception that fits, so
that ``except LookupError`` catches a commit that is not there. ``str(error)`` is
the library's one line of text, ``error.hint`` what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "Busy",
    "Cancelled",
    "Conflict",
    "Corrupt",
    "Denied",
    "Error",
    "IOFailure",
    "NotFound",
    "Unsupported",
    "Usage",
]


class Error(Exception):
    """Something that the library refused or could not do.

    ``code`` is the word of ``--json`` ("not-found"), ``exit`` the status that the
    program ends with for it, ``hint`` a line on what to do, or "".
    """

    code: str = "io"
    exit: int = 7
    hint: str = ""

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        exit: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if exit is not None:
            self.exit = exit
        self.hint = hint

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Callable[..., Error], tuple[object, ...]]:
        return _again, (type(self), str(self), self.code, self.exit, self.hint)


def _again(kind: type[Error], text: str, code: str, exit: int, hint: str) -> Error:
    return kind(text, code=code, exit=exit, hint=hint)


class Usage(Error, ValueError):
    """Arguments, names, parameters, or a recipe that asks for the impossible."""

    code = "usage"
    exit = 2


class NotFound(Error, LookupError):
    """No such store, spec, tensor, proof or file."""

    code = "not-found"
    exit = 3


class Denied(Error, PermissionError):
    """No grant. Its text is that of :class:`NotFound`: what may not be read does
    not exist."""

    code = "denied"
    exit = 3


class Conflict(Error, RuntimeError):
    """A ref moved meanwhile, the target exists, or a store has other settings."""

    code = "conflict"
    exit = 5


class Corrupt(Error, ValueError):
    """Bytes do not match their hash, or a file is malformed."""

    code = "corrupt"
    exit = 6


class IOFailure(Error, OSError):
    """Disk, network, permission, database, or memory."""

    code = "io"
    exit = 7


class Busy(Error, TimeoutError):
    """A lock was not free in time."""

    code = "busy"
    exit = 8


class Unsupported(Error, NotImplementedError):
    """Understood, but cannot be done: a view that lost an input, a newer format."""

    code = "unsupported"
    exit = 9


class Cancelled(Error, InterruptedError):
    """A ``progress`` function returned False; the store is as it was before."""

    code = "cancelled"
    exit = 130
