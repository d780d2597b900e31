"""Squared risk of any network on a weighted sample, with an l2 penalty."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError


def squared_risk(
    model: Callable[[Array], Array],
    x: Float[Array, " n *shape"],
    y: Float[Array, " n"],
    weights: Float[Array, " n"],
    l2: float | int | Float[Array, ""] = 0.0,
) -> Float[Array, ""]:
    r"""$R(\theta)=\sum_i w_i(f_\theta(x_i)-y_i)^2/(2\sum_i w_i)+\tfrac{\lambda_2}2\|\theta\|^2$.

    Args:
        model: f, whose floating arrays are theta.
        weights: w, 1 for the samples that count and 0 for the others.
        l2: lambda_2, the factor of the l2 penalty.

    Examples:
        >>> x, y, w = jnp.array([[1.0], [2.0]]), jnp.array([1.0, 5.0]), jnp.array([1.0, 0.0])
        >>> float(squared_risk(lambda x: 4 * x[0], x, y, w))
        4.5
    """
    left = jax.vmap(model)(x) - y
    arrays: list[Any] = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    size = sum(jnp.sum(array**2) for array in arrays)
    return jnp.sum(weights * left**2) / (2 * jnp.sum(weights)) + l2 / 2 * size


def l1_penalty(model: Any, names: tuple[str, ...], strength: float = 1e-4) -> Float[Array, ""]:
    r"""Strength * sum of |entries| of the parameters that bear one of the names.

    Section 6 of liu2021analyzing puts 1e-4 on W1 and w2 of the self-attention model, and on the
    attention layer of the recurrent one.

    Args:
        model: a tree of named parameters, nested as deep as it likes.
        names: last part of the parameters' names; each must occur.
        strength: factor of the norm.

    Raises:
        UserError: if a name does not occur among the model's floating-point arrays.

    Examples:
        >>> from liu2021analyzing.library.models.two_layer import TwoLayer
        >>> model = TwoLayer(jnp.array([[1.0, -2.0]]), jnp.array([9.0, 9.0]))
        >>> float(l1_penalty(model, ("W1",), strength=0.5))
        1.5
    """
    leaves: dict[str, list[Array]] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating):
            last = jax.tree_util.keystr(path[-1:], simple=True)
            leaves.setdefault(last, []).append(leaf)
    missing = [name for name in names if name not in leaves]
    if missing:
        raise UserError(f"no parameter is named {missing[0]}: there are {', '.join(leaves)}")
    norms = [jnp.sum(jnp.abs(leaf)) for name in names for leaf in leaves[name]]
    return strength * jnp.sum(jnp.stack(norms))
