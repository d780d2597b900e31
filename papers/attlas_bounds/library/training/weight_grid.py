"""Weights on a grid: rounded inside the loss during training, and as whole numbers afterwards."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.errors import UserError

Model = TypeVar("Model")


def straight_through(model: Model, spacing: Float[Array, ""]) -> Model:
    """The model on a grid, with the slope of the model before it was rounded.

    Args:
        model: any pytree of arrays.
        spacing: spacing of the grid; 0 for no rounding.

    Examples:
        >>> slope = jax.grad(lambda w: straight_through(w, jnp.array(0.5)) ** 2)(0.7)
        >>> float(straight_through(jnp.array(0.7), jnp.array(0.5))), float(slope)
        (0.5, 1.0)
    """
    return jax.tree.map(lambda a: a + jax.lax.stop_gradient(_rounding(a, spacing)), model)


def _rounding(a: Array, spacing: Array) -> Array:
    """What rounding to the grid adds."""
    grid = spacing > 0
    step = jnp.where(grid, spacing, 1).astype(jnp.asarray(a).dtype)
    return jnp.where(grid, jnp.round(a / step) * step - a, 0)


def rounded_weights(model: Model, spacing: float) -> tuple[Model, Int[np.ndarray, " P"]]:
    """The model on a grid, and the whole numbers that describe it.

    Args:
        model: any pytree of arrays.
        spacing: spacing of the weight grid.

    Returns:
        The model whose weights are multiples of the spacing, and those multiples.

    Raises:
        UserError: if a weight is not finite.

    Examples:
        >>> model, numbers = rounded_weights({"w": jnp.array([0.7, -1.2])}, 0.5)
        >>> model["w"].tolist(), numbers.tolist()
        ([0.5, -1.0], [1, -2])
    """
    if not all(np.isfinite(np.asarray(a)).all() for a in jax.tree.leaves(model)):
        raise UserError("a weight is not finite, its training diverged: it has no place on a grid")
    multiples: Any = jax.tree.map(
        lambda a: np.rint(np.asarray(a, float) / spacing).astype(np.int64), model
    )
    numbers = np.concatenate([a.ravel() for a in jax.tree.leaves(multiples)])
    on_grid = jax.tree.map(lambda q, a: jnp.asarray(q * spacing, a.dtype), multiples, model)
    return on_grid, numbers
