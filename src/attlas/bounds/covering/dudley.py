r"""Dudley's entropy bound with explicit constants, and the chain behind it.

R(F) = E sup_f <sigma, f> / m over signs sigma, for functions with |f| <= radius on the sample and
log N(eps) the size of a cover at distance eps there; the centres need not lie in F. Each link of a
chain is one of N(eps_j), not of N(eps_j) N(eps_{j-1}): papers/trauger2023sequence/proofs/dudley.md.

Entropies are log N = A + D / eps^2, and m is the number of samples.
"""

import math
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.core.ranges import require_at_least

Number = int | float | Float[Array, ""]
DudleyConstants = Literal["printed", "classical", "sharp"]

CONSTANTS: dict[DudleyConstants, tuple[float, float]] = {
    "printed": (1.0, 1.0),
    "classical": (4.0, 12.0),
    "sharp": (1 + math.sqrt(2), math.sqrt(2) * (1 + math.sqrt(2)) ** 2),
}
"""Factors of delta and of the integral. The printed ones are multiplied by an unknown c."""

RATIOS = np.concatenate([np.geomspace(1.5, 12, 60), np.geomspace(15, 1e6, 40)])
LEVELS = 48


@closed_form
def entropy_integral(
    A: Number, D: Number, lower: Number, upper: Number, split: bool = False
) -> Float[Array, ""]:
    r"""The entropy integral of log N = A + D / eps^2.

    $$\int_\delta^R\sqrt{A+D/\epsilon^2}\,d\epsilon
    =s_R-s_\delta+\sqrt D\Big(\ln\frac{\sqrt D+s_\delta}\delta-\ln\frac{\sqrt D+s_R}R\Big),
    \qquad s_\epsilon=\sqrt{A\epsilon^2+D}$$

    Here R is `upper`.

    Args:
        lower: delta; 0 only where D or R is.
        split: integrate sqrt(A) + sqrt(D) / eps instead, as the paper does.

    Examples:
        >>> float(entropy_integral(4.0, 0.0, 1.0, 3.0))
        4.0
        >>> float(entropy_integral(0.0, 4.0, 1.0, math.e))
        2.0
    """
    lower, upper = jnp.asarray(lower), jnp.asarray(upper)
    root = jnp.sqrt(jnp.asarray(D))
    # Without D, and on an empty interval at 0, the logarithms would be those of 0 / 0.
    counted = (root > 0) & (upper > 0)
    safe, below, above = (jnp.where(counted, each, 1) for each in (root, lower, upper))
    if split:
        logarithms = jnp.log(above / below)
        return jnp.sqrt(jnp.asarray(A)) * (upper - lower) + jnp.where(counted, safe * logarithms, 0)
    low, high = (jnp.sqrt(A * edge**2 + D) for edge in (lower, upper))
    logarithms = jnp.log((safe + low) / below) - jnp.log((safe + high) / above)
    return high - low + jnp.where(counted, safe * logarithms, 0)


