r"""The largest logit that a head can form of tokens in a ball."""

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.attention.entropy_floor import Number
from attlas.bounds.closed_form import closed_form


@closed_form
def largest_logit(
    core_norm: Number,
    radius: Number,
    key_bias: Number = 0.0,
    query_bias: Number = 0.0,
    constant: Number = 0.0,
) -> Array:
    r"""An upper value of the |logits| of tokens of norm at most R, rounded up.

    $$|x'Ay+a'y+c'x+e|\le R^2\|A\|+R|a|+R|c|+|e|,\qquad A=sW_QW_K',\
    a=sW_Kb_Q,\ c=sW_Qb_K,\ e=s\,b_Q'b_K$$

    With s the scale of the logits. The softmax does not see what the tokens of a row share: without
    rotation of the keys c and e may be left out where only the weights matter, as for
    `range_entropy_floor`. With rotary positions ||A|| is `rotary_core_norm`, and rotations leave
    |W b| at most ||W|| |b|. Without biases it is attained by the singular vectors of A.

    Here |e| is `constant`.

    Args:
        core_norm: ||A||, an upper value; of any shape, as all that follows.
        radius: R, as `normalised_radius` gives it, or sqrt(d) where the norm is folded in.
        key_bias: |a|, how the queries' bias weighs keys.
        query_bias: |c|, how the keys' bias weighs queries.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(largest_logit(0.5, 4.0, key_bias=1.0)):.6f}")
        12.000000
    """
    A, R, a, c, e = (
        jnp.asarray(number, dtype=jnp.result_type(float))
        for number in (core_norm, radius, key_bias, query_bias, constant)
    )
    value = R * (A * R + a + c) + e
    return value * (1 + 8 * float(jnp.finfo(value.dtype).eps))
