"""The door of the closed forms: numbers and arrays are read by the annotations of a formula.

    @closed_form
    def entropy_integral(A: Number, D: Number, ...): ...

Within `jit`, `vmap` and `grad`, and where one formula calls another, nothing is done.
"""

import inspect
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache, wraps
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.arrays import is_traced, read_array
from attlas.core.axes import Shape, require_axes
from attlas.core.errors import UserError

Shapes = dict[str, tuple[str, Shape]]
"""By the name of an array its axes, as the formula writes them, and its shape."""

Reader = Callable[[Any, str, Shapes], Any]


P = ParamSpec("P")
R = TypeVar("R")


class _Thread(threading.local):
    inside = False


_THREAD = _Thread()


def closed_form(formula: Callable[P, R]) -> Callable[P, R]:
    """Let a formula read lists, NumPy, JAX and torch, and compute in float64 by itself.

    What is annotated as a number or an array, also inside a tuple, must be real, of the annotated
    shape and not NaN; infinity may be the value of a bound. Arrays of JAX keep their floating
    type, and a formula follows it. What is annotated otherwise is handed on as it is, and so are
    all arguments where one of them is traced: the program that is traced decides.

    Args:
        formula: a function of numbers and arrays with annotations.

    Returns:
        The same function behind the door; it raises `UserError`.

    Raises:
        UserError: by the function returned, naming the argument, what is wrong and what to do.

    Examples:
        >>> @closed_form
        ... def half(x: float) -> float:
        ...     return x / 2
        >>> half(np.float32(3)), half(jnp.asarray(3))
        (1.5, 1.5)
        >>> half([1.0, 2.0])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: x has shape (2,): give one number, and use jax.vmap for many
    """  # noqa: DOC502 (raised by the function returned)
    signature = inspect.signature(formula)
    readers = {
        name: reader
        for name, parameter in signature.parameters.items()
        if (reader := _reader(parameter.annotation))
    }

    @wraps(formula)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if _THREAD.inside or any(map(is_traced, jax.tree.leaves((args, kwargs)))):
            return formula(*args, **kwargs)
        narrow = jax.dtypes.canonicalize_dtype(float) != np.float64
        if narrow and is_traced(jnp.zeros(())):
            return formula(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        shapes: Shapes = {}
        with jax.enable_x64(True) if narrow else nullcontext():
            for name, value in given.arguments.items():
                if name in readers:
                    given.arguments[name] = readers[name](value, name, shapes)
            _require_shapes(shapes)
            return _computed(formula, given)

    return called


def _computed(formula: Callable[..., R], given: inspect.BoundArguments) -> R:
    """The value of a formula; those that it calls meet no door."""
    _THREAD.inside = True
    try:
        return formula(*given.args, **given.kwargs)
    except UserError:
        raise
    except (ArithmeticError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"{formula.__name__} is not defined there ({reason}): give numbers in its range"
        ) from error
    finally:
        _THREAD.inside = False


def _require_shapes(shapes: Shapes) -> None:
    if shapes:
        axes = ", ".join(axes for axes, _ in shapes.values())
        require_axes(axes, {name: shape for name, (_, shape) in shapes.items()})


@cache
def _reader(annotation: Any) -> Reader | None:
    """What reads an argument of this type; None for words, functions, networks, keys."""
    options = get_args(annotation) if _is_union(annotation) else (annotation,)
    some = [option for option in options if option is not type(None)]
    reader = _collection(some[0]) if len(some) == 1 else None
    if reader is None:
        reader = _numbers(some)
    if reader is None or len(some) == len(options):
        return reader
    return lambda value, name, shapes: None if value is None else reader(value, name, shapes)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _collection(annotation: Any) -> Reader | None:
    """For a named tuple, a tuple of so many entries, or a list."""
    inside = get_args(annotation)
    if hasattr(annotation, "_fields"):
        kinds = {field: _reader(annotation.__annotations__[field]) for field in annotation._fields}

        def read_fields(value: Any, name: str, shapes: Shapes) -> Any:
            if not isinstance(value, annotation):
                raise UserError(f"{name} is {_kind(value)}: give a {annotation.__name__}")
            return annotation(
                *(
                    read(entry, f"{name}.{field}", shapes) if read else entry
                    for (field, read), entry in zip(kinds.items(), value, strict=True)
                )
            )

        return read_fields
    if get_origin(annotation) not in (tuple, list):
        return None
    count = None if get_origin(annotation) is list else len(inside)
    readers = [_reader(each) for each in inside]

    def read_entries(value: Any, name: str, shapes: Shapes) -> Any:
        entries = value if isinstance(value, list | tuple) else _entries(value, name)
        if count is not None and len(entries) != count:
            raise UserError(f"{name} has {len(entries)} entries: give {count}")
        each = readers if count is not None else readers * len(entries)
        found = (
            read(entry, f"{name}[{place}]", shapes) if read else entry
            for place, (read, entry) in enumerate(zip(each, entries, strict=True))
        )
        return tuple(found) if count is not None else list(found)

    return read_entries


def _entries(value: Any, name: str) -> list[Any]:
    found = read_array(value, name)
    if found.ndim != 1:
        raise UserError(f"{name} has shape {found.shape}: give a tuple of numbers")
    return found.tolist()


def _numbers(options: list[Any]) -> Reader | None:
    """For a number, an array, or either."""
    arrays = list(_arrays(options))
    plain = [option for option in options if option in (int, float)]
    if not arrays and not plain:
        return None
    whole = float not in plain and not any(real for _, _, real in arrays)
    # The widest shape that is written decides: a number or an array of any shape is any shape.
    every = [axes for _, axes, _ in arrays] or [""]
    axes = None if None in every else max((axes or "" for axes in every), key=len)
    scalar = bool(plain)
    numpy = any(kind is np.ndarray for kind, _, _ in arrays)

    def read(value: Any, name: str, shapes: Shapes) -> Any:
        if scalar and type(value) in (int, float):
            if math.isnan(value):
                raise UserError(f"{name} is NaN: give a number")
            return _whole(np.asarray(value), name, scalar) if whole else value
        found = read_array(value, name)
        if found.size == 0:
            raise UserError(f"{name} has shape {found.shape}: give at least one number")
        if np.any(np.isnan(found)):
            raise UserError(f"{name} is NaN or holds it: give numbers, or clean the data")
        if numpy and axes and not np.all(np.isfinite(found)):
            raise UserError(f"{name} has infinite entries: clean the data")
        if axes == "" and found.ndim:
            raise UserError(
                f"{name} has shape {found.shape}: give one number, and use jax.vmap for many"
            )
        if axes and not (scalar and found.ndim == 0):
            shapes[name] = axes, found.shape
        if whole:
            return _whole(found, name, scalar)
        if _is_followed(value) and not numpy:
            return value
        if scalar and found.ndim == 0:
            return found.item()
        return found.astype(np.float64) if numpy else jnp.asarray(found, np.float64)

    return read


def _is_followed(value: Any) -> bool:
    """Whether its type decides: whoever hands over float32 of JAX computes in float32."""
    return isinstance(value, jax.Array) and bool(jnp.issubdtype(value.dtype, jnp.floating))


def _whole(found: np.ndarray, name: str, scalar: bool) -> Any:
    """Whole numbers, in whatever type they come."""
    if not np.all(np.isfinite(found)) or np.any(found % 1):
        raise UserError(f"{name} = {found}: give a whole number")
    if scalar and found.ndim == 0:
        return int(found)
    return jnp.asarray(found, np.int64)


def _arrays(options: list[Any]) -> Iterator[tuple[Any, str | None, bool]]:
    """Of each array among the types: whose it is, its axes or None for any, whether it is real."""
    for option in options:
        types = getattr(option, "dtypes", None)
        if option in (np.ndarray, jax.Array):
            yield option, None, True
        elif types is not None and {"float32", "int32"} & set(types):
            axes = option.dim_str.strip()
            yield option.array_type, None if "..." in axes else axes, "float32" in types


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
