"""Records, data sets and reports with one part spoilt, for `fuzz_examples`.

An object is spoilt as a whole (another type, nothing), or in one field, entry, variable, coordinate
or attribute, which is replaced by a spoilt one of its own kind. Objects are rebuilt as a user does,
by `dataclasses.replace`, so that a class may refuse the field.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
import pandas as pd
import xarray as xr
from spoilt_values import ARRAYS, TEXTS, is_array, is_number, number_faults

Spoil = Callable[[Any], Any]
DEPTH = 3
"""Fields of fields of fields are spoilt, and no deeper."""
OTHERS: dict[str, Spoil] = {
    "nothing": lambda _: None,
    "a word": lambda _: "word",
    "a number": lambda _: 1.0,
    "an object": lambda _: object(),
}
"""Another type."""
PATHS: dict[str, Spoil] = {
    "nothing": lambda _: None,
    "a missing file": lambda path: path / "missing" / "file",
    "a folder": lambda path: path.parent,
    "a zero byte": lambda path: path / "\0",
}
BYTES: dict[str, Spoil] = {
    "nothing": lambda _: None,
    "empty": lambda _: b"",
    "half": lambda content: content[: len(content) // 2],
    "noise": lambda content: bytes(255 - each for each in content),
    "text": lambda content: content.decode("latin1"),
}
SERIES: dict[str, Spoil] = {
    "empty": lambda entries: type(entries)(()),
    "twice as long": lambda entries: entries + entries,
    "a generator": lambda entries: (each for each in entries),
}
TABLES: dict[str, Spoil] = {
    "no rows": lambda frame: frame.iloc[:0],
    "no columns": lambda frame: frame.iloc[:, :0],
    "text": lambda frame: frame.astype(str),
    "NaN": lambda frame: pd.DataFrame(np.nan, frame.index, frame.columns),
}


def is_record(value: Any, depth: int = 2) -> bool:
    """Whether a value is data of xarray or pandas, an object of fields, a mapping, or such a list.

    Models are arrays: see `is_model`.
    """
    if isinstance(value, xr.Dataset | xr.DataArray | pd.DataFrame | Mapping):
        return True
    if isinstance(value, list | tuple) and not _is_named_tuple(value):
        return bool(depth and value) and is_record(value[0], depth - 1)
    is_model = isinstance(value, type | eqx.Module)
    return not is_model and (is_dataclass(value) or _is_named_tuple(value))


def is_model(value: Any) -> bool:
    """Whether a value is a model, a class of models or a part of one."""
    of_data = type(value).__module__.startswith("attlas.data.")
    return isinstance(value, eqx.Module) and not of_data


def is_value(value: Any) -> bool:
    """Whether a value is a number, an array, a text, or one of the library's data sets."""
    of_data = type(value).__module__.startswith("attlas.data.")
    return of_data or is_array(value) or is_number(value) or isinstance(value, str)


def faults(value: Any, depth: int = DEPTH) -> dict[str, Spoil]:
    """The ways to spoil a value, by name; none for a function, a key of JAX or a module."""
    if isinstance(value, xr.Dataset | xr.DataArray):
        return {**OTHERS, **dict(_of_data(value))}
    if isinstance(value, pd.DataFrame):
        return {**OTHERS, **TABLES}
    if is_array(value):
        return {name: lambda a, spoil=spoil: spoil(np.asarray(a)) for name, spoil in ARRAYS.items()}
    if is_number(value):
        return number_faults(value)
    if isinstance(value, Enum | bool) or value is None:
        return OTHERS
    for kind, spoils in ((str, TEXTS), (Path, PATHS), (bytes, BYTES)):
        if isinstance(value, kind):
            return spoils
    if depth and (is_dataclass(value) or _is_named_tuple(value)) and not isinstance(value, type):
        return {**OTHERS, **dict(_of_fields(value, depth))}
    if isinstance(value, Mapping):
        return {**OTHERS, "empty": lambda _: {}, **dict(_of_entries(value, depth))}
    if isinstance(value, list | tuple):
        return {**OTHERS, **SERIES, **dict(_of_first(value, depth))}
    return {}


def _is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _of_fields(value: Any, depth: int) -> Iterator[tuple[str, Spoil]]:
    """Each field of a dataclass or a named tuple, spoilt."""
    changed: Callable[..., Any] = replace if is_dataclass(value) else type(value)._replace
    names = [f.name for f in fields(value) if f.init] if is_dataclass(value) else value._fields
    if "cls" in names and isinstance(value, eqx.Module):
        return  # equinox takes the name for its own
    for name in names:
        for fault, spoil in faults(getattr(value, name), depth - 1).items():
            yield (
                f"{name}: {fault}",
                lambda whole, name=name, spoil=spoil: changed(
                    whole, **{name: spoil(getattr(whole, name))}
                ),
            )


def _of_entries(value: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Spoil]]:
    """Each entry of a mapping: missing, or spoilt."""
    for key, entry in value.items():
        yield f"without {key}", lambda whole, key=key: {k: v for k, v in whole.items() if k != key}
        if depth:
            for fault, spoil in faults(entry, depth - 1).items():
                yield (
                    f"{key}: {fault}",
                    lambda whole, key=key, spoil=spoil: {**whole, key: spoil(whole[key])},
                )


def _of_first(value: list[Any] | tuple[Any, ...], depth: int) -> Iterator[tuple[str, Spoil]]:
    """The first entry of a list or a tuple, spoilt."""
    if value and depth:
        for fault, spoil in faults(value[0], depth - 1).items():
            yield (
                f"first: {fault}",
                lambda whole, spoil=spoil: type(whole)((spoil(whole[0]), *whole[1:])),
            )


def _of_data(value: xr.Dataset | xr.DataArray) -> Iterator[tuple[str, Spoil]]:
    """Data of xarray without an axis, a coordinate, an attribute or a variable; other values."""
    for dimension in map(str, value.dims):
        yield f"no {dimension}", lambda data, d=dimension: data.isel({d: slice(0)})
        yield f"first {dimension}", lambda data, d=dimension: data.isel({d: 0}, drop=True)
        yield f"{dimension} renamed", lambda data, d=dimension: data.rename({d: "another"})
        yield f"{dimension} twice", lambda data, d=dimension: xr.concat([data, data], d)
    for coordinate in map(str, value.coords):
        yield f"without {coordinate}", lambda data, c=coordinate: data.drop_vars(c)
    for name in value.attrs:
        yield f"without {name}", lambda data, name=name: data.assign_attrs({name: None})
    if isinstance(value, xr.Dataset):
        for name in map(str, value.data_vars):
            yield f"without {name}", lambda data, name=name: data.drop_vars(name)
            for fault, spoil in _of_values(value[name]):
                yield (
                    f"{name}: {fault}",
                    lambda data, name=name, spoil=spoil: data.assign({name: spoil(data[name])}),
                )
    else:
        yield "an array", lambda data: data.values
        yield from _of_values(value)


def _of_values(value: xr.DataArray) -> Iterator[tuple[str, Spoil]]:
    """Other numbers, types and texts of one shape."""
    if value.dtype.kind not in "fiub":
        return
    for fault, spoil in ARRAYS.items():
        if np.shape(spoil(value.values)) == value.shape:
            yield fault, lambda data, spoil=spoil: data.copy(data=np.asarray(spoil(data.values)))
