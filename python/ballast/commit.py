"""A commit, as the library tells of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex, overload

from . import _html

__all__ = ["Commit", "Rows", "TensorInfo"]


@dataclass(frozen=True)
class TensorInfo:
    """What is known of a tensor without reading it. ``shape`` is in elements,
    ``bytes`` what it takes; ``dtype`` is named as in safetensors ("BF16")."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int


class Commit:
    """A commit object: plain data, valid after the store is closed.

    Every member of the JSON that ``ballast --json`` prints is an attribute:
    ``id``, ``tenant``, ``manifest``, ``parent`` (None for a first one), ``kind``
    ("adapter", "delta", "weights", "view"), ``message``, ``author``,
    ``created_at`` (RFC 3339, UTC, nanoseconds), ``base_model``, ``metadata``,
    ``int_id``, and ``recipe`` of a view. One that was just made also has ``ref``
    and what was counted: ``tensors``, ``bytes``, ``stored_bytes``,
    ``new_blocks``, ``reused_blocks``; a delta ``changed``, ``unchanged``,
    ``added``, ``removed``, ``reshaped``. ``nothing_changed`` is True where none
    was made because the ref's head is the same.

    It may stand wherever a spec is asked for. Two are equal if their ids are.
    """

    id: str
    tenant: str
    manifest: str
    parent: str | None
    kind: str
    message: str
    author: str
    created_at: str
    base_model: str | None
    metadata: dict[str, Any]
    int_id: int
    recipe: dict[str, Any] | None = None
    ref: str | None = None
    tensors: Any = None
    bytes: int | None = None
    stored_bytes: int | None = None
    new_blocks: int | None = None
    reused_blocks: int | None = None
    changed: int | None = None
    unchanged: int | None = None
    added: int | None = None
    removed: int | None = None
    reshaped: int | None = None
    anchor: str | None = None
    residual: dict[str, Any] | None = None
    nothing_changed: bool = False

    def __init__(self, text: str, more: Mapping[str, Any] | None = None) -> None:
        self._document: dict[str, Any] = json.loads(text)
        self._document.update(more or {})
        self.__dict__.update(self._document)

    @property
    def json(self) -> str:
        """The JSON document, compact."""
        document = self.to_dict()
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document's members."""
        document = dict(self._document)
        if isinstance(document.get("tensors"), list):
            document["tensors"] = [
                {**vars(row), "shape": list(row.shape)} for row in document["tensors"]
            ]
        return document

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Commit):
            return NotImplemented
        return self.id == other.id and self.tenant == other.tenant

    def __hash__(self) -> int:
        return hash((self.tenant, self.id))

    def __str__(self) -> str:
        return f"{self.id[:12]}  {self.kind}  {first_line(self.message)}"

    def __repr__(self) -> str:
        ref = f" {self.ref}" if self.ref else ""
        return (
            f"<Commit {self.tenant}:{self.id[:12]}{ref} {self.kind} "
            f"{first_line(self.message)!r}>"
        )

    def _repr_html_(self) -> str:
        names = ["id", "ref", "parent", "kind", "message", "author", "created_at"]
        names += ["base_model", "metadata", "anchor", "tensors", "bytes"]
        names += ["stored_bytes", "new_blocks", "reused_blocks", "changed"]
        names += ["unchanged", "added", "removed", "reshaped", "residual"]
        members = {
            name: of
            for name in names
            if (of := getattr(self, name)) not in (None, {}) and name != "tensors"
        }
        listed = self.tensors if isinstance(self.tensors, list) else None
        if self.tensors is not None:
            members["tensors"] = self.tensors if listed is None else len(listed)
        if self.recipe is not None:
            members["method"] = self.recipe.get("method")
            members["inputs"] = [_input(row) for row in self.recipe.get("inputs", [])]
            members["parameters"] = self.recipe.get("parameters")
        title = f"Commit of {_html.escaped(self.tenant)}"
        if self.nothing_changed:
            title += f" {_html.badge('plain', 'nothing changed')}"
        shown = _html.block(title, members)
        if listed:
            rows = Rows(listed, ("name", "dtype", "shape", "bytes"))
            shown += _html.details(f"tensors: {len(rows):,}", rows._repr_html_())
        return shown


def _input(row: Mapping[str, Any]) -> str:
    weight = "" if row.get("weight") is None else f" × {row['weight']}"
    of = row.get("commit") or row.get("manifest") or ""
    return f"{row.get('tenant', '')}:{of[:12]}{weight}"


class Rows(list[Any]):
    """A list that shows itself as lines, and as a table in a notebook; so does a
    slice of it."""

    columns: tuple[str, ...] = ()

    def __init__(self, rows: Iterable[Any] = (), columns: Iterable[str] = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)

    @overload
    def __getitem__(self, at: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        found = super().__getitem__(at)
        return Rows(found, self.columns) if isinstance(at, slice) else found

    def __repr__(self) -> str:
        return "[" + ",\n ".join(str(row) for row in self) + "]"

    def _repr_html_(self) -> str:
        rows = [[_cell(row, name) for name in self.columns] for row in self]
        return _html.table(self.columns, rows)


def _cell(row: Any, name: str) -> Any:
    of = getattr(row, name)
    return first_line(of) if name == "message" else of


def first_line(text: str) -> str:
    """The first line of a message, 72 characters at most, without what could move
    other text about."""
    lines = text.splitlines()
    line = _html.printable(lines[0] if lines else "")
    return line if len(line) <= 72 else line[:71] + "…"
