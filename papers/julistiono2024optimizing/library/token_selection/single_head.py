r"""One softmax attention head with a fixed query token and a linear read-out."""

import equinox as eqx
import jax
from jaxtyping import Array, Float


def attention_weights(
    W: Float[Array, "d d"], X: Float[Array, "T d"], z: Float[Array, " d"]
) -> Float[Array, " T"]:
    r"""Attention of one query over the tokens of one sample.

    s = softmax(X W z), section 1.1 of julistiono2024optimizing.

    Returns:
        Weights, non-negative and of sum one.

    Examples:
        >>> import jax.numpy as jnp
        >>> attention_weights(jnp.zeros((2, 2)), jnp.eye(2), jnp.ones(2)).tolist()
        [0.5, 0.5]
    """
    return jax.nn.softmax(X @ (W @ z))


class SingleHead(eqx.Module):
    r"""The model f(X, z) = v' X' softmax(X W z) of julistiono2024optimizing.

    Attributes:
        W: key-query matrix W = K Q'.

    Examples:
        >>> import jax.numpy as jnp
        >>> model = SingleHead(jnp.array([1.0, 3.0]), jnp.zeros((2, 2)))
        >>> float(model(jnp.eye(2), jnp.ones(2)))
        2.0
    """

    v: Float[Array, " d"]
    W: Float[Array, "d d"]

    def __call__(self, X: Float[Array, "T d"], z: Float[Array, " d"]) -> Float[Array, ""]:
        """The output on one sample."""
        return attention_weights(self.W, X, z) @ (X @ self.v)
