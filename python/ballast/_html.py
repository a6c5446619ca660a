"""How results show themselves in a notebook.

HTML whose styles stand in the elements: a notebook's own page is left alone, and
what is not trusted, whose sheets are dropped, can still be read. Ink is the
page's own, dark or light; where a ground is coloured, its ink is chosen with it.
Every text of a file, a name or a message is made printable and escaped.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Cell", "badge", "block", "details", "heat_map", "printable", "table"]

# What could move text about, or make it read other than it is: written out, as
# the program does.
_HIDDEN = (
    *((0x80, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F)),
    *((0x2028, 0x2029), (0x202A, 0x202E), (0x2066, 0x2069)),
)
_ROWS = 200
_MONO = "font-family:monospace"
_LINE = "1px solid rgba(128,128,128,.35)"
_FAINT = "opacity:.65"


def _safe(c: str, lines: bool) -> str:
    point = ord(c)
    if c == "\n" and lines:
        return c
    if point < 0x20 or point == 0x7F:
        return f"\\x{point:02x}"
    if any(first <= point <= last for first, last in _HIDDEN):
        return f"\\u{{{point:x}}}"
    return "\ufffd" if 0xD800 <= point <= 0xDFFF else c


def printable(text: str, *, lines: bool = False) -> str:
    """A text without what could deceive; with lines their ends stay."""
    if text.isprintable():
        return text
    return "".join(_safe(c, lines) for c in text)


def escaped(text: object, *, lines: bool = False) -> str:
    """A text for HTML, between tags and in attributes."""
    return html.escape(printable(str(text), lines=lines))


def is_id(text: str) -> bool:
    """64 hex digits?"""
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.4g} {unit}"


def value(name: str, of: Any) -> str:
    """A member's value as HTML, known by its name and type."""
    if of is None:
        return f'<span style="{_FAINT}">–</span>'
    if isinstance(of, bool):
        return "yes" if of else "no"
    if isinstance(of, int):
        if "bytes" in name and of >= 1024:
            return f'<span title="{of:,} bytes">{_size(of)}</span>'
        return str(of) if name == "int_id" else f"{of:,}"
    if isinstance(of, float):
        return f"{of:.4g}"
    if isinstance(of, Mapping):
        return escaped(json.dumps(of, ensure_ascii=False)) if of else value(name, None)
    if isinstance(of, tuple):  # a shape
        return escaped(list(of))
    if isinstance(of, list):
        return "<br>".join(value(name, item) for item in of) or value(name, None)
    text = str(of)
    if is_id(text):
        return f'<code title="{text}">{text[:12]}</code>'
    if name in ("at", "created_at", "revoked_at") and len(text) > 20:  # RFC 3339: seconds are enough
        return f'<span title="{escaped(text)}">{escaped(text[:19])}Z</span>'
    return escaped(text, lines=True)


