"""Two interleaved half circles in the plane: a data law with a score of no closed form."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.generator import generator


def make_two_moons(
    key: PRNGKeyArray, n: int, *, noise: float = 0.05, dtype: Any = None
) -> Float[Array, "n 2"]:
    r"""Points on two half circles of radius 1/2, with Gaussian noise, drawn by NumPy.

    The circles have centres (-1/4, -1/8) (upper half) and (1/4, 1/8) (lower half): the moons of
    scikit-learn at half their size, moved to the origin. The mean is zero; without noise
    all norms are at most 0.77, so that Assumption 6.1 of gu2024exploring holds with room for
    noise. Angles are uniform, and each moon is as likely as the other.

    Args:
        key: random key.
        n: points.
        noise: standard deviation of the noise, not negative.
        dtype: floating type, JAX's default when None.

    Returns:
        Points in rows.

    Raises:
        UserError: if n is below 1, or the noise is negative or not finite.

    Examples:
        >>> import jax
        >>> points = make_two_moons(jax.random.key(0), 100, noise=0.0)
        >>> bool(jnp.all(jnp.linalg.norm(points, axis=1) < 0.77))
        True
    """
    if n < 1:
        raise UserError(f"n = {n}: draw at least one point")
    if not 0 <= noise < float("inf"):
        raise UserError(f"noise = {noise} is negative or not finite: choose a standard deviation")
    draws = generator(key)
    side = np.where(draws.random(n) < 0.5, 1.0, -1.0)
    angle = np.pi * draws.random(n)
    moon = np.stack([np.cos(angle) / 2 - 1 / 4, np.sin(angle) / 2 - 1 / 8], axis=1)
    # The second moon is the first one seen from the other side.
    points = side[:, None] * moon + noise * draws.standard_normal((n, 2))
    return jnp.asarray(points, dtype)
