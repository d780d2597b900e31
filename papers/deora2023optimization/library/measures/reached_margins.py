r"""Margins along training on the three scales on which deora2023optimization compares them."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.models.attention.multi_head import MultiHead, parameter_norm
from deora2023optimization.library.measures.margins import (
    decoder_margin,
    margins,
    normalised_margin,
)

SCALES = ("decoder", "sphere", "per distance")
RADIUS = math.sqrt(2)
"""||theta|| of section 7, and ||theta_star|| of (P3)."""


@jax.jit
def reached_margins(
    models: MultiHead, X: Float[Array, "n T d"], y: Float[Array, " n"]
) -> Float[Array, "3 e s"]:
    r"""Margins of trainings, in the order of `SCALES`.

    $$\frac{\min_iy_i\Phi_k(X_i)}{\|U\|},\qquad
    \min_iy_i\Phi\Big(X_i;\tfrac{\sqrt2\,\theta_k}{\|\theta_k\|}\Big),\qquad
    \sqrt2\,\frac{\min_iy_i(\Phi_k(X_i)-\Phi_0(X_i))}{\|\theta_k-\theta_0\|}$$

    The first is at most gamma_attn on the mixture, the second at most the global margin, and for
    the model linearised at theta_0 the third is at most the NTK margin there.

    Args:
        models: trainings along the first axis, their records along the second; record 0 is
            theta_0.
        y: labels, -1 or 1.

    Returns:
        Margins; NaN where a norm is zero, as that of the distance at record 0.

    Examples:
        >>> U = jnp.arange(3.0).reshape(1, 3, 1, 1, 1)
        >>> models = jax.vmap(jax.vmap(MultiHead))(U, jnp.zeros((1, 3, 1, 1, 1)))
        >>> X, y = jnp.array([[[1.0]], [[-2.0]]]), jnp.array([1.0, -1.0])
        >>> reached_margins(models, X, y)[:, 0, 2].tolist() == [1.0, 2**0.5, 2**0.5]
        True
    """

    def along(path: MultiHead) -> Array:
        start = jax.tree.map(lambda a: a[0], path)
        before = margins(start, X, y)

        def margins_of(model: MultiHead) -> Array:
            moved = parameter_norm(jax.tree.map(jnp.subtract, model, start))
            gained = RADIUS * jnp.min(margins(model, X, y) - before)
            per_distance = jnp.where(moved > 0, gained / moved, jnp.nan)
            sphere = normalised_margin(model, X, y, RADIUS)
            return jnp.stack([decoder_margin(model, X, y), sphere, per_distance])

        return jax.vmap(margins_of)(path)

    return jnp.moveaxis(jax.vmap(along)(models), 2, 0)
