"""Who answers probes: the library's runners, and what any other one is like.

A runner is anything with `run(tensors, config, base_model, probes)`. Those here
also have a form that the library asks by itself, without a tensor passing through
Python: `ballast.fingerprint` takes that where there is one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from ctypes import byref, c_bool
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ._native import bal_ask_options, bal_id, encode, lib, path_bytes
from ._native_more import ASK_PARTIAL, ASK_REUSE, ASK_STREAM, Owned
from .probes import ProbeSet

if TYPE_CHECKING:
    from .store import Source, Store, _Scope

__all__ = [
    "FakeRunner",
    "LibraryRunner",
    "OpenAIRunner",
    "PeftRunner",
    "ProcessRunner",
    "Runner",
]


@runtime_checkable
class Runner(Protocol):
    """Anything that answers probes."""

    def run(
        self,
        tensors: Mapping[str, Any],
        config: dict[str, Any] | None,
        base_model: str | None,
        probes: ProbeSet,
    ) -> list[str]:
        """One answer for each probe, in their order, without the prompt.

        tensors: name -> array, read as they are asked for. config: the adapter's
        (adapter_config.json) or the model's (config.json), None without one.
        base_model: what the commit names, None where it names none. probes: a
        tuple of `ballast.probes.Probe`, which are strings.
        """
        ...


class LibraryRunner:
    """What the library's runners have in common.

    timeout: seconds for all answers (600). max_tokens: of an answer (32).
    repeat: times that each probe is asked, which tells change from noise (1).
    top: likely tokens to record at each step (20). parallel: requests at once,
    http only (8). base: the base model of a delta or an adapter: a folder, a
    file, a spec of the tenant's, arrays. 0 is the default of each.
    """

    name: str = ""

    def __init__(
        self,
        base: Source | None = None,
        *,
        timeout: float = 0,
        max_tokens: int = 0,
        repeat: int = 0,
        top: int = 0,
        parallel: int = 0,
    ) -> None:
        self.base = base
        self.timeout = timeout
        self.max_tokens = max_tokens
        self.repeat = repeat
        self.top = top
        self.parallel = parallel

    def _options(self) -> bal_ask_options:
        return bal_ask_options(
            runner=encode(self.name),
            timeout=self.timeout,
            max_tokens=self.max_tokens,
            repeat=self.repeat,
            top=self.top,
            parallel=self.parallel,
        )

    def ask(
        self,
        store: Store,
        scope: _Scope,
        commit: bal_id,
        probes: ProbeSet,
        *,
        partial: bool = False,
        reuse: bool = False,
    ) -> tuple[Owned, bool]:
        """The fingerprint that the library made and recorded, and whether it was
        asked for now."""
        options = self._options()
        options.flags |= ASK_PARTIAL if partial else 0
        options.flags |= ASK_REUSE if reuse else 0
        asked = c_bool()
        with contextlib.ExitStack() as stack:
            if isinstance(self.base, (str, os.PathLike)) and os.path.isdir(self.base):
                options.base = path_bytes(self.base)
            elif self.base is not None:
                base = store._named(scope, self.base, stack)
                options.base_model = base.model.pointer
            fingerprint = Owned(
                lib.bal_fingerprint_free,
                lib.bal_ask,
                byref(asked),
                scope.tenant,
                byref(commit),
                probes._handle,
                byref(options),
            )
        return fingerprint, asked.value

    def run(
        self,
        tensors: Mapping[str, Any],
        config: dict[str, Any] | None,
        base_model: str | None,
        probes: ProbeSet,
    ) -> list[str]:
        """The answers of a model that is in no store: it is put in one of its
        own, in a temporary folder, asked, and the folder removed."""
        from .fingerprinting import fingerprint
        from .store import Store

        with tempfile.TemporaryDirectory(prefix="ballast-run-") as folder:
            with Store(os.path.join(folder, "store")) as store:
                adapter = "peft_type" in (config or {})
                files = {"config.json": json.dumps(config).encode()}
                store.commit(
                    "run",
                    tensors,
                    config=config if adapter else None,
                    files=None if adapter or config is None else files,
                    base_model=base_model,
                    message="asked",
                )
                got = fingerprint(store, "run", "main", probes, self)
        return [row["output"] for row in got.outputs]


class PeftRunner(LibraryRunner):
    """transformers and PEFT, greedy and in float32, in a process of its own.

    base: the base model of an adapter or a delta; None: the commit is a whole
    model. python: the Python that has torch, transformers and peft; None: the
    one that BALLAST_PYTHON names, else the one that runs this.
    """

    name = "peft"

    def __init__(
        self,
        base: Source | None = None,
        *,
        python: str | os.PathLike[str] | None = None,
        timeout: float = 0,
        max_tokens: int = 0,
        repeat: int = 0,
        top: int = 0,
    ) -> None:
        super().__init__(
            base, timeout=timeout, max_tokens=max_tokens, repeat=repeat, top=top
        )
        self.python = python

    def _options(self) -> bal_ask_options:
        # The library takes it from the environment, as the command does.
        if self.python is not None:
            os.environ["BALLAST_PYTHON"] = os.fspath(self.python)
        elif not os.environ.get("BALLAST_PYTHON"):
            os.environ["BALLAST_PYTHON"] = sys.executable
        return super()._options()


class ProcessRunner(LibraryRunner):
    """A command that reads probes as JSON Lines and writes answers as such.

    command: for `sh -c`, or a list of words. It finds the model in the folder
    BALLAST_MODEL (the base in BALLAST_BASE). stream: the tensors come as a
    safetensors stream on the descriptor BALLAST_MODEL_FD instead of a file.
    """

    name = "process"

    def __init__(
        self,
        command: str | Sequence[str | os.PathLike[str]],
        *,
        base: Source | None = None,
        stream: bool = False,
        timeout: float = 0,
        max_tokens: int = 0,
        repeat: int = 0,
        top: int = 0,
    ) -> None:
        super().__init__(
            base, timeout=timeout, max_tokens=max_tokens, repeat=repeat, top=top
        )
        if not isinstance(command, str):
            command = shlex.join([os.fspath(word) for word in command])
        self.command = command
        self.stream = stream

    def _options(self) -> bal_ask_options:
        options = super()._options()
        options.command = encode(self.command)
        options.flags |= ASK_STREAM if self.stream else 0
        return options


class OpenAIRunner(LibraryRunner):
    """A server that speaks OpenAI's API and has the model loaded.

    url: with or without /v1. model: the name that it is served by; None: the one
    that ends with the commit's first 8 hex digits, as exports are called. A key
    is taken from BALLAST_PROBE_API_KEY or OPENAI_API_KEY.
    """

    name = "http"

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        timeout: float = 0,
        max_tokens: int = 0,
        repeat: int = 0,
        top: int = 0,
        parallel: int = 0,
    ) -> None:
        super().__init__(
            None,
            timeout=timeout,
            max_tokens=max_tokens,
            repeat=repeat,
            top=top,
            parallel=parallel,
        )
        self.url = url
        self.model = model

    def _options(self) -> bal_ask_options:
        options = super()._options()
        options.url = encode(self.url)
        options.model = encode(self.model)
        return options


class FakeRunner(LibraryRunner):
    """A stand-in for trying things out: each answer is a digest of the probe and
    of the tensors. watch: a glob of the tensors that count, None: all."""

    name = "fake"

    def __init__(self, watch: str | None = None) -> None:
        super().__init__()
        self.watch = watch

    def _options(self) -> bal_ask_options:
        options = super()._options()
        options.model = encode(self.watch)
        return options
