"""Asking a commit's model its probes, and recording what it answers."""

from __future__ import annotations

import json
from ctypes import byref
from typing import TYPE_CHECKING, Any

from ._native import bal_answer, bal_id, call, decode, encode, hex_id, lib
from ._native_more import FINGERPRINT_PARTIAL, Owned, Record
from .probes import ProbeSet
from .runners import LibraryRunner, Runner

if TYPE_CHECKING:
    from .store import Spec, Store

__all__ = ["Fingerprint", "fingerprint"]


class Fingerprint(Record):
    """What a model answered: the members that `ballast fingerprint --json` has."""

    commit: str
    """64 hex digits."""
    probe_set: str
    """64 hex digits."""
    runner: str
    outputs: list[dict[str, Any]]
    """`{"id", "output", "tokens"?: [{"token", "logprob"}]}` of each probe that
    was answered, in the order of the set; logprob is ln of a probability."""
    terms: dict[str, Any]
    """What two fingerprints must have in common to be compared."""
    about: dict[str, Any]
    """What is worth knowing beside: versions, seconds."""
    asked: bool
    """False: it was recorded before (`reuse`)."""

    def __repr__(self) -> str:
        return (
            f"<Fingerprint of {self.commit[:12]}: {len(self.outputs)} answers to "
            f"{self.probe_set[:12]} by {self.runner}>"
        )


def fingerprint(
    store: Store,
    tenant: str | None,
    spec: Spec,
    probes: ProbeSet,
    runner: Runner | LibraryRunner,
    *,
    partial: bool = False,
    reuse: bool = False,
) -> Fingerprint:
    """Ask a commit's model the probes and record its answers.

    runner: one of `ballast.runners`, which the library asks itself, or any object
    with `run(tensors, config, base_model, probes) -> list[str]`. What an object
    answers is comparable with what one of the same `name` (else class) answers,
    and, if it has one, of the same `terms` (a dict that JSON can hold). Its
    `about`, another such dict, is kept beside. Of a delta it is given the
    differences, not the model.

    partial: record what came, if some did not (an object says None where it has
    no answer). reuse: take what is recorded on the same terms (the library's
    runners only).

    NotFound: no such commit. IOFailure: no answers, or not as they should be;
    nothing is recorded. ValueError: another number of answers than of probes.
    """
    if not isinstance(probes, ProbeSet):
        raise TypeError(f"probes are a ProbeSet, not {type(probes).__name__}")
    if not isinstance(runner, (LibraryRunner, Runner)):
        raise TypeError(f"a {type(runner).__name__} has no run()")
    with store.scope(tenant) as scope:
        commit = scope.resolve(spec)
        if isinstance(runner, LibraryRunner):
            made, asked = runner.ask(
                store, scope, commit, probes, partial=partial, reuse=reuse
            )
            return _told(made, commit, probes, runner.name, asked)
        made = _heard(store, tenant, commit, probes, runner, partial)
        flags = FINGERPRINT_PARTIAL if partial else 0
        call(lib.bal_fingerprint_put, made, scope.tenant, byref(commit), flags)
        return _told(made, commit, probes, _name(runner), True)


def _name(runner: Runner) -> str:
    name = getattr(runner, "name", None)
    return name if isinstance(name, str) and name else type(runner).__name__


def _heard(
    store: Store,
    tenant: str | None,
    commit: bal_id,
    probes: ProbeSet,
    runner: Runner,
    partial: bool,
) -> Owned:
    """What an object answers, not recorded yet."""
    terms = {**getattr(runner, "terms", {}), "runner": _name(runner)}
    made = Owned(
        lib.bal_fingerprint_free,
        lib.bal_fingerprint_new,
        probes._handle,
        json.dumps(terms).encode(),
    )
    about = json.dumps(getattr(runner, "about", {})).encode()
    call(lib.bal_fingerprint_about, made, about)
    with store.checkout(tenant, hex_id(commit)) as tensors:
        base_model = tensors.commit.base_model
        answers = runner.run(tensors, tensors.config, base_model, probes)
    if len(answers) != len(probes):
        raise ValueError(
            f"the runner returned {len(answers)} outputs for {len(probes)} probes"
        )
    for i, answer in enumerate(answers):
        if answer is None and partial:
            continue
        if not isinstance(answer, str):
            raise TypeError(
                f"probe '{probes[i].id}': an answer is a str, not "
                f"{type(answer).__name__}"
            )
        row = bal_answer(output=encode(answer))
        call(lib.bal_fingerprint_add, made, i, byref(row))
    return made


def _tokens(answer: bal_answer) -> list[dict[str, Any]]:
    return [
        {
            "token": decode(answer.tokens[i].token),
            "logprob": answer.tokens[i].logprob,
        }
        for i in range(answer.token_count)
    ]


def _told(
    made: Owned,
    commit: bal_id,
    probes: ProbeSet,
    runner: str,
    asked: bool,
) -> Fingerprint:
    outputs = []
    for i, probe in enumerate(probes):
        found = lib.bal_fingerprint_at(made, i)
        if not found:
            continue
        row: dict[str, Any] = {
            "id": probe.id,
            "output": decode(found.contents.output),
        }
        if found.contents.token_count:
            row["tokens"] = _tokens(found.contents)
        outputs.append(row)
    return Fingerprint(
        commit=hex_id(commit),
        probe_set=probes.id,
        runner=runner,
        outputs=outputs,
        terms=json.loads(lib.bal_fingerprint_terms(made)),
        about=json.loads(lib.bal_fingerprint_facts(made)),
        asked=asked,
    )
