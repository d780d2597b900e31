r"""Theorem 5.1 of trauger2023sequence: prediction of a masked token among K by cross-entropy.

The loss is 2-Lipschitz in the largest score. "printed" is the order sqrt(K) of the l_inf
contraction, whose constant and logarithms the paper hides; "sharp" has every constant, by
the l_2 contraction of Maurer (2016); and `trauger2023_masked_parts` covers scores directly, so
that the network below is paid for once and not K times:
papers/trauger2023sequence/proofs/layers.md.
"""

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.bounds.covering.dudley import Number
from attlas.bounds.generalisation.trauger2023_deep import Part
from attlas.core.ranges import require_at_least

CROSS_ENTROPY_LIPSCHITZ = 2.0
"""From the largest score to the loss; a supremum, approached as the true token's weight falls."""


@closed_form
def trauger2023_masked(
    rademacher: Number, K: int, *, constants: Literal["printed", "sharp"] = "sharp"
) -> Float[Array, ""]:
    r"""Rademacher complexity of the losses from that of the score of one token.

    $$2\sqrt KR\ \text{(printed, order)},\qquad2KR\ \text{(sharp)}$$

    Args:
        rademacher: R, a bound for every token.

    Source: Theorem 5.1 of trauger2023sequence (found); "sharp" derived.

    Examples:
        >>> [float(trauger2023_masked(0.5, 4, constants=c)) for c in ("printed", "sharp")]
        [2.0, 4.0]
    """
    require_constants(constants, "printed", "sharp")
    require_at_least(0, rademacher=rademacher)
    require_at_least(1, K=K)
    factor = math.sqrt(K) if constants == "printed" else K
    return CROSS_ENTROPY_LIPSCHITZ * factor * jnp.asarray(rademacher)


@closed_form
def trauger2023_masked_parts(matrices: list[Part]) -> list[Part]:
    r"""The costs of errors in the loss, from those of a network with the norm of one token's row.

    $$|\Delta\ell|\le2\max_s|W_sY-\hat W_s\hat Y|\le2\epsilon_W+2B_w\|Y-\hat Y\|$$

    Args:
        matrices: parts from `trauger2023_parts` with B_w the largest norm of a row of the readout.

    Returns:
        The parts with all costs doubled; the readout's entropy is that of a K x d matrix.

    Source: derived, instead of Theorem 5.1 of trauger2023sequence.

    Examples:
        >>> parts = [Part(0, "readout", jnp.asarray(1.0), 1.0)]
        >>> float(trauger2023_masked_parts(parts)[0].beta)
        2.0
    """
    return [part._replace(beta=CROSS_ENTROPY_LIPSCHITZ * part.beta) for part in matrices]


@closed_form
def clipped_cross_entropy(
    scores: Float[Array, " K"], word: int | Int[Array, ""], ceiling: Number
) -> Float[Array, ""]:
    r"""Cross-entropy cut off at a ceiling, so that the loss has a range.

    $$\min\big(M,\ln\textstyle\sum_te^{x_t}-x_i\big)$$

    Here M is `ceiling`.

    Args:
        scores: one score per token.
        word: the true token i, a number or a traced index.

    Returns:
        The loss, in [0, M], 2-Lipschitz in the largest score.

    Source: section 5 of trauger2023sequence (found).

    Examples:
        >>> print(f"{float(clipped_cross_entropy(jnp.zeros(2), 0, 5.0)):.4f}")
        0.6931
        >>> float(clipped_cross_entropy(jnp.array([0.0, 100.0]), 0, 5.0))
        5.0
    """
    return jnp.minimum(jax.nn.logsumexp(scores) - scores[word], ceiling)
