r"""A bound for language models whose sample is its tokens, which are not independent.

The risk is the mean over the positions of one stream of the conditional expectation of the loss,
given the tokens before it; deviations of the losses from it are differences of a martingale.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.bounds.generalisation.conditions import require_bits, require_delta
from attlas.bounds.generalisation.risk_bound import CODE_BEFORE, Condition, RiskBound
from attlas.core.argument_validation import validate_arguments
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least

SMOOTHINGS = (0.5, 0.25, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4)
SLOPES = tuple(0.5 / 2**k for k in range(10))
"""Of the exponential supermartingale, for deviations from 1/2 down to 1e-3 of the range."""
_MARTINGALE = Condition(
    "probabilities are those of each token given tokens before it, in the order of the stream",
    False,
)
_BOUNDED = Condition("losses are bounded, by mixing the prediction with the uniform law", True)
_SAFE = 1 + 2**-40
"""Above the roundings of sums of up to 2^10 parts, and of pairwise sums of any length in use."""


class _Stream(NamedTuple):
    """What one smoothing makes of the probabilities: least loss, range, mean and spread in it."""

    least: float
    range: float
    mean: float
    spread: float


def token_bound(
    probabilities: ArrayInput,
    vocabulary: int,
    bits: float | int,
    delta: float,
    *,
    smoothings: Sequence[float] = SMOOTHINGS,
) -> RiskBound:
    r"""Mean bits per token of a model that is a file, along the stream that it was trained on.

    $$\frac1N\sum_i\mathbb E[Z_i\mid{\rm past}]\le\bar Z+\min\Big(\sqrt{\frac cN\cdot\frac12},\
    \min_\lambda\frac{\psi(\lambda)V+c}{\lambda N}\Big),\quad
    c=b\ln2+\ln\frac{A(J+1)}\delta,\quad\psi(\lambda)=-\ln(1-\lambda)-\lambda$$

    $Z_i$ is the loss $-\log_2((1-\alpha)p_i+\alpha/V_{\rm words})$ scaled into [0, 1], and
    $V=\sum_i(Z_i-\hat Z_i)^2$ with $\hat Z_i$ the mean of those before it. The union bound is over
    all files, the A smoothings $\alpha$, Azuma's inequality and the J slopes $\lambda$.

    Args:
        probabilities: p_i of the token that came, in the order of the stream, by the decoded model.
        bits: b, such as `8 * len(occam_code.encode(...))`.
        delta: probability of failure, in (0, 1).
        smoothings: grid of alpha, fixed in advance.

    Returns:
        The bound in bits per token, `trivial` the uniform law's.

    Arguments out of range raise a `UserError` of one line.

    Source: Azuma (1967); Fan, Grama and Liu (2015) for the second form, with a union bound over
    files; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> bound = token_bound(np.full(100_000, 0.5), 4, 1000, 0.05)
        >>> print(f"{bound.empirical:.3f} {bound.bound:.3f} {bound.trivial:.0f}")
        1.022 1.120 2
    """
    (p,) = read_arrays("N", np.float64, probabilities=probabilities)
    _require(p, vocabulary, bits, delta, smoothings)
    choices = len(smoothings) * (len(SLOPES) + 1)
    cost = (bits * math.log(2) + math.log(choices) - math.log(delta)) * _SAFE
    streams = [_smoothed(p, vocabulary, alpha) for alpha in smoothings]

    def at(N: float) -> float:
        return min(_risks(streams, p.size, cost / N))

    best = streams[int(np.argmin(_risks(streams, p.size, cost / p.size)))]
    return RiskBound(
        name="tokens of a stream, martingale",
        bound=at(float(p.size)),
        empirical=best.least + best.range * best.mean,
        n=p.size,
        delta=delta,
        shares=((f"all files, {choices} choices of smoothing and inequality", delta),),
        complexity=bits * math.log(2),
        conditions=(_MARTINGALE, CODE_BEFORE, _BOUNDED),
        at=at,
        trivial=math.log2(vocabulary),
    )


_ROUNDED = 2**-20
"""By so much a softmax in float32 may exceed 1."""


@validate_arguments
def smoothed_losses(
    p: Float[np.ndarray, " N"], vocabulary: int, alpha: float
) -> tuple[Float[np.ndarray, " N"], float, float]:
    r"""Losses of a prediction that is mixed with the uniform law, scaled into [0, 1].

    $$Z=\frac{\ell-\ell_{\min}}\Delta,\quad\ell=-\log_2\Big((1-\alpha)p+\frac\alpha V\Big),\quad
    \Delta=\log_2\Big(1+\frac{(1-\alpha)V}\alpha\Big)$$

    Returns:
        Z, the least loss and the range.

    Raises:
        UserError: if p or alpha is no probability.

    Examples:
        >>> Z, least, width = smoothed_losses(np.array([0.0, 1.0]), 50304, 0.5)
        >>> Z.tolist(), round(width, 2)
        ([1.0, 0.0], 15.62)
    """
    require_at_least(1, vocabulary=vocabulary)
    if not 0 < alpha < 1:
        raise UserError(f"alpha = {alpha}: the share of the uniform law must lie in (0, 1)")
    if np.any((p < 0) | (p > 1 + _ROUNDED)):
        raise UserError("p holds a number outside [0, 1]: give the probabilities of the tokens")
    low = math.log2(1 - alpha + alpha / vocabulary)
    width = math.log2(1 + (1 - alpha) * vocabulary / alpha)
    Z = (low - np.log2((1 - alpha) * p + alpha / vocabulary)) / width
    return np.clip(Z, 0.0, 1.0), -low, width


@validate_arguments
def bernstein_exponent(slope: float) -> float:
    r"""The function $\psi(\lambda)=-\ln(1-\lambda)-\lambda$ of a slope $\lambda\in[0,1)$.

    Examples:
        >>> round(bernstein_exponent(0.5), 6)
        0.193147
    """
    if not 0 <= slope < 1:
        raise UserError(f"slope = {slope}: it must lie in [0, 1)")
    return -math.log1p(-slope) - slope


@validate_arguments
def running_spread(Z: Float[np.ndarray, " N"]) -> float:
    r"""$\sum_i(Z_i-\hat Z_i)^2$, $\hat Z_i$ the mean of 1/2 and all values in [0, 1] before it.

    Examples:
        >>> running_spread(np.array([1.0, 1.0]))
        0.3125
    """
    before = np.concatenate([[0.5], 0.5 + np.cumsum(Z)[:-1]]) / np.arange(1, len(Z) + 1)
    return float(np.sum((Z - before) ** 2))


def _smoothed(p: np.ndarray, vocabulary: int, alpha: float) -> _Stream:
    Z, least, width = smoothed_losses(p, vocabulary, alpha)
    return _Stream(least, width, float(np.mean(Z)), running_spread(Z))


def _risks(streams: list[_Stream], tokens: int, cost: float) -> list[float]:
    """The bound of every smoothing; the spread per token is what another length would have, too."""
    return [
        s.least + s.range * min(1.0, s.mean + _deviation(s.spread / tokens, cost)) for s in streams
    ]


def _deviation(spread: float, cost: float) -> float:
    """The smaller of Azuma's and the empirical Bernstein form; all of it per token."""
    slopes = ((bernstein_exponent(exponent) * spread + cost) / exponent for exponent in SLOPES)
    return min(math.sqrt(cost / 2), *slopes) * _SAFE


def _require(
    p: np.ndarray,
    vocabulary: int,
    bits: float | int,
    delta: float,
    smoothings: Sequence[float],
) -> None:
    require_delta(delta)
    if p.min() < 0 or p.max() > 1:
        worst = p[(p < 0) | (p > 1)][0]
        raise UserError(f"probabilities hold {worst}: give those of the observed tokens, in [0, 1]")
    if not (vocabulary >= 2 and vocabulary == int(vocabulary)):
        raise UserError(f"vocabulary = {vocabulary}: give a whole number of tokens, at least 2")
    require_bits(bits)
    if not smoothings or not all(0 < alpha < 1 for alpha in smoothings):
        raise UserError(f"smoothings = {tuple(smoothings)}: give at least one, each in (0, 1)")
