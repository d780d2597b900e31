"""Argument validation by annotations: numbers, arrays and models are converted or refused.

    @validate_arguments
    def svm_shortfall(X: Float[np.ndarray, "n T d"], z: Float[np.ndarray, "n d"]): ...

Nothing happens within `jit`, `vmap` and `grad`, and where one such function calls another.
"""

import inspect
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import is_traced
from attlas.core.annotations import Beyond, Reader, Shapes, reader
from attlas.core.axes import require_axes
from attlas.core.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


class _Thread(threading.local):
    inside = False


_THREAD = _Thread()


def validate_arguments(
    function: Callable[P, R], beyond: Beyond = Beyond.NOTHING, *, partial_range: bool = False
) -> Callable[P, R]:
    """Let a function accept lists, NumPy, JAX and torch, whatever JAX's default precision.

    A parameter that is annotated as a number or an array, also inside a tuple or a model, must be
    real and of the annotated shape. Arrays keep their floating type, and integers count as float64;
    where bounds may be infinite, arrays of NumPy are converted to float64, too. Other parameters
    pass unchanged, and so do all arguments where one of them is traced: the traced program decides.

    Args:
        beyond: values that arrays may have beside finite numbers.
        partial_range: whether an arithmetic error, or NaN in the value, means that the function is
            not defined there.

    Returns:
        The same function; it raises `UserError`, naming the argument and what to do.

    Examples:
        >>> from jaxtyping import Float
        >>> @validate_arguments
        ... def total(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> float:
        ...     return float(x.sum() + y.sum())
        >>> total([[1, 2]], jnp.ones(1))
        4.0
        >>> total([[1, 2]], [1, 2])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: y has shape (2,): give [n] with n = 1, as x has
    """
    signature = inspect.signature(function)
    readers = {
        name: read_argument
        for name, parameter in signature.parameters.items()
        if (read_argument := reader(parameter.annotation, beyond))
    }
    undefined = (ArithmeticError, ValueError) if partial_range else ()

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if _THREAD.inside:
            return function(*args, **kwargs)
        narrow = jax.dtypes.canonicalize_dtype(float) != np.float64
        traced = any(map(is_traced, jax.tree.leaves((args, kwargs))))
        if traced or (narrow and is_traced(jnp.zeros(()))):
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        with jax.enable_x64(True) if narrow else nullcontext():
            _read(bound.arguments, readers)
            try:
                value = _computed(function, bound)
            except UserError:
                raise
            except undefined as error:
                raise _undefined(function, str(error).partition("\n")[0]) from error
            if partial_range and _holds_nan(value):
                raise _undefined(function, "its value is not a number")
            return value

    return called


def _undefined(function: Callable, reason: str) -> UserError:
    return UserError(
        f"{function.__name__} is not defined there ({reason}): give numbers in its range"
    )


def _holds_nan(value: Any) -> bool:
    """Whether a number or an entry of an array is NaN in a result."""
    numbers = (
        leaf
        for leaf in jax.tree.leaves(value)
        if isinstance(leaf, float | np.floating | np.ndarray | jax.Array) and not is_traced(leaf)
    )
    return any(
        bool(np.isnan(np.asarray(leaf)).any())
        for leaf in numbers
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    )


validate_record_arguments = partial(validate_arguments, beyond=Beyond.MISSING)
"""For records of runs: NaN and infinity of a run that is missing or diverged are allowed."""


def _computed(function: Callable[..., R], bound: inspect.BoundArguments) -> R:
    """The value of a function; functions that it calls validate nothing."""
    _THREAD.inside = True
    try:
        return function(*bound.args, **bound.kwargs)
    finally:
        _THREAD.inside = False


def _read(arguments: dict[str, Any], readers: dict[str, Reader]) -> None:
    shapes: Shapes = {}
    for name, value in arguments.items():
        if name in readers:
            arguments[name] = readers[name](value, name, shapes)
    if shapes:
        axes = ", ".join(axes for axes, _ in shapes.values())
        require_axes(axes, {name: shape for name, (_, shape) in shapes.items()})
