r"""The comparison of trauger2023sequence in its own terms: brackets with unknown constants 1."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import Number
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_entropy
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket


@closed_form
def trauger2023_orders(
    norm: Number, m: Number, lengths: Sequence[int], d: int
) -> Float[Array, " orders"]:
    r"""Orders of the bounds on one layer, no bounds: every norm is B, unknown constants are 1.

    $$C=B^2\ln(2d^2+1),\qquad C=B^2\ln(dmT)\ \text{for each}\ T,\qquad
    d^2\ln\Big(1+\frac{4B}\epsilon\Big)$$

    Args:
        norm: norm bound B.
        lengths: T of the cover of Edelman et al. (2022).
        d: dimension of the tokens, of Euclidean norm at most 1.

    Returns:
        Theorem 4.1 with the (1,1) norm, the log T cover at each length, and parameter counting,
        cut off at the trivial value 1.

    Source: sections 2.5 and 4.1 of trauger2023sequence.

    Examples:
        >>> [f"{float(order):.3f}" for order in trauger2023_orders(1.0, 1e6, [20], 64)]
        ['0.039', '0.054', '0.100']
    """
    B, m = jnp.asarray(norm), jnp.asarray(m)
    covers = [trauger2023_cover("1,1", B, 1.0, d, d), *(B**2 * jnp.log(d * m * T) for T in lengths)]
    values = [trauger2023_bracket(C, 1.0, d, m, constants="corrected") for C in covers]
    # 4 B / eps cells per parameter; Gauss-Legendre in the square root of eps, where it is smooth.
    node, weight = np.polynomial.legendre.leggauss(60)
    root = (node + 1) / 2
    full = jnp.asarray([float(d * d)])
    entropy = parameter_entropy(full, 4 * B[None], jnp.ones(1), jnp.asarray(root**2))
    counted = jnp.sum(weight * root * jnp.sqrt((entropy + math.log(2 * d)) / m))
    return jnp.minimum(jnp.stack([*values, counted]), 1.0)


@closed_form
def break_even_ratio(T: Number, d: int, m: int = 10**6) -> Float[Array, ""]:
    r"""The ratio of norms below which Theorem 4.1 without T beats the cover with log T.

    $$\frac{\|W\|_{1,1}}{\sum_i\|W_i\|_2}\le\sqrt{\frac{C_{\log T}}{C_{1,1}}}$$

    Both entropies are quadratic in their norm, so that the ratio does not depend on it.

    Returns:
        The ratio; that of a dense matrix is about sqrt(2 d / pi).

    Examples:
        >>> print(f"{float(break_even_ratio(200.0, 64)):.2f}")
        1.85
    """
    cover = edelman2022_cover(1.0, 1.0, float(m) * T, d, m)
    return jnp.sqrt(cover / trauger2023_cover("1,1", 1.0, 1.0, d, d))
