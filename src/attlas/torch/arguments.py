"""The hyper-parameters of `LpMirrorDescent`, refused with the value that is wrong."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from attlas.core.errors import UserError
from attlas.torch.blocks import require_block

SCALINGS = ("relative", "normalized", "plain")


def require_arguments(group: Mapping[str, Any]) -> None:
    """Check that a complete parameter group of a torch optimiser can be trained.

    Raises:
        UserError: naming the first value that is wrong.

    Examples:
        >>> require_arguments({"lr": 0.1, "p": 1.0})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: exponent p = 1.0 has no mirror map: choose 1 < p < inf
    """
    lr = group["lr"]
    if isinstance(lr, torch.Tensor):
        if lr.numel() != 1 or lr.is_complex() or lr.dtype == torch.bool:
            raise UserError(
                f"lr is a tensor of shape {tuple(lr.shape)} and {lr.dtype}: give one real number"
            )
        lr = lr.item()
    require_nonnegative(lr, "lr")
    p = _number(group["p"], "exponent p")
    if not 1 < p < math.inf:
        raise UserError(f"exponent p = {p} has no mirror map: choose 1 < p < inf")
    require_nonnegative(group["eps"], "eps")
    require_nonnegative(group["weight_decay"], "weight_decay")
    if group["floor"] is not None:
        require_nonnegative(group["floor"], "floor")
    momentum = _number(group["momentum"], "momentum")
    if not 0 <= momentum < 1:
        raise UserError(f"momentum = {momentum} averages nothing: choose 0 <= momentum < 1")
    if group["scaling"] not in SCALINGS:
        raise UserError(f"scaling = {group['scaling']!r}: choose one of {', '.join(SCALINGS)}")
    if not isinstance(group["maximize"], bool):
        raise UserError(f"maximize = {group['maximize']!r} is neither True nor False: choose one")
    if group["foreach"] not in (None, True, False):
        raise UserError(f"foreach = {group['foreach']!r}: give True, False or None")
    for tensor in group["params"]:
        if not tensor.is_floating_point():
            raise UserError(
                f"a parameter of shape {tuple(tensor.shape)} has {tensor.dtype}: mirror descent "
                "takes real floating-point ones; give a complex one by torch.view_as_real"
            )
    if group["scaling"] != "plain" and any(_is_sharded(tensor) for tensor in group["params"]):
        raise UserError(
            f"a parameter is sharded, and scaling = {group['scaling']!r} needs the norm of the "
            "whole gradient: choose scaling='plain'"
        )
    require_block(group["block"], [tensor.shape for tensor in group["params"]])


def require_nonnegative(value: Any, name: str) -> None:
    """Check that a value is a finite number of at least 0.

    Raises:
        UserError: naming the argument and its value.

    Examples:
        >>> require_nonnegative(-1, "lr")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: lr = -1 is negative or not finite: choose another
    """
    if not 0 <= _number(value, name) < math.inf:
        raise UserError(f"{name} = {value} is negative or not finite: choose another")


def _number(value: Any, name: str) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{name} = {value!r} is not a number: give a real one")
    return value


def _is_sharded(tensor: torch.Tensor) -> bool:
    """Whether this process holds a part of a tensor alone, by either version of FSDP."""
    placements = getattr(tensor, "placements", ())
    flattened = hasattr(tensor, "_is_flat_param") or hasattr(tensor, "_fsdp_flattened")
    return flattened or any(placement.is_shard() for placement in placements)
