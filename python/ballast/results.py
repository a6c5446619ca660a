"""What operations return: plain data, valid after the store is closed.

Each has the members of the JSON document that ``ballast COMMAND --json`` prints as
attributes, ``to_dict()`` gives the document. Sizes are bytes.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .commit import table

__all__ = [
    "Checked",
    "Collected",
    "Diff",
    "DiffRow",
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
        return table(("", ""), self.to_dict().items())


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
        return f"{self.ref}@{{{self.n}}}  {self.op}  {old} -> {new}  {self.message}"


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
        return f"{self.kind}  {self.what}  {self.detail}".rstrip()


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


@dataclass(frozen=True)
class Collected(Record):
    """What :meth:`Store.gc` removed: bytes at rest, and blocks."""

    bytes_freed: int
    blocks: int


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


@dataclass(frozen=True)
class DiffRow(Record):
    """One tensor. ``change``: changed, unchanged, added, removed, reshaped or
    dtype_changed. ``relative`` is |b - a| / |a| in 2-norms (inf if |a| is 0, NaN
    if a difference is), ``max_abs`` the largest difference of an element."""

    tensor: str
    change: str
    relative: float
    max_abs: float
    finite: bool
    dtype_changed: bool


@dataclass(frozen=True, repr=False)
class Diff(Record):
    """What changed from a to b, in weights and in what they answer.

    ``rows`` has every tensor; ``changed`` those that changed, ``removed``,
    ``added``, ``reshaped``, ``dtype_changed`` and ``non_finite`` are names.
    ``relative_change`` is |b - a| / |a| over all. ``unobserved``: weights moved by
    more than ``threshold`` and no probe noticed. Without a common probe set
    ``probe_set`` is None. ``repr`` is what the program prints.
    """

    a: str
    b: str
    shared: int
    changed: list[DiffRow]
    removed: list[str]
    added: list[str]
    reshaped: list[str]
    dtype_changed: list[str]
    relative_change: float
    max_tensor_change: float
    max_tensor: str | None
    non_finite: list[str]
    threshold: float
    probe_set: str | None
    probes_total: int
    probes_changed: int
    probes_similarity: float | None
    unobserved: bool
    evidence: str | None
    mean_kld: float | None = None
    p_value: float | None = None
    rows: list[DiffRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document's members."""
        document = super().to_dict()
        del document["rows"]
        for name in ("mean_kld", "p_value"):
            if getattr(self, name) is None:
                del document[name]
        names = ("tensor", "relative", "max_abs")
        document["changed"] = [
            {name: row[name] for name in names} for row in document["changed"]
        ]
        return document

    @property
    def differs(self) -> bool:
        """True if any tensor is not the same."""
        return any(row.change != "unchanged" for row in self.rows)

    def __repr__(self) -> str:
        return "\n".join((f"{_short(self.a)} -> {_short(self.b)}", *self._lines()))

    def _lines(self) -> list[str]:
        line = (
            f"  tensors: {len(self.changed)} changed of {self.shared} shared, "
            f"{len(self.removed)} removed, {len(self.added)} added"
        )
        only = [r for r in self.rows if r.change == "dtype_changed"]
        for count, what in (
            (len(self.reshaped), "reshaped"),
            (len(only), "in another dtype"),
            (len(self.non_finite), "not finite"),
        ):
            line += f", {count} {what}" if count else ""
        lines = [
            line,
            f"  relative change: {self.relative_change:.4f} overall, "
            f"{self.max_tensor_change:.4f} in the most changed tensor "
            f"({self.max_tensor or '-'})",
        ]
        if self.probe_set is not None:
            moved = f"  probes: {self.probes_changed} of {self.probes_total} moved"
            if self.probes_similarity is not None:
                moved += f" (similarity {self.probes_similarity:.2f})"
            lines.append(moved)
            if self.mean_kld is not None:
                lines.append(f"  KL divergence: {self.mean_kld:.4g} nats a token")
        elif self.differs:
            lines.append(
                "  no fingerprints on both commits; behavioural effect unknown"
            )
        if self.unobserved:
            lines.append(
                "  UNOBSERVED CHANGE: weights moved, no probe detected it"
            )
        return lines

    def _repr_html_(self) -> str:
        most = sorted(self.changed, key=lambda row: -row.relative)[:50]
        finite = [row.relative for row in most if math.isfinite(row.relative)]
        top = max(finite, default=0)
        lines = []
        for row in most:
            share = row.relative / top if top and math.isfinite(row.relative) else 1
            lines.append(
                f'<tr style="background:rgba(220,60,40,{0.6 * share:.3f})">'
                f"<td>{_escape(row.tensor)}</td><td>{row.relative:.4g}</td>"
                f"<td>{row.max_abs:.4g}</td></tr>"
            )
        return (
            f"<pre>{_escape(repr(self))}</pre><table><thead><tr><th>tensor</th>"
            "<th>relative</th><th>max_abs</th></tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )


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
        lines += [f"PROBLEM: {text}" for text in self.problems]
        lines += [f"note: {text}" for text in self.notes]
        return "\n".join([*lines, *(["verified"] if self.verified else [])])


def _short(name: str) -> str:
    is_id = len(name) == 64 and not set(name) - set("0123456789abcdef")
    return name[:12] if is_id else name


def _short_view(view: str) -> str:
    tenant, _, commit = view.partition(":")
    return f"{tenant}:{commit[:12]}"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
