r"""Bounds on one weight of a softmax, and on the norm of its Jacobian."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.attention.entropy_floor import Number
from attlas.bounds.closed_form import closed_form


@closed_form
def repeated_token_ceiling(radius: Number, tokens: Number) -> Array:
    r"""An upper bound on a weight among t logits of absolute value at most xi.

    $$P_{tj}\le\frac{e^{2\xi}}{e^{2\xi}+t-1}$$

    With one token repeated and rotary positions all logits are q' R_m k, so that xi = s |q| |k|.
    Without positions xi counts as 0 and the weight is 1/t exactly.

    Args:
        radius: xi, at least every |logit|; of any shape.
        tokens: t, the number of tokens that the query attends to.

    Returns:
        The bound, rounded up; infinity where xi < 0 or t < 1, for which there are no logits.

    Source: Propositions on repeated tokens of gu2025attention (found in a transcription).

    Examples:
        >>> print(f"{float(repeated_token_ceiling(0.0, 8)):.6f}")
        0.125000
    """
    xi, t = (jnp.asarray(number, dtype=jnp.result_type(float)) for number in (radius, tokens))
    value = 1 / (1 + (t - 1) * jnp.exp(-2 * xi))
    rounded_up = value * (1 + 24 * float(jnp.finfo(value.dtype).eps))
    return jnp.where((xi >= 0) & (t >= 1), rounded_up, jnp.inf)


@closed_form
def yudin2025_jacobian(weights: Float[Array, "*rows T"]) -> Float[Array, "*rows"]:
    r"""An upper bound on || diag p - p p' ||_2 from the two largest weights of each row.

    $$\|\operatorname{diag}p-pp'\|_2\le p_{(1)}\,(1-p_{(1)}+p_{(2)})$$

    Attained for weights on two tokens, and by one token of weight p with the rest spread evenly in
    the limit of many.

    Args:
        weights: rows of at least two weights that sum to one.

    Returns:
        A vector with the bound of each row, rounded up.

    Source: yudin2025pay (recalled).

    Examples:
        >>> print(f"{float(yudin2025_jacobian([0.5, 0.5, 0.0])):.6f}")
        0.500000
    """
    ordered = jnp.sort(weights, axis=-1)
    first, second = ordered[..., -1], ordered[..., -2]
    value = first * (1 - first + second)
    return value + 4 * float(jnp.finfo(value.dtype).eps)
