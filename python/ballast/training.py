"""Checkpoints of a transformers Trainer as commits.

    from ballast.training import BallastCallback

    trainer.add_callback(BallastCallback(store, "acme", "support"))

`BallastCallback` is a `transformers.TrainerCallback`; transformers is imported
when the name is first used. What it does is `Checkpoints`, which needs none.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import logging
import math
import os
import queue
import shutil
import tempfile
import threading
import urllib.parse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .commit import Commit
    from .store import Source, Store

__all__ = ["BallastCallback", "Checkpoints"]

_logger = logging.getLogger("ballast")

_PENDING = ".ballast-pending"
_NEW = "new-"
# What a Trainer needs to go on and a model does not.
_STATE = (
    "optimizer.*", "optimizer_*", "scheduler.pt", "scaler.pt", "rng_state*",
    "trainer_state.json", "training_args.bin", "global_step*", "latest",
    "zero_to_fp32.py",
)  # fmt: skip
# Numbers of the log that say how fast it went, not what was learned.
_SPEED = ("*_runtime", "*_per_second", "total_flos", "train_*")


class Checkpoints:
    """Commits what a Trainer saves, in one thread of its own.

    store: an open `Store`, which must stay open until the training ends. ref: the
    checkpoints' commits go there, one on the other. base: the model that is
    trained, a folder, file or spec: a whole model is committed as its delta
    against it (adapters are as they are). base_model: its name, None: what the
    checkpoint tells. message: may hold `{step}` and `{epoch}`. metadata: goes
    into each commit beside step, epoch, loss, learning_rate and whatever other
    numbers the Trainer logged last. pending: checkpoints that may wait; a Trainer
    that saves faster waits itself. strict: what goes wrong is raised at the next
    save or at the end of training; else it is logged, and the training goes on.

    A checkpoint that waits is held by hard links in `.ballast-pending` of the
    output folder, so that the Trainer may take it away; what a killed run left
    there is committed when the next one begins.
    """

    def __init__(
        self,
        store: Store,
        tenant: str | None,
        ref: str = "main",
        base: Source | None = None,
        *,
        base_model: str | None = None,
        message: str = "checkpoint {step}",
        metadata: dict[str, Any] | None = None,
        pending: int = 2,
        strict: bool = True,
    ) -> None:
        if pending < 1:
            raise ValueError("pending: at least one checkpoint may wait")
        self.store = store
        self.tenant = tenant
        self.ref = ref
        self.base = base
        self.base_model = base_model
        self.message = message
        self.metadata = dict(metadata or {})
        self.strict = strict
        self.commits: list[Commit] = []
        """Those that were made, the oldest first."""
        self._queue: queue.Queue[str | None] = queue.Queue(pending)
        self._worker: threading.Thread | None = None
        self._error: BaseException | None = None

    # ---- what a Trainer calls ------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Takes up what an earlier run left."""
        if not state.is_world_process_zero:
            return
        place = self._place(args.output_dir)
        for name in sorted(os.listdir(place) if os.path.isdir(place) else []):
            if name.startswith(_NEW):  # killed while it was made
                shutil.rmtree(os.path.join(place, name), ignore_errors=True)
            else:
                self._submit(os.path.join(place, name))
        try:
            self.wait()
        except Exception as error:
            _logger.warning("what an earlier run left is not committed: %s", error)
        folder = _checkpoint(args, state)
        # Killed between the Trainer's save and its call of on_save.
        if state.global_step and os.path.isdir(folder):
            newest = self.latest()
            if newest is None or newest.metadata["step"] < state.global_step:
                self._submit(self._hold(folder, args, state))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Commits the checkpoint that was just saved, later."""
        if not state.is_world_process_zero:
            return
        self._raise()
        self._submit(self._hold(_checkpoint(args, state), args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Waits until all is committed."""
        self.wait()
        with contextlib.suppress(OSError):
            os.rmdir(self._place(args.output_dir))
            os.rmdir(os.path.join(args.output_dir, _PENDING))

    # ---- what one asks for ---------------------------------------------------

    def wait(self) -> None:
        """Until nothing waits. Raises what went wrong (`strict`)."""
        if self._worker is not None:
            self._queue.put(None)
            self._worker.join()
            self._worker = None
        self._raise()

    def history(self) -> list[Commit]:
        """The ref's checkpoints, those of earlier runs too, the newest first."""
        if self.ref not in self.store.refs(self.tenant):
            return []
        return [
            commit
            for commit in self.store.log(self.tenant, self.ref)
            if _is_number(commit.metadata.get("step"))
        ]

    def latest(self) -> Commit | None:
        """The newest checkpoint that is committed; None: there is none. Its
        `metadata["step"]` is the step that it was saved at."""
        return next(iter(self.history()), None)

    def load_best(self, metric: str = "loss", *, greater: bool = False) -> Commit:
        """The checkpoint whose metadata has the least metric (the greatest, with
        `greater`); of equals the newest. `store.checkout(tenant, it)` reads it,
        `store.apply` makes a model of a delta. LookupError: none has the metric."""
        self.wait()
        rows = [c for c in self.history() if _is_number(c.metadata.get(metric))]
        if not rows:
            raise LookupError(f"no checkpoint on '{self.ref}' has a '{metric}'")
        best = max if greater else min
        return best(rows, key=lambda commit: float(commit.metadata[metric]))

    # ---- how it is done ------------------------------------------------------

    def _place(self, output: str) -> str:
        name = urllib.parse.quote(f"{self.tenant or ''}:{self.ref}", safe="")
        return os.path.join(output, _PENDING, name)

    def _hold(self, folder: str, args: Any, state: Any) -> str:
        """A folder that nobody takes away, with the checkpoint's model and what
        is known of it."""
        place = self._place(args.output_dir)
        os.makedirs(place, exist_ok=True)
        made = tempfile.mkdtemp(prefix=_NEW, dir=place)
        unique = os.path.basename(made)[len(_NEW) :]
        held = os.path.join(place, f"{state.global_step:012d}-{unique}")
        try:
            shutil.copytree(
                folder,
                os.path.join(made, "model"),
                ignore=shutil.ignore_patterns(*_STATE),
                copy_function=_link,
            )
            with open(os.path.join(made, "note.json"), "w") as note:
                json.dump(_learned(state), note)
            os.rename(made, held)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
        return held

    def _submit(self, held: str) -> None:
        if self._worker is None:
            self._worker = threading.Thread(
                target=self._work, name="ballast-checkpoints", daemon=True
            )
            self._worker.start()
        self._queue.put(held)

    def _work(self) -> None:
        while True:
            held = self._queue.get()
            if held is None:
                return
            if self._error is not None:
                continue  # it stays where it is, for the next run
            try:
                self._commit(held)
            except BaseException as error:
                self._failed(held, error)

    def _failed(self, held: str, error: BaseException) -> None:
        if self.strict:
            self._error = error
        else:
            _logger.warning("checkpoint '%s' is not committed: %s", held, error)

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _commit(self, held: str) -> None:
        folder = os.path.join(held, "model")
        with open(os.path.join(held, "note.json")) as file:
            known = json.load(file)
        given: dict[str, Any] = {
            "message": self.message.format(**known),
            "ref": self.ref,
            "base_model": self.base_model,
            "metadata": {**self.metadata, **known},
        }
        adapter = os.path.exists(os.path.join(folder, "adapter_config.json"))
        if self.base is None or adapter:
            commit = self.store.commit(self.tenant, folder, **given)
        else:
            commit = self.store.delta(self.tenant, folder, base=self.base, **given)
        if not commit.nothing_changed:
            self.commits.append(commit)
        shutil.rmtree(held)


def _checkpoint(args: Any, state: Any) -> str:
    """The folder where a Trainer saves at this step."""
    return os.path.join(args.output_dir, f"checkpoint-{state.global_step}")


def _link(source: str, target: str) -> None:
    """One more name for a file; a copy where there can be none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def _learned(state: Any) -> dict[str, Any]:
    """Step, epoch, and each number that was logged, as it was last."""
    known: dict[str, Any] = {}
    for row in state.log_history:
        for name, value in row.items():
            if not any(fnmatch.fnmatch(name, speed) for speed in _SPEED):
                known[name] = value
    known["step"] = state.global_step
    known["epoch"] = state.epoch
    return {name: value for name, value in known.items() if _is_number(value)}


if TYPE_CHECKING:
    # With transformers it is a TrainerCallback, too.
    class BallastCallback(Checkpoints):
        """`Checkpoints` as a `transformers.TrainerCallback`."""

else:

    def __getattr__(name: str) -> Any:
        if name != "BallastCallback":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from transformers import TrainerCallback

        class BallastCallback(Checkpoints, TrainerCallback):
            __doc__ = Checkpoints.__doc__

        BallastCallback.__qualname__ = "BallastCallback"
        globals()[name] = BallastCallback
        return BallastCallback
