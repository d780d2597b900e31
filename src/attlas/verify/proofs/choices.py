"""Orders of symbols: the largest one, the k largest ones and sorted arrays, by cases of signs."""

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from typing import Any

import numpy as np

from attlas.verify.proofs.functions import Functions

Rule = Callable[..., Any]


def _sorted(functions: Functions, rows: list[np.ndarray], keys: int) -> list[int]:
    """The places of the entries of rows in their order, by the first rows of them.

    Each of its comparisons may be a case, unless it follows from others (`Functions.sign`).
    """

    def compared(j: int, k: int) -> int:
        return next((sign for row in rows[:keys] if (sign := _compared(functions, row, j, k))), 0)

    return sorted(range(len(rows[0])), key=cmp_to_key(compared))


def _compared(functions: Functions, row: np.ndarray, j: int, k: int) -> int:
    if row.dtype.kind != "O":
        return int(row[j] > row[k]) - int(row[j] < row[k])
    return functions.compare(row[j], row[k])


def _sort(exact: Any, details: Mapping[str, Any], *arrays: Any) -> list[np.ndarray]:
    turned = [np.moveaxis(np.asarray(a), details["dimension"], -1) for a in arrays]
    results = [np.empty(a.shape, dtype=a.dtype) for a in turned]
    for place in np.ndindex(turned[0].shape[:-1]):
        rows = [a[place] for a in turned]
        order = _sorted(exact.functions, rows, details["num_keys"])
        for row, result in zip(rows, results, strict=True):
            result[place] = row[order]
    return [np.moveaxis(result, -1, details["dimension"]) for result in results]


def _argument(sign: int) -> Rule:
    def rule(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        (axis,) = (int(axis) for axis in details["axes"])
        turned = np.moveaxis(a, axis, -1)
        places = np.zeros(turned.shape[:-1], dtype=details["index_dtype"])
        for place in np.ndindex(places.shape):
            row = turned[place]
            for k in range(1, len(row)):
                if _compared(exact.functions, row, k, int(places[place])) * sign > 0:
                    places[place] = k
        return places

    return rule


def _top(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    axis, count = details.get("axis", a.ndim - 1), details["k"]
    shape = np.moveaxis(a, axis, -1).shape
    places = np.moveaxis(np.broadcast_to(np.arange(shape[-1]), shape), -1, axis).astype(np.int32)
    order = {"dimension": axis, "num_keys": 1}
    falling, places = _sort(exact, order, exact.each(lambda x: -x, a), places)
    first = (slice(None),) * (axis % a.ndim) + (slice(count),)
    return [exact.each(lambda x: -x, falling[first]), places[first]]


RULES: dict[str, Rule] = {
    "sort": _sort,
    "argmax": _argument(1),
    "argmin": _argument(-1),
    "top_k": _top,
}
"""Operations that order the entries of an array."""
