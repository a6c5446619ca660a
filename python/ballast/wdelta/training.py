"""deltatensors' callback for transformers' Trainer."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any

from ballast import wdelta

if TYPE_CHECKING:

    class _Callback:
        pass

else:
    try:
        from transformers import TrainerCallback as _Callback
    except ImportError:  # a Trainer of somebody's own calls it by name

        class _Callback:
            pass


class DeltaTensorsCallback(_Callback):
    """Saves each checkpoint's difference to a base as <checkpoint>/model.wdelta.

    Whatever goes wrong is logged as a warning (`ballast.wdelta`): training goes
    on.

    Args:
        base_dir: the folder of safetensors that training began with.
        strategy: "int4", "sparse", "quantized" or "lossless".
        delete_full_checkpoint: remove the checkpoint's .safetensors files once
            the difference is written and has been read back and checked. It can
            not be resumed from then.
        **strategy_kwargs: as of `save_delta_from_paths`.

    Of several processes the one with `state.is_world_process_zero` saves.
    """

    def __init__(
        self,
        base_dir: wdelta.PathLike,
        strategy: str = "int4",
        delete_full_checkpoint: bool = False,
        **strategy_kwargs: Any,
    ) -> None:
        self.base_dir = os.fspath(base_dir)
        self.strategy = strategy
        self.delete_full_checkpoint = delete_full_checkpoint
        self.strategy_kwargs = strategy_kwargs

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Called by the Trainer when a checkpoint is there."""
        if not getattr(state, "is_world_process_zero", True):
            return
        folder = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        warn = wdelta._log.warning
        if not os.path.isdir(folder):
            warn("expected checkpoint dir not found: %s", folder)
            return
        full = glob.glob(os.path.join(glob.escape(folder), "*.safetensors"))
        if not full:
            warn("no .safetensors in %s; skipping delta save", folder)
            return
        try:
            self._save(folder, full)
        except Exception as error:
            warn("delta save failed at step %s: %s", state.global_step, error)

    def _save(self, folder: str, full: list[str]) -> None:
        path = os.path.join(folder, "model.wdelta")
        wdelta.save_delta_from_paths(
            path, folder, self.base_dir, self.strategy, use_gpu=False,
            **self.strategy_kwargs,
        )
        if self.delete_full_checkpoint:
            wdelta._verify(path, self.base_dir)
            for name in full:
                os.remove(name)
