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
from attlas.core.errors import UserError
from attlas.core.finite import require_finite

LARGEST_LEVELS = LARGEST_ALPHABET // 2 - 1
_STEPS = 8
_LEAST_EXPONENT = -24
_TOP = 255
"""The scale 0, of arrays of zeros."""


def encode(arrays: Sequence[ArrayInput], levels: int) -> bytes:
    r"""A prefix-free file that holds arrays, each rounded to 2L + 1 multiples of a scale.

    $$\hat w=s\,{\rm round}(w/s),\quad|{\rm round}(w/s)|\le L$$

    The scales are $2^{k-24}(1+j/8)$, one byte per array: the least that reaches its largest
    entry.

    Args:
        arrays: of real numbers, such as the leaves of a pytree. Their order and meaning, which is
            the architecture, are not part of the file.
        levels: L, at least 1.

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
    head, symbols = bytearray(_number(levels) + _number(len(arrays))), []
    for k, array in enumerate(arrays):
        w = read_array(array, f"arrays[{k}]").astype(np.float64)
        require_finite(w, f"arrays[{k}]")
        byte = _scale_byte(float(np.max(np.abs(w), initial=0.0)) / levels, f"arrays[{k}]")
        head += _number(w.ndim) + b"".join(map(_number, w.shape)) + bytes([byte])
        if byte != _TOP:
            multiples = np.rint(w / _scale(byte)).astype(np.int64).ravel()
            symbols += (np.clip(multiples, -levels, levels) + levels).tolist()
    body = bytes(head) + encode_symbols(symbols, 2 * levels + 1)
    return _number(len(body)) + body


def decode(file: bytes) -> list[np.ndarray]:
    """The arrays that a file holds, float32 as everyone who decodes it has them, bit for bit.

    Raises:
        UserError: if the file is cut short or is followed by something.

    Examples:
        >>> decode(encode([[0.0, 0.0]], 1))[0].tolist()
        [0.0, 0.0]
    """
    length, start = _read_number(file, 0)
    if len(file) != start + length:
        raise UserError(
            f"the file has {len(file)} bytes and says {start + length}: give a whole file of encode"
        )
    levels, place = _read_number(file, start)
    count, place = _read_number(file, place)
    kinds: list[tuple[tuple[int, ...], int]] = []
    for _ in range(count):
        axes, place = _read_number(file, place)
        shape = []
        for _ in range(axes):
            size, place = _read_number(file, place)
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


def _number(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first, the last one marked."""
    groups = bytearray()
    while value >= 128:
        groups.append(value & 127)
        value >>= 7
    return bytes(groups) + bytes([value | 128])


def _read_number(file: bytes, place: int) -> tuple[int, int]:
    """A whole number and the place behind it."""
    value = shift = 0
    while place < len(file):
        byte = file[place]
        value |= (byte & 127) << shift
        shift, place = shift + 7, place + 1
        if byte & 128:
            return value, place
    raise UserError(f"the file of {len(file)} bytes ends within a number: give a whole file")
