"""The losses of networks that are drawn from a Gaussian law, many at once."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from attlas._jax.loop_jit import loop_jit
from attlas.bounds.generalisation.gaussian_weights import (
    GaussianWeights,
    named_parameters,
    read_gaussian,
)
from attlas.core.arrays import is_real, is_torch, read_array
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
            over are constants, which XLA folds for seconds where they are large. Where the means
            are tensors of torch, it is called with tensors, one network after the other.
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
    tensors = named_parameters(posterior.mean)
    if any(is_torch(leaf) for leaf in jax.tree.leaves(tensors)):
        losses = _losses_of_tensors(loss, tensors, law, key, draws)
    else:
        _require_number(loss, law.mean)
        held = loss if isinstance(loss, Partial) else Partial(loss)
        losses = np.asarray(_losses(held, law, key, draws, min(at_once, draws)))
    if not np.isfinite(losses).all():
        raise UserError("loss is not finite for some drawn weights: clip it into its range")
    return losses


def _require_number(loss: Callable[[Any], Any], mean: Any) -> None:
    """Trace the loss, which must return one number."""
    try:
        shape = jax.eval_shape(loss, mean)
    except (TypeError, AttributeError) as error:  # what functions of NumPy and torch raise
        reason = str(error).partition("\n")[0][:120]
        raise UserError(
            f"loss cannot be traced by JAX ({reason}): write it with jax.numpy, or for a loss of "
            "torch give posterior.mean as tensors, such as dict(model.named_parameters())"
        ) from error
    if getattr(shape, "shape", None) != ():
        raise UserError(f"loss returns {shape}: it must return one number")


@loop_jit(static_argnames=("draws", "at_once"))
def _losses(loss: Partial, law: GaussianWeights, key: Array, draws: int, at_once: int) -> Array:
    def loss_of_draw(draw: Array) -> Array:
        return jnp.asarray(loss(_weights_of_draw(law, draw)))

    return jax.lax.map(loss_of_draw, jax.random.split(key, draws), batch_size=at_once)


def _weights_of_draw(law: GaussianWeights, draw: Array) -> Any:
    """The mean with normal noise; one stream for all weights, since each call costs."""
    means, tree = jax.tree.flatten(law.mean)
    sizes = [mean.size for mean in means]
    stream = jax.random.normal(draw, (sum(sizes),), jnp.result_type(*means))
    noise = jnp.split(stream, np.cumsum(sizes)[:-1].tolist())
    noisy = [
        mean + scale * part.reshape(mean.shape).astype(mean.dtype)
        for mean, scale, part in zip(means, jax.tree.leaves(law.scale), noise, strict=True)
    ]
    return jax.tree.unflatten(tree, noisy)


_one_draw = jax.jit(_weights_of_draw)


def _losses_of_tensors(
    loss: Callable[[Any], Any], tensors: Any, law: GaussianWeights, key: Array, draws: int
) -> np.ndarray:
    """Losses of the same draws as tensors, each of the type and on the device of its mean."""
    for leaf in jax.tree.leaves(tensors):
        if not is_torch(leaf) or not is_real(read_array(leaf, "posterior.mean").dtype):
            raise UserError("posterior.mean mixes tensors of torch with other arrays: give tensors")
        if not leaf.is_floating_point():
            raise UserError(
                f"posterior.mean has a tensor of {leaf.dtype}, to which no noise is added: give "
                "parameters alone, such as dict(model.named_parameters())"
            )
    losses = []
    for draw in jax.random.split(key, draws):
        weights = jax.tree.map(
            lambda leaf, noisy: leaf.detach().new_tensor(np.array(noisy, np.float64)),
            tensors,
            _one_draw(law, draw),
        )
        value = read_array(loss(weights), "the loss")
        if value.shape != ():
            raise UserError(f"loss returns numbers of shape {value.shape}: it must return one")
        losses.append(value)
    # A number of Python was computed from tensors, and is no more exact than they are.
    kinds = [jnp.result_type(*jax.tree.leaves(law.mean))]
    kinds += [value.dtype for value in losses if jnp.issubdtype(value.dtype, jnp.floating)]
    return np.array(losses).astype(min(kinds, key=lambda kind: jnp.finfo(kind).bits))
