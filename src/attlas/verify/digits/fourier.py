"""Discrete Fourier transforms and convolutions in digits."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.verify.digits.elementwise import Rule, larger, smaller
from attlas.verify.digits.precision import Precision


def _least_factor(size: int) -> int:
    return next((p for p in range(2, math.isqrt(size) + 1) if size % p == 0), size)


def _line(precision: Precision, values: list[Any], roots: list[Any]) -> list[Any]:
    """The sums of values times powers of a root of unity, by the factors of their number.

    Args:
        roots: all powers of the root, a whole multiple of as many as there are values.
    """
    size = len(values)
    if size == 1:
        return values
    p = _least_factor(size)
    m, step = size // p, len(roots) // size
    shorter = [_line(precision, values[r::p], roots) for r in range(p)]
    precision.spend(4 * size * p)
    return [
        precision.ctx.fsum(roots[step * (r * k % size)] * shorter[r][k % m] for r in range(p))
        for k in range(size)
    ]


def _along(precision: Precision, a: np.ndarray, axis: int, sign: int) -> np.ndarray:
    size = a.shape[axis]
    ctx = precision.ctx
    precision.spend(20 * size)
    roots = [ctx.expjpi(ctx.mpf(2 * sign * k) / size) for k in range(size)]
    lines = np.moveaxis(a, axis, -1)
    result = np.empty(lines.shape, dtype=object)
    for place in np.ndindex(lines.shape[:-1]):
        result[place] = _line(precision, list(lines[place]), roots)
    return np.moveaxis(result, -1, axis)


def transformed(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
    """A transform over the last axes: of complex or real numbers, and back."""
    kind, lengths = details["fft_type"].name, details["fft_lengths"]
    axes = list(range(a.ndim - len(lengths), a.ndim))
    last, size = axes[-1], int(lengths[-1])
    sign = 1 if kind in ("IFFT", "IRFFT") else -1
    if kind == "RFFT":
        half = (slice(None),) * last + (slice(size // 2 + 1),)
        a, axes = _along(precision, a, last, sign)[half], axes[:-1]
    elif kind == "IRFFT":
        axes = axes[:-1]
    for axis in axes:
        a = _along(precision, a, axis, sign)
    if kind == "IRFFT":
        a = _along(precision, _conjugate_symmetric(precision, a, last, size), last, sign)
        a = precision.each(lambda x: precision.ctx.mpc(x).real, a)
    if sign < 0:
        return a
    total = math.prod(map(int, lengths))
    return precision.each(lambda x: x / total, a)


def _conjugate_symmetric(precision: Precision, a: np.ndarray, axis: int, size: int) -> np.ndarray:
    """The whole spectrum of real numbers from its first half."""
    first = np.moveaxis(a, axis, -1)
    # the mean and the highest frequency of real numbers are real
    real = [k for k in {0, size // 2 if size % 2 == 0 else 0} if k < first.shape[-1]]
    first = first.copy()
    first[..., real] = precision.each(lambda x: precision.ctx.mpc(x).real, first[..., real])
    mirrored = precision.each(precision.ctx.conj, first[..., 1 : (size + 1) // 2][..., ::-1])
    return np.moveaxis(np.concatenate([first, mirrored], axis=-1), -1, axis)


def _dilated(a: np.ndarray, axis: int, step: int, zero: Any) -> np.ndarray:
    """An array with numbers between its entries along an axis."""
    if step == 1 or a.shape[axis] == 0:
        return a
    shape = list(a.shape)
    shape[axis] = (a.shape[axis] - 1) * step + 1
    result = np.full(shape, zero, dtype=object)
    result[(slice(None),) * axis + (slice(None, None, step),)] = a
    return result


def _padded(a: np.ndarray, padding: Any, zero: Any) -> np.ndarray:
    """An array with numbers around it, or without its border where padding is negative."""
    cut = tuple(slice(max(-low, 0), n - max(-high, 0))
                for n, (low, high) in zip(a.shape, padding, strict=True))  # fmt: skip
    widths = [(max(low, 0), max(high, 0)) for low, high in padding]
    return np.pad(a[cut], widths, constant_values=zero)


def convolved(
    precision: Precision, details: Mapping[str, Any], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """A convolution as machine learning has it: a correlation, with groups of channels.

    Args:
        a: batches, channels and places, in the order that `dimension_numbers` gives, of any shape.
        b: the window of each pair of channels, shape in the order that they give.
    """
    zero, numbers = precision.ctx.zero, details["dimension_numbers"]
    x, w = np.transpose(a, numbers.lhs_spec), np.transpose(b, numbers.rhs_spec)
    for k, (step, between) in enumerate(
        zip(details["lhs_dilation"], details["rhs_dilation"], strict=True), start=2
    ):
        x, w = _dilated(x, k, step, zero), _dilated(w, k, between, zero)
    x = _padded(x, [(0, 0), (0, 0), *details["padding"]], zero)
    groups, batches = details["feature_group_count"], details["batch_group_count"]
    window, strides = w.shape[2:], details["window_strides"]
    sizes = [max(0, (n - k) // s + 1)
             for n, k, s in zip(x.shape[2:], window, strides, strict=True)]  # fmt: skip
    rows, channels = x.shape[0] // batches, w.shape[0]
    result = np.full((rows, channels, *sizes), zero, dtype=object)
    inner = w.shape[1] * math.prod(window)
    precision.spend(result.size * inner)
    for c in range(channels):
        group, batch = c * groups // channels, c * batches // channels
        features = slice(group * w.shape[1], (group + 1) * w.shape[1])
        kernel = w[c].reshape(-1)
        for place in itertools.product(*map(range, sizes)):
            at = tuple(slice(p * s, p * s + k)
                       for p, s, k in zip(place, strides, window, strict=True))  # fmt: skip
            patch = x[(slice(batch * rows, (batch + 1) * rows), features, *at)]
            result[(slice(None), c, *place)] = patch.reshape(rows, inner) @ kernel
    return np.transpose(result, np.argsort(numbers.out_spec))


def _windowed(combine: Any, start: str) -> Rule:
    """A sum or an extreme over windows, as poolings and cumulative sums have."""

    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        first = getattr(precision.ctx, start)
        between = details["base_dilation"], details["window_dilation"]
        for k, step in enumerate(between[0]):
            a = _dilated(a, k, step, first)
        a = _padded(a, details["padding"], first)
        window, strides = details["window_dimensions"], details["window_strides"]
        spans = [(k - 1) * d + 1 for k, d in zip(window, between[1], strict=True)]
        sizes = [max(0, (n - k) // s + 1) for n, k, s in zip(a.shape, spans, strides, strict=True)]
        result = np.full(sizes, first, dtype=object)
        precision.spend(result.size * math.prod(window))
        for place in np.ndindex(*sizes):
            corner = (p * s for p, s in zip(place, strides, strict=True))
            at = tuple(slice(c, c + k, d)
                       for c, k, d in zip(corner, spans, between[1], strict=True))  # fmt: skip
            total = first
            for value in a[at].ravel():
                total = combine(precision.ctx, total, value)
            result[place] = total
        return result

    return rule


RULES: dict[str, Rule] = {
    "fft": transformed,
    "conv_general_dilated": convolved,
    "reduce_window_sum": _windowed(lambda ctx, a, b: a + b, "zero"),
    "reduce_window_max": _windowed(larger, "ninf"),
    "reduce_window_min": _windowed(smaller, "inf"),
}
