r"""Bounds on the error of one layer of attention from its margins, in norm balls.

    printed -> constants -> linear readout -> ramp -> tokens met -> one-sided cover -> kl

Each is a `RiskBound` and stands in the table of `compare_bounds` as one of its `certificates`.
Radii and margins are picked afterwards from grids that were fixed beforehand.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from attlas.bounds.constants import require_constants
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse, near_kl_inverse
from attlas.bounds.generalisation.risk_bound import (
    INDEPENDENT,
    Condition,
    RiskBound,
    require_sample,
)
from attlas.core.errors import UserError
from attlas.core.ranges import require_positive
from attlas_bounds.library.bounds.linear_attention import MarginSample
from attlas_bounds.library.bounds.sample_complexity import Step, sample_complexity, tokens_met

GRID = 2.0 ** (np.arange(-40, 41) / 4)
"""Radii and margins, a factor 1.19 apart."""
Loss = Literal["hinge", "ramp"]
Deviation = Literal["Hoeffding", "kl"]
GRIDS_BEFORE = Condition("the grids of radii and margins were fixed before the examples", True)
_SAFE = 1 + 2**-40


def norm_radius(sample: MarginSample, total: bool) -> float:
    r"""The norm of the M on the grid, rounded up; infinite above it.

    Args:
        sample: sample, with its query-key matrices M.
        total: whether the $\|M_h\|_{1,1}$ are added; their largest otherwise.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own = LinearAttention(np.eye(2), np.stack([np.eye(2), np.eye(2)]))
        >>> sample = measure_margins(own, np.eye(2)[None], [[1.0, 1.0]], [1])
        >>> [round(norm_radius(sample, total=each), 3) for each in (False, True)]
        [2.378, 4.757]
    """
    norms = np.abs(sample.query_keys).sum(axis=(1, 2))
    wanted = float(norms.sum() if total else norms.max()) * _SAFE
    above = GRID[wanted <= GRID]
    return float(above[0]) if len(above) else math.inf


def ramp_margin_bound(
    sample: MarginSample,
    delta: float,
    *,
    step: Step = "met",
    loss: Loss = "ramp",
    trivial: float | int = 1,
) -> RiskBound:
    r"""The error by Rademacher complexity, at the best margin.

    $$\min_\gamma\ \frac1m\sum_i\ell\Big(\frac{y_if(X_i)}\gamma\Big)+\frac{2\hat R}\gamma+
    3c\sqrt{\frac{\ln(2K/\delta)}{2m}},\quad\ell(u)=\min(1,(1-u)_+),\ c=1$$

    With the hinge $(1-u)_+$ the range is $c=1+\beta/\gamma$, $\beta$ the largest entry of a token
    known beforehand; here the one that was met, in its favour.

    Args:
        sample: f is divided by the sum of the |entries| of its readouts.
        delta: probability of failure, in (0, 1).
        step: version of the complexity, see `sample_complexity`.
        loss: "ramp" or "hinge".
        trivial: error that is reached without data, such as that of guessing.

    Source: Theorem 4.1 of trauger2023sequence, sharpened; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own = LinearAttention([1.0, 0.0], np.eye(2))
        >>> X = np.repeat(np.array([[[1.0, 0.0]]]), 10**5, axis=0)
        >>> bound = ramp_margin_bound(measure_margins(own, X, [1.0, 0.0], np.ones(10**5)), 0.05)
        >>> f"{bound.bound:.3f}", bound.vacuous
        ('0.034', False)
    """
    require_sample(len(sample.margins), delta, trivial)
    if loss not in ("ramp", "hinge"):
        raise UserError(f"loss = {loss!r}: choose ramp or hinge")
    require_constants(step, *get_args(Step))
    at = _ramp(sample, delta, step, loss)
    n = len(sample.margins)
    return RiskBound(
        name=f"Theorem 4.1 {step}, {loss} loss",
        bound=at(float(n)),
        empirical=sample.error,
        n=n,
        delta=delta,
        shares=((f"{len(GRID)} radii times {len(GRID)} margins", delta),),
        complexity=math.log(len(GRID) ** 2),
        conditions=(INDEPENDENT, GRIDS_BEFORE),
        at=at,
        trivial=trivial,
    )


def _ramp(sample: MarginSample, delta: float, step: Step, loss: Loss) -> Callable[[float], float]:
    """The bound at every sample size."""
    met, radius = tokens_met(sample), norm_radius(sample, total=False)
    f = sample.margins / np.abs(sample.readouts).sum()
    above = math.inf if loss == "hinge" else 1.0
    risks = np.array([np.mean(np.clip(1 - f / g, 0, above)) for g in GRID])
    ranges = 1 + met.worst_entry / GRID if loss == "hinge" else np.ones(len(GRID))

    def at(m: float) -> float:
        if not math.isfinite(radius):
            return 1.0
        R = sample_complexity(met, radius, m, step=step)
        tail = float(generalisation_gap(0.0, m, delta / len(GRID) ** 2))
        return min(1.0, float(np.min(risks + 2 * R / GRID + tail * ranges)) * _SAFE)

    return at


def cover_coefficient(B_x: float, radius: float, heads: int, d: int) -> float:
    r"""The coefficient $\Gamma$ of one cover of the whole function, for all inputs at once.

    $$\log N(\epsilon)\le\frac\Gamma{\epsilon^2},\quad\Gamma=\Big(\big(HB_x^2\ln(2Hd+1)\big)^{1/3}+
    \big(B_x^6r^2\ln(2Hd^2+1)\big)^{1/3}\Big)^3$$

    Args:
        B_x: Euclidean norm of all tokens.
        radius: bound r on the sum of all |entries| of all M.

    Returns:
        Gamma, for readouts of l_1 norm 1.

    Source: derived from Lemmas 3.6 and E.1 of trauger2023sequence,
    papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> print(f"{cover_coefficient(1.0, 2.0, 1, 8):.2f}")
        69.11
    """
    readout = heads * B_x**2 * math.log(2 * heads * d + 1)
    attention = B_x**6 * radius**2 * math.log(2 * heads * d**2 + 1)
    return (math.cbrt(readout) + math.cbrt(attention)) ** 3 * _SAFE


def require_longest(sample: MarginSample, B_x: float) -> None:
    """Refuse a bound on norms that a token of the sample exceeds.

    Raises:
        UserError: if it is not positive, or a token is longer.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own = LinearAttention([1.0, 0.0], np.eye(2))
        >>> require_longest(measure_margins(own, 2 * np.eye(2)[None], [1.0, 0.0], [1]), 1.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: B_x = 1.0, but a token has norm 2: raise B_x
    """
    require_positive(B_x=B_x)
    longest = max(sample.length.max(), np.linalg.norm(sample.cls, axis=1).max())
    if longest > B_x * _SAFE:
        raise UserError(f"B_x = {B_x}, but a token has norm {longest:.6g}: raise B_x")


def _cover_costs(sample: MarginSample, B_x: float) -> tuple[np.ndarray, np.ndarray]:
    """At each margin the share of sequences that are not above it, and the nats of a cover."""
    heads, d = sample.readouts.shape
    radius = norm_radius(sample, total=True)
    f = np.sort(sample.margins / np.abs(sample.readouts).sum())
    below = np.searchsorted(f, GRID * _SAFE, side="right") / len(f)
    gamma = cover_coefficient(B_x * _SAFE, radius, heads, d) if math.isfinite(radius) else math.inf
    return below, 4 * gamma / GRID**2


def _cover(
    sample: MarginSample, B_x: float, delta: float, deviation: Deviation
) -> tuple[Callable[[float], float], float]:
    """The bound at every sample size, and the nats of the cover at about the best margin."""
    below, nats = _cover_costs(sample, B_x)
    union = math.log(len(GRID) ** 2 / delta)

    def at(m: float) -> float:
        cost = (nats + union) / m * _SAFE
        if not np.isfinite(cost).all():  # a norm is above the grid
            return 1.0
        if deviation == "Hoeffding":
            return min(1.0, float(np.min(below + np.sqrt(cost / 2))) * _SAFE)
        k = int(np.argmin(near_kl_inverse(below, cost)))
        return min(1.0, kl_upper_inverse(float(below[k]), float(cost[k])) * _SAFE)

    best = int(np.argmin(below + np.sqrt(nats / len(sample.margins))))
    return at, float(nats[best])


def cover_margin_bound(
    sample: MarginSample,
    B_x: float,
    delta: float,
    *,
    deviation: Deviation = "kl",
    trivial: float | int = 1,
) -> RiskBound:
    r"""The error by a cover at one distance, on the side of the errors alone.

    $$\mathbb P(yf\le0)\le\sup\Big\{p:{\rm kl}(\hat q\|p)\le\frac{4\Gamma/\gamma^2+\ln(K/\delta)}m
    \Big\},\quad\hat q=\frac1m\#\{i:y_if(X_i)\le\gamma\}$$

    The centres of the cover do not depend on the sample: no symmetrisation and no chain.
    "Hoeffding" has $\hat q+\sqrt{c/2}$ in place of the inverse of kl, $1-e^{-c}$ at no error.

    Args:
        sample: f is divided by the sum of the |entries| of its readouts.
        B_x: Euclidean norm of all tokens, [CLS] included, known beforehand.
        delta: probability of failure, in (0, 1).
        deviation: "kl" or "Hoeffding".
        trivial: error that is reached without data, such as that of guessing.

    A token that is longer than B_x is a `UserError` of one line.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own, n = LinearAttention([1.0, 0.0], np.eye(2)), 10**5
        >>> X = np.repeat(np.array([[[1.0, 0.0]]]), n, axis=0)
        >>> sample = measure_margins(own, X, [1.0, 0.0], np.ones(n))
        >>> bound = cover_margin_bound(sample, 1.0, 0.05)
        >>> f"{bound.bound:.5f}", bound.empirical
        ('0.00115', 0.0)
    """
    require_sample(len(sample.margins), delta, trivial)
    require_longest(sample, B_x)
    require_constants(deviation, *get_args(Deviation))
    longest = Condition(f"no token is longer than {B_x:g}, known before the examples", False)
    at, complexity = _cover(sample, B_x, delta, deviation)
    n = len(sample.margins)
    return RiskBound(
        name=f"margin by a cover, {deviation}",
        bound=at(float(n)),
        empirical=sample.error,
        n=n,
        delta=delta,
        shares=((f"{len(GRID)} radii times {len(GRID)} margins", delta),),
        complexity=complexity,
        conditions=(INDEPENDENT, GRIDS_BEFORE, longest),
        at=at,
        trivial=trivial,
    )
