"""How far a call into C is, told to who asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _native as native


@contextlib.contextmanager
def working(progress: Any) -> Iterator[native.Operation]:
    """An operation; progress may be a function, True (tqdm, if it is there)."""
    with contextlib.ExitStack() as stack:
        if progress is True:
            progress = bar(stack)
        elif progress is False:
            progress = None
        yield stack.enter_context(native.Operation(progress))


def bar(stack: contextlib.ExitStack) -> native.Progress | None:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    shown = stack.enter_context(tqdm(unit="B", unit_scale=True, leave=False))

    def tell(done: int, total: int) -> None:
        shown.total = total or None
        shown.n = done
        shown.refresh()

    return tell
