"""Argument validation of closed forms: a formula reads numbers and arrays by its annotations.

    @closed_form
    def entropy_integral(A: Number, D: Number, ...): ...

Within `jit`, `vmap` and `grad`, and where one formula calls another, nothing is done.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from attlas.core.annotations import Beyond
from attlas.core.argument_validation import validate_arguments

P = ParamSpec("P")
R = TypeVar("R")


def closed_form(formula: Callable[P, R]) -> Callable[P, R]:
    """Let a formula read lists, NumPy, JAX and torch, and compute in float64 by itself.

    An argument annotated as a number or an array, also inside a tuple or a model, must be real, of
    the annotated shape and not NaN, and a weight of a model must be finite; otherwise a `UserError`
    names it. Arrays of JAX keep their floating type, and the formula computes in it. Arguments with
    other annotations pass unchanged, and so do all arguments if one of them is traced.

    Examples:
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> @closed_form
        ... def half(x: float) -> float:
        ...     return x / 2
        >>> half(np.float32(3)), half(jnp.asarray(3))
        (1.5, 1.5)
        >>> half([1.0, 2.0])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: x has shape (2,): give one number, and use jax.vmap for many
    """
    return validate_arguments(formula, Beyond.INFINITE, partial_range=True)
