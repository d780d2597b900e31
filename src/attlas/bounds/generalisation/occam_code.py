r"""Arrays as a file that is its own proof of length: quantised, arithmetically coded, decoded.

    length | levels, number of arrays, (axes, sizes, scale) of each | symbols of all

Whole numbers are written in groups of seven bits, the last one marked, and the first of them is the
number of bytes that follow. No file is therefore the beginning of another, and by Kraft's
inequality $\sum2^{-8\,{\rm bytes}}\le1$: the files are hypotheses with a prior that was fixed with
the code. Everything that may be chosen after the data have been seen, levels and scales, is in it.
"""

import math
from collections.abc import Sequence

import numpy as np

from attlas.bounds.generalisation.arithmetic_code import (
    LARGEST_ALPHABET,
    decode_symbols,
    encode_symbols,
)
from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.finite import require_finite
from attlas.core.ranges import require_at_least

LARGEST_LEVELS = LARGEST_ALPHABET // 2 - 1
_STEPS = 8
_LEAST_EXPONENT = -24
_TOP = 255
"""The scale 0, of arrays of zeros."""
_BELOW = 40
"""Scales below the one that reaches the largest entry that are tried: down to a 32nd of it."""


def encode(arrays: Sequence[ArrayInput], levels: int, *, nearest: bool = False) -> bytes:
    r"""A prefix-free file that holds arrays, each rounded to 2L + 1 multiples of a scale.

    $$\hat w=s\,{\rm round}(w/s),\quad|{\rm round}(w/s)|\le L$$

    The scales are $2^{k-24}(1+j/8)$, one byte per array: the least that reaches its largest
    entry, or a smaller one that rounds nearer.

    Args:
        arrays: real numbers, such as the leaves of a pytree. Their order and meaning, which is
            the architecture, are not part of the file.
        levels: L, at least 1.
        nearest: whether the scale is the one of least squared error, at which the largest entries
            become $\pm Ls$; it matters where levels are few.

    Raises:
        UserError: where there is no array, an entry is not finite or too large, or L is.

    Examples:
        >>> file = encode([[[0.5, -0.25], [0.0, 0.1]], [1.0]], 4)
        >>> len(file), [w.tolist() for w in decode(file)]
        (13, [[[0.5, -0.25], [0.0, 0.125]], [1.0]])
    """
    if not (levels == int(levels) and 1 <= levels <= LARGEST_LEVELS):
        raise UserError(f"levels = {levels}: give a whole number from 1 to {LARGEST_LEVELS}")
    if not arrays:
        raise UserError("arrays are empty: give at least one")
    head, symbols = bytearray(encode_number(levels) + encode_number(len(arrays))), []
    for k, array in enumerate(arrays):
        w = read_array(array, f"arrays[{k}]").astype(np.float64)
        require_finite(w, f"arrays[{k}]")
        byte = _scale_byte(float(np.max(np.abs(w), initial=0.0)) / levels, f"arrays[{k}]")
        if nearest and byte != _TOP:
            byte = _nearest_byte(w, levels, byte)
        head += encode_number(w.ndim) + b"".join(map(encode_number, w.shape)) + bytes([byte])
        if byte != _TOP:
            symbols += (_multiples(w, levels, byte).ravel() + levels).tolist()
    body = bytes(head) + encode_symbols(symbols, 2 * levels + 1)
    return encode_number(len(body)) + body


def decode(file: bytes) -> list[np.ndarray]:
    """The arrays that a file holds, float32 as everyone who decodes it has them, bit for bit.

    Raises:
        UserError: if the file is cut short or is followed by something.

    Examples:
        >>> decode(encode([[0.0, 0.0]], 1))[0].tolist()
        [0.0, 0.0]
    """
    length, start = decode_number(file, 0)
    if len(file) != start + length:
        raise UserError(
            f"the file has {len(file)} bytes and says {start + length}: give a whole file of encode"
        )
    levels, place = decode_number(file, start)
    count, place = decode_number(file, place)
    kinds: list[tuple[tuple[int, ...], int]] = []
    for _ in range(count):
        axes, place = decode_number(file, place)
        shape = []
        for _ in range(axes):
            size, place = decode_number(file, place)
            shape.append(size)
        kinds.append((tuple(shape), file[place]))
        place += 1
    coded = sum(math.prod(shape) for shape, byte in kinds if byte != _TOP)
    multiples = decode_symbols(file[place:], coded, 2 * levels + 1) - levels
    arrays, at = [], 0
    for shape, byte in kinds:
        if byte == _TOP:
            arrays.append(np.zeros(shape, np.float32))
            continue
        size = math.prod(shape)
        arrays.append((_scale(byte) * multiples[at : at + size]).astype(np.float32).reshape(shape))
        at += size
    return arrays


def _multiples(w: np.ndarray, levels: int, byte: int) -> np.ndarray:
    """The whole numbers that stand for the entries."""
    return np.asarray(np.clip(np.rint(w / _scale(byte)), -levels, levels), np.int64)


def _nearest_byte(w: np.ndarray, levels: int, largest: int) -> int:
    """Of the scale that reaches the largest entry and those below it, the one of least error."""
    bytes_ = range(largest, max(largest - _BELOW, 0) - 1, -1)
    errors = [np.sum((w - _scale(b) * _multiples(w, levels, b)) ** 2) for b in bytes_]
    return bytes_[int(np.argmin(errors))]


def _scale(byte: int) -> float:
    """An exact number of four significant bits."""
    exponent, step = divmod(byte, _STEPS)
    return math.ldexp(_STEPS + step, exponent + _LEAST_EXPONENT - 3)


def _scale_byte(least: float, name: str) -> int:
    """The smallest scale that is not below a number."""
    if least == 0:
        return _TOP
    for byte in range(_TOP):
        if _scale(byte) >= least:
            return byte
    raise UserError(f"{name} needs a scale of {least:.3g}, above {_scale(_TOP - 1):.3g}: rescale")


@refuse_misfits
def encode_number(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first, the last one marked.

    Args:
        value: a whole number, at least 0.

    Raises:
        UserError: for a negative one.

    Examples:
        >>> list(encode_number(5)), list(encode_number(300))
        ([133], [44, 130])
    """
    require_at_least(0, value=value)
    groups = bytearray()
    while value >= 128:
        groups.append(value & 127)
        value >>= 7
    return bytes(groups) + bytes([value | 128])


@refuse_misfits
def decode_number(file: bytes, place: int) -> tuple[int, int]:
    """A whole number that `encode_number` wrote at a place of a file, and the place behind it.

    Raises:
        UserError: if the file ends within the number.

    Examples:
        >>> decode_number(encode_number(300) + b"rest", 0)
        (300, 2)
    """
    value = shift = 0
    while place < len(file):
        byte = file[place]
        value |= (byte & 127) << shift
        shift, place = shift + 7, place + 1
        if byte & 128:
            return value, place
    raise UserError(f"the file of {len(file)} bytes ends within a number: give a whole file")
