"""Outputs of many networks of one shape on the same inputs."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float


@eqx.filter_jit
def stacked_outputs(
    predict: Callable[..., Array], networks: Any, x: Float[Array, "n *shape"], *args: Any
) -> Float[Array, "networks n"]:
    """predict(network, x_i, *args) for each network and input, in one program.

    Args:
        predict: output of one network on one input.
        networks: with a leading axis.
        x: inputs.
        *args: further arguments of `predict`, with the leading axis of the networks.

    Returns:
        Outputs.

    Examples:
        >>> import jax.numpy as jnp
        >>> w = jnp.array([[1.0], [2.0]])
        >>> stacked_outputs(lambda w, x: w @ x, w, jnp.array([[3.0], [5.0], [7.0]])).tolist()
        [[3.0, 5.0, 7.0], [6.0, 10.0, 14.0]]
    """

    def one(network: Any, *own: Any) -> Array:
        return jax.vmap(lambda each: predict(network, each, *own))(x)

    return jax.vmap(one)(networks, *args)
