"""The losses of networks that are drawn from a Gaussian law, many at once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.generalisation.gaussian_weights import GaussianWeights, read_gaussian
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least


def monte_carlo_losses(
    loss: Callable[[Any], Array],
    posterior: GaussianWeights,
    key: Key[Array, ""],
    draws: int,
    *,
    at_once: int = 64,
) -> Float[np.ndarray, " draws"]:
    r"""Losses $L(w_1),\dots,L(w_N)$ of independent $w_k\sim N(\mu,{\rm diag}\,\sigma^2)$.

    Here N is `draws`.

    Args:
        loss: from weights to one number, such as the mean error on a sample; traced by JAX. Arrays
            of a `jax.tree_util.Partial` are arguments of the program; those that a function closes
            over are constants, which XLA folds for seconds where they are large.
        key: JAX random key; the same key gives the same draws.
        at_once: networks that are evaluated together; memory grows with it.

    Raises:
        UserError: if a loss is not one number, or is not finite.

    Examples:
        >>> law = GaussianWeights([0.0, 0.0], 1.0)
        >>> L = monte_carlo_losses(lambda w: jnp.sum(w**2), law, jax.random.key(0), 4000)
        >>> L.shape, bool(abs(L.mean() - 2) < 0.2)
        ((4000,), True)
    """
    require_at_least(1, draws=draws, at_once=at_once)
    law = read_gaussian(posterior)
    shape = jax.eval_shape(loss, law.mean)
    if getattr(shape, "shape", None) != ():
        raise UserError(f"loss returns {shape}: it must return one number")
    held = loss if isinstance(loss, Partial) else Partial(loss)
    losses = np.asarray(_losses(held, law, key, draws, min(at_once, draws)))
    if not np.isfinite(losses).all():
        raise UserError("loss is not finite for some drawn weights: clip it into its range")
    return losses


@loop_jit(static_argnames=("draws", "at_once"))
def _losses(loss: Partial, law: GaussianWeights, key: Array, draws: int, at_once: int) -> Array:
    means, tree = jax.tree.flatten(law.mean)
    scales = jax.tree.leaves(law.scale)
    sizes = [mean.size for mean in means]
    wide = jnp.result_type(*means)
    ends = np.cumsum(sizes)[:-1].tolist()

    def loss_of_draw(draw: Array) -> Array:
        # One stream for all weights: a call of the generator for each array costs more.
        noise = jnp.split(jax.random.normal(draw, (sum(sizes),), wide), ends)
        noisy = [
            mean + scale * part.reshape(mean.shape).astype(mean.dtype)
            for mean, scale, part in zip(means, scales, noise, strict=True)
        ]
        return jnp.asarray(loss(jax.tree.unflatten(tree, noisy)))

    return jax.lax.map(loss_of_draw, jax.random.split(key, draws), batch_size=at_once)
