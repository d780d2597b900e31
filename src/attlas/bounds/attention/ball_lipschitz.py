r"""How much the output of one attention head can change when its tokens move within a ball.

Tokens are the n rows of X, all of norm at most R; distances of X and of the output are Euclidean
over all entries (Frobenius).
"""

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.attention.entropy_floor import Number
from attlas.bounds.closed_form import closed_form

_SHARE = 4 / 27**0.5
"""sqrt(16 / 27): the largest p Var over laws on [-1, 1] with an atom of mass p, to the root."""


@closed_form
def ball_lipschitz(
    value_norm: Number,
    core_norm: Number,
    radius: Number,
    tokens: Number,
    key_bias: Number = 0.0,
    query_bias: Number = 0.0,
) -> Array:
    r"""An upper value of the Lipschitz constant of a head on the ball of radius R, rounded up.

    $$\|V\|\Big[\sqrt n\,\Big(1+\tfrac4{3\sqrt3}R\,(\|A\|R+|a|)\Big)+R\,(\|A\|R+|c|)\Big]$$

    A = s W_Q W_K', V = W_V W_O, a = s W_K b_Q. Masks only restrict sums, so it holds for causal
    attention and sliding windows too. With rotary positions ||A|| is `rotary_core_norm`, |a| is
    s ||W_K|| |b_Q| and |c| is s ||W_Q|| |b_K|; without them the keys' bias cancels and |c| is 0.

    Here ||V|| is `value_norm`, ||A|| `core_norm`, R `radius`, n `tokens`, |a| `key_bias` and |c|
    `query_bias`, all of any shape.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> print(f"{float(ball_lipschitz(1.0, 0.0, 3.0, 16)):.6f}")
        4.000000
        >>> norms = 1.0, 0.5, 3.0, 16
        >>> print(f"{float(ball_lipschitz(*norms) / castin2024_lipschitz(*norms)):.3f}")
        0.354
    """
    V, A, R, n, a, c = (
        jnp.asarray(number, dtype=jnp.result_type(float))
        for number in (value_norm, core_norm, radius, tokens, key_bias, query_bias)
    )
    value = V * (jnp.sqrt(n) * (1 + _SHARE * R * (A * R + a)) + R * (A * R + c))
    return value * (1 + 24 * float(jnp.finfo(value.dtype).eps))


@closed_form
def castin2024_lipschitz(
    value_norm: Number, core_norm: Number, radius: Number, tokens: Number
) -> Array:
    r"""The bound of Castin, Ablin and Peyre on the same constant, without biases, rounded up.

    $$\sqrt3\,\|V\|\sqrt{\|A\|^2R^4(4n+1)+n}$$

    Here ||V|| is `value_norm`, ||A|| `core_norm`, R `radius` and n `tokens`, all of any shape.

    Source: Theorem 3.3 of castin2024smooth (recalled).

    Examples:
        >>> print(f"{float(castin2024_lipschitz(1.0, 0.0, 1.0, 12)):.6f}")
        6.000000
    """
    V, A, R, n = (
        jnp.asarray(number, dtype=jnp.result_type(float))
        for number in (value_norm, core_norm, radius, tokens)
    )
    value = V * jnp.sqrt(3 * ((A * R**2) ** 2 * (4 * n + 1) + n))
    return value * (1 + 24 * float(jnp.finfo(value.dtype).eps))
