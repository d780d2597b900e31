r"""PAC-Bayes for the network itself, by certificates of how noise moves its attention."""

import math
from itertools import product
from statistics import NormalDist
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse, near_kl_inverse
from attlas.bounds.generalisation.pac_bayes_kl import log_moment
from attlas.bounds.generalisation.risk_bound import (
    INDEPENDENT,
    PRIOR_BEFORE,
    Condition,
    RiskBound,
    require_sample,
)
from attlas.core.errors import UserError
from attlas_bounds.library.bounds.linear_attention import MarginSample

SCALES = tuple(2.0 ** (k / 2) for k in range(-24, 9))
"""Standard deviations of the noise on readouts of length 1, and on the M."""
TAILS = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
_SAFE = 1 + 2**-40
_LEAST = 8
_STEPS = 64
_FIXED_CLS = Condition("[CLS] is the same vector in every sequence", False)


class Noise(NamedTuple):
    """Gaussian noise on the weights.

    Attributes:
        readout: tau, standard deviation on the readouts.
        attention: sigma, standard deviation on the M.
        tail: eta, the chance that noise moves an output by more than the threshold.
    """

    readout: float
    attention: float
    tail: float


class Lengths(NamedTuple):
    """Norms of the tokens of sequences, arrays of one shape.

    Attributes:
        token: largest Euclidean norm of a token.
        diameter: largest distance of two tokens.
        cls: Euclidean norm of [CLS].
    """

    token: np.ndarray
    diameter: np.ndarray
    cls: np.ndarray


def noise_threshold(lengths: Lengths, heads: int, tokens: int, noise: Noise) -> np.ndarray:
    r"""One-sided bound on the change of an output by noise, with probability 1 - eta.

    $$t=\sqrt H\Big(\tau\max_t\|x_t\|\,z_{\eta/2}+D\tanh\frac{\sigma D\|x_{\rm cls}\|\,
    z_{\eta/(2HT(T-1))}}4\Big),\quad\mathbb P(\mathcal N>z_p)=p$$

    for readouts of length 1: a Gaussian vector of logits has oscillation at most the largest of
    T(T-1) differences, each of standard deviation at most $\sigma D\|x_{\rm cls}\|$, and
    `perturbed_softmax` turns it into a change of the average.

    Args:
        lengths: number of tokens of each sequence.
        noise: scales of the noise, and eta.

    Returns:
        t, one per sequence.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> one = Lengths(np.ones(1), np.full(1, 2**0.5), np.ones(1))
        >>> print(f"{noise_threshold(one, 1, 2, Noise(0.1, 0.1, 0.1))[0]:.4f}")
        0.2623
    """
    return _moved(lengths, heads, noise, *_quantiles(noise.tail, heads, tokens))


def _moved(lengths: Lengths, heads: int, noise: Noise, side: Any, spread: Any) -> np.ndarray:
    """The threshold from its two quantiles; scales and quantiles may be arrays."""
    oscillation = noise.attention * lengths.diameter * lengths.cls * spread
    moved = noise.readout * lengths.token * side + lengths.diameter * np.tanh(oscillation / 4)
    return math.sqrt(heads) * moved * _SAFE


def _quantiles(tail: float, heads: int, tokens: int) -> tuple[float, float]:
    """Normal quantiles of the readout's noise, and of all differences of logits."""
    pairs = heads * tokens * (tokens - 1)
    spread = -NormalDist().inv_cdf(tail / (2 * pairs)) if pairs else 0.0
    return -NormalDist().inv_cdf(tail / 2), spread


def _thresholds(lengths: Lengths, heads: int, tokens: int) -> np.ndarray:
    """`noise_threshold` of every noise of the grid, shape (noises, sequences)."""
    side, spread = np.array([_quantiles(tail, heads, tokens) for tail in TAILS]).T[..., None]
    scales: Any = np.asarray(SCALES)[:, None, None]
    noise = Noise(scales[:, None], scales, 0.0)
    return _moved(lengths, heads, noise, side, spread).reshape(-1, len(lengths.token))


class _Margins(NamedTuple):
    """Sequences of the same norms, rounded up to powers of 2^(1/64), and their sorted margins."""

    lengths: Lengths
    margins: list[np.ndarray]


def _grouped(sample: MarginSample) -> _Margins:
    norms = sample.length, sample.diameter, np.linalg.norm(sample.cls, axis=1)
    steps = np.log2(np.maximum(np.stack(norms, axis=1), 1e-30)) * _STEPS
    rows, group = np.unique(np.ceil(steps - 1e-6), axis=0, return_inverse=True)
    margins = sample.margins / np.linalg.norm(sample.readouts)
    by_group = [np.sort(margins[group == k]) for k in range(len(rows))]
    return _Margins(Lengths(*(2 ** (rows.T / _STEPS) * (1 + 1e-6))), by_group)


