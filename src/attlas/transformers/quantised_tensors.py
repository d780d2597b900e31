r"""Weights of eight bits as libraries store them, read as the numbers that they stand for.

Where a matrix is an array of eight-bit numbers and a few scales, it is their product:

- "fp8" (DeepSeek, Qwen): `weight` in float8_e4m3 times `weight_scale_inv`, one scale per block of
  `weight_block_size`, or one for all;
- "compressed-tensors" with weights of eight bits: `weight` times `weight_scale`, one scale per row
  or one for all;
- "bitsandbytes" in eight bits: `weight` times `SCB` / 127, one scale per row.

What other formats do is refused with what makes the model readable.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import Unread

QUANTISED = "quantization_config"
FLOAT8 = np.dtype(jnp.float8_e4m3fn)
_EIGHT_BITS = (FLOAT8, np.dtype(np.int8))
_LOAD = "AutoModelForCausalLM.from_pretrained(folder)"
_REMEDIES = {
    "gptq": "from gptqmodel.utils.model_dequant import dequantize_model; "
    "dequantize_model(folder, other)",
    "awq": "from gptqmodel.utils.model_dequant import dequantize_model; "
    "dequantize_model(folder, other)",
    "mxfp4": "AutoModelForCausalLM.from_pretrained(folder, quantization_config="
    "Mxfp4Config(dequantize=True)).save_pretrained(other)",
}
_DEQUANTISE = f"{_LOAD}.dequantize().save_pretrained(other)"
_ACTIVATIONS = ("input_scale", "output_scale", "k_scale", "v_scale", "activation_scale_ub")
"""Scales by which a library rounds what passes a layer; the weights do not depend on them."""


def dequantised(
    config: dict[str, Any], tensors: Mapping[str, Unread], where: str
) -> tuple[dict[str, Any], dict[str, Unread], tuple[str, ...]]:
    """Configuration and tensors with weights in place of eight-bit numbers and their scales.

    Args:
        config: the parsed config.json.
        where: name of the place in messages.

    Returns:
        Both without a trace of the format, and a sentence on it; as they are where none is named.

    Raises:
        UserError: if the format is another one, or scales and weights do not fit.
    """
    settings = config.get(QUANTISED)
    if not settings:
        return config, _without_float8(dict(tensors), where), ()
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if method == "fp8":
        scale, block = "weight_scale_inv", _block_size(settings.get("weight_block_size"))
    elif method == "compressed-tensors" and _has_plain_scales(settings):
        scale, block = "weight_scale", None
    elif method == "bitsandbytes" and settings.get("load_in_8bit") is True:
        scale, block = "SCB", None
    else:
        remedy = _REMEDIES.get(str(method), _DEQUANTISE)
        raise UserError(
            f"{where} has weights in the format '{printable(str(method))[:40]}', which is not "
            f"read: write them out in PyTorch, with {remedy}"
        )
    plain = _multiplied(dict(tensors), scale, block, where)
    rest = {key: value for key, value in config.items() if key != QUANTISED}
    note = (
        f"Weights of eight bits ({method}) are read as the numbers they stand for; that a library "
        "rounds activations too when it runs the model is not."
    )
    return rest, _without_float8(plain, where), (note,)


def _has_plain_scales(settings: Mapping[str, Any]) -> bool:
    """Whether the weights of all groups are of eight bits, symmetric, with scales per row."""
    groups = settings.get("config_groups")
    if settings.get("transform_config") or not isinstance(groups, dict) or not groups:
        return False
    weights = [group.get("weights") for group in groups.values() if isinstance(group, dict)]
    return len(weights) == len(groups) and all(
        isinstance(each, dict)
        and each.get("num_bits") == 8
        and each.get("symmetric", True) is True
        and each.get("strategy") in ("channel", "tensor")
        for each in weights
    )


def _block_size(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    if not isinstance(size, list) or len(size) != 2 or not all(type(n) is int for n in size):
        raise UserError(f"weight_block_size = {size!r:.80} is no pair of numbers of entries")
    if min(size) < 1:
        raise UserError(f"weight_block_size = {size!r:.80}: blocks have at least one entry")
    return size[0], size[1]


def _multiplied(
    tensors: dict[str, Unread], scale: str, block: tuple[int, int] | None, where: str
) -> dict[str, Unread]:
    """The tensors with each pair of a weight and its scales as one."""
    scales = [name for name in tensors if name.rpartition(".")[2] == scale]
    if not scales:
        raise UserError(
            f"{where} names a format of eight bits and holds no tensor of '{scale}': file and "
            "configuration are of different models"
        )
    plain = {
        name: tensor
        for name, tensor in tensors.items()
        if name.rpartition(".")[2] not in (scale, "weight_format", *_ACTIVATIONS)
    }
    for name in scales:
        target = f"{name.rpartition('.')[0]}.weight"
        weight = plain.get(target)
        if weight is None or len(weight.shape) != 2 or weight.dtype not in _EIGHT_BITS:
            raise UserError(
                f"{where}: '{printable(name)[:120]}' has no matrix of eight bits beside it: save "
                "the model again"
            )
        plain[target] = _product(weight, tensors[name], scale, block, printable(name)[:120])
    return plain


def _product(
    weight: Unread, scales: Unread, kind: str, block: tuple[int, int] | None, name: str
) -> Unread:
    rows, columns = weight.shape
    high, wide = (rows, columns) if block is None else (min(block[0], rows), min(block[1], columns))
    counts = math.ceil(rows / high) if rows else 0, math.ceil(columns / wide) if columns else 0
    allowed = [counts] if block else [(), (1,), (1, 1), (rows,), (rows, 1)]
    if scales.shape not in allowed:
        raise UserError(
            f"{weight.where}: '{name}' has shape {scales.shape} for a matrix of shape "
            f"{weight.shape}: one scale for all, for each row, or for each block is read"
        )

    def read(dtype: np.dtype) -> np.ndarray:
        values = weight.read(dtype)
        factors = scales.read(dtype) / (127 if kind == "SCB" else 1)
        if block is None:
            values *= factors.reshape(-1, 1)
            return values
        for place, row in enumerate(factors):
            values[place * high : (place + 1) * high] *= np.repeat(row, wide)[:columns]
        return values

    return Unread(weight.shape, np.dtype(np.float32), weight.where, read)


def _without_float8(tensors: dict[str, Unread], where: str) -> dict[str, Unread]:
    """The tensors, none of which is left in eight bits of a float."""
    left = next((name for name, tensor in tensors.items() if tensor.dtype == FLOAT8), None)
    if left is not None:
        raise UserError(
            f"{where}: tensor '{printable(left)[:120]}' is float8 without a scale: "
            f"{_DEQUANTISE}, or write its {QUANTISED} into config.json"
        )
    return tensors
