r"""Arguments of optimisers: numbers that may be traced, and one exponent per leaf.

`jax.vmap` and `optax.inject_hyperparams` pass numbers as arrays, which have no value while a
program is traced. Numbers with a value are checked; traced ones are not.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.errors import UserError

Exponent = float | Any | Callable[[Any], Any]
"""One p, or a pytree of p's as the parameters (prefixes allowed), or a function that makes one."""


def number(value: Any, name: str) -> Any:
    """A scalar as a float where its value can be seen, unchanged where it is traced.

    Raises:
        UserError: if it is not a single real number.

    Examples:
        >>> number(jnp.array(3), "p")
        3.0
        >>> number("3", "p")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: p = '3' is not a number: give a real one
    """
    kind = getattr(value, "dtype", type(value))
    real = jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)
    if not real or not isinstance(value, float | int | np.number | np.ndarray | jax.Array):
        raise UserError(f"{name} = {value!r} is not a number: give a real one")
    if np.ndim(value) != 0:
        raise UserError(f"{name} has shape {np.shape(value)}: give one number, and use jax.vmap")
    try:
        return float(value)
    except jax.errors.ConcretizationTypeError:
        return value
    except OverflowError:
        raise UserError(f"{name} is a whole number beyond float64: give a smaller one") from None


def nonnegative(value: Any, name: str, *, zero: bool = True) -> Any:
    """`number`, refused where it is seen to be negative or not finite.

    Args:
        value: a real number, or a traced one.
        zero: whether 0 is accepted.

    Raises:
        UserError: if it is not a single number, or out of range.

    Examples:
        >>> nonnegative(0, "eps")
        0.0
        >>> nonnegative(0, "rate", zero=False)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: rate = 0.0 is not positive and finite: choose another
    """
    checked = number(value, name)
    if isinstance(checked, float) and not (0 < checked < float("inf") or (zero and checked == 0)):
        wrong = "is negative or not finite" if zero else "is not positive and finite"
        raise UserError(f"{name} = {checked} {wrong}: choose another")
    return checked


def require_mirror_exponent(p: Any) -> None:
    """Check that an exponent has a mirror map; a traced one is not checked.

    Raises:
        UserError: unless p is a single number with 1 < p < inf.

    Examples:
        >>> require_mirror_exponent(1.0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: exponent p = 1.0 has no mirror map: choose 1 < p < inf
    """
    checked = number(p, "exponent p")
    if isinstance(checked, float) and not 1 < checked < float("inf"):
        raise UserError(f"exponent p = {checked} has no mirror map: choose 1 < p < inf")


def mirror_exponents(p: Exponent) -> Exponent:
    """Check exponents before there are parameters; a function is checked when it is called.

    Args:
        p: one exponent, a pytree of exponents, or a function of the parameters.

    Raises:
        UserError: for an exponent without a mirror map.

    Examples:
        >>> mirror_exponents({"v": 2, "W": jnp.array(3.0)})
        {'W': 3.0, 'v': 2.0}
    """
    if callable(p) and _is_leaf(p):
        return p
    jax.tree.map(require_mirror_exponent, p)
    return jax.tree.map(lambda exponent: number(exponent, "exponent p"), p)


def exponent_of_each_leaf(p: Exponent, params: Any) -> Any:
    """The tree of exponents of a tree of parameters: one per leaf, a float or a traced scalar.

    Raises:
        UserError: if p is not a prefix of the parameters' tree, or a function made a bad exponent.

    Examples:
        >>> exponent_of_each_leaf({"v": 2.0, "W": 3.0}, {"v": jnp.ones(2), "W": [1.0, 1.0]})
        {'W': [3.0, 3.0], 'v': 2.0}
    """
    tree = mirror_exponents(p(params)) if callable(p) and _is_leaf(p) else p
    try:
        return jax.tree.map(lambda e, part: jax.tree.map(lambda _: e, part), tree, params)
    except ValueError as error:
        structures = f"{jax.tree.structure(tree)} does not fit {jax.tree.structure(params)}"
        raise UserError(f"p as {structures}: give one p, or a prefix of the parameters") from error


def in_dtype_of(array: Array, p: float | Array) -> float | Array:
    """A scalar exponent ready for the powers of an array; a traced one out of range becomes NaN.

    Examples:
        >>> in_dtype_of(jnp.ones(2), 3.0)
        3.0
        >>> bool(jnp.isnan(jax.jit(in_dtype_of)(jnp.ones(2), 0.5)))
        True
    """
    if isinstance(p, float):
        return p
    cast = jnp.asarray(number(p, "exponent p"), array.dtype)
    return jnp.where((cast > 1) & jnp.isfinite(cast), cast, jnp.nan)


def _is_leaf(p: Exponent) -> bool:
    """Whether p is not a pytree: a model of exponents is one, even if it can be called."""
    return jax.tree_util.all_leaves([p])
