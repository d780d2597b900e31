r"""What a sink says about the norm of the attention map."""

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.attention.entropy_floor import Number
from attlas.bounds.closed_form import closed_form


@closed_form
def sink_gain(mean_mass: Number, tokens: Number) -> Array:
    r"""A lower value of ||P||_2 for an attention map whose first column has mean alpha.

    $$\|P\|_2\ge|Pe_1|\ge\sqrt n\,\alpha_1,\qquad\alpha_1=\frac1n\sum_iP_{i1}$$

    By Cauchy-Schwarz; attained when every row puts all of its mass on one token, where ||P||_2 is
    sqrt(n), the most that a map of n rows can have.

    Args:
        mean_mass: alpha, the mean of any one column over the n rows; of any shape.
        tokens: n, the number of rows.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(sink_gain(1.0, 16)):.6f}")
        4.000000
    """
    alpha, n = (jnp.asarray(number, dtype=jnp.result_type(float)) for number in (mean_mass, tokens))
    value = jnp.sqrt(n) * alpha
    return value * (1 - 4 * float(jnp.finfo(value.dtype).eps))
