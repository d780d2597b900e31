"""Which part of an argument explains an error although its type fits: the last resort of a refusal.

An error alone does not say whether what a function was given is to blame, or the function. The
first is said only where the arguments hold something out of the ordinary: a number that is not
finite, an array of texts, nothing where something is needed, or no entry of the name that was
looked up in them. Any other error is one of ours and passes.
"""

import ast
import linecache
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import FrameType, TracebackType
from typing import Any

import numpy as np

_DEEPEST = 6
_MOST_PARTS = 10_000
"""Parts of the arguments that are looked at."""
_LARGEST = 1e150
"""The square of a larger number is infinite."""
_TABLES = ("xarray", "pandas")
"""Libraries whose errors of lookups are of several classes."""
_ORDINARY = (str, bytes, bool, int, float, complex, np.generic, Collection)


def unusable_part(
    arguments: Mapping[str, Any], error: BaseException, package: str = "attlas"
) -> str:
    """The first part of some arguments that explains an error, in one line.

    Args:
        arguments: the values that the failed call was given, by name.
        error: the exception, which holds its traceback.
        package: root of the function that failed; what libraries look up is theirs.

    Returns:
        Such as "losses has an entry that is not finite"; empty if nothing explains it.

    Examples:
        >>> unusable_part({"counts": [3, 0]}, ZeroDivisionError())
        'counts[1] is 0'
        >>> unusable_part({"counts": [3, 1]}, ZeroDivisionError())
        ''
    """
    parts = []
    for name, part in _parts(arguments):
        parts.append(part)
        if said := _oddity(part, error):
            return f"{name} {said}"
        if len(parts) == _MOST_PARTS:
            break
    return _missing_name(parts, error, package)


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


def _missing_name(parts: list[Any], error: BaseException, package: str) -> str:
    """Whether a name was looked up in vain in a part of the arguments, and not elsewhere."""
    if not isinstance(error, KeyError | ValueError) or error.__traceback__ is None:
        return ""
    frames = list(traceback.walk_tb(error.__traceback__))
    where = [at for at, (frame, _) in enumerate(frames) if _package(frame) == package]
    is_of_tables = _package(frames[-1][0]) in _TABLES
    if not where or not (
        is_of_tables or (isinstance(error, KeyError) and len(frames) == where[-1] + 1)
    ):
        return ""
    trace: TracebackType | None = error.__traceback__
    for _ in range(where[-1]):
        trace = trace.tb_next if trace is not None else None
    searched = None if trace is None else _operand(trace)
    if searched is None or not any(searched is part for part in parts):
        return ""
    return "an entry or an axis is missing"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _operand(trace: TracebackType) -> Any:
    """What `x` is in the expression `x[...]` or `x.method(...)` that failed; None for others."""
    frame = trace.tb_frame
    places = list(frame.f_code.co_positions())[trace.tb_lasti // 2]
    source = _segment(frame.f_code.co_filename, places)
    try:
        failed = ast.parse(source.strip(), mode="eval").body
    except SyntaxError:
        return None
    if isinstance(failed, ast.Call) and isinstance(failed.func, ast.Attribute):
        failed = failed.func
    return (
        _value(failed.value, frame) if isinstance(failed, ast.Subscript | ast.Attribute) else None
    )


def _segment(file: str, places: tuple[int | None, ...]) -> str:
    """The characters of a file between two places."""
    if None in places:
        return ""
    first, last, begin, end = (int(place or 0) for place in places)
    lines = [linecache.getline(file, line).encode() for line in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return b"".join(lines).decode(errors="replace")


def _value(node: ast.expr, frame: FrameType) -> Any:
    """The value of a name, of its attributes and of its entries at constant keys."""
    match node:
        case ast.Name():
            return frame.f_locals.get(node.id)
        case ast.Attribute():
            return getattr(_value(node.value, frame), node.attr, None)
        case ast.Subscript(slice=ast.Constant(value=key)):
            try:
                return _value(node.value, frame)[key]
            except (TypeError, LookupError):
                return None
    return None
