r"""Theorem 5.1: from the scores of K words to the loss, on classes small enough to be exact.

Rademacher complexities are averages over all signs of six samples. Every other class is the one
where the factor sqrt(K) is needed: equal inputs, sample i with true word i, and K scores that are
free to be +-B on their own.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.trauger2023_masked import (
    clipped_cross_entropy,
    trauger2023_masked,
)
from attlas.core.claim import Control, Sides, Status, assume
from attlas.core.statement import inequality

_WORDS = _SAMPLES = 6
_CORNERS = 2.0 * ((np.arange(2**_SAMPLES)[:, None] >> np.arange(_SAMPLES)) & 1) - 1
"""All sign vectors of length 6."""


def score_classes(rng, count):
    """Functions with K scores on six samples: random ones, near ones, and all free signs."""
    rng = np.random.default_rng(rng.integers(2**31, size=2))
    size = 10.0 ** rng.uniform(-2, 1, (count, 1, 1, 1))
    scores = size * rng.normal(size=(count, len(_CORNERS), _SAMPLES, _WORDS))
    # a class of few effective functions: a common matrix of scores and small deviations
    scores[::4] = scores[::4, :1] + 0.1 * scores[::4]
    scores[1::2] = size[1::2] * _CORNERS[:, None, :]
    free = np.arange(count) % 2 == 1
    ceiling = np.where(np.arange(count) % 3 == 0, 1e6, 10.0 ** rng.uniform(-0.5, 1, count))
    return {"scores": scores, "size": size[:, 0, 0, 0], "free": free, "ceiling": ceiling}


def _complexity(values):
    """Exact empirical Rademacher complexity of functions given by their values, (N, m)."""
    return jnp.mean(jnp.max(jnp.asarray(_CORNERS) @ values.T, axis=1)) / values.shape[1]


def _of_losses(scores, ceiling):
    """Complexity of the losses; sample i has the true word i."""

    def loss(of_sample, word):
        return clipped_cross_entropy(jnp.roll(of_sample, -word), 0, ceiling)

    return _complexity(jax.vmap(jax.vmap(loss), (0, None))(scores, jnp.arange(_SAMPLES)))


def _of_a_word(scores):
    """The largest complexity of the scores of one word."""
    return jnp.max(jax.vmap(_complexity, 2)(scores))


# Averages over 64 signs of sums of six losses.
on_classes = partial(inequality, sample=score_classes, count=72, roundings=160)


@on_classes(
    "Theorem 5.1 with every constant",
    controls=[Control("without the factor $K$", words=1)],
)
def theorem_5_1_contraction(scores, ceiling, *, words=_WORDS):
    r"""$$\hat R(\ell_M \circ F) \le 2K \max_{s \le K} \hat R(F_s), \quad
    F_s = \{ x \mapsto f(x)_s : f \in F \}$$

    Printed is an order, $\sqrt K$ up to logarithms, for the worst sample and with an unknown
    constant. This is the contraction of Maurer, exact on six samples. On these classes
    $2 \sqrt K$ would pass too: whether it always does is open here.
    """
    right = trauger2023_masked(_of_a_word(scores), words, constants="sharp")
    return Sides(_of_losses(scores, ceiling), right, magnitude=1 + jnp.max(jnp.abs(scores)))


@on_classes(
    r"Theorem 5.1, the factor $\sqrt K$",
    status=Status.NEW,
    assumptions=[assume("all scores are free signs", lambda free: free)],
    controls=[Control(r"$K$ in place of $\sqrt K$", power=1.0)],
)
def theorem_5_1_sqrt_k_needed(scores, size, *, power=0.5):
    r"""$$\sqrt K \Big( 1-\frac1K \Big) \max_s \hat R(F_s) \le \hat R(\ell \circ F), \quad
    F = \{ x \mapsto u : u \in \{-B,B\}^K \}, \ y_i = i, \ m = K$$

    The factor cannot be avoided on the readout, whose rows are free for each word: at
    $u = -B \sigma$ the losses reach $1 - 1/K$ of $B$ on average, a word $B / \sqrt K$ at most. On
    the network below, which all words share, it is not needed: theorem-5-1-recursion.
    """
    left = _WORDS**power * (1 - 1 / _WORDS) * _of_a_word(scores)
    return Sides(left, _of_losses(scores, 1e6), magnitude=1 + size)


@on_classes(
    "Section 5, range of the clipped loss",
    status=Status.NEW,
    assumptions=[assume("clipped below 100", lambda ceiling: ceiling < 100.0)],
    controls=[Control("a quarter of the ceiling", share=0.25)],
)
def section_5_radius(scores, ceiling, *, share=0.5):
    r"""$$\hat R(\ell_M \circ F) \le \frac M2$$

    A constant taken off all losses does not change the complexity: the chain starts at $M/2$.
    """
    return Sides(_of_losses(scores, ceiling), share * ceiling, magnitude=1 + ceiling)
