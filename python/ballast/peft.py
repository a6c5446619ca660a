"""Adapters of a PeftModel in and out of a store, without a file between."""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .commit import Commit
    from .store import Spec, Store

__all__ = ["load_adapter", "save_adapter"]


def save_adapter(
    model: Any,
    store: Store,
    tenant: str | None,
    *,
    message: str = "adapter",
    ref: str = "main",
    adapter_name: str = "default",
    base_model: str | None = None,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> Commit:
    """Commit an adapter of a `peft.PeftModel`: what its `save_pretrained` would
    write, the sets of its config in order.

    base_model: the base's name, None: what the config tells. more: as in
    `Store.commit`. ValueError: no such adapter.
    """
    peft: Any = import_module("peft")
    if adapter_name not in model.peft_config:
        names = ", ".join(model.peft_config)
        raise ValueError(f"no adapter '{adapter_name}': there are {names}")
    config = _config(model, adapter_name)
    return store.commit(
        tenant,
        peft.get_peft_model_state_dict(model, adapter_name=adapter_name),
        config=config,
        base_model=base_model or config.get("base_model_name_or_path"),
        message=message,
        ref=ref,
        metadata=metadata,
        **more,
    )


def _config(model: Any, adapter_name: str) -> dict[str, Any]:
    """adapter_config.json as PEFT writes it."""
    config = copy(model.peft_config[adapter_name])
    config.inference_mode = True
    if config.base_model_name_or_path is None:
        base = model.base_model if config.is_prompt_learning else model.get_base_model()
        config.base_model_name_or_path = getattr(base, "name_or_path", None) or None
    mapping = None
    if config.task_type is None:
        kind = type(model.get_base_model())
        mapping = {"base_model_class": kind.__name__, "parent_library": kind.__module__}
    told: dict[str, Any] = config.to_dict()
    if mapping is not None:
        told["auto_mapping"] = mapping
    sets = (set, frozenset)
    return {k: sorted(v) if isinstance(v, sets) else v for k, v in told.items()}


def load_adapter(
    model: Any,
    store: Store,
    tenant: str | None,
    spec: Spec,
    *,
    adapter_name: str = "default",
    is_trainable: bool = False,
    autocast_adapter_dtype: bool = True,
) -> Any:
    """The adapter (or view of adapters) of a commit on a model.

    model: a `transformers` model, which becomes a `peft.PeftModel`, or one, which
    gets one more adapter. Returns the PeftModel, as `PeftModel.from_pretrained`
    would of a checkout. NotFound: no such commit. ValueError: a commit that is no
    adapter, or one whose tensors are not those that PEFT expects.
    """
    peft: Any = import_module("peft")
    with store.checkout(tenant, spec, torch=True) as checkout:
        if not checkout.config or "peft_type" not in checkout.config:
            raise ValueError(f"'{spec}' is no adapter")
        state = checkout.state_dict()
        given = dict(checkout.config)
    config = peft.PeftConfig.from_peft_type(**given)
    config.inference_mode = not is_trainable
    if isinstance(model, peft.PeftModel):
        if adapter_name in model.peft_config:
            raise ValueError(f"the model has an adapter '{adapter_name}' already")
        model.add_adapter(
            adapter_name, config, autocast_adapter_dtype=autocast_adapter_dtype
        )
    else:
        model = peft.get_peft_model(
            model,
            config,
            adapter_name=adapter_name,
            autocast_adapter_dtype=autocast_adapter_dtype,
        )
    told = peft.set_peft_model_state_dict(model, state, adapter_name=adapter_name)
    strange = list(told.unexpected_keys)
    # PEFT calls every parameter of the base missing.
    lacking = [n for n in told.missing_keys if f".{adapter_name}." in f"{n}."]
    if strange or lacking:
        name = (strange or lacking)[0]
        what = "does not know" if strange else "finds no"
        raise ValueError(f"PEFT {what} '{name}' of '{spec}'")
    if not is_trainable:
        model.eval()
    return model
