"""What changed from one model to another, as the library's document tells it."""

from __future__ import annotations

import copy
import json
import math
from ctypes import byref, c_double, c_void_p, pointer
from dataclasses import dataclass, field, fields
from typing import Any

from . import _html
from . import _native as native
from .commit import Rows
from .results import Record

__all__ = ["Diff", "DiffRow", "Group"]


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


@dataclass(frozen=True)
class Group(Record):
    """Tensors taken together: a layer ("12", "decoder 12"), a kind of module
    ("self_attn.q_proj"), or with ``layer`` a kind of module in a layer, "" for
    what is outside of layers.

    ``relative`` is |b - a| / |a| over all of them, inf where a change is in no
    number (added, removed, reshaped, not finite). ``tensors``, ``changed``:
    counts.
    """

    name: str
    tensors: int
    changed: int
    relative: float
    layer: str | None = None

    def __str__(self) -> str:
        where = f"{self.layer} {self.name}" if self.layer else self.name
        return (
            f"{self.relative:.4f}  {self.changed} of {self.tensors}  "
            f"{_html.printable(where)}"
        )


@dataclass(frozen=True, repr=False)
class Diff(Record):
    """What changed from a to b, in weights and in what they answer.

    ``rows`` has every tensor; ``changed`` those that changed, ``removed``,
    ``added``, ``reshaped``, ``dtype_changed`` and ``non_finite`` are names.
    ``relative_change`` is |b - a| / |a| over all, in 2-norms; inf where a change
    is in no number. ``layers``, ``modules`` and ``cells`` (kinds of modules in
    layers) are :class:`Group`\\ s. ``maps``, of two adapters, compares the maps
    that their factors make: a dict of ``relative_change``, ``cosine``,
    ``column_overlap``, ``row_overlap`` and ``modules``, or of ``not_compared``,
    the reason; None of anything else. ``probes``, where they were asked for, has
    a dict of ``id``, ``before``, ``after``, ``moved``, ``unsure``, ``similarity``
    and ``mean_kld`` for each that both answered.

    ``unobserved``: weights moved by more than ``threshold`` and no probe noticed.
    Without a common probe set ``probe_set`` is None. ``evidence`` is what noticed:
    "answers", "logprobs" or None. KL divergences (``mean_kld`` and its kin) are
    nats a token, None where no log-probabilities were recorded.

    ``repr`` is what the program prints, but for how probes were asked; a notebook
    shows a heat map of modules by
    layers and the tensors that changed most.
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
    kld_low: float | None = None
    kld_high: float | None = None
    p99_kld: float | None = None
    max_kld: float | None = None
    noise_kld: float | None = None
    kld_tokens: int | None = None
    same_top: float | None = None
    perplexity_ratio: float | None = None
    probes_unsure: int | None = None
    graded: int | None = None
    right_a: int | None = None
    right_b: int | None = None
    only_a: int | None = None
    only_b: int | None = None
    p_value: float | None = None
    layers: list[Group] = field(default_factory=list)
    modules: list[Group] = field(default_factory=list)
    cells: list[Group] = field(default_factory=list)
    maps: dict[str, Any] | None = None
    probes: list[dict[str, Any]] | None = None
    rows: list[DiffRow] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The members of the JSON document, as ``ballast diff --json`` has them."""
        return copy.deepcopy(self.document)

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
        only = [row for row in self.rows if row.change == "dtype_changed"]
        for count, what in (
            (len(self.reshaped), "reshaped"),
            (len(only), "in another dtype"),
            (len(self.non_finite), "not finite"),
        ):
            line += f", {count} {what}" if count else ""
        most = _html.printable(self.max_tensor or "-")
        lines = [
            line,
            f"  relative change: {self.relative_change:.4f} overall, "
            f"{self.max_tensor_change:.4f} in the most changed tensor ({most})",
        ]
        return [*lines, *self._answers(), *self._maps()]

    def _answers(self) -> list[str]:
        if self.probe_set is None:
            said = "  no fingerprints on both commits; behavioural effect unknown"
            return [said] if self.differs else []
        moved = f"  probes: {self.probes_changed} of {self.probes_total} moved"
        if self.probes_similarity is not None:
            moved += f" (similarity {self.probes_similarity:.2f})"
        lines = [moved]
        if self.probes_unsure:
            lines.append(
                f"  noise: {self.probes_unsure} probes answered in several ways "
                "when asked again"
            )
        lines += self._logprobs()
        if self.graded:
            lines.append(
                f"  right answers: {self.right_a} of {self.graded} before, "
                f"{self.right_b} after ({self.only_a} lost, {self.only_b} gained), "
                f"p = {_short_number(self.p_value)}"
            )
        return [*lines, *self._outcome()]

    def _logprobs(self) -> list[str]:
        if not self.kld_tokens:
            return []
        first = f"  KL divergence: {_short_number(self.mean_kld)} nats a token"
        if self.kld_low is not None:
            low, high = _short_number(self.kld_low), _short_number(self.kld_high)
            first += f" (95 %: {low} to {high})"
        first += f", 99th percentile {_short_number(self.p99_kld)}"
        second = f"  likeliest token the same: {100 * (self.same_top or 0):.2f} %"
        if self.perplexity_ratio is not None:
            second += f", perplexity x {self.perplexity_ratio:.4f}"
        noise = "noise not measured (fingerprint --repeat 2)"
        if self.noise_kld is not None:
            noise = f"noise {_short_number(self.noise_kld)} nats a token"
        return [f"{first}, {self.kld_tokens} tokens", f"{second}, {noise}"]

    def _outcome(self) -> list[str]:
        most = max(self.relative_change, self.max_tensor_change)
        parts = self.added or self.removed or self.reshaped
        moved = bool(parts) or most > self.threshold
        if self.unobserved:
            return ["  UNOBSERVED CHANGE: weights moved, no probe detected it"]
        if moved and not self.probes_changed:
            said = "seen by log-probabilities alone: weights moved, no answer did"
            return [f"  {said}"]
        if not self.differs and self.probes_changed:
            said = "no weight differs: the runner does not answer the same twice"
            return [f"  {said}"]
        return []

    def _maps(self) -> list[str]:
        if self.maps is None:
            return []
        if "not_compared" in self.maps:
            why = _html.printable(self.maps["not_compared"])
            return [f"  not compared as maps: {why}"]
        line = f"  as maps: relative change {_number(self.maps['relative_change'])}"
        if self.maps["cosine"] is not None:
            line += f", cosine {self.maps['cosine']:.4f}"
        if self.maps["column_overlap"] is not None:
            line += (
                f", column spaces overlap {self.maps['column_overlap']:.4f}, "
                f"row spaces {self.maps['row_overlap']:.4f}"
            )
        return [line]

    def _repr_html_(self) -> str:
        lines = [line.strip() for line in self._lines()]
        if self.unobserved:
            lines = [line for line in lines if not line.startswith("UNOBSERVED")]
        parts = [
            f"<div><code>{_html.escaped(_short(self.a))}</code> → "
            f"<code>{_html.escaped(_short(self.b))}</code></div>",
            *(f"<div>{_html.escaped(line)}</div>" for line in lines),
        ]
        if self.unobserved:
            said = "UNOBSERVED CHANGE: weights moved, no probe detected it"
            parts.append(f"<div>{_html.badge('bad', said)}</div>")
        if self.cells and self.differs:
            cells = [
                _html.Cell(g.layer or "", g.name, g.relative, g.tensors, g.changed)
                for g in self.cells
            ]
            names = [group.name for group in self.layers]
            parts.append(f"<div>&nbsp;</div>{_html.heat_map(names, cells)}")
        return "".join([*parts, *self._tables()])

    def _tables(self) -> list[str]:
        parts = []
        most = sorted(self.changed, key=lambda row: (row.finite, -row.relative))
        if most:
            head = ("tensor", "relative", "max_abs")
            rows = [[getattr(row, name) for name in head] for row in most]
            title = f"tensors that changed, the most first: {len(rows):,}"
            parts.append(_html.details(title, _html.table(head, rows)))
        others = [row for row in self.rows if row.change not in ("changed", "unchanged")]
        if others:
            pairs = [(row.tensor, row.change.replace("_", " ")) for row in others]
            title = f"added, removed, reshaped, in another dtype: {len(pairs):,}"
            parts.append(_html.details(title, _html.table(("tensor", ""), pairs)))
        modules = (self.maps or {}).get("modules")
        if modules:
            names = ["module", "rank_a", "rank_b", "norm_a", "norm_b", "difference"]
            names += ["cosine", "column_overlap", "row_overlap"]
            rows = [[row[name] for name in names] for row in modules]
            inside = _html.table(names, rows)
            parts.append(_html.details("as maps, by module", inside))
        if self.probes:
            names = ["id", "before", "after", "moved", "similarity", "mean_kld"]
            rows = [[row[name] for name in names] for row in self.probes]
            parts.append(_html.details("probes", _html.table(names, rows)))
        return parts


