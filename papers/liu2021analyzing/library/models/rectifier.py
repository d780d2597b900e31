r"""The rectified linear unit and its smooth stand-in, the softplus of a sharpness tau_0."""

import jax
from jaxtyping import Array, Float

from attlas.core.errors import UserError


def rectify(z: Float[Array, "*shape"], sharpness: float | None = None) -> Float[Array, "*shape"]:
    r"""phi(z) = max(z, 0), or phi_{tau_0}(z) = log(1 + exp(tau_0 z)) / tau_0.

    Section 2 of liu2021analyzing replaces the first by the second with an arbitrarily large
    tau_0, so that gradients exist everywhere. The two differ by log(2) / tau_0 at most, at z = 0.
    The second is not positively homogeneous, so Theorem 5 of liu2021analyzing needs the first.

    Args:
        z: inputs of the units, of any shape.
        sharpness: tau_0 > 0; the rectified linear unit when None.

    Examples:
        >>> import jax.numpy as jnp
        >>> rectify(jnp.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]
        >>> round(float(rectify(jnp.array(0.0), sharpness=10.0)), 6)
        0.069315
    """
    if sharpness is None:
        return jax.nn.relu(z)
    if not sharpness > 0:
        raise UserError(f"sharpness = {sharpness} is not positive: choose tau_0 > 0 or None")
    return jax.nn.softplus(sharpness * z) / sharpness
