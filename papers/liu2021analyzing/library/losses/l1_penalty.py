r"""The l1 penalty of section 6 of liu2021analyzing, on the named parameters of a model."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError


def l1_penalty(model: Any, names: tuple[str, ...], strength: float = 1e-4) -> Float[Array, ""]:
    r"""Strength * sum of |entries| of the parameters that bear one of the names.

    Section 6 of liu2021analyzing puts 1e-4 on W1 and w2 of the self-attention model, and on the
    attention layer of the recurrent one.

    Args:
        model: a tree of named parameters, nested as deep as it likes.
        names: last part of the parameters' names; each must occur.
        strength: factor of the norm.

    Returns:
        The penalty.

    Raises:
        UserError: if a name does not occur among the model's floating-point arrays.

    Examples:
        >>> from liu2021analyzing.library.models.two_layer import TwoLayer
        >>> model = TwoLayer(jnp.array([[1.0, -2.0]]), jnp.array([9.0, 9.0]))
        >>> float(l1_penalty(model, ("W1",), strength=0.5))
        1.5
    """
    found: dict[str, list[Array]] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating):
            last = jax.tree_util.keystr(path[-1:], simple=True)
            found.setdefault(last, []).append(leaf)
    missing = [name for name in names if name not in found]
    if missing:
        raise UserError(f"no parameter is named {missing[0]}: there are {', '.join(found)}")
    norms = [jnp.sum(jnp.abs(leaf)) for name in names for leaf in found[name]]
    return strength * jnp.sum(jnp.stack(norms))
