"""The two sides of a claim: on one instance as its function returns them, and of a whole batch."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Array


class Sides(NamedTuple):
    r"""The two sides of one instance, arrays of one common shape.

    `identity`: left = right. `inequality`: left <= right. `existence`: left <= right says that
    the object was found. `limit`: left[k] -> right[k] along the last axis, whose scales grow
    geometrically. `rate`: left[k] = O(right[k]) likewise. `probability`: left in {0, 1} and
    P(left = 1) >= right. `expectation`: E left <= E right.

    Attributes:
        magnitude: size of the terms that were added up to reach the sides, for rounding; the
            larger side when None.
        error: certified absolute error of the sides (a solver's gap), beyond rounding.
        scales: the growing parameter of a limit or rate; the engine fills it in.
        range: length of an interval that contains left - right, for an expectation; the engine
            fills it in.
    """

    left: Array
    right: Array
    magnitude: Array | None = None
    error: Array | float = 0.0
    scales: Array | None = None
    range: Array | None = None


@dataclass(frozen=True)
class Evidence:
    """The sides of a batch as NumPy arrays; the leading axis is the instance.

    Attributes:
        left: left sides, shape (count, ...); `right`, `magnitude` and `error` have the same shape.
        magnitude: size of the terms that were added up.
        error: certified absolute error.
        applicable: which instances satisfy every assumption, shape (count,).
        scales: growing parameter of limits and rates, or None.
        range: of expectations, same shape as the sides, or None.
        failed_assumption: text of the assumption that failed most often, "" if none failed.
        distinct: number of different applicable instances, in the arrays that the claim reads;
            None if they were not counted, and all are taken to differ.
    """

    left: np.ndarray
    right: np.ndarray
    magnitude: np.ndarray
    error: np.ndarray
    applicable: np.ndarray
    scales: np.ndarray | None = None
    range: np.ndarray | None = None
    failed_assumption: str = ""
    distinct: int | None = None

    def select(self, index: int) -> "Evidence":
        """The evidence of one instance, as a batch of one."""
        arrays = {part.name: getattr(self, part.name) for part in fields(self)}
        row = {
            name: value[index : index + 1]
            for name, value in arrays.items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **row, distinct=None)

    def component(self, entry: int, scaled: bool) -> "Evidence":
        """The evidence of one component of the sides; with scales, a component is a row."""
        names = ("left", "right", "magnitude", "error", "range", *(("scales",) if scaled else ()))
        tail = self.left.shape[-1:] if scaled else ()
        arrays = {}
        for name in names:
            if (array := getattr(self, name)) is not None:
                full = np.broadcast_to(array, self.left.shape)
                arrays[name] = full.reshape(len(self.left), -1, *tail)[:, entry]
        return replace(self, **arrays)


def flat(array: np.ndarray) -> np.ndarray:
    """An array with a leading axis of instances as a matrix: a row is an instance.

    Examples:
        >>> flat(np.zeros((4, 2, 3))).shape, flat(np.zeros(4)).shape
        ((4, 6), (4, 1))
    """
    return array.reshape(len(array), -1)
