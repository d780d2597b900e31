"""What stands for a head in a run: nothing, its mean output, or equal weights."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.torch.attention_trace import Attended


def replaced_context(seen: Attended, heads: Sequence[int], replacement: str) -> Tensor:
    """The context of an attention with some heads replaced.

    Args:
        seen: tensors of the attention, with an axis of heads.
        heads: places on that axis, from 0.
        replacement: "zero", "mean" over the sequences and rows of the batch, or "uniform" weights
            on the tokens that each row sees.

    Returns:
        The context, (B, H, T, v).

    Examples:
        >>> one = torch.ones(1, 1, 2, 1)
        >>> maps = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])
        >>> values = torch.tensor([[[[2.0], [4.0]]]])
        >>> seen = Attended(one, one, torch.zeros(1, 1, 2, 2), maps, values, maps @ values)
        >>> [replaced_context(seen, [0], way).flatten().tolist() for way in ("mean", "uniform")]
        [[2.5, 2.5], [3.0, 3.0]]
    """
    places = list(heads)
    context = seen.context.clone()
    part = context[:, places]
    if replacement == "zero":
        context[:, places] = torch.zeros_like(part)
    elif replacement == "mean":
        context[:, places] = part.mean(dim=(0, 2), keepdim=True).expand_as(part)
    else:
        allowed = seen.allowed.expand_as(seen.weights)[:, places].to(part)
        even = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
        context[:, places] = even @ seen.values[:, places]
    return context