def _cell(name: str, of: Any, *, alone: bool = False) -> str:
    number = isinstance(of, int | float) and not isinstance(of, bool)
    align = "right" if number and not alone else "left"
    style = f"text-align:{align};vertical-align:top"
    if name in ("tensor", "name", "root", "module"):
        style += f";{_MONO}"
    if isinstance(of, str) and "\n" in of:
        style += ";white-space:pre-wrap"
    return f'<td style="{style}">{value(name, of)}</td>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table: each column is named, and its values are as their names say."""
    lines = list(rows)
    body = [
        f"<tr>{''.join(_cell(*pair) for pair in zip(head, row, strict=True))}</tr>"
        for row in lines[:_ROWS]
    ]
    if len(lines) > _ROWS:
        body.append(
            f'<tr><td colspan="{len(head)}" style="text-align:left;{_FAINT}">'
            f"and {len(lines) - _ROWS:,} more</td></tr>"
        )
    style = f"text-align:left;border-bottom:{_LINE}"
    names = "".join(f'<th style="{style}">{escaped(name)}</th>' for name in head)
    return (
        f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def block(title: str, members: Mapping[str, Any]) -> str:
    """A thing: what it is, and a line for each of its members."""
    style = "text-align:left;vertical-align:top;font-weight:600"
    lines = [
        f'<tr><th style="{style}">{escaped(name)}</th>{_cell(name, of, alone=True)}</tr>'
        for name, of in members.items()
    ]
    head = f'<div style="font-weight:600">{title}</div>' if title else ""
    return f"{head}<table><tbody>{''.join(lines)}</tbody></table>"


_BADGES = {"good": "#1a7f37", "bad": "#b3261e", "plain": "#57606a"}


def badge(kind: str, text: str) -> str:
    """A word that is seen first: good, bad, or plain."""
    return (
        f'<span style="background:{_BADGES[kind]};color:#fff;border-radius:3px;'
        f'padding:1px 6px;font-weight:600">{escaped(text)}</span>'
    )


def details(title: str, inside: str) -> str:
    """What is shown when it is asked for."""
    return (
        f'<details><summary style="cursor:pointer">{escaped(title)}</summary>'
        f'<div style="overflow-x:auto">{inside}</div></details>'
    )


# ---- heat map ----------------------------------------------------------------

# Viridis (Smith, van der Walt; CC0), as in the program's pictures: its lightness
# grows all the way.
_STOPS = (
    *((0x44, 0x01, 0x54), (0x48, 0x28, 0x78), (0x3E, 0x49, 0x89)),
    *((0x31, 0x68, 0x8E), (0x26, 0x82, 0x8E), (0x1F, 0x9E, 0x89)),
    *((0x35, 0xB7, 0x79), (0x6E, 0xCE, 0x58), (0xB5, 0xDE, 0x2B)),
    (0xFD, 0xE7, 0x25),
)
# Columns above which values are no longer written into cells, only beside them.
_WRITTEN = 12
_MODULES = 60
_COLUMNS = 200


class Cell(NamedTuple):
    """A kind of module in one layer; layer "" is outside of all."""

    layer: str
    module: str
    value: float
    tensors: int
    changed: int


def _colours(at: float) -> tuple[str, str]:
    """Ground and ink of a place from 0 to 1."""
    place = min(max(at, 0.0), 1.0) * (len(_STOPS) - 1)
    start = min(int(place), len(_STOPS) - 2)
    part = place - start
    mixed = [
        round(a * (1 - part) + b * part)
        for a, b in zip(_STOPS[start], _STOPS[start + 1], strict=True)
    ]
    linear = [(c / 255) ** 2.2 for c in mixed]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # Above this black has the better contrast, below it white.
    ink = "#000" if light > 0.179 else "#fff"
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})", ink


class _Scale:
    """Changes by their logarithm; half a decade at least."""

    def __init__(self, values: Iterable[float]) -> None:
        logs = [math.log10(v) for v in values if math.isfinite(v) and v > 0]
        self.any = bool(logs)
        low, high = (min(logs), max(logs)) if logs else (0.0, 0.0)
        lack = max(0.0, 0.5 - (high - low)) / 2
        self.low, self.high = low - lack, high + lack

    def style(self, cell: Cell) -> tuple[str, str]:
        """Style and text of a cell."""
        if not cell.changed:
            return f"color:inherit;{_FAINT}", "·"
        if not math.isfinite(cell.value):
            return "background:#b3261e;color:#fff", "×"
        if cell.value <= 0:
            return f"color:inherit;{_FAINT}", "0"
        at = (math.log10(cell.value) - self.low) / (self.high - self.low)
        ground, ink = _colours(at)
        return f"background:{ground};color:{ink}", f"{cell.value:.2g}"

    def legend(self) -> str:
        """What colours and signs say."""
        odd = '<span style="background:#b3261e;color:#fff;padding:0 4px">×</span>'
        words = f"· unchanged &nbsp; {odd} added, removed, reshaped or not finite"
        if not self.any:
            return f'<div style="font-size:85%">{words}</div>'
        steps = "".join(
            '<span style="display:inline-block;width:16px;height:10px;'
            f'background:{_colours(i / 9)[0]}"></span>'
            for i in range(10)
        )
        return (
            f'<div style="font-size:85%">|b − a| / |a| &nbsp; {10**self.low:.2g} '
            f"{steps} {10**self.high:.2g} (log) &nbsp; {words}</div>"
        )


