"""Which part of an argument explains an error although its type fits: the last resort of a refusal.

An error alone does not say whether what a function was given is to blame, or the function. The
first is said only where the arguments hold something out of the ordinary: a number that is not
finite, an array of texts, or nothing where something is needed. Any other error is one of ours and
passes: a function that looks up a name in what it is given says itself that it is missing.
"""

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

import numpy as np

_DEEPEST = 6
_MOST_PARTS = 10_000
"""Parts of the arguments that are looked at."""
_LARGEST = 1e150
"""The square of a larger number is infinite."""
_ORDINARY = (str, bytes, bool, int, float, complex, np.generic, Collection)


def unusable_part(arguments: Mapping[str, Any], error: BaseException) -> str:
    """The first part of some arguments that explains an error, in one line.

    Args:
        arguments: the values that the failed call was given, by name.
        error: the exception that ended the call.

    Returns:
        Such as "losses has an entry that is not finite"; empty if nothing explains it.

    Examples:
        >>> unusable_part({"counts": [3, 0]}, ZeroDivisionError())
        'counts[1] is 0'
        >>> unusable_part({"counts": [3, 1]}, ZeroDivisionError())
        ''
    """
    for name, part in islice(_parts(arguments), _MOST_PARTS):
        if said := _oddity(part, error):
            return f"{name} {said}"
    return ""


def _parts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments, and what is in them, breadth first."""
    left = [(name, value, 0) for name, value in arguments.items()]
    while left:
        deeper = []
        for name, value, depth in left:
            yield name, value
            if depth < _DEEPEST:
                deeper += [(n, v, depth + 1) for n, v in _inside(name, value)]
        left = deeper


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    attributes = getattr(value, "attrs", None)
    if isinstance(attributes, Mapping) and attributes:
        yield f"{name}.attrs", attributes
    if isinstance(value, type | str | bytes) or hasattr(value, "shape"):
        return
    if isinstance(value, Mapping):  # a data set of xarray is one, of its variables
        yield from ((f"{name}[{key!r:.40}]", entry) for key, entry in value.items())
    elif isinstance(value, tuple) and (keys := getattr(value, "_fields", ())):
        yield from ((f"{name}.{key}", getattr(value, key)) for key in keys)
    elif is_dataclass(value):
        named = [(field.name, getattr(value, field.name, None)) for field in fields(value)]
        yield from ((f"{name}.{key}", entry) for key, entry in named)
    elif isinstance(value, list | tuple):
        yield from ((f"{name}[{place}]", entry) for place, entry in enumerate(value))


def _oddity(part: Any, error: BaseException) -> str:
    """What is out of the ordinary in one part; empty if nothing is."""
    if hasattr(part, "dtype") and hasattr(part, "shape"):
        return _oddity_of_array(part, error)
    if isinstance(part, float) and not abs(part) <= _LARGEST:
        return f"is {part}"
    if isinstance(part, int) and abs(part) > sys.float_info.max:
        return "is beyond the largest float"
    if isinstance(error, ArithmeticError) and isinstance(part, int | float) and part == 0:
        return f"is {part}"
    if isinstance(error, LookupError | ValueError) and _is_empty(part):
        return "is empty"
    is_plain = part is None or isinstance(part, _ORDINARY) or is_dataclass(part) or callable(part)
    # What a list or a mapping of anything holds has no annotation.
    return "" if is_plain else f"is an object of the class {type(part).__name__}"


def _oddity_of_array(array: Any, error: BaseException) -> str:
    values = np.asarray(array)
    # NumPy computes with no bfloat16; JAX does.
    is_of_numpy = isinstance(array, np.ndarray) or hasattr(array, "values")
    if values.dtype.kind not in ("fiub" if is_of_numpy else "fiubV"):
        return f"has entries of the type {values.dtype}, not real numbers"
    if values.size == 0:
        return "is empty"
    numbers = np.asarray(values, float) if values.dtype.kind != "V" else values
    if numbers.dtype.kind == "f":
        if not np.isfinite(numbers).all():
            return "has an entry that is not finite"
        if np.abs(numbers).max() > _LARGEST:
            return f"has an entry beyond {_LARGEST:g}"
        if isinstance(error, ArithmeticError) and not numbers.all():
            return "has an entry 0"
    return ""


def _is_empty(part: Any) -> bool:
    return isinstance(part, Collection) and len(part) == 0