def _shares_below(sample: MarginSample) -> np.ndarray:
    """The share of margins that are at most twice the threshold, for each noise."""
    groups = _grouped(sample)
    t = _thresholds(groups.lengths, len(sample.readouts), sample.tokens)
    counts = [
        np.searchsorted(sorted_margins, 2 * t[:, k], "right")
        for k, sorted_margins in enumerate(groups.margins)
    ]
    return np.sum(counts, axis=0) / len(sample.margins)


def _grid_losses(sample: MarginSample) -> tuple[np.ndarray, ...]:
    """Both scales and the tail of every noise, and the mean loss of networks drawn with it."""
    tau, sigma, eta = np.array(list(product(SCALES, SCALES, TAILS))).T
    loss = eta + (1 - eta) * _shares_below(sample)
    return tau, sigma, eta, np.minimum(1.0, loss * _SAFE)


def pac_bayes_margin(sample: MarginSample, delta: float, *, trivial: float | int = 1) -> RiskBound:
    r"""The error of one layer of attention from noise that its margins withstand.

    $$\mathbb P(yf\le0)\le\frac1{1-\eta}\sup\Big\{p:{\rm kl}(\hat q\|p)\le\frac{\frac1{2\tau^2}+
    \frac{\|M\|_F^2}{2\sigma^2}+\ln\frac{2K\sqrt m}\delta}m\Big\},\quad
    \hat q=\eta+\frac{1-\eta}m\#\{i:y_if(X_i)\le2t(X_i)\}$$

    for readouts of length 1, as the sign of f does not depend on it. Thresholds $t(X)$ are those of
    `noise_threshold`, at norms of each sequence rounded up, so that none is assumed. Nothing but
    the logarithms of T and H in t depends on length and heads, nothing on the dimension.

    Args:
        delta: probability of failure, in (0, 1).
        trivial: error that is reached without data, such as that of guessing.

    Returns:
        The bound, of the network itself and not of one that is drawn.

    Raises:
        UserError: for fewer than 8 sequences.

    Source: after Neyshabur, Bhojanapalli and Srebro (2018); derived,
    papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own = LinearAttention([1.0, 0.0], np.eye(2))
        >>> X = np.repeat(np.array([[[1.0, 0.0]]]), 10**5, axis=0)
        >>> bound = pac_bayes_margin(measure_margins(own, X, [1.0, 0.0], np.ones(10**5)), 0.05)
        >>> f"{bound.bound:.5f}"
        '0.00081'
    """
    n = len(sample.margins)
    require_sample(n, delta, trivial)
    if n < _LEAST:
        raise UserError(f"n = {n} sequences: the bound needs at least {_LEAST}")
    tau, sigma, eta, losses = _grid_losses(sample)
    nats = (0.5 / tau**2 + float(np.sum(sample.query_keys**2)) / (2 * sigma**2)) * _SAFE
    share = delta / len(tau)

    def best(m: float) -> tuple[float, int]:
        cost = (nats + log_moment(m) - math.log(share)) / m * _SAFE
        k = int(np.argmin(near_kl_inverse(losses, cost) / (1 - eta)))
        risk = kl_upper_inverse(float(losses[k]), float(cost[k])) / (1 - float(eta[k]))
        return min(1.0, risk * _SAFE), k

    bound, which = best(float(n))
    return RiskBound(
        name="PAC-Bayes margin",
        bound=bound,
        empirical=sample.error,
        n=n,
        delta=delta,
        shares=((f"PAC-Bayes, {len(tau)} scales and tails", delta),),
        complexity=float(nats[which]),
        conditions=(INDEPENDENT, PRIOR_BEFORE, *([_FIXED_CLS] if sample.fixed_cls else [])),
        at=lambda m: best(max(m, float(_LEAST)))[0],
        trivial=trivial,
    )


@closed_form
def perturbed_softmax(
    span: Float[Array, "*s"] | float, oscillation: Float[Array, "*s"] | float
) -> Float[Array, "*s"]:
    r"""The largest change of a softmax average when the logits change by h; it is attained.

    $$\Big|\sum_t(p'_t-p_t)v_t\Big|\le(\max v-\min v)\tanh\frac{\max h-\min h}4,\qquad
    p={\rm softmax}(z),\ p'={\rm softmax}(z+h)$$

    Args:
        span: max v - min v, one number or of the shape of the other.
        oscillation: max h - min h.

    Returns:
        The bound; two tokens at logits -h/2 attain it.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> v, h = jnp.array([1.0, -1.0]), jnp.array([0.5, -0.5])
        >>> import jax; p, q = jax.nn.softmax(-h / 2), jax.nn.softmax(h / 2)
        >>> print(f"{float((q - p) @ v):.6f} {float(perturbed_softmax(2.0, 1.0)):.6f}")
        0.489837 0.489837
    """
    return jnp.asarray(span) * jnp.tanh(jnp.asarray(oscillation) / 4)
