"""The normalised tokens of which folded heads are functions, from what a layer reads."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.transformers.canonical import Dense, Norm


def normalised_tokens(
    read: Float[Array, "*lead d"], norm: Norm | None, projection: Dense | None
) -> Float[Array, "*lead e"]:
    r"""U of x = (gain * u + bias) W_e + b_e; coordinates without gain are 0.

    Such a coordinate changes nothing that a head does: its folded weights are 0, too.

    Args:
        read: x, the attention's input.
        norm: the norm before, or None: then x itself comes back.
        projection: W_e and b_e between norm and layer, of full row rank, or None.

    Returns:
        The tokens, of norm at most sqrt(e).

    Examples:
        >>> norm = Norm(jnp.array([2.0, 0.0]), jnp.array([1.0, 3.0]), 0.0, centred=False)
        >>> x = norm(jnp.array([[4.0, -3.0]]))
        >>> print(normalised_tokens(x, norm, None).round(6).tolist())
        [[1.131371, 0.0]]
    """
    if projection is not None:
        shifted = read - jnp.broadcast_to(projection.b, read.shape)
        read = shifted @ jnp.linalg.pinv(projection.W)
    if norm is None:
        return read
    gain, bias = jnp.broadcast_to(norm.gain, read.shape), jnp.broadcast_to(norm.bias, read.shape)
    return jnp.where(gain == 0, 0, (read - bias) / jnp.where(gain == 0, 1, gain))
