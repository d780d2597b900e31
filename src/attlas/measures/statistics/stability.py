r"""Stability: the change of a trained model when one sample is left out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError


def model_distances(full: Any, without: Any, recorded: int = 1) -> Float[Array, " n *s"]:
    r"""Distances ||theta_k - theta_k^{-i}|| of leave-one-out models from the full one.

    Args:
        full: parameters trained on all samples; floating arrays may start with recorded axes.
        without: the same with a leading axis, one entry per sample that was left out.
        recorded: number of leading axes of `full` that are recorded steps, not parameters.

    Raises:
        UserError: if the two do not have the same arrays but for the leading axis.

    Examples:
        >>> model_distances(jnp.zeros(2), jnp.array([[3.0, 4.0], [0.0, 0.0]]), recorded=0).tolist()
        [5.0, 0.0]
    """
    full_leaves = jax.tree.leaves(eqx.filter(full, eqx.is_inexact_array))
    without_leaves = jax.tree.leaves(eqx.filter(without, eqx.is_inexact_array))
    shapes, without_shapes = (
        [leaf.shape for leaf in full_leaves],
        [leaf.shape[1:] for leaf in without_leaves],
    )
    if shapes != without_shapes:
        raise UserError(
            f"arrays of {shapes} in full and of {without_shapes} after the samples' axis in "
            "without: "
            "both must come from one training"
        )
    square = sum(
        jnp.sum((part - leaf[None]) ** 2, axis=tuple(range(recorded + 1, part.ndim)))
        for leaf, part in zip(full_leaves, without_leaves, strict=True)
    )
    return jnp.sqrt(jnp.asarray(square))


def average_model_stability(full: Any, without: Any, recorded: int = 1) -> Float[Array, "*s"]:
    r"""Average model stability (1/n) sum_i ||theta_K - theta_K^{-i}||.

    Section 6.2 of deora2023optimization. By its Lemma 3 the expected generalisation gap of a
    G-Lipschitz loss is at most 2 G times the expectation of this.

    Args:
        full: parameters trained on all samples; floating arrays may start with recorded axes.
        without: the same with a leading axis, one entry per sample that was left out.
        recorded: number of leading axes of `full` that are recorded steps, not parameters.

    Examples:
        >>> full, without = jnp.zeros((1, 2)), jnp.array([[[3.0, 4.0]], [[0.0, 0.0]]])
        >>> average_model_stability(full, without).tolist()
        [2.5]
    """
    return jnp.mean(model_distances(full, without, recorded), axis=0)
