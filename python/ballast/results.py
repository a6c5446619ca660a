"""What operations return: plain data, valid after the store is closed.

Each has the members of the JSON document that ``ballast COMMAND --json`` prints as
attributes, ``to_dict()`` gives the document. Sizes are bytes.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from . import _html

__all__ = [
    "Checked",
    "Collected",
    "Grant",
    "Move",
    "Problem",
    "Proof",
    "Revoked",
    "Stats",
    "Transferred",
    "Written",
]


def rfc3339(nanoseconds: int) -> str:
    """A time since 1970 as text, UTC, with nanoseconds."""
    seconds, rest = divmod(nanoseconds, 10**9)
    at = datetime.fromtimestamp(seconds, timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def _json(value: Any) -> Any:
    """JSON has no NaN: what is not finite is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return value


class Record:
    """A result: its dataclass's fields are the document's members."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON document's members."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        members = {row.name: getattr(self, row.name) for row in fields}
        return {
            name: _json(
                [item.to_dict() if isinstance(item, Record) else item for item in value]
                if isinstance(value, list)
                else value
            )
            for name, value in members.items()
        }

    def _repr_html_(self) -> str:
        return _html.block(type(self).__name__, self.to_dict())


@dataclass(frozen=True)
class Written(Record):
    """A folder that was written. ``exact``: every tensor is the recorded model's,
    bit for bit. ``report``: what resolving a view found (residuals), or {}."""

    out: str
    commit: str
    tensors: int
    bytes: int
    exact: bool
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Move(Record):
    """One move of a ref; ``n`` 0 is the newest. ``old``, ``new``: ids or None."""

    ref: str
    n: int
    op: str
    old: str | None
    new: str | None
    at: str
    message: str

    def __str__(self) -> str:
        old, new = (self.old or "0" * 12)[:12], (self.new or "0" * 12)[:12]
        message = _html.printable(self.message)
        return f"{self.ref}@{{{self.n}}}  {self.op}  {old} -> {new}  {message}"


@dataclass(frozen=True)
class Transferred(Record):
    """What :meth:`Store.push` or :meth:`Store.pull` sent. ``bytes``: of the blocks,
    decoded; ``stored_bytes``: as stored where they went. ``refs``: those that moved,
    as ``{"ref", "old", "new"}``, ``old`` None of a new one."""

    commits: int
    blocks: int
    reused_blocks: int
    bytes: int
    stored_bytes: int
    refs: list[dict[str, str | None]]


@dataclass(frozen=True)
class Grant(Record):
    """One manifest that another tenant may build views over. ``revoked_at`` is
    None while it is live."""

    owner: str
    manifest: str
    commit: str
    grantee: str
    created_at: str
    revoked_at: str | None

    @property
    def live(self) -> bool:
        """True until it is revoked."""
        return self.revoked_at is None

    def __str__(self) -> str:
        word = "live" if self.live else "revoked"
        return f"{word}  {self.owner}:{self.manifest[:12]} -> {self.grantee}"


@dataclass(frozen=True)
class Revoked(Record):
    """How many grants were taken back; which views ("tenant:commit") of the two
    tenants can no longer resolve."""

    revoked: int
    broken: list[str]


@dataclass(frozen=True)
class Problem(Record):
    """What a check found: its kind ("corrupt-block"), where, and more words."""

    kind: str
    what: str
    detail: str

    def __str__(self) -> str:
        text = f"{self.kind}  {self.what}  {self.detail}".rstrip()
        return _html.printable(text)


@dataclass(frozen=True)
class Checked(Record):
    """What :meth:`Store.fsck` found. True as a truth value where all is well;
    ``expected`` (a view that lost an input by forget) is no problem."""

    ok: bool
    checked: dict[str, int]
    problems: list[Problem]
    expected: list[Problem]

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        word = _html.badge(*(("good", "ok") if self.ok else ("bad", "problems")))
        shown = _html.block(f"fsck {word}", self.checked)
        for title, found in (("problems", self.problems), ("expected", self.expected)):
            rows = [(row.kind, row.what, row.detail) for row in found]
            if rows:
                shown += f"<div>{title}</div>"
                shown += _html.table(("kind", "what", "detail"), rows)
        return shown


@dataclass(frozen=True)
class Collected(Record):
    """What :meth:`Store.gc` removed: bytes at rest, and blocks."""

    bytes_freed: int
    blocks: int


@dataclass(frozen=True)
class Copied(Record):
    """What :meth:`Store.copy` copied: blocks, their bytes at rest, blocks that were
    there from an earlier try, and rows of the database."""

    blocks: int
    bytes: int
    present: int
    rows: int


@dataclass(frozen=True)
class Stats(Record):
    """Counts and bytes: of every commit as if stored whole (logical), of every
    block decoded (unique), and as stored."""

    commits: int
    manifests: int
    blocks: int
    logical_bytes: int
    unique_bytes: int
    stored_bytes: int
    dedup_ratio: float
    compression_ratio: float


@dataclass(frozen=True, repr=False)
class Proof(Record):
    """A proof of deletion, with what verifying it found.

    True as a truth value where it is ``verified``. ``statement`` and ``envelope``
    are JSON documents (the in-toto statement, DSSE). Of a dry run the attestation
    is "", ``statement`` the plan, and ``verified`` False.
    """

    attestation: str
    signed: bool
    key_id: str | None
    statement: dict[str, Any] | None
    envelope: dict[str, Any] | None
    log_index: int
    commits: int
    manifests: int
    blocks: int
    bytes_freed: int
    retained: list[dict[str, str]]
    broken_views: list[str]
    revoked_grants: int
    verified: bool
    problems: list[str]
    notes: list[str] = field(default_factory=list)
    tenant: str = ""
    reason: str = ""
    dry_run: bool = False

    def __bool__(self) -> bool:
        return self.verified

    def to_dict(self) -> dict[str, Any]:
        """The JSON document's members."""
        document = super().to_dict()
        for name in ("tenant", "reason", "dry_run"):
            del document[name]
        return document

    def __repr__(self) -> str:
        lines = [
            f"tenant '{self.tenant}': {self.commits} commits, {self.manifests} "
            f"manifests, {self.blocks} blocks, {self.bytes_freed:,} bytes"
        ]
        if self.dry_run:
            return "\n".join([*lines, "dry run: nothing was removed"])
        word = "signed" if self.signed else "unsigned"
        lines.append(f"attestation {self.attestation}  ({word})")
        if self.broken_views:
            views = " ".join(_short_view(view) for view in self.broken_views)
            lines.append(
                f"{len(self.broken_views)} composite(s) now reference a deleted "
                f"input and will refuse to resolve: {views}"
            )
        lines += [f"PROBLEM: {_html.printable(text)}" for text in self.problems]
        lines += [f"note: {_html.printable(text)}" for text in self.notes]
        return "\n".join([*lines, *(["verified"] if self.verified else [])])

    def _repr_html_(self) -> str:
        kind, word = "good", "verified"
        if self.dry_run:
            kind, word = "plain", "dry run: nothing was removed"
        elif not self.verified:
            kind, word = "bad", "not verified"
        names = ["tenant", "reason", "attestation", "signed", "key_id", "log_index"]
        names += ("commits", "manifests", "blocks", "bytes_freed", "revoked_grants")
        members = {name: getattr(self, name) for name in names}
        members["broken_views"] = [_short_view(view) for view in self.broken_views]
        if self.dry_run:
            for name in ("attestation", "signed", "key_id", "log_index"):
                del members[name]
        shown = _html.block(f"Proof of deletion {_html.badge(kind, word)}", members)
        for title, texts in (("PROBLEM", self.problems), ("note", self.notes)):
            for text in texts:
                shown += f"<div>{title}: {_html.escaped(text)}</div>"
        if self.retained:
            rows = [(row["id"], row["why"]) for row in self.retained]
            title = f"retained: {len(rows):,}"
            shown += _html.details(title, _html.table(("id", "why"), rows))
        if self.statement is not None:
            text = json.dumps(self.statement, indent=2, ensure_ascii=False)
            inside = f"<pre>{_html.escaped(text, lines=True)}</pre>"
            title = "plan" if self.dry_run else "statement"
            shown += _html.details(title, inside)
        return shown


def _short_view(view: str) -> str:
    tenant, _, commit = view.partition(":")
    return f"{tenant}:{commit[:12]}"
