r"""The least entropy of a row of attention weights, given the size of its logits.

Both are in nats, attained, and rounded down by what their own rounding may add.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.closed_form import closed_form

Number = int | float | Array

_ROUNDINGS = 24
"""Two terms, none negative, of fewer than a dozen operations and elementary functions right to
four units each."""


@closed_form
def entropy_floor(spread: Number, tokens: Number) -> Array:
    r"""The entropy of every softmax of T logits whose distance from their mean is at most s.

    $$H\ge\ln(1+(T-1)\beta)+\frac{s\sqrt{T(T-1)}\,\beta}{1+(T-1)\beta},\qquad
    \beta=e^{-s\sqrt{T/(T-1)}}$$

    Attained by logits that are equal but for one larger logit.

    Args:
        spread: s, Euclidean norm of the logits after their mean is subtracted; of any shape.
        tokens: T, how many tokens the row sees; of a shape that broadcasts.

    Returns:
        The floor in nats; 0 for one token.

    Source: Theorem 3.1 of zhai2023stabilizing; the form is ours, see
    papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(entropy_floor(0.0, 4)):.6f} {float(entropy_floor(3.0, 4)):.6f}")
        1.386294 0.387119
    """
    s, T = _broadcast(spread, tokens)
    others = jnp.maximum(T - 1, 1.0)
    beta = jnp.exp(-s * jnp.sqrt(T / others))
    tail = others * beta
    lower = jnp.log1p(tail) + s * jnp.sqrt(T * others) * beta / (1 + tail)
    return jnp.where(T > 1, _lowered(lower), 0.0)


@closed_form
def range_entropy_floor(radius: Number, tokens: Number) -> Array:
    r"""The entropy of every softmax of T logits in an interval of length 2z.

    $$H\ge\min_{1\le k<T}\ \ln\big(k+(T-k)\rho\big)+\frac{2z(T-k)\rho}{k+(T-k)\rho},\qquad
    \rho=e^{-2z}$$

    k logits stand at the upper end and the others at the lower one. The minimum is at one of the
    two whole numbers beside $k^*=T\rho(2z-1+\rho)/(1-\rho)^2$, which is T/2 for small z and below
    one for large z. Never below `entropy_floor` at $s=z\sqrt T$, the most that the interval allows.

    Args:
        radius: z, half the length of an interval that holds the logits of a row; `largest_logit`
            gives one. Of any shape.
        tokens: T, how many tokens the row sees; of a shape that broadcasts.

    Returns:
        The floor in nats; 0 for one token.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(range_entropy_floor(0.0, 4)):.6f}")
        1.386294
        >>> print(f"{float(range_entropy_floor(2.0, 4)):.6f} {float(entropy_floor(4.0, 4)):.6f}")
        0.261830 0.161924
    """
    z, T = _broadcast(radius, tokens)
    width = 2 * z
    low = jnp.exp(-width)
    # Below, the quotient is noise; 1/2 is off by width / 6, entropies then by width^4 / 72.
    wide = width > 1e-4
    ratio = low * (width - 1 + low) / jnp.where(wide, 1 - low, 1.0) ** 2
    best = T * jnp.where(wide, ratio, 0.5)

    def entropy(above: Array) -> Array:
        k = jnp.clip(above, 1.0, jnp.maximum(T - 1, 1.0))
        tail = (T - k) * low / k
        return jnp.log(k) + (jnp.log1p(tail) + width * tail / (1 + tail))

    lower = jnp.minimum(entropy(jnp.floor(best)), entropy(jnp.floor(best) + 1))
    return jnp.where(T > 1, _lowered(lower), 0.0)


def _broadcast(size: Number, tokens: Number) -> Sequence[Array]:
    arrays = [jnp.asarray(number, dtype=jnp.result_type(float)) for number in (size, tokens)]
    return jnp.broadcast_arrays(*arrays)


def _lowered(value: Array) -> Array:
    return value * (1 - _ROUNDINGS * float(jnp.finfo(value.dtype).eps))