@closed_form
def dudley_integral(
    A: Number,
    D: Number,
    m: Number,
    radius: Number,
    *,
    constants: DudleyConstants = "sharp",
    split: bool = False,
) -> Float[Array, ""]:
    r"""Dudley's bound for log N = A + D / eps^2, minimised over delta exactly.

    $$R\le\min_{0<\delta\le R}c_1\delta+\frac{c_2}{\sqrt m}\int_\delta^R\sqrt{A+D/\epsilon^2}\,
    d\epsilon,\qquad\delta_*=\frac{c_2\sqrt D}{\sqrt{mc_1^2-c_2^2A}}$$

    with delta = R where m c_1^2 <= c_2^2 A or delta_* > R. Split, the minimiser is
    c_2 sqrt(D) / (c_1 sqrt(m) - c_2 sqrt(A)).

    Args:
        constants: c_1 and c_2; with the printed ones it is no bound. "classical" are 4 and 12.
        split: integrate sqrt(A) + sqrt(D) / eps instead, as the paper does.

    Returns:
        The bound; at most c_1 radius.

    Source: section 2.4 of trauger2023sequence; "sharp" derived.

    Examples:
        >>> print(f"{float(dudley_integral(0.0, 1.0, 1e4, 1.0, constants='printed')):.4f}")
        0.0561
        >>> print(f"{float(dudley_integral(0.0, 1.0, 1e4, 1.0)):.4f}")
        0.3608
    """
    require_at_least(0, A=A, D=D, radius=radius)
    require_at_least(1, m=m)
    require_constants(constants, *CONSTANTS)
    c_1, c_2 = CONSTANTS[constants]
    A, D, radius = jnp.asarray(A), jnp.asarray(D), jnp.asarray(radius)
    if split:
        slack = c_1 * math.sqrt(m) if isinstance(m, int | float) else c_1 * jnp.sqrt(m)
        room = slack - c_2 * jnp.sqrt(A)
    else:
        square = m * c_1**2 - c_2**2 * A
        room = jnp.sign(square) * jnp.sqrt(jnp.abs(square))
    best = c_2 * jnp.sqrt(D) / jnp.where(room > 0, room, 1)
    delta = jnp.where((room > 0) & (best < radius), best, radius)
    integral = entropy_integral(A, D, delta, radius, split)
    return c_1 * delta + c_2 * integral / jnp.sqrt(jnp.asarray(m, integral.dtype))


@closed_form
def chain_levels(radius: Float[Array, ""]) -> Float[Array, "r n"]:
    r"""The distances $\epsilon_j=R\rho^{-j}$ at which `dudley_chain` needs entropies.

    Here R is `radius`.

    Returns:
        One row per ratio rho; levels below 1e-15 of the radius cannot matter and are raised to it.

    Examples:
        >>> print(f"{float(chain_levels(jnp.asarray(3.0))[0, 0]):.4f}")
        2.0000
    """
    ratios = jnp.asarray(RATIOS, radius.dtype)
    steps = jnp.arange(1, LEVELS + 1, dtype=radius.dtype)
    # the squares of lower levels would overflow in single precision
    depth = jnp.minimum(jnp.log(ratios)[:, None] * steps[None, :], math.log(1e30) / 2)
    return radius * jnp.exp(-depth)


@closed_form
def dudley_chain(
    log_cover: Callable[[Float[Array, "r n"]], Float[Array, "r n"]], m: Number, radius: Number
) -> Float[Array, ""]:
    r"""The chain itself, minimised over its levels: sharper than any integral.

    $$R\le\min_{\rho,n}\ \epsilon_n+\sqrt{\frac2m}\sum_{j=1}^n(\epsilon_{j-1}+\epsilon_j)
    \sqrt{\log N(\epsilon_j)},\qquad\epsilon_j=R\rho^{-j}$$

    For log N = D / eps^2 the factor of sqrt(D/m) log(R/delta) tends to 5.08 where the sharp
    integral has 8.24 and the classical one 12. Levels of entropy above m / 2 never pay and are
    left out, so that `log_cover` need be right only up to m / 2.

    Args:
        log_cover: entropy at an array of distances, for distances below the radius.

    Returns:
        The bound; at most the radius, which is the trivial one.

    Source: derived, papers/trauger2023sequence/proofs/dudley.md.

    Examples:
        >>> print(f"{float(dudley_chain(lambda e: 1 / e**2, 1e4, 1.0)):.4f}")
        0.2037
    """
    require_at_least(0, radius=radius)
    require_at_least(1, m=m)
    radius = jnp.asarray(radius)
    ratios, levels = jnp.asarray(RATIOS, radius.dtype), chain_levels(radius)
    entropy = log_cover(levels)
    pays = entropy <= jnp.asarray(m, radius.dtype) / 2
    root = jnp.sqrt(2 * jnp.where(pays, entropy, 1) / m)
    links = jnp.where(pays, (ratios[:, None] + 1) * levels * root, radius)
    return jnp.minimum(radius, jnp.min(levels + jnp.cumsum(links, axis=1)))
