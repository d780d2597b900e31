"""What is read off the maps of one attention, on several sequences of one length."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attlas.audit.data_level.data_quantities import ROW_QUANTITIES
from attlas.measures.attention.map_statistics import NEAR

STRONG = 0.8
"""Weight above which a row counts as confident, as in `strong_offsets`."""


class MapObservation(NamedTuple):
    """One entry per sequence and head.

    Attributes:
        rows: means over rows, in the order of `ROW_QUANTITIES`; NaN where rows and tokens are of
            two sequences and the quantity compares places.
        uniform: the same of equal weights over the tokens that each row sees.
        offsets: of each row that sees two tokens or more and whose largest weight exceeds 0.8, the
            place of that weight less its own; NaN for other rows.
        choosing: number of rows that see two tokens or more.
        largest_logit: largest absolute logit that a row sees.
        first: mean weight of the first token over the rows that see it.
        uniform_first: the same of equal weights.
    """

    rows: Float[np.ndarray, "B quantities H"]
    uniform: Float[np.ndarray, "B quantities H"]
    offsets: Float[np.ndarray, "B H T"]
    choosing: Int[np.ndarray, "B H"]
    largest_logit: Float[np.ndarray, "B H"]
    first: Float[np.ndarray, "B H"]
    uniform_first: Float[np.ndarray, "B H"]


def observe_maps(
    weights: Float[np.ndarray, "B H T S"],
    logits: Float[np.ndarray, "B H T S"],
    allowed: Bool[np.ndarray, "B H T S"],
    special: Bool[np.ndarray, "B S"] | None,
) -> MapObservation:
    """The observations of one attention.

    Args:
        special: True for special tokens; None where the columns are no tokens of the text.
    """
    number = np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    even = allowed / number
    choosing = allowed.sum(axis=-1) > 1
    strong = choosing & (weights.max(axis=-1) > STRONG)
    offsets = weights.argmax(axis=-1) - np.arange(weights.shape[2])
    return MapObservation(
        _row_means(weights, special),
        _row_means(even, special),
        np.where(strong, offsets, np.nan),
        choosing.sum(axis=-1),
        np.abs(np.where(allowed, logits, 0.0)).max(axis=(2, 3)),
        _first(weights, allowed),
        _first(even, allowed),
    )


def _row_means(
    a: Float[np.ndarray, "B H T S"], special: Bool[np.ndarray, "B S"] | None
) -> Float[np.ndarray, "B quantities H"]:
    """In the order of `MapStatistics`."""
    T, S = a.shape[-2:]
    positive = np.where(a > 0, a, 1.0)
    entropy = -np.sum(a * np.log(positive), axis=-1)
    ordered = -np.sort(-a, axis=-1)
    with np.errstate(divide="ignore"):
        logs = np.log(ordered[..., 0])
    nothing = np.full(a.shape[:3], np.nan)
    columns = [
        entropy,
        np.exp(entropy),
        1 / np.sum(a**2, axis=-1),
        ordered[..., 0],
        ordered[..., :4].sum(axis=-1),
        ordered[..., :16].sum(axis=-1),
        logs,
    ]
    if T == S and special is not None:
        apart = np.abs(np.arange(T)[:, None] - np.arange(T)) > NEAR
        away = apart[None, None] & ~special[:, None, None]
        before, after = np.zeros_like(nothing), np.zeros_like(nothing)
        before[..., 1:] = np.diagonal(a, -1, 2, 3)
        after[..., :-1] = np.diagonal(a, 1, 2, 3)
        columns += [
            np.where(away, a, 0.0).max(axis=-1),
            before,
            after,
            np.diagonal(a, 0, 2, 3),
            a[..., 0],
            np.where(special[:, None, None], a, 0.0).sum(axis=-1),
        ]
    else:
        columns += [nothing] * 4 + [a[..., 0], nothing]
    assert len(columns) == len(ROW_QUANTITIES)
    return np.stack([column.mean(axis=-1) for column in columns], axis=1)


def _first(a: Float[np.ndarray, "B H T S"], allowed: np.ndarray) -> Float[np.ndarray, "B H"]:
    sees = allowed[..., 0]
    return np.where(sees, a[..., 0], 0.0).sum(axis=-1) / np.maximum(sees.sum(axis=-1), 1)


def positional_heads(
    offsets: Float[np.ndarray, "n H T"], choosing: Int[np.ndarray, "n H"]
) -> tuple[Float[np.ndarray, "n H"], Float[np.ndarray, " H"]]:
    """Share of the choosing rows at the offset that is most frequent over all sequences.

    Args:
        offsets: offset of each confident row, as in `MapObservation`.
        choosing: number of rows with a choice, as in `MapObservation`.

    Returns:
        The share of each sequence, and the offset, NaN where no row has one.

    Examples:
        >>> share, offset = positional_heads(np.array([[[np.nan, -1.0, -1.0]]]), np.array([[2]]))
        >>> share.tolist(), offset.tolist()
        ([[1.0]], [-1.0])
    """
    share, best = np.zeros(choosing.shape), np.full(choosing.shape[1], np.nan)
    for head in range(best.size):
        seen = offsets[:, head]
        places, counts = np.unique(seen[np.isfinite(seen)], return_counts=True)
        if places.size:
            best[head] = places[counts.argmax()]
            share[:, head] = np.sum(seen == best[head], axis=-1)
    return share / np.maximum(choosing, 1), best
