"""Which part of an argument is of another type than its annotation says, where a call has failed.

Functions of records, data sets and reports take objects of many fields. Reading all of them before
each call would cost more than most calls, so that `refuse_misfits` reads them once an error has
occurred: the error of a spoilt object becomes one line that names the field.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from attlas.core.axis_sizes import contradicted_axes

_PLAIN_AXES = re.compile(r"(\*?[A-Za-z]\w*|\d+)( (\*?[A-Za-z]\w*|\d+))*")
"""Names and numbers of axes, no sums of them."""
_DEEPEST = 8
"""Fields inside each other that are read."""


def first_misfit(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> str:
    """The first part of the arguments of a call that does not fit its annotation, in one line.

    Returns:
        Empty where all arguments fit.

    Examples:
        >>> def longest(names: list[str]) -> int: ...
        >>> first_misfit(longest, (["a", None],), {})
        'names[1] is None: give a str'
    """
    kinds = _hints(function)
    values = inspect.signature(function).bind(*args, **kwargs).arguments
    for name, value in values.items():
        for line in misfits(kinds.get(name, Any), value, name):
            return line
    return next(_sizes(kinds, values), "")


@cache
def _hints(annotated: Any) -> dict[str, Any]:
    """The types of parameters or fields; those that only type checkers import stay texts."""
    try:
        return get_type_hints(annotated)
    except NameError:
        return dict(annotated.__annotations__)


def misfits(annotation: Any, value: Any, name: str, depth: int = 0) -> Iterator[str]:
    """The parts of a value that do not fit a type, each in one line.

    Args:
        annotation: the type; one that is only known to type checkers may be its name.
        name: such as "report", with which each line begins.
        depth: how many fields inside each other led to it.

    Yields:
        Such as "report.verdict is None: give a Verdict".

    Examples:
        >>> list(misfits(dict[str, float], {"a": 1, "b": "c"}, "values"))
        ["values['b'] is a str: give a float"]
    """
    origin, inside = get_origin(annotation), get_args(annotation)
    if annotation is Any or isinstance(annotation, TypeVar) or depth > _DEEPEST:
        return
    if origin in (Union, UnionType):
        lines = [list(misfits(option, value, name, depth)) for option in inside]
        # Of several types the nearest: the one with a misfit inside rather than of its own.
        if all(lines):
            yield max((each[0] for each in lines), key=lambda line: len(line.partition(" is ")[0]))
    elif not _is_of(value, annotation, origin, depth):
        yield f"{name} is {_shown(value)}: give {_article(_named(annotation))}"
    elif type(value) is int:
        if annotation is not int and abs(value) > sys.float_info.max:
            yield f"{name} is beyond the largest float: give a smaller number"
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for field, kind in _hints(type(value)).items():
            yield from misfits(kind, getattr(value, field), f"{name}.{field}", depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        kinds = _hints(type(value))
        for field in fields(value):
            kind = kinds.get(field.name, Any)
            yield from misfits(kind, getattr(value, field.name), f"{name}.{field.name}", depth + 1)
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        yield from _sizes(kinds, held, f"{name}.")
    elif inside and isinstance(value, Mapping):
        for key, entry in value.items():
            yield from misfits(inside[0], key, f"the key {key!r:.40} of {name}", depth + 1)
            yield from misfits(inside[-1], entry, f"{name}[{key!r:.40}]", depth + 1)
    elif inside and isinstance(value, str | bytes):
        if origin is not Literal and inside[0] is not str:
            yield f"{name} is {_shown(value)}: give a list"
    elif inside and isinstance(value, Collection):
        yield from _of_entries(origin, inside, value, name, depth)


def _of_entries(
    origin: Any, inside: tuple[Any, ...], value: Collection[Any], name: str, depth: int
) -> Iterator[str]:
    """The misfits of a list, a set or a tuple, whose entries may have a type each."""
    each_own = origin is tuple and ... not in inside
    if each_own and len(value) != len(inside):
        yield f"{name} has {len(value)} entries: give {len(inside)}"
        return
    for place, entry in enumerate(value):
        kind = inside[place] if each_own else inside[0]
        yield from misfits(kind, entry, f"{name}[{place}]", depth + 1)


def _sizes(kinds: Mapping[str, Any], values: Mapping[str, Any], owner: str = "") -> Iterator[str]:
    """The first array whose axes are not as long as those of the same name in the others."""
    wanted, shapes = [], {}
    for name, value in values.items():
        kind = kinds.get(name)
        options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        dimensions = [getattr(option, "dim_str", None) for option in options]
        axes = {text.strip() for text in dimensions if text is not None}
        if len(axes) > 1:
            axes = {text for text in axes if len(text.split()) == np.ndim(value)}
        if value is not None and len(axes) == 1 and _PLAIN_AXES.fullmatch(min(axes)):
            wanted += axes
            shapes[owner + name] = np.shape(value)
    if not shapes:
        return
    if line := contradicted_axes(", ".join(wanted), shapes):
        yield line


def _is_of(value: Any, annotation: Any, origin: Any, depth: int) -> bool:
    """Whether a value is of a type, its entries and fields aside."""
    if isinstance(annotation, str):
        names = set(re.findall(r"\w+", annotation))
        own = {"None"} if value is None else {each.__name__ for each in type(value).__mro__}
        return bool(names & own)
    if origin is Literal:
        return value in get_args(annotation)
    if origin is type or annotation is type:
        return isinstance(value, type)
    if origin is Callable or annotation is Callable:
        return callable(value)
    if hasattr(annotation, "dim_str"):
        # Functions make arrays of lists; objects hold arrays.
        is_array = depth == 0 or hasattr(value, "dtype") or np.isscalar(value)
        return is_array and _is_numeric(value, annotation, is_read=depth == 0)
    if annotation is None or annotation is type(None):
        return value is None
    if annotation is float:
        return isinstance(value, float | int | np.floating | np.integer)
    if annotation is int:
        return isinstance(value, int | np.integer)
    try:
        return isinstance(value, origin or annotation)
    except TypeError:  # a protocol that is not checked, or a special form
        return True


def _is_numeric(value: Any, annotation: Any, *, is_read: bool) -> bool:
    """Whether a value is an array of numbers of the annotated kind, with as many axes.

    Args:
        is_read: whether the function makes floats of whole numbers.
    """
    from attlas._jax.device_arrays import is_traced  # imports JAX, which certificates do without

    if is_traced(value):
        return True
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    axes = annotation.dim_str.split()
    wanted = annotation.dtypes if isinstance(annotation.dtypes, tuple) else ()
    named = {name.rstrip("_0123456789") for name in wanted}
    is_whole = array.dtype.kind in "iu"
    if named == {"int"} or named == {"int", "uint"}:
        is_kind = is_whole
    elif named == {"bool"}:
        is_kind = array.dtype.kind == "b"
    else:
        is_kind = is_read or not named or not (is_whole or array.dtype.kind == "b")
    is_open = any("..." in axis or axis.startswith("*") for axis in axes)
    return is_kind and array.dtype.kind in "fiubV" and (is_open or array.ndim == len(axes))


def _named(annotation: Any) -> str:
    """A type in a sentence."""
    if isinstance(annotation, str):
        return annotation
    if hasattr(annotation, "dim_str"):
        return f"array [{annotation.dim_str}]"
    return getattr(annotation, "__name__", str(annotation))


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return "None" if value is None else _article(type(value).__name__)
