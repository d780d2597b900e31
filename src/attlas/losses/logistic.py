r"""The logistic loss l(u) = log(1 + exp(-u)) of a margin u."""

import jax
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def logistic(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Logistic loss l(u) = log(1 + exp(-u)), of margins u = y f, entrywise, without overflow.

    Examples:
        >>> import jax.numpy as jnp
        >>> print(f"{float(logistic(jnp.array(0.0))):.4f}")
        0.6931
    """
    return jax.nn.softplus(-u)


@validate_record_arguments
def logistic_derivative(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Derivative l'(u) = -1 / (1 + exp(u)), entrywise.

    Examples:
        >>> import jax.numpy as jnp
        >>> float(logistic_derivative(jnp.array(0.0)))
        -0.5
    """
    return -jax.nn.sigmoid(-u)


@validate_record_arguments
def logistic_log_slope(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Logarithm of the slope, log(-l'(u)) = -log(1 + exp(u)), entrywise; finite if l' underflows.

    Examples:
        >>> import jax.numpy as jnp
        >>> float(logistic_log_slope(jnp.array(1000.0)))
        -1000.0
    """
    return -jax.nn.softplus(u)
