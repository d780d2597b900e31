r"""The norm of the softmax's Jacobian at given weights."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form


@closed_form
def yudin2025_jacobian(weights: Float[Array, "*rows T"]) -> Array:
    r"""An upper value of || diag p - p p' ||_2 from the two largest weights of each row.

    $$\|\operatorname{diag}p-pp'\|_2\le p_{(1)}\,(1-p_{(1)}+p_{(2)})$$

    Attained for weights on two tokens, and by one token of weight p with the rest spread evenly in
    the limit of many.

    Args:
        weights: rows of at least two weights that sum to one.

    Returns:
        The bound per row, rounded up.

    Source: yudin2025pay (recalled).

    Examples:
        >>> print(f"{float(yudin2025_jacobian([0.5, 0.5, 0.0])):.6f}")
        0.500000
    """
    ordered = jnp.sort(weights, axis=-1)
    first, second = ordered[..., -1], ordered[..., -2]
    value = first * (1 - first + second)
    return value + 4 * float(jnp.finfo(value.dtype).eps)
