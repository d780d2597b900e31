r"""The correlation loss l(u) = -u of a margin u."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments


@validate_record_arguments
def correlation(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Correlation loss l(u) = -u, of margins u = y f, entrywise.

    Examples:
        >>> float(correlation(jnp.array(2.0)))
        -2.0
    """
    return -u


@validate_record_arguments
def correlation_derivative(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Derivative l'(u) = -1, entrywise.

    Examples:
        >>> float(correlation_derivative(jnp.array(2.0)))
        -1.0
    """
    return -jnp.ones_like(u)


@validate_record_arguments
def correlation_log_slope(u: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    r"""Logarithm of the slope, log(-l'(u)) = 0, entrywise.

    Examples:
        >>> float(correlation_log_slope(jnp.array(2.0)))
        0.0
    """
    return jnp.zeros_like(u)
