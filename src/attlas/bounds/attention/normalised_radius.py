r"""The longest token that a norm can return, whatever the text."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form

_BISECTIONS = 64
"""As many as a mantissa has bits, and more; where they stop costs slack, never validity."""


@closed_form
def normalised_radius(gain: Float[Array, "*norms d"], bias: Float[Array, "*norms d"]) -> Array:
    r"""An upper value of |x| for x = gain u + bias with |u|^2 <= d, as LayerNorm and RMSNorm give.

    $$\max_{|u|^2\le d}|g\odot u+b|^2=\min_{\lambda>\max g^2}\ \lambda d+|b|^2
    +\sum_i\frac{g_i^2b_i^2}{\lambda-g_i^2}\ \le\ \big(\sqrt d\max|g|+|b|\big)^2$$

    A trust-region problem, which its dual solves exactly. Every $\lambda$ gives an upper bound, so
    that the bisection for the best one decides how tight the value is, not whether it holds. For
    RMSNorm it is attained but for its eps; LayerNorm's tokens also have mean zero, which is not
    used.

    Args:
        gain: elementwise factor of the norm.
        bias: elementwise shift; zeros where there is none.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(normalised_radius([2.0, 1.0], [0.0, 0.0])):.6f}")
        2.828427
        >>> print(f"{float(normalised_radius([2.0, 1.0], [0.0, 1.0])):.6f}")
        3.055050
    """
    d = gain.shape[-1]
    limits = jnp.finfo(gain.dtype)
    unit = jnp.max(jnp.abs(gain) + jnp.abs(bias), axis=-1, keepdims=True)
    unit = jnp.where(unit > 0, unit, 1.0)
    g, b = (gain / unit) ** 2, (bias / unit) ** 2
    top = jnp.max(g, axis=-1, keepdims=True)
    cross = g * b
    high = jnp.sqrt(jnp.sum(cross, axis=-1, keepdims=True) / d)

    def gaps(step: Array) -> Array:
        # Where a term is zero its gap must not be.
        return jnp.where(cross > 0, step + (top - g), 1.0)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        below, above = ends
        middle = (below + above) / 2
        short = jnp.sum(cross / gaps(middle) ** 2, axis=-1, keepdims=True) > d
        return jnp.where(short, middle, below), jnp.where(short, above, middle)

    _, step = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.zeros_like(high), high))
    squares = (top + step) * d + jnp.sum(b + cross / gaps(step), axis=-1, keepdims=True)
    length = jnp.where(
        jnp.isfinite(squares),
        jnp.sqrt(squares),
        jnp.sqrt(d * top) + jnp.sqrt(jnp.sum(b, -1, keepdims=True)),
    )
    # Terms, none negative, of a dozen roundings each and their sum, through the root.
    raised = length * (1 + (d + 24) * float(limits.eps)) * unit + d * float(limits.tiny)
    return raised[..., 0]
