"""What models are asked: sets of probes, known by what they are."""

from __future__ import annotations

import json
import os
from ctypes import byref
from typing import TYPE_CHECKING, Any

from ._native import (
    bal_probes_options,
    decode,
    encode,
    hex_id,
    lib,
    path_bytes,
    texts,
)
from ._native_more import PROBES_ESCAPES, Owned

if TYPE_CHECKING:
    from .store import Store

__all__ = ["Probe", "ProbeSet"]


class Probe(str):
    """One question: a str that is its prompt (of a chat: its messages as JSON)."""

    id: str
    """By which answers are told apart; of a probe without one the first 12 hex
    digits of the SHA-256 of its prompt."""
    prompt: str | None
    """None: a chat."""
    messages: list[dict[str, Any]] | None
    """`{"role", "content"}` each; None: a prompt."""
    references: list[str]
    """Right answers, any of which will do."""
    choices: list[str]
    """What an answer may be."""
    stop: list[str]
    """Texts where an answer ends."""
    max_tokens: int | None
    """Of the answer; None: as many as all others."""
    _row: dict[str, Any]

    def __new__(cls, row: dict[str, Any]) -> Probe:
        """Of a row of the set's canonical JSON."""
        prompt, messages = row.get("prompt"), row.get("messages")
        said = prompt if prompt is not None else json.dumps(
            messages, ensure_ascii=False
        )
        self = super().__new__(cls, said)
        self._row = row
        self.id = row["id"]
        self.prompt, self.messages = prompt, messages
        self.references = row.get("references", [])
        self.choices = row.get("choices", [])
        self.stop = row.get("stop", [])
        self.max_tokens = row.get("max_tokens")
        return self

    def __getnewargs__(self) -> tuple[dict[str, Any]]:  # type: ignore[override]
        return (self._row,)


class ProbeSet(tuple[Probe, ...]):
    """Probes in an order: a tuple of them. Two sets of one id are equal."""

    _handle: Owned

    def __new__(cls, handle: Owned) -> ProbeSet:
        """Of a handle of the library's; use `of`, `open` or `load`."""
        rows = json.loads(lib.bal_probes_json(handle))["probes"]
        self = super().__new__(cls, map(Probe, rows))
        self._handle = handle
        return self

    @classmethod
    def of(cls, *prompts: str) -> ProbeSet:
        """Of prompts. Usage: none, the same one twice, one with a NUL in it."""
        rows = [encode(prompt) or b"" for prompt in prompts]
        return cls(_made(lib.bal_probes_of, texts(rows), len(rows)))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        template: str | None = None,
        escapes: bool = False,
    ) -> ProbeSet:
        """From a file: one probe a line, JSON Lines, promptfoo's tests (JSON
        Lines or CSV) or lm-eval's samples.

        template: the prompt, with `{{variables}}`, for files that hold these.
        escapes: "\\\\n", "\\\\t" and "\\\\\\\\" are read in lines of plain text.
        Usage names the line and what is wrong with it; NotFound: no such file.
        """
        options = bal_probes_options(
            encode(template), PROBES_ESCAPES if escapes else 0
        )
        return cls(_made(lib.bal_probes_open, path_bytes(path), byref(options)))

    @classmethod
    def load(cls, store: Store, tenant: str | None, prefix: str) -> ProbeSet:
        """One that a tenant has recorded, by its id or 4 hex digits or more of
        it. NotFound; Usage: there are several."""
        with store.scope(tenant) as scope:
            return cls(_made(lib.bal_probes_load, scope.tenant, encode(prefix)))

    @property
    def id(self) -> str:
        """64 hex digits: the BLAKE3 of `json`."""
        return hex_id(lib.bal_probes_id(self._handle))

    @property
    def json(self) -> str:
        """Canonical JSON: `{"probes": [{"id", "prompt" | "messages",
        "references"?, "choices"?, "max_tokens"?, "stop"?}], "schema":
        "ballast/probes/1"}`."""
        return decode(lib.bal_probes_json(self._handle))

    @property
    def unused(self) -> list[str]:
        """What the file held that was not used ("assert:contains")."""
        return decode(lib.bal_probes_unused(self._handle)).splitlines()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProbeSet) and self.id == other.id

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<ProbeSet {self.id[:12]}: {len(self)} probes>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self.json,)


def _made(function: Any, *args: Any) -> Owned:
    return Owned(lib.bal_probes_free, function, *args)


def _read(text: str) -> ProbeSet:
    """Of what `ProbeSet.json` gave."""
    data = text.encode()
    return ProbeSet(_made(lib.bal_probes_read, data, len(data)))
