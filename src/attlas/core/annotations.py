"""Arguments read by the annotations of a function, for `attlas.core.argument_validation`."""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import Enum
from functools import cache
from inspect import isclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.arrays import read_array, read_mask
from attlas.core.axis_sizes import Shape
from attlas.core.errors import UserError

Shapes = dict[str, tuple[str, Shape]]
"""By the name of an array its axes, as annotated, and its shape."""

Reader = Callable[[Any, str, Shapes], Any]


_BOOLEANS = {"bool", "bool_"}


class Beyond(Enum):
    """Values that arrays may have beside finite numbers."""

    NOTHING = "nothing"
    INFINITE = "infinity, where it may be the value of a bound"
    MISSING = "NaN and infinity, of runs that are missing or diverged"


@cache
def reader(annotation: Any, beyond: Beyond) -> Reader | None:
    """The reader of an argument of an annotated type: it converts the value or raises `UserError`.

    Args:
        annotation: the type: a number, an array of jaxtyping, a model, or a tuple or list of them.

    Returns:
        None for text, functions and keys, which need no reader.

    Examples:
        >>> reader(float, Beyond.NOTHING)(np.float32(2), "x", {})
        2.0
    """
    options = get_args(annotation) if _is_union(annotation) else (annotation,)
    some = [option for option in options if option is not type(None)]
    read_argument = _model(some[0]) or _collection(some[0], beyond) if len(some) == 1 else None
    if read_argument is None:
        read_argument = _mask(some) or _numbers(some, beyond)
    if read_argument is None or len(some) == len(options):
        return read_argument
    return lambda value, name, shapes: None if value is None else read_argument(value, name, shapes)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _model(annotation: Any) -> Reader | None:
    """For a model: its arrays must be real, finite and of the shapes that its class declares."""
    if not (isclass(annotation) and issubclass(annotation, eqx.Module)):
        return None
    kinds = {
        field.name: reader(field.type, Beyond.NOTHING)
        for field in fields(annotation)
        if not field.metadata.get("static")
    }

    def read_model(value: Any, name: str, shapes: Shapes) -> Any:
        if not isinstance(value, annotation):
            raise UserError(f"{name} is {_kind(value)}: give a {annotation.__name__}")
        arrays = {
            field: read(getattr(value, field), f"{name}.{field}", shapes)
            for field, read in kinds.items()
            if read
        }
        arrays = {field: entry for field, entry in arrays.items() if entry is not None}
        # No constructor runs: `validate_arguments` compares the shapes afterwards.
        return eqx.tree_at(
            lambda model: [getattr(model, field) for field in arrays], value, list(arrays.values())
        )

    return read_model


def _collection(annotation: Any, beyond: Beyond) -> Reader | None:
    """For a named tuple, a tuple of a fixed number of entries or of any, or a list."""
    # A tuple of any length has its type and an ellipsis.
    inside = tuple(option for option in get_args(annotation) if option is not ...)
    if hasattr(annotation, "_fields"):
        kinds = {
            field: reader(annotation.__annotations__[field], beyond) for field in annotation._fields
        }

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
    is_tuple = get_origin(annotation) is tuple
    count = len(inside) if is_tuple and ... not in get_args(annotation) else None
    readers = [reader(option, beyond) for option in inside]

    def read_entries(value: Any, name: str, shapes: Shapes) -> Any:
        entries = value if isinstance(value, list | tuple) else _entries(value, name)
        if count is not None and len(entries) != count:
            raise UserError(f"{name} has {len(entries)} entries: give {count}")
        entry_readers = readers if count is not None else readers * len(entries)
        values = (
            read(entry, f"{name}[{place}]", shapes) if read else entry
            for place, (read, entry) in enumerate(zip(entry_readers, entries, strict=True))
        )
        return tuple(values) if is_tuple else list(values)

    return read_entries


def _entries(value: Any, name: str) -> list[Any]:
    array = read_array(value, name)
    if array.ndim != 1:
        raise UserError(f"{name} has shape {array.shape}: give a tuple of numbers")
    return array.tolist()


def _mask(options: list[Any]) -> Reader | None:
    """For booleans of annotated axes."""
    kinds = [option for option in options if _types(option) and _types(option) <= _BOOLEANS]
    if len(kinds) != len(options):
        return None
    axes = kinds[0].dim_str.strip()

    def read(value: Any, name: str, shapes: Shapes) -> Any:
        mask = read_mask(value, name)
        shapes[name] = axes, mask.shape
        return mask

    return read


