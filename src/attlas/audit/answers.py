r"""How far scores are from right answers: loss, errors and ranks of each example."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp


class Outcome(NamedTuple):
    """What a model made of each example.

    Attributes:
        losses: cross-entropy of the right answer, in nats.
        errors: whether another answer has as high a score.
        ranks: number of answers whose score is as high, the right one counted.
    """

    losses: Float[np.ndarray, " n"]
    errors: Bool[np.ndarray, " n"]
    ranks: Int[np.ndarray, " n"]


def outcome_of(scores: Float[np.ndarray, "n C"], right: Int[np.ndarray, " n"]) -> Outcome:
    r"""The outcome of logits of classes, or of similarities of documents.

    $$L_i=\log\sum_c e^{s_{ic}}-s_{iy_i}$$

    Args:
        scores: logits or similarities, one row per example.
        right: number of the right answer of each example.

    Examples:
        An answer that ties with the right one is as good to a reader: the example is an error.

        >>> outcome = outcome_of(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([0, 0]))
        >>> outcome.errors.tolist(), outcome.ranks.tolist(), outcome.losses.round(3).tolist()
        ([False, True], [1, 2], [0.127, 0.693])
    """
    target = np.take_along_axis(scores, right[:, None], axis=1)
    ranks = np.sum(scores >= target, axis=1)
    return Outcome(logsumexp(scores, axis=1) - target[:, 0], ranks > 1, ranks)
