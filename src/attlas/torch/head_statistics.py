"""What the rows of attention heads are like, from their logits."""

import torch
from torch import Tensor


def head_statistics(
    logits: Tensor,
    allowed: Tensor,
    rows: Tensor,
    size: Tensor | None = None,
    sinks: Tensor | None = None,
) -> dict[str, Tensor]:
    r"""Entropy, largest logit, sink, gap and margin of each head.

    With A = softmax of the logits over the allowed keys: the entropy of a row in nats, mean over
    rows; the largest allowed logit; the sink alpha_1, the mean weight of a sequence's first key,
    which is the first that any counted row may see: behind padding on the left it is not column 0;
    the gap, median over rows of the largest less the second largest logit; the margin, median of
    the gap over `size`, which does not change when queries and keys are rescaled. As in the
    attention SVM, it is the distance by which the selected token is ahead for weights of unit norm.

    Args:
        logits: (batch, heads, T, S), scaled as the softmax takes them.
        allowed: booleans that broadcast to the logits; False is masked.
        rows: (batch, T), booleans; False is a row of padding, which does not count.
        size: denominator of a gap, (batch, heads, T), such as the norm of the query times the
            largest norm of a key; no margin when None.
        sinks: learned logits beside the keys of every row that have no value, (heads,) or (batch,
            heads, T, 1): what they take is missing from the keys' weights, and part of the entropy.

    Returns:
        One tensor of length heads for each name; NaN where no row has what is asked.

    Examples:
        >>> logits = torch.tensor([[[[2.0, 0.0], [1.0, 1.0]]]])
        >>> everything = torch.ones(1, 2, dtype=torch.bool)
        >>> found = head_statistics(logits, everything[:, None, None], everything)
        >>> [round(found[name].item(), 4) for name in ("largest_logit", "sink", "gap")]
        [2.0, 0.6904, 0.0]
    """
    allowed = allowed.expand_as(logits)
    lowest = torch.finfo(logits.dtype).min
    masked = logits.masked_fill(~allowed, lowest)
    counted = (rows[:, None] & allowed.any(-1)).expand(logits.shape[:3])
    logs = with_sinks(masked, sinks).log_softmax(-1)
    present = allowed if sinks is None else torch.nn.functional.pad(allowed, (0, 1), value=True)
    entropy = -(logs.exp() * logs).masked_fill(~present, 0).sum(-1)
    weights = logs[..., : logits.shape[-1]].exp().masked_fill(~allowed, 0)
    several = counted & (allowed.sum(-1) > 1)
    largest = masked.amax(-1).masked_fill(~counted, lowest).amax((0, 2))
    nothing = logits.new_full((), torch.nan)
    statistics = {
        "entropy": _mean(entropy, counted),
        "largest_logit": torch.where(counted.any(2).any(0), largest, nothing),
        "sink": _mean(_first_weight(weights, allowed & counted[..., None]), counted),
    }
    if logits.shape[-1] > 1:
        first, second = masked.topk(2, dim=-1).values.unbind(-1)
        gap = torch.where(several, first - second, nothing)
    else:
        gap = torch.full_like(entropy, torch.nan)
    statistics["gap"] = _median(gap)
    if size is not None:
        statistics["margin"] = _median(gap / size)
    return statistics


def with_sinks(logits: Tensor, sinks: Tensor | None) -> Tensor:
    """The logits with a last column of learned ones, (heads,) or (batch, heads, T, 1), if any.

    Examples:
        >>> with_sinks(torch.zeros(1, 2, 1, 1), torch.tensor([1.0, 2.0])).tolist()
        [[[[0.0, 1.0]], [[0.0, 2.0]]]]
    """
    if sinks is None:
        return logits
    column = sinks if sinks.ndim == 4 else sinks[None, :, None, None]
    column = column.to(logits).expand(*logits.shape[:3], 1)
    return torch.cat([logits, column], dim=-1)


def _first_weight(weights: Tensor, seen: Tensor) -> Tensor:
    """The weight of each sequence's first key: the first column that one of its rows sees."""
    first = seen.any(2).any(1).to(torch.uint8).argmax(-1)
    place = first[:, None, None, None].expand(*weights.shape[:3], 1)
    return weights.gather(-1, place)[..., 0]


def _mean(values: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, values, 0).sum((0, 2)) / counted.sum((0, 2))


def _median(values: Tensor) -> Tensor:
    return values.transpose(0, 1).flatten(1).nanmedian(-1).values
