"""Squared risk of any network on a weighted sample, with an l2 penalty."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def squared_risk(
    model: Callable[[Array], Array],
    x: Float[Array, "n *shape"],
    y: Float[Array, " n"],
    weights: Float[Array, " n"],
    l2: float | int | Float[Array, ""] = 0.0,
) -> Float[Array, ""]:
    r"""$R(\theta)=\sum_i w_i(f_\theta(x_i)-y_i)^2/(2\sum_i w_i)+\tfrac{\lambda_2}2\|\theta\|^2$.

    Args:
        model: f, whose floating arrays are theta.
        x: inputs.
        y: labels.
        weights: w, 1 for the samples that count and 0 for the others.
        l2: lambda_2.

    Returns:
        The scalar risk.

    Examples:
        >>> x, y, w = jnp.array([[1.0], [2.0]]), jnp.array([1.0, 5.0]), jnp.array([1.0, 0.0])
        >>> float(squared_risk(lambda x: 4 * x[0], x, y, w))
        4.5
    """
    left = jax.vmap(model)(x) - y
    arrays: list[Any] = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    size = sum(jnp.sum(array**2) for array in arrays)
    return jnp.sum(weights * left**2) / (2 * jnp.sum(weights)) + l2 / 2 * size
