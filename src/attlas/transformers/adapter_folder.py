r"""LoRA adapters as PEFT writes them, merged with the model that they adapt.

The merged matrix is W + (alpha / r) B A (Hu et al., LoRA, 2021); with `use_rslora` the factor is
alpha / sqrt(r).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.lazy_tensors import Unread
from attlas.transformers.settings import Settings, require_settings

ADAPTER = "adapter_config.json"
ADAPTER_TENSORS = "adapter_model.safetensors"

_SETTINGS = Settings(
    read=(
        *("alpha_pattern", "base_model_name_or_path", "fan_in_fan_out", "init_lora_weights"),
        *("lora_alpha", "peft_type", "r", "rank_pattern", "use_rslora"),
    ),
    required={
        "bias": "none",
        "lora_bias": False,
        "use_bdlora": False,
        "use_dora": False,
        "use_qalora": False,
    },
    unused=(
        *("auto_mapping", "ensure_weight_tying", "exclude_modules", "inference_mode"),
        *("layers_pattern", "layers_to_transform", "lora_dropout", "megatron_core"),
        *("modules_to_save", "peft_version", "qalora_group_size", "revision", "runtime_config"),
        *("target_modules", "task_type"),
    ),
)
_INITIAL = ("gaussian", "orthogonal")
"""Starts of A and B that leave the base as it is."""
_BEFORE = "base_model.model."
_MERGE = "merge it where it was trained, with model.merge_and_unload().save_pretrained(folder)"
_FACTOR = re.compile(r"(.*)\.lora_([AB])\.weight$")


class _Factors(NamedTuple):
    A: Unread
    B: Unread


def base_of(settings: Mapping[str, Any], folder: Path) -> Path:
    """The folder of the model that an adapter belongs to.

    Args:
        settings: the parsed adapter_config.json.
        folder: where it was; a relative path of the base is looked for there first.

    Raises:
        UserError: if the adapter is of a kind that is not merged, or the base is not on this
            machine.
    """
    values = Configuration(settings)
    kind = values.word("peft_type", "LORA")
    if kind != "LORA":
        raise UserError(
            f"peft_type = '{printable(kind)[:80]}' in {ADAPTER} is not merged by attlas: {_MERGE}"
        )
    require_settings(settings, _SETTINGS, section=ADAPTER.removesuffix(".json"))
    initial = settings.get("init_lora_weights", True)
    if not isinstance(initial, bool) and initial is not None and initial not in _INITIAL:
        raise UserError(
            f"init_lora_weights = {initial!r:.80} in {ADAPTER} changes the base model: {_MERGE}"
        )
    name = values.word("base_model_name_or_path")
    for place in (folder / name, Path(name)):
        if place.is_dir():
            return place
    raise UserError(
        f"{printable(str(folder))} holds an adapter of '{printable(name)[:120]}', which is no "
        f"folder of this machine: download it and write its path as base_model_name_or_path into "
        f"{ADAPTER}, or {_MERGE}"
    )


def merged(
    base: Mapping[str, Unread], adapter: Mapping[str, Unread], settings: Mapping[str, Any]
) -> dict[str, Unread]:
    """The base's tensors with the adapter's products added; numbers are read when they are used.

    Args:
        base: tensors of the model, by name.
        adapter: tensors of the adapter's file.
        settings: the parsed adapter_config.json.

    Raises:
        UserError: if a tensor is no factor and none that replaces one, if a factor lacks the other,
            or if their shapes do not fit.
    """
    factors: dict[str, dict[str, Unread]] = {}
    tensors = dict(base)
    for name, tensor in adapter.items():
        below = name.removeprefix(_BEFORE)
        match = _FACTOR.match(below)
        if match:
            factors.setdefault(match[1], {})[match[2]] = tensor
        elif "lora_" in below:
            raise UserError(f"tensor '{printable(name)[:120]}' is not merged by attlas: {_MERGE}")
        else:  # a module that was trained as a whole
            tensors[_name_in(tensors, below) or below] = tensor
    for module, pair in factors.items():
        target = _name_in(base, f"{module}.weight")
        if target is None or set(pair) != {"A", "B"}:
            raise UserError(
                f"the adapter's '{printable(module)[:120]}' has no matrix in the base model, or "
                "lacks one of its two factors: base and adapter are of different models"
            )
        tensors[target] = _sum(base[target], _Factors(**pair), module, settings)
    return tensors


def _name_in(tensors: Mapping[str, Unread], wanted: str) -> str | None:
    """The name of the model's tensor: one of the two may have a prefix that the other lacks."""
    if wanted in tensors:
        return wanted
    alike = [n for n in tensors if n.endswith("." + wanted) or wanted.endswith("." + n)]
    return alike[0] if len(alike) == 1 else None


def _sum(W: Unread, factors: _Factors, module: str, settings: Mapping[str, Any]) -> Unread:
    values = Configuration(settings)
    rank = _of_module(values, "rank_pattern", "r", module)
    alpha = _of_module(values, "alpha_pattern", "lora_alpha", module)
    scale = alpha / (rank**0.5 if values.flag("use_rslora", False) else rank)
    transposed = values.flag("fan_in_fan_out", False)
    outputs, inputs = W.shape[::-1] if transposed else W.shape[:2]
    if factors.A.shape != (rank, inputs) or factors.B.shape != (outputs, rank):
        raise UserError(
            f"the adapter's '{printable(module)[:120]}' has factors of shapes {factors.B.shape} "
            f"and {factors.A.shape} for a matrix of shape {W.shape} and rank {rank:g}: base and "
            "adapter are of different models"
        )

    def read(dtype: np.dtype) -> np.ndarray:
        wide = np.dtype(np.float64)
        product = factors.B.read(wide) @ factors.A.read(wide)
        added = scale * (product.T if transposed else product)
        return (W.read(wide) + added).astype(dtype)

    return Unread(W.shape, W.dtype, W.where, read)


def _of_module(values: Configuration, pattern: str, key: str, module: str) -> float:
    """A number of a module: its own where a pattern names it, else that of all."""
    own = values.section(pattern)
    for name in own.values:
        plain = name.removeprefix("^")
        if not re.fullmatch(r"[\w.]+", plain):
            raise UserError(
                f"{pattern} of {ADAPTER} names '{printable(name)[:80]}', a pattern and no module: "
                f"{_MERGE}"
            )
        if module == plain or (plain == name and module.endswith("." + plain)):
            return own.number(name)
    return values.number(key, 8.0)
