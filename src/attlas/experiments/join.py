"""Join what the cells of a grid gave into one labelled data set."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr


class Part(NamedTuple):
    """What one cell gave, with its axes: a data set that costs nothing to make.

    Attributes:
        variables: axes and entries of each array, by name.
        coordinates: names of the arrays that label axes.
    """

    variables: Mapping[str, tuple[tuple[str, ...], np.ndarray]]
    coordinates: frozenset[str] = frozenset()

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the axes."""
        found = {}
        for dims, array in self.variables.values():
            found.update(zip(dims, array.shape, strict=True))
        return found

    def labelled(self, axis: str, labels: Sequence[Any] | np.ndarray) -> "Part":
        """With labels on an axis; a new axis goes before the others of all that label none.

        Args:
            axis: its name.
            labels: one per entry, one for a new axis.

        Returns:
            Another part.

        Examples:
            >>> part = Part({"y": (("t",), np.zeros(3))}).labelled("p", [2.0])
            >>> part.variables["y"][0], part.sizes
            (('p', 't'), {'p': 1, 't': 3})
        """
        found = dict(self.variables)
        if axis not in self.sizes:
            for name, (dims, array) in self.variables.items():
                if name not in self.coordinates:
                    found[name] = (axis, *dims), array[None]
        found[axis] = (axis,), np.asarray(labels)
        return Part(found, self.coordinates | {axis})

    @property
    def dataset(self) -> xr.Dataset:
        """The same, as xarray has it."""
        whole: dict[str, Any] = dict(self.variables)
        labels = {name: whole.pop(name) for name in self.variables if name in self.coordinates}
        return xr.Dataset(whole, labels)


def join(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Place the variables of data sets on the union of their labels, see `join_parts`.

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
    """
    return join_parts([_part(plain_text(part)) for part in parts])


def _part(data: xr.Dataset) -> Part:
    variables = {str(n): (tuple(map(str, v.dims)), v.values) for n, v in data.variables.items()}
    return Part(variables, frozenset(map(str, data.coords)))


def join_parts(parts: Sequence[Part]) -> xr.Dataset:
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
        >>> parts = [Part({"y": ((), np.array(k))}).labelled("x", [k]) for k in (3, 1)]
        >>> join_parts(parts).y.values
        array([1, 3])
    """
    if len(parts) == 1:
        return parts[0].dataset
    labels = _labels(parts)
    # Once per axis: a table of n labels for each of n parts would be quadratic.
    places = {dim: {x: k for k, x in enumerate(own.tolist())} for dim, own in labels.items()}
    having: dict[str, list[Part]] = {}
    for part in parts:
        for name in part.variables:
            having.setdefault(name, []).append(part)
    found: dict[str, Any] = {}
    coordinates: dict[str, Any] = {dim: own for dim, own in labels.items() if dim in having}
    for name, some in having.items():
        if name in coordinates:
            continue
        place = coordinates if all(name in part.coordinates for part in some) else found
        place[name] = (some[0].variables[name][0], _placed(name, some, places))
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


def _labels(parts: Sequence[Part]) -> dict[str, np.ndarray]:
    """The union of the labels of each axis; positions where an axis has none."""
    every: dict[str, list[np.ndarray]] = {}
    for part in parts:
        for dim, size in part.sizes.items():
            has_own = dim in part.coordinates
            own = part.variables[dim][1] if has_own else np.arange(size)
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
    name: str, parts: Sequence[Part], places: Mapping[str, Mapping[Any, int]]
) -> np.ndarray:
    """The entries of one variable, each at its labels."""
    dims = parts[0].variables[name][0]
    arrays = [_in_order(*part.variables[name], dims) for part in parts]
    dtype = np.result_type(*{array.dtype for array in arrays})
    shape = tuple(len(places[dim]) for dim in dims)
    whole, filled = np.zeros(shape, dtype), np.zeros(shape, bool)
    for part, array in zip(parts, arrays, strict=True):
        each = [_at(part, dim, places[dim], n) for dim, n in zip(dims, array.shape, strict=True)]
        at = np.ix_(*each)
        both = filled[at]
        if both.any() and not _same(whole[at][both], array[both]):
            raise ValueError(f"cells disagree about '{name}': give it the axis that they differ in")
        whole[at], filled[at] = array, True
    if filled.all() or dtype.kind == "U":
        return whole
    return np.where(filled, whole.astype(np.result_type(dtype, np.float32)), np.nan)


def _in_order(own: tuple[str, ...], array: np.ndarray, dims: tuple[str, ...]) -> np.ndarray:
    return array if own == dims else array.transpose([own.index(dim) for dim in dims])


def _at(part: Part, dim: str, places: Mapping[Any, int], size: int) -> np.ndarray:
    if dim not in part.coordinates:
        return np.arange(size)
    return np.array([places[label] for label in part.variables[dim][1].tolist()], int)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
