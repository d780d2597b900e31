r"""The error of attention by local Rademacher complexity, with explicit constants.

Only functions of small risk are compared with their empirical risk, so that the variance is small.
The entropy of attention in norm balls is of order $\epsilon^{-2}$: a chain over it shrinks with its
radius only in a logarithm, and localisation cannot give the rate 1/m that one cover with relative
deviations has (`cover_margin_bound`).
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import dudley_chain
from attlas.bounds.generalisation.risk_bound import (
    INDEPENDENT,
    Condition,
    RiskBound,
    require_sample,
)
from attlas.core.ranges import require_at_least
from attlas_bounds.library.bounds.linear_attention import MarginSample
from attlas_bounds.library.bounds.margin_bounds import (
    GRID,
    GRIDS_BEFORE,
    cover_coefficient,
    norm_radius,
    require_longest,
)

MARGINS = 2.0 ** np.arange(-10, 3)
RISKS = 4.0 ** -np.arange(6)
"""Radii r in the risk at which the class is cut."""
_CHOICES = len(GRID) * len(MARGINS) * len(RISKS)
_ROUNDS = 3
_SAFE = 1 + 2**-40
_VACUOUS = 1 / 61
"""Of D over m: from here on V >= 2 psi >= r at each r <= 1, since every link of a chain costs
(rho + 1) sqrt(2 D / m) / 0.9 > 1/2 with rho >= 3/2."""
Number = int | float | Float[Array, ""]


@closed_form
def local_complexity(coefficient: Number, risk: Number, m: Number) -> Float[Array, ""]:
    r"""The Rademacher complexity of all $\theta g$ of mean at most r, $0\le\theta,g\le1$.

    $$\psi_0=1,\quad\psi_{k+1}={\rm chain}\big(\sqrt{r+2\psi_k}\big),\quad
    \log N(\epsilon)=\frac{D}{(0.9\,\epsilon)^2}+\ln\Big\lceil\frac5\epsilon\Big\rceil$$

    Args:
        coefficient: D, of the entropy $D/\epsilon^2$ of the g, at every sample.
        risk: the training risk r.

    Returns:
        The last and least of three.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> print(*(f"{float(local_complexity(1.0, r, 1e8)):.5f}" for r in (1.0, 0.01)))
        0.00486 0.00365
    """
    require_at_least(0, coefficient=coefficient, risk=risk)
    require_at_least(1, m=m)

    def cover(epsilon: Array) -> Array:
        return coefficient / (0.9 * epsilon) ** 2 + jnp.log(jnp.ceil(5 / epsilon))

    psi = jnp.asarray(1.0)
    for _ in range(_ROUNDS):
        psi = jnp.minimum(psi, dudley_chain(cover, m, jnp.sqrt(risk + 2 * psi)))
    return psi


@closed_form
def local_deviation(complexity: Number, risk: Number, m: Number, cost: Number) -> Array:
    r"""Bousquet's inequality for $\sup_g(Pg-P_mg)$ over functions of mean at most r in [0, 1].

    $$V=2\psi+\sqrt{\frac{2x\,(r+4r\psi)}m}+\frac{rx}{3m}$$

    Args:
        complexity: psi, of the class.
        risk: the training risk r.
        cost: x, the supremum is above V with probability at most e^-x.

    Source: Bousquet (2002), Theorem 2.3, for increments of at most r; entrywise.

    Examples:
        >>> print(f"{float(local_deviation(0.0, 0.25, 200.0, 4.0)):.5f}")
        0.10167
    """
    require_at_least(0, complexity=complexity, risk=risk, cost=cost)
    spread = jnp.sqrt(jnp.asarray(2 * cost * (risk + 4 * risk * complexity) / m))
    return 2 * complexity + spread + risk * cost / (3 * m)


@closed_form
def localised_risk(empirical: Number, deviation: Number, risk: Number) -> Array:
    r"""Bound on the risk of any function from a deviation V over functions of mean at most r.

    $$Pf\le\max\Big(P_mf+V,\ \frac r{r-V}P_mf\Big)\quad(V<r)$$

    Args:
        empirical: the mean of f on the sample.
        deviation: V, the supremum of Pg - P_m g over all g = f min(1, r / Pf).
        risk: the training risk r.

    Returns:
        The bound entrywise, 1 where V is not below r.

    Source: Bartlett, Bousquet and Mendelson (2005), adapted; papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> float(localised_risk(0.25, 0.25, 0.5)), float(localised_risk(0.0, 0.5, 0.5))
        (0.5, 1.0)
    """
    empirical, deviation, risk = (jnp.asarray(number) for number in (empirical, deviation, risk))
    # where the two are equal but for rounding nothing is said about functions of larger risk
    inside = deviation < risk * (1 - 2**-30)
    scaled = risk / jnp.where(inside, risk - deviation, 1.0) * empirical
    bound = jnp.maximum(empirical + deviation, scaled)
    return jnp.where(inside, jnp.minimum(bound, 1.0), 1.0)


@loop_jit
def _least(numbers: Float[Array, " 4"]) -> Float[Array, ""]:
    """The least bound over radii, at one margin."""
    coefficient, empirical, m, cost = numbers

    def at(risk: Array) -> Array:
        psi = local_complexity(coefficient, risk, m)
        return localised_risk(empirical, local_deviation(psi, risk, m, cost), risk)

    return jnp.min(jax.vmap(at)(jnp.asarray(RISKS)))


def _local(sample: MarginSample, B_x: float, delta: float) -> Callable[[float], float]:
    """The bound at every sample size."""
    heads, d = sample.readouts.shape
    radius = norm_radius(sample, total=True)
    f = sample.margins / np.abs(sample.readouts).sum()
    ramps = np.array([np.mean(np.clip(1 - f / g, 0, 1)) for g in MARGINS])
    gamma = cover_coefficient(B_x * _SAFE, radius, heads, d) if math.isfinite(radius) else math.inf

    cost = math.log(_CHOICES / delta)

    def at(m: float) -> float:
        least = 1.0
        # Ramps grow with the margin, and no bound is below its own.
        for coefficient, empirical in zip(
            (gamma / MARGINS**2).tolist(), ramps.tolist(), strict=True
        ):
            if empirical >= least:
                break
            if coefficient < _VACUOUS * m:
                with jax.enable_x64(True):
                    numbers = jax.device_put(np.array([coefficient, empirical, m, cost]))
                    least = min(least, float(_least(numbers)))
        return min(1.0, least * _SAFE)

    return at


def local_margin_bound(
    sample: MarginSample, B_x: float, delta: float, *, trivial: float | int = 1
) -> RiskBound:
    r"""The error by the local Rademacher complexity of the ramp loss of margins.

    $$\mathbb P(yf\le0)\le\min_{\gamma,r}\max\Big(\hat q_\gamma+V_r,\ \frac r{r-V_r}\hat q_\gamma
    \Big),\quad\hat q_\gamma=\frac1m\sum_i\min\Big(1,\Big(1-\frac{y_if(X_i)}\gamma\Big)_+\Big)$$

    with $V_r$ of `local_deviation` at $D=\Gamma/\gamma^2$ of `cover_coefficient`.

    Args:
        sample: f is divided by the sum of the |entries| of its readouts.
        B_x: Euclidean norm of all tokens, [CLS] included, known beforehand.
        delta: probability of failure, in (0, 1).
        trivial: error that is reached without data, such as that of guessing.

    A token that is longer than B_x is a `UserError` of one line.

    Source: derived, papers/attlas_bounds/proofs/bounds.md.

    Examples:
        >>> from attlas_bounds.library.bounds.linear_attention import LinearAttention
        >>> from attlas_bounds.library.bounds.linear_attention import measure_margins
        >>> own, n = LinearAttention([1.0, 0.0], np.eye(2)), 10**5
        >>> X = np.repeat(np.array([[[1.0, 0.0]]]), n, axis=0)
        >>> bound = local_margin_bound(measure_margins(own, X, [1.0, 0.0], np.ones(n)), 1.0, 0.05)
        >>> f"{bound.bound:.2f}", bound.vacuous
        ('0.61', False)
    """
    n = len(sample.margins)
    require_sample(n, delta, trivial)
    require_longest(sample, B_x)
    at = _local(sample, B_x, delta)
    longest = Condition(f"no token is longer than {B_x:g}, known before the examples", False)
    return RiskBound(
        name="margin by local Rademacher complexity",
        bound=at(float(n)),
        empirical=sample.error,
        n=n,
        delta=delta,
        shares=((f"{len(GRID)} radii, {len(MARGINS)} margins, {len(RISKS)} risks", delta),),
        complexity=math.log(_CHOICES),
        conditions=(INDEPENDENT, GRIDS_BEFORE, longest),
        at=at,
        trivial=trivial,
    )
