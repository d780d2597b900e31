r"""The exponential loss l(u) = exp(-u) of a margin u."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def exponential(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Exponential loss l(u) = exp(-u), of margins u = y f, entrywise.

    Examples:
        >>> float(exponential(jnp.array(0.0)))
        1.0
    """
    return jnp.exp(-u)


@validate_record_arguments
def exponential_derivative(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Derivative l'(u) = -exp(-u), entrywise.

    Examples:
        >>> float(exponential_derivative(jnp.array(0.0)))
        -1.0
    """
    return -jnp.exp(-u)


@validate_record_arguments
def exponential_log_slope(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Logarithm of the slope, log(-l'(u)) = -u, entrywise.

    Examples:
        >>> float(exponential_log_slope(jnp.array(1000.0)))
        -1000.0
    """
    return -u
