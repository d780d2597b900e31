"""Arguments read by the annotations of a function, for `attlas.core.argument_validation`."""

import math
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
from attlas.core.axes import Shape
from attlas.core.errors import UserError

Shapes = dict[str, tuple[str, Shape]]
"""By the name of an array its axes, as the function writes them, and its shape."""

Reader = Callable[[Any, str, Shapes], Any]


_BOOLEANS = {"bool", "bool_"}


class Beyond(Enum):
    """What arrays may hold beside finite numbers."""

    NOTHING = "nothing"
    INFINITE = "infinity, where it may be the value of a bound"
    MISSING = "NaN and infinity, of runs that are missing or diverged"


@cache
def reader(annotation: Any, beyond: Beyond) -> Reader | None:
    """What reads an argument of an annotated type.

    Args:
        annotation: the type: a number, an array of jaxtyping, a model, or a tuple or list of them.
        beyond: what its arrays may hold beside finite numbers.

    Returns:
        The reader, which raises `UserError`; None for words, functions, keys.

    Examples:
        >>> reader(float, Beyond.NOTHING)(np.float32(2), "x", {})
        2.0
    """
    options = get_args(annotation) if _is_union(annotation) else (annotation,)
    some = [option for option in options if option is not type(None)]
    found = _model(some[0]) or _collection(some[0], beyond) if len(some) == 1 else None
    if found is None:
        found = _mask(some) or _numbers(some, beyond)
    if found is None or len(some) == len(options):
        return found
    return lambda value, name, shapes: None if value is None else found(value, name, shapes)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _model(annotation: Any) -> Reader | None:
    """For a model: its arrays must be real, finite and of the shapes that its class writes."""
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
        found = {
            field: read(getattr(value, field), f"{name}.{field}", shapes)
            for field, read in kinds.items()
            if read
        }
        found = {field: entry for field, entry in found.items() if entry is not None}
        # No constructor is called: shapes that do not fit each other are refused behind this.
        return eqx.tree_at(
            lambda model: [getattr(model, field) for field in found], value, list(found.values())
        )

    return read_model


def _collection(annotation: Any, beyond: Beyond) -> Reader | None:
    """For a named tuple, a tuple of so many entries, or a list."""
    inside = get_args(annotation)
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
    count = None if get_origin(annotation) is list else len(inside)
    readers = [reader(each, beyond) for each in inside]

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


def _mask(options: list[Any]) -> Reader | None:
    """For booleans of annotated axes."""
    kinds = [option for option in options if _types(option) and _types(option) <= _BOOLEANS]
    if len(kinds) != len(options):
        return None
    axes = kinds[0].dim_str.strip()

    def read(value: Any, name: str, shapes: Shapes) -> Any:
        found = read_mask(value, name)
        shapes[name] = axes, found.shape
        return found

    return read


def _numbers(options: list[Any], beyond: Beyond) -> Reader | None:
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
    # The value of a bound is a number or a list of them; what has more axes are data.
    bound = beyond is Beyond.INFINITE and not numpy and len((axes or "").split()) < 2

    def read(value: Any, name: str, shapes: Shapes) -> Any:
        if scalar and type(value) is int:
            return value
        if scalar and type(value) is float:
            if math.isnan(value):
                raise UserError(f"{name} is NaN: give a number")
            return _whole(np.asarray(value), name) if whole else value
        if value is None:
            raise UserError(f"{name} has NoneType: give real numbers")
        found = read_array(value, name)
        if found.size == 0:
            raise UserError(f"{name} has shape {found.shape}: give at least one number")
        if found.ndim == 0 or beyond is not Beyond.MISSING:
            if np.any(np.isnan(found)):
                raise UserError(f"{name} is NaN or holds it: give numbers, or clean the data")
            if not bound and axes and not np.all(np.isfinite(found)):
                raise UserError(f"{name} has infinite entries: clean the data")
        if axes == "" and found.ndim:
            raise UserError(
                f"{name} has shape {found.shape}: give one number, and use jax.vmap for many"
            )
        if axes and not (scalar and found.ndim == 0):
            shapes[name] = axes, found.shape
        if whole:
            found = _whole(found, name)
            return found if numpy or isinstance(found, int) else jnp.asarray(found)
        if arrays and _is_followed(value) and not numpy and value.dtype.itemsize >= 4:
            return value
        if scalar and found.ndim == 0:
            return found.item()
        dtype = np.float64 if beyond is Beyond.INFINITE else _own_type(found.dtype, numpy)
        return found.astype(dtype, copy=False) if numpy else jnp.asarray(found, dtype)

    return read


def _own_type(dtype: Any, numpy: bool) -> Any:
    """The type that numbers are computed with; integers count as float64."""
    if not jnp.issubdtype(dtype, jnp.floating):
        return np.float64
    # LAPACK factorises nothing narrower than float32.
    if dtype.itemsize < 4:
        return np.float64 if numpy else np.float32
    return dtype


def _is_followed(value: Any) -> bool:
    """Whether its type decides: whoever hands over float32 of JAX computes in float32."""
    return isinstance(value, jax.Array) and bool(jnp.issubdtype(value.dtype, jnp.floating))


def _whole(found: np.ndarray, name: str) -> np.ndarray | int:
    """Whole numbers, in whatever type they come: one of them as Python's, of any size."""
    wrong = ~np.isfinite(found) | (found % 1 != 0)
    if np.any(wrong):
        verb = "holds" if found.ndim else "="
        raise UserError(f"{name} {verb} {found[wrong].flat[0]}: give a whole number")
    if found.ndim == 0:
        return int(found)
    if np.any(np.abs(found) >= 2.0**63):
        raise UserError(f"{name} holds whole numbers beyond 64 bits: give smaller ones")
    return found.astype(np.int64)


def _types(option: Any) -> set[str]:
    """Names of the types that an annotation of jaxtyping allows; none for any other."""
    found = getattr(option, "dtypes", ())
    return set(found) if isinstance(found, list | tuple | set | frozenset) else set()


def _arrays(options: list[Any]) -> Iterator[tuple[Any, str | None, bool]]:
    """Of each array among the types: whose it is, its axes or None for any, whether it is real."""
    for option in options:
        types = _types(option)
        if option in (np.ndarray, jax.Array):
            yield option, None, True
        elif {"float32", "int32"} & types:
            axes = option.dim_str.strip()
            yield option.array_type, None if "..." in axes else axes, "float32" in types


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
