"""Operations on integers and truth values by NumPy, which compiles nothing.

Operations without a rule here run in JAX: its results are exact too, after a compilation.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.verify.digits.movement import BY_NUMPY

Rule = Callable[..., Any]


def _plainly(operate: Callable[..., Any]) -> Rule:
    return lambda details, *operands: operate(*operands)


def _along(operate: Callable[..., Any]) -> Rule:
    return lambda details, a: operate(a, axis=tuple(int(axis) for axis in details["axes"]))


def _iota(details: Mapping[str, Any]) -> np.ndarray:
    shape, axis = details["shape"], details["dimension"]
    return np.moveaxis(
        np.broadcast_to(np.arange(shape[axis]), (*shape[:axis], *shape[axis + 1 :], shape[axis])),
        -1,
        axis,
    )


def _selected(details: Mapping[str, Any], which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    del details
    return np.asarray(np.choose(np.asarray(which, dtype=int), cases))


def _not(details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
    del details
    return ~a


RULES: dict[str, Rule] = {
    "add": _plainly(np.add),
    "sub": _plainly(np.subtract),
    "mul": _plainly(np.multiply),
    "max": _plainly(np.maximum),
    "min": _plainly(np.minimum),
    "rem": _plainly(np.fmod),
    "neg": _plainly(np.negative),
    "abs": _plainly(np.abs),
    "sign": _plainly(np.sign),
    "and": _plainly(np.bitwise_and),
    "or": _plainly(np.bitwise_or),
    "xor": _plainly(np.bitwise_xor),
    "not": _not,
    "eq": _plainly(np.equal),
    "ne": _plainly(np.not_equal),
    "lt": _plainly(np.less),
    "le": _plainly(np.less_equal),
    "gt": _plainly(np.greater),
    "ge": _plainly(np.greater_equal),
    "reduce_sum": _along(np.sum),
    "reduce_prod": _along(np.prod),
    "reduce_max": _along(np.max),
    "reduce_min": _along(np.min),
    "reduce_and": _along(np.all),
    "reduce_or": _along(np.any),
    "iota": _iota,
    "select_n": _selected,
    "convert_element_type": lambda details, a: a.astype(details["new_dtype"]),
    **BY_NUMPY,
}
