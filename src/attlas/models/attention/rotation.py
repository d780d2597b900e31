"""Rotary positions: pairs of coordinates of a query or key turn by an angle."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_arguments


@validate_arguments
def turn(
    x: Float[Array, "*lead T k"], angle: Float[Array, "T pairs"], interleaved: bool
) -> Float[Array, "*lead T k"]:
    """Rows whose pairs of coordinates are turned.

    Args:
        x: one row per position.
        angle: angle of each pair in each row; coordinates beyond the pairs do not turn.
        interleaved: pairs are (0, 1), (2, 3), ...; else (0, r), (1, r + 1), ... with r pairs.

    Examples:
        >>> quarter = jnp.full((1, 1), jnp.pi / 2)
        >>> print(jnp.round(turn(jnp.array([[1.0, 0.0, 5.0]]), quarter, False), 12) + 0.0)
        [[0. 1. 5.]]
    """
    pairs = angle.shape[-1]
    shape = (*(1,) * (x.ndim - 2), *angle.shape)
    cos, sin = (values.reshape(shape) for values in (jnp.cos(angle), jnp.sin(angle)))
    turned, unturned = x[..., : 2 * pairs], x[..., 2 * pairs :]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        pairs_turned = jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(
            turned.shape
        )
    else:
        a, b = turned[..., :pairs], turned[..., pairs:]
        pairs_turned = jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return jnp.concatenate([pairs_turned, unturned], axis=-1)
