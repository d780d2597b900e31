"""The door of the closed forms: numbers and arrays are read by the annotations of a formula.

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

    What is annotated as a number or an array, also inside a tuple or a model, must be real, of the
    annotated shape and not NaN; infinity may be the value of a bound, but no weight of a model.
    Arrays of JAX keep their floating type, and a formula follows it. What is annotated otherwise
    is handed on as it is, and so are all arguments where one of them is traced: the program that
    is traced decides.

    Args:
        formula: a function of numbers and arrays with annotations.

    Returns:
        The same function behind the door; it raises `UserError`.

    Raises:
        UserError: by the function returned, naming the argument, what is wrong and what to do.

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
