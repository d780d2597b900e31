"""Attention weights trained with their own p, and all else with p = 2 or another optimiser."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attlas.core.errors import UserError
from attlas.torch.attention_weights import PARTS, AttentionWeight, attention_weights
from attlas.torch.lp_mirror_descent import LpMirrorDescent
from attlas.torch.split_optimizer import SplitOptimizer


def attention_groups(
    model: nn.Module,
    p: float,
    *,
    parts: Sequence[str] = PARTS[:3],
    show: Callable[[str], Any] | None = print,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Groups for `LpMirrorDescent`: the attention weights with exponent p, all else with p = 2.

    Each matrix is a block of its own where steps need a norm, and a fused one is three: a model
    takes the same step whether its queries, keys and values are stored together or apart. Frozen
    ones are left out. The Euclidean group is the last one; none is empty.

    For `transformers.Trainer`: `optimizer_cls_and_kwargs=(LpMirrorDescent, {"params":
    attention_groups(model, p=3.0), "lr": 0.01})`.

    Args:
        model: a torch.nn or Hugging Face model; see `attlas.torch.attention_weights`.
        parts: roles among "query", "key", "value", "output"; a fused tensor is included if it holds
            one of them.
        show: called with each line that says what was chosen; may be None.
        **settings: further entries of the attention groups, such as lr or momentum.

    Raises:
        UserError: if no attention weight is found, or a part is unknown.

    Examples:
        >>> groups = attention_groups(nn.TransformerEncoderLayer(4, 2, 8), p=3.0)
        p = 3.0: self_attn.in_proj_weight (12, 4), query + key + value, 3 blocks
        p = 2: 11 other tensors, 124 parameters
        >>> [(group["p"], group["block"], len(group["params"])) for group in groups]
        [(3.0, (0, 1, (4, 4, 4)), 1), (2.0, 'tensor', 11)]
    """
    weights, remaining = _divided(model, parts)
    if show is not None:
        _show(show, weights, p, "p = 2", remaining)
    groups = _attention_part(weights, p, settings)
    if remaining:
        groups.append({"params": remaining, "p": 2.0, "block": "tensor"})
    return groups


def split(
    model: nn.Module,
    p: float,
    rest: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = torch.optim.AdamW,
    *,
    parts: Sequence[str] = PARTS[:3],
    show: Callable[[str], Any] | None = print,
    **settings: Any,
) -> SplitOptimizer:
    """Mirror descent for a model's attention weights and another optimiser for the rest, in one.

    `transformers.Trainer(model, arguments, optimizers=(split(model, p=1.1), None))` trains with it.

    Args:
        model: a torch.nn or Hugging Face model; see `attlas.torch.attention_weights`.
        p: exponent 1 < p < inf of the attention weights.
        rest: class of an optimiser, called with the list of other parameters; `functools.partial`
            gives it a rate: `rest=partial(torch.optim.AdamW, lr=3e-4)`.
        parts: roles among "query", "key", "value", "output" that mirror descent trains.
        show: called with each line that says what was chosen; may be None.
        **settings: arguments of `LpMirrorDescent`, such as lr or momentum.

    Raises:
        UserError: if no attention weight is found or nothing else is left, or a part is unknown.

    Examples:
        >>> optimizer = split(nn.TransformerEncoderLayer(4, 2, 8), p=1.1, lr=0.02)
        p = 1.1: self_attn.in_proj_weight (12, 4), query + key + value, 3 blocks
        AdamW: 11 other tensors, 124 parameters
        >>> [(group["part"], group["lr"]) for group in optimizer.param_groups]
        [(0, 0.02), (1, 0.001)]
    """
    weights, remaining = _divided(model, parts)
    if not remaining:
        raise UserError(
            f"{type(model).__name__} has attention weights alone: train it with "
            "LpMirrorDescent(attention_groups(model, p))"
        )
    optimizer = rest(remaining)
    if show is not None:
        _show(show, weights, p, type(optimizer).__name__, remaining)
    return SplitOptimizer(
        LpMirrorDescent(_attention_part(weights, p, {}), p=p, **settings), optimizer
    )


def _divided(
    model: nn.Module, roles: Sequence[str]
) -> tuple[list[AttentionWeight], list[nn.Parameter]]:
    """The trainable attention weights of some roles, and all other trainable parameters."""
    if not roles or any(role not in PARTS for role in roles):
        raise UserError(f"parts = {list(roles)}: choose some of {', '.join(PARTS)}")
    weights = [
        weight
        for weight in attention_weights(model)
        if set(weight.parts) & set(roles) and weight.tensor.requires_grad
    ]
    if not weights:
        raise UserError(
            f"{type(model).__name__} has no trainable attention weights of {' or '.join(roles)} "
            "under a known name: make the groups by hand, or name its projections "
            "q_proj, k_proj and v_proj"
        )
    attention = {id(weight.tensor) for weight in weights}
    return weights, [w for w in model.parameters() if id(w) not in attention and w.requires_grad]


def _show(
    show: Callable[[str], Any],
    weights: list[AttentionWeight],
    p: float,
    others: str,
    remaining: list[nn.Parameter],
) -> None:
    for weight in weights:
        show(_line(weight, p))
    count = sum(w.numel() for w in remaining)
    show(f"{others}: {len(remaining)} other tensors, {count} parameters")


def _attention_part(
    attention: list[AttentionWeight], p: float, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """One group for each way in which blocks lie in a tensor."""
    by_block: dict[Any, list[AttentionWeight]] = {}
    for weight in attention:
        by_block.setdefault(weight.block, []).append(weight)
    return [
        {**settings, "params": [entry.tensor for entry in weights], "p": p, "block": block}
        for block, weights in by_block.items()
    ]


def _line(weight: AttentionWeight, p: float) -> str:
    blocks = "" if weight.block == "tensor" else f", {len(weight.block[2])} blocks"
    note = f" ({weight.note})" if weight.note else ""
    held = " + ".join(weight.parts)
    return f"p = {p}: {weight.name} {tuple(weight.tensor.shape)}, {held}{blocks}{note}"
