"""Arrays, numbers and texts that are spoilt, for `fuzz_examples` and `spoilt_objects`."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def _first(array: np.ndarray, value: float) -> np.ndarray:
    other = array.astype(np.result_type(array.dtype, np.asarray(value).dtype))
    if other.size:
        other[(0,) * other.ndim] = value
    return other


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": lambda a: _first(a, np.nan),
    "infinity": lambda a: _first(a, np.inf),
    "minus infinity": lambda a: _first(a, -np.inf),
    "all NaN": lambda a: np.full(a.shape, np.nan),
    "1e300": lambda a: np.full(a.shape, 1e300),
    "1e-300": lambda a: np.full(a.shape, 1e-300),
    "zeros": lambda a: np.zeros(a.shape),
    "negative": lambda a: -np.asarray(a, float),
    "thousandfold": lambda a: 1e3 * np.asarray(a, float),
    "a millionth": lambda a: 1e-6 * np.asarray(a, float),
    "float32": lambda a: a.astype(np.float32),
    "float16": lambda a: a.astype(np.float16),
    "bfloat16": lambda a: jnp.asarray(a, jnp.bfloat16),
    "int8": lambda a: np.asarray(a, float).round().clip(-100, 100).astype(np.int8),
    "complex": lambda a: a.astype(complex),
    "booleans": lambda a: a > 0,
    "text": lambda a: np.full(a.shape, "a"),
    "object": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "an axis more": lambda a: a[None],
    "an axis less": lambda a: a[0] if a.ndim and len(a) else a,
    "twice as long": lambda a: np.concatenate([a, a]) if a.ndim else a,
    "empty": lambda a: a[:0] if a.ndim else np.zeros(0),
    "empty list": lambda _: [],
    "nothing": lambda _: None,
    "a word": lambda _: "word",
}
NUMBERS: dict[str, Callable[[float], Any]] = {
    "NaN": lambda _: float("nan"),
    "infinity": lambda _: float("inf"),
    "minus infinity": lambda _: -float("inf"),
    "1e300": lambda _: 1e300,
    "1e-300": lambda _: 1e-300,
}
"""For numbers that need not be whole."""
TEXTS: dict[str, Callable[[str], Any]] = {
    "another word": lambda _: "word",
    "no word": lambda _: "",
    "nothing": lambda _: None,
    "a number": lambda _: 1.0,
}
WHOLE: dict[str, Callable[[float], Any]] = {
    "zero": lambda x: type(x)(0),
    "one": lambda x: type(x)(1),
    "negative": lambda x: -x,
    "twice": lambda x: 2 * x,
    "a whole number beyond float64": lambda _: 10**400,
}
"""For all numbers."""


def is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray | jax.Array):
        return jnp.issubdtype(value.dtype, jnp.number)
    return type(value) in (list, tuple) and _is_numbers(value)


def _is_numbers(value: Any) -> bool:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return False
    return array.dtype.kind in "fiu" and array.size > 0


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_faults(value: float) -> dict[str, Callable[[float], Any]]:
    """The ways to spoil a number, of which a whole one has fewer."""
    return WHOLE if isinstance(value, int) else {**WHOLE, **NUMBERS}
