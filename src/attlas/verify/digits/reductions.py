"""Operations of JAX along axes: sums, products, extremes, sorting, contractions."""

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cmp_to_key, partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from attlas.verify.digits.elementwise import Rule, exponential, larger, logarithm, smaller
from attlas.verify.digits.movement import scatter_targets
from attlas.verify.digits.precision import Precision


def _rows(a: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """The array as a matrix whose rows run over the axes, and the shape of the others."""
    free = [k for k in range(a.ndim) if k not in axes]
    shape = tuple(a.shape[k] for k in free)
    sizes = [int(np.prod([a.shape[k] for k in ks], dtype=int)) for ks in (free, axes)]
    return np.transpose(a, (*free, *axes)).reshape(sizes), shape


def _filled(shape: tuple[int, ...], values: Iterator[Any]) -> np.ndarray:
    array = np.empty(int(np.prod(shape, dtype=int)), dtype=object)
    for k, value in enumerate(values):
        array[k] = value
    return array.reshape(shape)


def _reduced(combine: Callable[..., Any], start: str) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        precision.spend(a.size)
        rows, shape = _rows(a, tuple(int(axis) for axis in details["axes"]))
        first = getattr(precision.ctx, start)
        with_context = partial(combine, precision.ctx)
        return _filled(shape, (reduce(with_context, row, first) for row in rows))

    return rule


def _add(ctx: Any, a: Any, b: Any) -> Any:
    del ctx
    return a + b


def _multiply(ctx: Any, a: Any, b: Any) -> Any:
    del ctx
    return a * b


def _log_add(ctx: Any, a: Any, b: Any) -> Any:
    most = larger(ctx, a, b)
    if not ctx.isfinite(most):
        return most
    return most + logarithm(ctx, exponential(ctx, a - most) + exponential(ctx, b - most))


def _cumulative(combine: Callable[..., Any], cost: int = 1) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        precision.spend(cost * a.size)
        result = np.array(np.moveaxis(a, details["axis"], 0))
        order = range(len(result))[::-1] if details["reverse"] else range(len(result))
        combined = np.frompyfunc(partial(combine, precision.ctx), 2, 1)
        for before, k in pairwise(order):
            result[k] = combined(result[before], result[k])
        return np.moveaxis(result, 0, details["axis"])

    return rule


def _in_order(ctx: Any, a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    """The order of two tuples of keys, NaN last."""
    for x, y in zip(a, b, strict=True):
        odd = [isinstance(v, ctx.mpf) and bool(ctx.isnan(v)) for v in (x, y)]
        if odd[0] != odd[1]:
            return 1 if odd[0] else -1
        if not odd[0] and x != y:
            return -1 if x < y else 1
    return 0


def _sort(precision: Precision, details: Mapping[str, Any], *arrays: Any) -> list[np.ndarray]:
    axis, keys = details["dimension"], details["num_keys"]
    arrays = tuple(np.asarray(a) for a in arrays)
    precision.spend(10 * arrays[0].size)
    turned = [np.moveaxis(a, axis, -1) for a in arrays]
    shape = turned[0].shape
    results = [np.empty(a.shape, dtype=a.dtype) for a in turned]
    in_order = cmp_to_key(partial(_in_order, precision.ctx))
    for place in np.ndindex(shape[:-1]):
        rows = [a[place] for a in turned]
        order = sorted(range(shape[-1]), key=lambda k: in_order(tuple(r[k] for r in rows[:keys])))
        for row, result in zip(rows, results, strict=True):
            result[place] = row[order]
    return [np.moveaxis(result, -1, axis) for result in results]


def _argument(best: Callable[..., Any]) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        ctx = precision.ctx
        precision.spend(a.size)
        rows, shape = _rows(a, tuple(int(axis) for axis in details["axes"]))

        def place(row: np.ndarray) -> int:
            nans = [k for k, value in enumerate(row) if ctx.isnan(value)]
            return nans[0] if nans else list(row).index(best(row))

        places = np.array([place(row) for row in rows])
        return places.reshape(shape).astype(details["index_dtype"])

    return rule


def _top(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    axis, count = details.get("axis", a.ndim - 1), details["k"]
    places = np.broadcast_to(np.arange(a.shape[axis]), np.moveaxis(a, axis, -1).shape)
    places = np.moveaxis(places, -1, axis).astype(np.int32)
    order = {"dimension": axis, "num_keys": 1}
    falling, places = _sort(precision, order, precision.each(operator.neg, a), places)
    first = (slice(None),) * (axis % a.ndim) + (slice(count),)
    return [precision.each(operator.neg, falling[first]), places[first]]


def contraction(
    precision: Precision, details: Mapping[str, Any], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """A contraction of two arrays: batch axes, then rows, then columns."""
    (over_a, over_b), (batch_a, batch_b) = details["dimension_numbers"]

    def ordered(x: np.ndarray, over: Any, batch: Any) -> tuple[np.ndarray, tuple, tuple]:
        over, batch = [int(k) for k in over], [int(k) for k in batch]
        free = [k for k in range(x.ndim) if k not in (*over, *batch)]
        sizes = [int(np.prod([x.shape[k] for k in ks], dtype=int)) for ks in (batch, free, over)]
        outer = tuple(x.shape[k] for k in batch), tuple(x.shape[k] for k in free)
        return np.transpose(x, (*batch, *free, *over)).reshape(sizes), *outer

    (p, batches, rows), (q, _, columns) = ordered(a, over_a, batch_a), ordered(b, over_b, batch_b)
    precision.spend(p.size * q.shape[1])
    shape = (*batches, *rows, *columns)
    if not p.shape[2]:
        return precision.exact(np.zeros(shape))
    return np.matmul(p, np.swapaxes(q, 1, 2)).reshape(shape)


def _scattered(combine: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def rule(precision: Precision, equation: Any, a: Any, indices: Any, updates: Any) -> Any:
        precision.spend(a.size * updates.size // 100 + updates.size)
        result = a.ravel().copy()
        targets = scatter_targets(equation, a, indices, updates)
        for target, update in zip(targets, updates.ravel(), strict=True):
            if target >= 0:
                result[target] = combine(precision.ctx, result[target], update)
        return result.reshape(a.shape)

    return rule


def _convert(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
    """Numbers of mpmath as integers, truncated, as truth values, or without imaginary part."""
    kind = np.dtype(details["new_dtype"])
    if kind.kind == "f" and any(isinstance(x, precision.ctx.mpc) for x in a.flat):
        return precision.each(lambda x: x.real, a)
    if kind.kind in "fc":
        return a
    if kind.kind == "b":
        return precision.each(lambda x: x != 0, a).astype(bool)
    return precision.each(int, a).astype(kind)


SCATTERS: dict[str, Callable[..., np.ndarray]] = {
    "scatter-add": _scattered(_add),
    "scatter-sub": _scattered(lambda ctx, a, b: a - b),
    "scatter-mul": _scattered(_multiply),
    "scatter-min": _scattered(smaller),
    "scatter-max": _scattered(larger),
}
"""Rules that read the equation itself."""
RULES: dict[str, Rule] = {
    "reduce_sum": _reduced(_add, "zero"),
    "reduce_prod": _reduced(_multiply, "one"),
    "reduce_max": _reduced(larger, "ninf"),
    "reduce_min": _reduced(smaller, "inf"),
    "cumsum": _cumulative(_add),
    "cumprod": _cumulative(_multiply),
    "cummax": _cumulative(larger),
    "cummin": _cumulative(smaller),
    "cumlogsumexp": _cumulative(_log_add, 15),
    "sort": _sort,
    "argmax": _argument(max),
    "argmin": _argument(min),
    "top_k": _top,
    "dot_general": contraction,
    "convert_element_type": _convert,
}
