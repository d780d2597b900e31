r"""Parameter counting: covers of dimension times logarithm, by volumes.

A matrix with p free parameters and spectral norm at most B has a cover of (1 + 2 B B_x / eps)^p
maps at distance eps on ||x||_2 <= B_x; one of rank r is a product of two with 2 replaced by 4 and
p = r (k + d). Neither depends on T, and the norms stand in the logarithm.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import Number, dudley_chain
from attlas.core.ranges import require_at_least


@closed_form
def parameter_entropy(
    parameters: Float[Array, " n"],
    scales: Float[Array, " n"],
    beta: Float[Array, " n"],
    epsilon: Float[Array, "..."],
) -> Float[Array, "..."]:
    r"""Entropy of a network whose output moves by at most sum_i beta_i eps_i.

    $$\sum_ip_i\ln\Big(1+\frac{s_i\beta_iP}{p_i\epsilon}\Big),\qquad P=\sum_ip_i,\quad
    \beta_i\epsilon_i=\epsilon p_i/P$$

    Here p_i is `parameters`.

    Args:
        scales: s_i = 2 B_i B_x (4 B_i B_x for a factored matrix).
        beta: cost of an error in each matrix.
        epsilon: distance in the output.

    Source: derived (the type of Zhang et al. 2022, named in section 2.5 of trauger2023sequence).

    Examples:
        >>> one = jnp.ones(1)
        >>> print(f"{float(parameter_entropy(3 * one, 2 * one, one, jnp.asarray(1.0))):.4f}")
        3.2958
    """
    total = jnp.sum(parameters)
    # the scales of deep networks overflow, their logarithms do not
    log_scale = jnp.log(scales) + jnp.log(beta) + jnp.log(total / parameters)
    log_epsilon = jnp.log(epsilon)[..., None]
    shape = (1,) * epsilon.ndim + (-1,)
    cells = jnp.logaddexp(jnp.zeros_like(log_epsilon), log_scale.reshape(shape) - log_epsilon)
    return jnp.sum(parameters.reshape(shape) * cells, axis=-1)


@closed_form
def parameter_counting_single(
    B: Number,
    norm: Number,
    B_x: Number,
    parameters: Number,
    d: int,
    m: Number,
    factored: bool = False,
) -> Float[Array, ""]:
    r"""Parameter counting on the class of Theorem 4.1.

    $$2B\,{\rm chain}\Big(\ln2d+p\ln\big(1+\tfrac{2B_x^3B_M}\epsilon\big)\Big)$$

    Args:
        B: product of the norms outside the attention.
        norm: B_M, spectral norm of M.
        B_x: largest norm of a token.
        parameters: p; d^2, or 2 d r for keys and queries of width r.
        factored: M is a product; 4 takes the place of 2.

    Source: derived.

    Examples:
        >>> print(f"{float(parameter_counting_single(0.5, 1.0, 1.0, 4, 2, 10000)):.3f}")
        0.0...
    """
    require_at_least(0, B=B, norm=norm, B_x=B_x)
    require_at_least(1, parameters=parameters, d=d, m=m)
    scale = (4.0 if factored else 2.0) * jnp.asarray(B_x) ** 3 * norm

    def entropy(epsilon: Float[Array, "r n"]) -> Float[Array, "r n"]:
        return math.log(2 * d) + parameters * jnp.log1p(scale / epsilon)

    return 2 * B * dudley_chain(entropy, m, B_x)