def _heat_cell(scale: _Scale, cell: Cell | None, written: bool) -> str:
    if cell is None:
        return '<td style="border:0"></td>'
    size = "min-width:3.2em" if written else "min-width:1em;width:1em"
    shape = f"{size};padding:2px 1px;text-align:center;font-size:85%"
    style, text = scale.style(cell)
    where = f"layer {cell.layer} {cell.module}" if cell.layer else cell.module
    said = f"{cell.value:.4g}" if math.isfinite(cell.value) else "no number"
    title = f"{where}: {said}, {cell.changed} of {cell.tensors} tensors changed"
    if not written and "background" in style:
        text = "×" if text == "×" else "&nbsp;"
    return (
        f'<td title="{escaped(title)}" style="{shape};border:{_LINE};{style}">'
        f"{text}</td>"
    )


def _line(text: str, cells: str) -> str:
    shown = text if len(text) <= 48 else "…" + text[-47:]
    return (
        f'<tr style="background:transparent"><th title="{escaped(text)}" style="text-align:right;{_MONO};'
        f'font-weight:normal;white-space:nowrap;padding:1px 8px 1px 0">'
        f"{escaped(shown)}</th>{cells}</tr>"
    )


def _columns(layers: Sequence[str], written: bool) -> str:
    """The layers' names, as many as have room."""
    every = 1 if written else 5 if len(layers) <= 100 else 10
    cells = []
    for at in range(0, len(layers), every):
        span = min(every, len(layers) - at)
        align = "center" if written else "left"
        cells.append(
            f'<th colspan="{span}" style="text-align:{align};font-weight:normal;'
            f'font-size:85%;padding:1px">{escaped(layers[at])}</th>'
        )
    head = f'<th style="text-align:right;font-weight:normal;{_FAINT}">layer</th>'
    return f'<tr style="background:transparent">{head}{"".join(cells)}</tr>'


def heat_map(layers: Sequence[str], cells: Sequence[Cell]) -> str:
    """A row for each kind of module, a column for each layer; what is outside of
    layers below. Each cell's title has its place and value."""
    more, layers = max(len(layers) - _COLUMNS, 0), layers[:_COLUMNS]
    scale = _Scale(cell.value for cell in cells if cell.changed)
    at = {(cell.layer, cell.module): cell for cell in cells}
    written = len(layers) <= _WRITTEN
    inside = list(dict.fromkeys(cell.module for cell in cells if cell.layer))
    outside = [cell for cell in cells if not cell.layer]
    lines = [_columns(layers, written)] if layers else []
    for module in inside[:_MODULES]:
        row = [_heat_cell(scale, at.get((name, module)), written) for name in layers]
        lines.append(_line(module, "".join(row)))
    width = max(len(layers) - 1, 1)
    for cell in outside[:_MODULES]:
        one = _heat_cell(scale, cell, written)
        said = ""
        if not written:
            said = value("", cell.value) if cell.changed else "unchanged"
        style = "text-align:left;border:0;padding:1px 6px;font-size:85%"
        rest = f'<td colspan="{width}" style="{style}">{said}</td>'
        lines.append(_line(cell.module, one + rest))
    over = [len(inside) - _MODULES, len(outside) - _MODULES]
    left = sum(max(count, 0) for count in over)
    if left or more:
        lines.append(_line(f"and {left:,} more, {more:,} more layers", ""))
    return (
        f'<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<tbody>{''.join(lines)}</tbody></table></div>{scale.legend()}"
    )
