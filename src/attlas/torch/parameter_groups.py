"""Parameter groups that train attention weights with their own p, and all else with p = 2."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from attlas.core.errors import UserError
from attlas.torch.attention_weights import PARTS, AttentionWeight, attention_weights


def attention_groups(
    model: nn.Module,
    p: float,
    *,
    parts: Sequence[str] = PARTS[:3],
    show: Callable[[str], Any] | None = print,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Groups for `LpMirrorDescent`: the attention weights with exponent p, all else with p = 2.

    Each matrix is a block of its own in a normalised step, and a fused one is three: a model takes
    the same step whether its queries, keys and values are stored together or apart. Frozen ones
    are left out. The Euclidean group is the last one; none is empty.

    For `transformers.Trainer`: `optimizer_cls_and_kwargs=(LpMirrorDescent, {"params":
    attention_groups(model, p=3.0), "lr": 0.1})`.

    Args:
        model: a torch.nn or Hugging Face model; see `attlas.torch.attention_weights`.
        parts: roles among "query", "key", "value", "output"; a fused tensor is included if it holds
            one of them.
        show: called with each line that says what was chosen; may be None.
        **settings: further entries of the attention groups, such as lr or normalized.

    Raises:
        UserError: if no attention weight is found, or a part is unknown.

    Examples:
        >>> groups = attention_groups(nn.TransformerEncoderLayer(4, 2, 8), p=3.0)
        p = 3.0: self_attn.in_proj_weight (12, 4), query + key + value, 3 blocks
        p = 2: 11 other tensors, 124 parameters
        >>> [(group["p"], group["block"], len(group["params"])) for group in groups]
        [(3.0, (0, 1, (4, 4, 4)), 1), (2.0, None, 11)]
    """
    if not parts or any(part not in PARTS for part in parts):
        raise UserError(f"parts = {list(parts)}: choose some of {', '.join(PARTS)}")
    weights = [
        weight
        for weight in attention_weights(model)
        if set(weight.parts) & set(parts) and weight.tensor.requires_grad
    ]
    if not weights:
        raise UserError(
            f"{type(model).__name__} has no trainable attention weights of {' or '.join(parts)} "
            "under a known name: make the groups by hand, or name its projections "
            "q_proj, k_proj and v_proj"
        )
    groups = _attention_part(weights, p, settings)
    taken = {id(weight.tensor) for weight in weights}
    remaining = [w for w in model.parameters() if id(w) not in taken and w.requires_grad]
    if show is not None:
        for weight in weights:
            show(_line(weight, p))
        show(
            f"p = 2: {len(remaining)} other tensors, {sum(w.numel() for w in remaining)} parameters"
        )
    if remaining:
        groups.append({"params": remaining, "p": 2.0, "block": None})
    return groups


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
