"""The members and the batches of `fit_epochs`, read before they are trained on."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from attlas.core.errors import UserError
from attlas.core.trees import as_tree, require_real_tree


def member_count(models: Any) -> int:
    """The number of members of stacked models: the leading axis of every trained array."""
    require_real_tree(models, "models")
    leaves = jax.tree.leaves(eqx.filter(models, eqx.is_inexact_array))
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if not sizes or sizes & {(), (0,)}:
        raise UserError("models needs floating arrays, each with an axis of members")
    if len(sizes) > 1:
        counts = ", ".join(str(size) for (size,) in sorted(sizes))
        raise UserError(f"models has leading axes of {counts} members: give every array one")
    return leaves[0].shape[0]


def epoch_of(batches: Any, members: int) -> tuple[Any, int]:
    """The batches of one epoch, whose arrays are [members, steps, ...], and its steps."""
    batches = as_tree(batches, "batches")
    require_real_tree(batches, "batches")
    leaves = jax.tree.leaves(batches)
    shapes = {np.shape(leaf)[:2] for leaf in leaves if hasattr(leaf, "dtype")}
    if len(shapes) != 1 or not all(hasattr(leaf, "dtype") for leaf in leaves):
        raise UserError("an epoch of batches needs arrays, all of as many members and steps")
    shape = shapes.pop()
    if len(shape) < 2 or shape[0] != members or shape[1] < 1:
        raise UserError(f"an epoch of batches begins with the axes {shape}: give {members} x steps")
    return batches, shape[1]
