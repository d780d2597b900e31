"""What a claim's function does that no traced program can, in one line with the remedy.

JAX traces a claim once for all instances, with arrays that have shapes and no values. Its own
messages speak of tracers, which authors of claims have not met.
"""

import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jax

from attlas.core.errors import in_short

_NO_VALUES = "the arrays have no values while JAX traces the function for all instances at once"
_REMEDIES: tuple[tuple[type[Exception], str, str], ...] = (
    (
        jax.errors.TracerBoolConversionError,
        "branches on values of an array",
        "use jnp.where, jnp.maximum or jnp.minimum in place of if, and jax.lax.while_loop in place "
        "of while",
    ),
    (
        jax.errors.TracerArrayConversionError,
        "passes an array to NumPy",
        "use jnp in place of np, or give backend='numpy'",
    ),
    (
        jax.errors.TracerIntegerConversionError,
        "uses a value of an array as a whole number, as range and positions in lists do",
        "use a size such as x.shape[0], or jax.lax.scan or jax.lax.fori_loop for a loop",
    ),
    (
        jax.errors.NonConcreteBooleanIndexError,
        "takes the entries of an array at which others are true, whose number depends on values",
        "use jnp.where(condition, x, 0), or reduce with where=condition",
    ),
    (
        jax.errors.ConcretizationTypeError,
        "makes a Python number of a value of an array, as float, int, math and range do",
        "use jnp in place of math, no float or int, and jax.lax.scan for a loop of as many steps",
    ),
)


def tracing_failure(
    error: Exception, function: Callable[..., Any], instance: Mapping[str, Any]
) -> str:
    """Why a function of named arrays cannot be traced, on one line.

    Args:
        error: what tracing raised.
        function: of the claim, or the predicate of an assumption.
        instance: its arrays, whose shapes are listed where shapes do not fit.

    Returns:
        The line of its file where that is known, what it does there, and what to write instead;
        of an error that has nothing to do with tracing or shapes its class and first line.

    Examples:
        >>> tracing_failure(KeyError("x"), len, {})
        "fails on a drawn instance: KeyError: 'x'"
    """
    line = _line_of(error, function)
    place = f"in line {line} " if line else ""
    for kind, what, remedy in _REMEDIES:
        if isinstance(error, kind):
            return f"{place}{what}, but {_NO_VALUES}: {remedy}"
    said = in_short(error).rstrip(".")
    if "in-place item assignment" in said:
        return f"{place}assigns to entries of an array: write x = x.at[0].set(value)"
    if isinstance(error, TypeError | ValueError) and "shape" in said:
        shapes = ", ".join(f"{name} {tuple(v.shape)}" for name, v in instance.items())
        return (
            f"{place}joins arrays whose shapes do not fit ({said}): an instance has {shapes}, "
            "without an axis for instances"
        )
    return f"{place}fails on a drawn instance: {said}"


def _line_of(error: Exception, function: Callable[..., Any]) -> int | None:
    """The line of the function's own file in which an error began."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if code is not None and frame.f_code.co_filename == code.co_filename
    ]
    return lines[-1] if lines else None
