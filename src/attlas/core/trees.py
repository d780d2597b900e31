"""Validation of pytrees: models and parameters, whose arrays must be finite real numbers."""

import sys
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import is_traced
from attlas.core.arrays import is_real, is_torch, read_array
from attlas.core.errors import UserError
from attlas.core.finite import require_finite
from attlas.core.memory import require_memory


def as_tree(value: Any, name: str) -> Any:
    """A pytree whose arrays JAX can differentiate: lists of numbers and tensors become arrays.

    Args:
        value: a pytree of arrays, one array, or nested lists of numbers, which are one array.

    Examples:
        >>> as_tree({"W": jnp.ones(2)}, "parameters")["W"].shape
        (2,)
        >>> as_tree([[1.0, 2.0], [3.0, 4.0]], "parameters").shape
        (2, 2)
    """
    leaves = jax.tree.leaves(value)
    if isinstance(value, list | tuple) and leaves and all(type(a) in (int, float) for a in leaves):
        return read_array(value, name)
    return jax.tree.map(lambda leaf: read_array(leaf, name) if is_torch(leaf) else leaf, value)


def require_real_tree(tree: Any, name: str) -> None:
    """Refuse a pytree with an array that is not of real numbers, or larger than the memory.

    Arrays may be traced; leaves that are no arrays pass.

    Raises:
        UserError: naming the array by its path.

    Examples:
        >>> require_real_tree({"W": jnp.ones(2, complex)}, "model")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: model['W'] has dtype complex128: give real numbers
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if type(leaf) is int and abs(leaf) > sys.float_info.max:
            place = name + jax.tree_util.keystr(path)
            raise UserError(f"{place} is a whole number beyond float64: give a smaller one")
    for place, leaf in _arrays(tree, name):
        if leaf.dtype != bool and not is_real(leaf.dtype):
            raise UserError(f"{place} has dtype {leaf.dtype}: give real numbers")
        require_memory(8 * leaf.size, f"{place} of shape {leaf.shape}", "give a part of it")


def require_finite_tree(tree: Any, name: str) -> None:
    """`require_real_tree`, and refuse arrays that are not traced and have NaN or infinite entries.

    Examples:
        >>> require_finite_tree({"W": jnp.array([1.0, jnp.nan])}, "model")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: model['W'] has 1 entries that are NaN or ...
    """
    require_real_tree(tree, name)
    for place, leaf in _arrays(tree, name):
        if not is_traced(leaf):
            require_finite(leaf, place)


def _arrays(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if isinstance(leaf, jax.Array | np.ndarray) and not key:
            yield name + jax.tree_util.keystr(path), leaf
