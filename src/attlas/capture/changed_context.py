"""What an attention gives with other maps: a token hidden, logits rounded, maps shared."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.torch.attention_trace import Attended


def without_token(seen: Attended, heads: Sequence[int], place: int) -> Tensor:
    """The context with a token hidden from some heads; who sees it alone sees it still.

    Examples:
        >>> one = torch.ones(1, 1, 2, 1)
        >>> logits = torch.tensor([[[[0.0, -1e9], [0.0, 0.0]]]])
        >>> values = torch.tensor([[[[2.0], [4.0]]]])
        >>> maps = logits.softmax(-1)
        >>> seen = Attended(one, one, logits, maps, values, maps @ values)
        >>> without_token(seen, [0], 0).flatten().tolist()
        [2.0, 4.0]
    """
    allowed = seen.allowed.expand_as(seen.logits)
    others = allowed.clone()
    others[..., place : place + 1] = False
    others = torch.where(others.any(-1, keepdim=True), others, allowed)
    context = seen.context.clone()
    places = list(heads)
    maps = _softmax(seen, seen.logits, others)
    context[:, places] = maps[:, places].to(seen.values) @ seen.values[:, places]
    return context


def with_rounded_logits(seen: Attended, name: str) -> Tensor:
    """The context with logits rounded to a type of numbers, such as "bfloat16"."""
    logits = seen.logits.to(getattr(torch, name)).to(seen.logits.dtype)
    maps = _softmax(seen, logits, seen.allowed)
    return maps.to(seen.values) @ seen.values


def with_shared_map(seen: Attended, first: int, second: int) -> Tensor:
    """The context when one head has the map of another one, with its own values."""
    context = seen.context.clone()
    context[:, second] = seen.weights[:, first].to(seen.values) @ seen.values[:, second]
    return context


def _softmax(seen: Attended, logits: Tensor, allowed: Tensor) -> Tensor:
    """Maps of other logits, beside a sink of the model's own as it is."""
    masked = logits.masked_fill(~allowed, -torch.inf)
    if seen.own is None:
        return masked.softmax(-1)
    return torch.cat([masked, seen.own.to(masked)], dim=-1).softmax(-1)[..., : masked.shape[-1]]