def _short(name: str) -> str:
    return name[:12] if _html.is_id(name) else _html.printable(name)


def _number(of: float | None) -> str:
    return f"{math.inf if of is None else of:.4f}"


def _short_number(of: float | None) -> str:
    return f"{_or_inf(of):.4g}"


def _row(given: Any) -> DiffRow:
    row = given.contents
    change = native.BAL_CHANGES[row.change]
    return DiffRow(
        native.decode(row.name),
        change,
        row.relative,
        row.max_abs,
        row.finite,
        row.dtype_changed or change == "dtype_changed",
    )


def _groups(rows: list[dict[str, Any]]) -> Rows:
    """JSON has no infinity: what is null was that."""
    made = [
        Group(**{**row, "relative": _or_inf(row["relative"])}) for row in rows
    ]
    return Rows(made, ("name", "tensors", "changed", "relative"))


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value


def compare(
    a: Any,
    b: Any,
    *,
    work: int,
    tenant: int,
    probe_set: str | None,
    threshold: float,
    probes: bool,
    progress: native.Progress | None,
) -> Diff:
    """The diff of two models, each with ``model``, ``text`` and ``commit``."""
    rows: list[DiffRow] = []
    operation = native.Operation(progress)

    def each(_ctx: int | None, given: Any) -> int:
        return operation.carry(lambda: rows.append(_row(given)))

    told = native.bal_diff_fn(each)
    options = native.bal_diff_options(
        tenant=tenant,
        probe_set=native.encode(probe_set),
        threshold=pointer(c_double(threshold)),
        flags=native.BAL_DIFF_CELLS | (native.BAL_DIFF_PROBES if probes else 0),
        work=work,
        fn=told,
    )
    for i, side in enumerate((a, b)):
        options.names[i] = native.path_bytes(side.text)
        if side.commit is not None:
            options.commits[i] = pointer(side.commit)
    pointers = (c_void_p(a.model.pointer), c_void_p(b.model.pointer))
    with operation:
        text = native.text_of(native.lib.bal_diff_json, *pointers, byref(options))
    return _diff_of(json.loads(text), rows)


def _diff_of(document: dict[str, Any], rows: list[DiffRow]) -> Diff:
    del document["schema"]
    cells = document.pop("cells")
    known = {row.name for row in fields(Diff)}
    members = {name: of for name, of in document.items() if name in known}
    for name in ("relative_change", "max_tensor_change"):
        members[name] = _or_inf(members[name])
    for name in ("layers", "modules"):
        members[name] = _groups(members[name])
    changed = [row for row in rows if row.change == "changed"]
    members["changed"] = Rows(changed, ("tensor", "relative", "max_abs"))
    return Diff(
        **members,
        cells=_groups(cells),
        rows=Rows(rows, ("tensor", "change", "relative", "max_abs")),
        document=document,
    )
