"""Join the results of the cells of a grid into one labelled data set."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attlas.core.errors import UserError, refuse_misfits, refuse_unreadable

MISSING_CELLS = "missing_cells"
"""Attribute of a data set: how many cells of its grid have no record; absent where all have."""


class Part(NamedTuple):
    """The results of one cell with their axes: a lightweight data set.

    Attributes:
        variables: axes and entries of each array, by name.
        coordinates: names of the arrays that label axes.
    """

    variables: Mapping[str, tuple[tuple[str, ...], np.ndarray]]
    coordinates: frozenset[str] = frozenset()

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the axes."""
        lengths = {}
        for dims, array in self.variables.values():
            lengths.update(zip(dims, array.shape, strict=True))
        return lengths

    def labelled(self, axis: str, labels: Sequence[Any] | np.ndarray) -> "Part":
        """Add labels to an axis; a new axis, with one label, becomes the first of all variables.

        Examples:
            >>> part = Part({"y": (("t",), np.zeros(3))}).labelled("p", [2.0])
            >>> part.variables["y"][0], part.sizes
            (('p', 't'), {'p': 1, 't': 3})
        """
        variables = dict(self.variables)
        if axis not in self.sizes:
            for name, (dims, array) in self.variables.items():
                if name not in self.coordinates:
                    variables[name] = (axis, *dims), array[None]
        variables[axis] = (axis,), np.asarray(labels)
        return Part(variables, self.coordinates | {axis})

    @property
    def dataset(self) -> xr.Dataset:
        """The same as an xarray data set."""
        variables: dict[str, Any] = dict(self.variables)
        labels = {name: variables.pop(name) for name in self.variables if name in self.coordinates}
        return xr.Dataset(variables, labels)


@refuse_unreadable
def join(datasets: Sequence[xr.Dataset]) -> xr.Dataset:
    """Place the variables of data sets on the union of their labels, see `join_parts`.

    Examples:
        >>> parts = [xr.Dataset({"y": ("x", [k])}, {"x": [k]}) for k in (3, 1)]
        >>> join(parts).y.values, join(parts).x.values
        (array([1, 3]), array([1, 3]))
    """
    return join_parts([_part(plain_text(part)) for part in datasets])


def _part(data: xr.Dataset) -> Part:
    variables = {str(n): (tuple(map(str, v.dims)), v.values) for n, v in data.variables.items()}
    return Part(variables, frozenset(map(str, data.coords)))


@refuse_unreadable
def join_parts(pieces: Sequence[Part]) -> xr.Dataset:
    """Place the variables of all parts on the union of their labels.

    Numeric labels are sorted, text keeps its order. An axis without labels has the length of
    its longest part. Missing entries are NaN (empty for text), and then integers and booleans
    become floats; a complete variable keeps its dtype.

    Args:
        pieces: one or more parts; a variable must have the same axes wherever it occurs.

    Raises:
        UserError: if a variable has other axes in another part, or labels of an axis are missing.
        ValueError: if two parts disagree about an entry that both have.

    Examples:
        >>> parts = [Part({"y": ((), np.array(k))}).labelled("x", [k]) for k in (3, 1)]
        >>> join_parts(parts).y.values
        array([1, 3])
    """
    for part in pieces:
        if lacking := part.coordinates - part.variables.keys():
            raise UserError(f"{min(lacking)} labels an axis and is no variable: give its labels")
    if len(pieces) == 1:
        return pieces[0].dataset
    labels = _labels(pieces)
    # One table per axis: a table of n labels for each of n parts would be quadratic.
    places = {
        dim: {x: k for k, x in enumerate(axis_labels.tolist())}
        for dim, axis_labels in labels.items()
    }
    having: dict[str, list[Part]] = {}
    for part in pieces:
        for name in part.variables:
            having.setdefault(name, []).append(part)
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {
        dim: axis_labels for dim, axis_labels in labels.items() if dim in having
    }
    for name, holders in having.items():
        if name in coordinates:
            continue
        axes = {part.variables[name][0] for part in holders}
        if len(axes) > 1:
            raise UserError(f"{name} has the axes {min(axes)} and {max(axes)}: give it one kind")
        place = coordinates if all(name in part.coordinates for part in holders) else variables
        place[name] = (holders[0].variables[name][0], _placed(name, holders, places))
    return xr.Dataset(variables, coordinates)


@refuse_misfits
def plain_text(data: xr.Dataset) -> xr.Dataset:
    """The data set with text labels of fixed width: xarray turns some into objects.

    Examples:
        >>> plain_text(xr.Dataset({"y": 1}).expand_dims(scope=["local"])).scope.dtype
        dtype('<U5')
    """
    objects = {name: data[name] for name in data.variables if data[name].dtype == object}
    return data.assign_coords({name: array.astype(str) for name, array in objects.items()})


def _labels(pieces: Sequence[Part]) -> dict[str, np.ndarray]:
    """The union of the labels of each axis; positions where an axis has none."""
    labels_of: dict[str, list[np.ndarray]] = {}
    for part in pieces:
        for dim, size in part.sizes.items():
            has_own = dim in part.coordinates
            labels = part.variables[dim][1] if has_own else np.arange(size)
            labels_of.setdefault(dim, []).append(labels)
    union_of = {}
    for dim, axis_labels in labels_of.items():
        if all(np.array_equal(axis_labels[0], labels) for labels in axis_labels):
            union_of[dim] = axis_labels[0]
            continue
        union = np.concatenate(axis_labels)
        text = union.dtype.kind == "U"
        union_of[dim] = np.array(list(dict.fromkeys(union.tolist()))) if text else np.unique(union)
    return union_of


def _placed(
    name: str, pieces: Sequence[Part], places: Mapping[str, Mapping[Any, int]]
) -> np.ndarray:
    """The entries of one variable, each at its labels."""
    dims = pieces[0].variables[name][0]
    arrays = [_in_order(*part.variables[name], dims) for part in pieces]
    dtype = np.result_type(*{array.dtype for array in arrays})
    shape = tuple(len(places[dim]) for dim in dims)
    values, filled = np.zeros(shape, dtype), np.zeros(shape, bool)
    for part, array in zip(pieces, arrays, strict=True):
        positions = [
            _at(part, dim, places[dim], n) for dim, n in zip(dims, array.shape, strict=True)
        ]
        at = np.ix_(*positions)
        overlap = filled[at]
        if overlap.any() and not _same(values[at][overlap], array[overlap]):
            raise ValueError(f"cells disagree about '{name}': give it the axis that they differ in")
        values[at], filled[at] = array, True
    if filled.all() or dtype.kind == "U":
        return values
    return np.where(filled, values.astype(np.result_type(dtype, np.float32)), np.nan)


def _in_order(axes: tuple[str, ...], array: np.ndarray, dims: tuple[str, ...]) -> np.ndarray:
    return array if axes == dims else array.transpose([axes.index(dim) for dim in dims])


def _at(part: Part, dim: str, places: Mapping[Any, int], size: int) -> np.ndarray:
    if dim not in part.coordinates:
        return np.arange(size)
    return np.array([places[label] for label in part.variables[dim][1].tolist()], int)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
