r"""Theorem 6.6 of gu2024exploring: the terms of the bound on score estimation.

The constants c_1 (of the approximation by a ball of the RKHS, taken from Theorem 3.6 of the
paper's [59]) and the one in front of everything are not given: the first is an argument, the
second is left out. The inside of the logarithm of Gamma_delta could not be read with certainty.
"""

import math
from bisect import bisect_left

import jax.numpy as jnp
from jaxtyping import Array, Float
from scipy.special import gammainc

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.gu2024_perturbation import Number
from attlas.core.errors import UserError


@closed_form
def gu2024_approximation(
    R_H: Number, d: Number, c_1: Number = 1.0, scale: Number | None = None
) -> Float[Array, ""]:
    r"""A(R_H), how well a ball of squared radius R_H of the RKHS approximates the target.

    $$A(R_H)=c_1\Lambda\Big(\frac{\sqrt{R_H}}\Lambda\Big)^{-2/d}\log\frac{\sqrt{R_H}}\Lambda$$

    It falls in R_H only above sqrt(R_H) = Lambda e^{d/2}, and then like R_H^{-1/d}.

    Args:
        R_H: squared radius, above scale^2.
        c_1: constant of the source.
        scale: Lambda; sqrt(d) when None.

    Source: Theorem 6.6 and Theorem G.3 of gu2024exploring (recalled).

    Examples:
        >>> print(f"{float(gu2024_approximation(math.e ** 2, 2, scale=1.0)):.4f}")
        0.3679
    """
    scale = jnp.sqrt(jnp.asarray(1.0 * d)) if scale is None else jnp.asarray(scale)
    ratio = jnp.sqrt(jnp.asarray(R_H)) / scale
    return c_1 * scale * ratio ** (-2 / d) * jnp.log(ratio)


@closed_form
def gu2024_complexity(
    n: Number, d: Number, delta: Number, inside: Number | None = None
) -> Float[Array, ""]:
    r"""Gamma_delta, the statistical error of early-stopped kernel regression.

    $$\Gamma_\delta=\Big(\frac{2d^2\log^{3/2}(e(n+1))}{\sqrt n}+\frac1{\sqrt n}\Big)^2
    +\frac{d^2}n\Big(\log\frac1\delta+\log\log n\Big)$$

    Args:
        n: samples, above e.
        delta: probability of failure.
        inside: argument of the logarithm to the power 3/2; e (n + 1) when None.

    Source: Theorem 6.6 and Theorem G.4 of gu2024exploring (recalled, uncertain inside).

    Examples:
        >>> print(f"{float(gu2024_complexity(100, 1, 0.1, inside=1.0)):.4f}")
        0.0483
    """
    inside = math.e * (n + 1) if inside is None else inside
    logs = jnp.log(jnp.asarray(inside)) ** 1.5
    first = (2 * d**2 * logs + 1) ** 2 / n
    return first + d**2 / n * (jnp.log(jnp.asarray(1 / delta)) + jnp.log(jnp.log(1.0 * n)))


@closed_form
def gu2024_score_error(
    n: Number,
    d: Number,
    smallest: Number,
    delta: Number,
    R_H: Number,
    early_stopping: Number,
    c_1: Number = 1.0,
    inside: Number | None = None,
) -> dict[str, Float[Array, ""]]:
    r"""The terms of Theorem 6.6; their sum, times an unknown constant, bounds the error.

    $$\frac1{\lambda\sqrt n}+\epsilon(n,\hat T)+dA^2+dA+\sqrt{dA\,\Gamma_\delta}+\Gamma_\delta$$

    Args:
        smallest: lambda, the least eigenvalue of H.
        delta: probability of failure.
        R_H: squared radius of the ball in the RKHS.
        early_stopping: epsilon(n, T) of Assumption 6.5.
        c_1: constant of A.
        inside: argument of the logarithm in Gamma_delta.

    Returns:
        The terms by name: "coupling", "early_stopping", "approximation_squared",
        "approximation", "mixed", "complexity".

    Source: Theorem 6.6 of gu2024exploring (recalled).

    Examples:
        >>> terms = gu2024_score_error(100, 2, 0.1, 0.1, 100.0, 0.0)
        >>> float(terms["coupling"]), len(terms)
        (1.0, 6)
    """
    A, Gamma = gu2024_approximation(R_H, d, c_1), gu2024_complexity(n, d, delta, inside)
    return {
        "coupling": 1 / (smallest * jnp.sqrt(jnp.asarray(1.0 * n))),
        "early_stopping": jnp.asarray(early_stopping),
        "approximation_squared": d * A**2,
        "approximation": d * A,
        "mixed": jnp.sqrt(d * A * Gamma),
        "complexity": Gamma,
    }


@closed_form
def gu2024_log_smallest_eigenvalue(n: int, d: int, sigma: float) -> float:
    r"""Natural logarithm of a bound on lambda of the limit kernel, for all inputs in the unit ball.

    $$\lambda\le n\sum_{j\ge q}\frac{\sigma^{2(j-1)}}{(j-1)!},\qquad
    q=\max\Big\{q:\binom{d+q-1}d-1<n\Big\}$$

    n inputs in R^d have a direction that no monomial of degree 1 to q - 1 sees.

    Args:
        n: samples, at least 1 and at most 2^53.
        d: dimension of the inputs, at least 1.
        sigma: deviation of the start, positive, at most 10^6.

    Returns:
        The logarithm, as the bound itself soon underflows.

    Examples:
        >>> round(gu2024_log_smallest_eigenvalue(1, 2, 1.0), 12)  # q = 1: e
        1.0
        >>> gu2024_log_smallest_eigenvalue(100, 2, 1.0) < math.log(1e-6)
        True
    """
    if not 1 <= n <= 2**53 or d < 1 or not 0 < sigma <= 1e6:
        raise UserError(
            "n, d or sigma is out of range: give n from 1 to 2^53, d at least 1, sigma in (0, 10^6]"
        )
    most = 54 if d >= 54 else 2**53  # binom(108, 54) exceeds every n
    q = bisect_left(range(most), n, lo=1, key=lambda q: math.comb(d + q, d) - 1)
    square, power, term, total = sigma**2, q - 1, 1.0, 0.0
    if power <= square:
        return math.log(n) + square + math.log(gammainc(power, square))
    # Terms over the first one, each smaller than the one before.
    while term > 1e-18 * total:
        total += term
        power += 1
        term *= square / power
    return math.log(n * total) + (q - 1) * math.log(square) - math.lgamma(q)
