"""Join what the cells of a grid gave into one labelled data set."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr


def join(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Place the variables of all parts on the union of their labels.

    Numeric labels are sorted, text keeps its order. An axis without labels has the length of
    its longest part. What no part holds is NaN (empty for text), for which whole numbers and
    booleans become floats; where every entry is there dtypes stay.

    Args:
        parts: at least one; a variable has the same axes in all parts that have it.

    Returns:
        One data set.

    Raises:
        ValueError: if two parts disagree about an entry that both have.

    Examples:
        >>> parts = [xr.Dataset({"y": ("x", [k])}, {"x": [k]}) for k in (3, 1)]
        >>> join(parts).y.values, join(parts).x.values
        (array([1, 3]), array([1, 3]))
    """  # noqa: DOC502 (raised one call below)
    parts = [plain_text(part) for part in parts]
    if len(parts) == 1:
        return parts[0]
    labels = _labels(parts)
    # Once per axis: a table of n labels for each of n parts would be quadratic.
    places = {dim: {x: k for k, x in enumerate(own.tolist())} for dim, own in labels.items()}
    found: dict[str, Any] = {}
    coordinates: dict[str, Any] = {n: v for n, v in labels.items() if any(n in p for p in parts)}
    for name in dict.fromkeys(str(name) for part in parts for name in part.variables):
        if name in coordinates:
            continue
        having = [part for part in parts if name in part.variables]
        place = coordinates if all(name in part.coords for part in having) else found
        place[name] = (having[0][name].dims, _placed(name, having, places))
    return xr.Dataset(found, coordinates)


def plain_text(data: xr.Dataset) -> xr.Dataset:
    """The data set with its labels as text of fixed width: xarray makes objects of some.

    Args:
        data: any.

    Returns:
        The same values.

    Examples:
        >>> plain_text(xr.Dataset({"y": 1}).expand_dims(scope=["local"])).scope.dtype
        dtype('<U5')
    """
    objects = {name: data[name] for name in data.variables if data[name].dtype == object}
    return data.assign_coords({name: array.astype(str) for name, array in objects.items()})


def _labels(parts: Sequence[xr.Dataset]) -> dict[str, np.ndarray]:
    """The union of the labels of each axis; positions where an axis has none."""
    every: dict[str, list[np.ndarray]] = {}
    for part in parts:
        for dim in map(str, part.dims):
            own = part[dim].values if dim in part.coords else np.arange(part.sizes[dim])
            every.setdefault(dim, []).append(own)
    found = {}
    for dim, each in every.items():
        if all(np.array_equal(each[0], own) for own in each):
            found[dim] = each[0]
            continue
        union = np.concatenate(each)
        text = union.dtype.kind == "U"
        found[dim] = np.array(list(dict.fromkeys(union.tolist()))) if text else np.unique(union)
    return found


def _placed(
    name: str, parts: Sequence[xr.Dataset], places: Mapping[str, Mapping[Any, int]]
) -> np.ndarray:
    """The entries of one variable, each at its labels."""
    dims = tuple(map(str, parts[0][name].dims))
    arrays = [part[name].transpose(*dims).values for part in parts]
    dtype = np.result_type(*(a.dtype for a in arrays))
    shape = tuple(len(places[dim]) for dim in dims)
    whole, filled = np.zeros(shape, dtype), np.zeros(shape, bool)
    for part, array in zip(parts, arrays, strict=True):
        at = np.ix_(*(_at(part, dim, places[dim]) for dim in dims))
        both = filled[at]
        if both.any() and not _same(whole[at][both], array[both]):
            raise ValueError(f"cells disagree about '{name}': give it the axis that they differ in")
        whole[at], filled[at] = array, True
    if filled.all() or dtype.kind == "U":
        return whole
    return np.where(filled, whole.astype(np.result_type(dtype, np.float32)), np.nan)


def _at(part: xr.Dataset, dim: str, places: Mapping[Any, int]) -> np.ndarray:
    if dim not in part.coords:
        return np.arange(part.sizes[dim])
    return np.array([places[label] for label in part[dim].values.tolist()], int)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