def _numbers(options: list[Any], beyond: Beyond) -> Reader | None:
    """For a number, an array, or either."""
    arrays = list(_arrays(options))
    plain = [option for option in options if option in (int, float)]
    if not arrays and not plain:
        return None
    integral = float not in plain and not any(real for _, _, real in arrays)
    # The widest annotated shape decides: a number or an array of any shape is any shape.
    shapes_written = [axes for _, axes, _ in arrays] or [""]
    axes = None if None in shapes_written else max((axes or "" for axes in shapes_written), key=len)
    scalar = bool(plain)
    numpy = any(kind is np.ndarray for kind, _, _ in arrays)
    # The value of a bound is a number or a list of them; arrays of more axes are data.
    bound = beyond is Beyond.INFINITE and not numpy and len((axes or "").split()) < 2

    def read(value: Any, name: str, shapes: Shapes) -> Any:
        if scalar and type(value) is int:
            return value if integral or abs(value) < 2**63 else _as_float(value, name)
        if scalar and type(value) is float:
            if math.isnan(value):
                raise UserError(f"{name} is NaN: give a number")
            return _integers(np.asarray(value), name) if integral else value
        if value is None:
            raise UserError(f"{name} has NoneType: give real numbers")
        array = read_array(value, name)
        if array.size == 0:
            raise UserError(f"{name} has shape {array.shape}: give at least one number")
        if array.ndim == 0 or beyond is not Beyond.MISSING:
            if np.any(np.isnan(array)):
                raise UserError(f"{name} is NaN or holds it: give numbers, or clean the data")
            if not bound and axes and not np.all(np.isfinite(array)):
                raise UserError(f"{name} has infinite entries: clean the data")
        if axes == "" and array.ndim:
            raise UserError(
                f"{name} has shape {array.shape}: give one number, and use jax.vmap for many"
            )
        if axes and not (scalar and array.ndim == 0):
            shapes[name] = axes, array.shape
        if integral:
            array = _integers(array, name)
            return array if numpy or isinstance(array, int) else jnp.asarray(array)
        if arrays and _is_followed(value) and not numpy and value.dtype.itemsize >= 4:
            return value
        if scalar and array.ndim == 0:
            return array.item()
        dtype = np.float64 if beyond is Beyond.INFINITE else _own_type(array.dtype, numpy)
        return array.astype(dtype, copy=False) if numpy else jnp.asarray(array, dtype)

    return read


def _own_type(dtype: Any, numpy: bool) -> Any:
    """The type of the computation; integers count as float64."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return np.float64
    # LAPACK factorises nothing narrower than float32.
    if dtype.itemsize < 4:
        return np.float64 if numpy else np.float32
    return dtype


def _is_followed(value: Any) -> bool:
    """Whether the type decides: float32 of JAX is computed in float32."""
    return isinstance(value, jax.Array) and bool(jnp.issubdtype(value.dtype, jnp.floating))


def _as_float(value: int, name: str) -> float:
    """An integer that JAX cannot hold, where a real number is asked for."""
    if abs(value) > sys.float_info.max:
        raise UserError(f"{name} is beyond the largest float: give a smaller number")
    return float(value)


def _integers(array: np.ndarray, name: str) -> np.ndarray | int:
    """Whole numbers of any type: a single one as an integer of Python, of any size."""
    wrong = ~np.isfinite(array) | (array % 1 != 0)
    if np.any(wrong):
        verb = "holds" if array.ndim else "="
        raise UserError(f"{name} {verb} {array[wrong].flat[0]}: give a whole number")
    if array.ndim == 0:
        return int(array)
    if np.any(np.abs(array) >= 2.0**63):
        raise UserError(f"{name} holds whole numbers beyond 64 bits: give smaller ones")
    return array.astype(np.int64)


def _types(option: Any) -> set[str]:
    """Names of the types that an annotation of jaxtyping allows; none for any other."""
    names = getattr(option, "dtypes", ())
    return set(names) if isinstance(names, list | tuple | set | frozenset) else set()


def _arrays(options: list[Any]) -> Iterator[tuple[Any, str | None, bool]]:
    """Of each array among the types: its class, its axes or None for any, whether it is real."""
    for option in options:
        types = _types(option)
        if option in (np.ndarray, jax.Array):
            yield option, None, True
        elif {"float32", "int32"} & types:
            axes = option.dim_str.strip()
            yield option.array_type, None if "..." in axes else axes, "float32" in types


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
