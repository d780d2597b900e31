r"""Arithmetic coding of whole numbers below an alphabet's size, with counts learned on the way.

Symbol s has probability $(n_s+\tfrac12)/(n+A/2)$ after n symbols of which n_s were s (Krichevsky
and Trofimov, 1981), so that no table of frequencies is sent: at most $\tfrac{A-1}2\log_2n+O(A)$
bits more than the entropy of the sequence. All arithmetic is of whole numbers, and the decoder
repeats it exactly.
"""

import operator
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
from jaxtyping import Int

from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least

_BITS = 48
_WHOLE = 1 << _BITS
_HALF, _QUARTER = _WHOLE >> 1, _WHOLE >> 2
LARGEST_ALPHABET = 1 << 16
"""Every symbol has a whole part of the interval, up to 2^44 of them coded."""


class _Counts:
    """Twice the counts plus one, and their partial sums by a binary indexed tree."""

    def __init__(self, alphabet: int):
        self.size = alphabet
        self.total = alphabet
        self.counts = [1] * alphabet
        self.tree = [(k & -k) if k else 0 for k in range(alphabet + 1)]
        self.top = 1 << (alphabet.bit_length() - 1)

    def below(self, symbol: int) -> int:
        """The sum over smaller symbols."""
        total = 0
        while symbol:
            total += self.tree[symbol]
            symbol &= symbol - 1
        return total

    def find(self, value: int) -> tuple[int, int]:
        """The symbol whose interval holds a value, and the sum below it."""
        place, left, step = 0, value, self.top
        while step:
            if place + step <= self.size and self.tree[place + step] <= left:
                place += step
                left -= self.tree[place]
            step >>= 1
        return place, value - left

    def add(self, symbol: int) -> None:
        """Count one more."""
        self.counts[symbol] += 2
        self.total += 2
        place = symbol + 1
        while place <= self.size:
            self.tree[place] += 2
            place += place & -place


def encode_symbols(symbols: Iterable[int], alphabet: int) -> bytes:
    """Bytes from which `decode_symbols` reads the symbols 0, ..., alphabet - 1; empty for none.

    Raises:
        UserError: for a symbol outside the alphabet, or an alphabet of no or too many symbols.

    Examples:
        >>> code = encode_symbols([0] * 200 + [1], 2)
        >>> len(code), decode_symbols(code, 201, 2)[-2:].tolist()
        (2, [0, 1])
    """
    _require_alphabet(alphabet)
    if not isinstance(symbols, Iterable):
        raise UserError(f"symbols = {symbols}: give whole numbers")
    counts, out = _Counts(alphabet), _Bits()
    low, high, waiting = 0, _WHOLE - 1, 0
    some = False
    for value in symbols:
        symbol, some = _symbol(value, alphabet), True
        span, below = high - low + 1, counts.below(symbol)
        high = low + span * (below + counts.counts[symbol]) // counts.total - 1
        low += span * below // counts.total
        counts.add(symbol)
        while True:
            if high < _HALF:
                waiting = out.put(0, waiting)
            elif low >= _HALF:
                waiting = out.put(1, waiting)
                low, high = low - _HALF, high - _HALF
            elif low >= _QUARTER and high < _HALF + _QUARTER:
                waiting += 1
                low, high = low - _QUARTER, high - _QUARTER
            else:
                break
            low, high = 2 * low, 2 * high + 1
    if some:
        out.put(0 if low < _QUARTER else 1, waiting + 1)
    return out.read()


def decode_symbols(code: bytes, count: int, alphabet: int) -> Int[np.ndarray, " count"]:
    """The symbols that `encode_symbols` wrote.

    Examples:
        >>> decode_symbols(encode_symbols([3, 1, 2], 4), 3, 4).tolist()
        [3, 1, 2]
    """
    _require_alphabet(alphabet)
    counts = _Counts(alphabet)
    require_at_least(0, count=count)
    require_memory(8 * count, f"{count} symbols", "give fewer")
    symbols = np.empty(count, np.int64)
    bits = _written(code)
    low, high, value = 0, _WHOLE - 1, 0
    for _ in range(_BITS):
        value = 2 * value + next(bits)
    for k in range(count):
        span = high - low + 1
        symbol, below = counts.find(((value - low + 1) * counts.total - 1) // span)
        symbols[k] = symbol
        high = low + span * (below + counts.counts[symbol]) // counts.total - 1
        low += span * below // counts.total
        counts.add(symbol)
        while True:
            if high < _HALF:
                shift = 0
            elif low >= _HALF:
                shift = _HALF
            elif low >= _QUARTER and high < _HALF + _QUARTER:
                shift = _QUARTER
            else:
                break
            low, high = 2 * (low - shift), 2 * (high - shift) + 1
            value = 2 * (value - shift) + next(bits)
    return symbols


def _symbol(value: Any, alphabet: int) -> int:
    """A symbol of the alphabet as a number of Python."""
    try:
        symbol = operator.index(value)
    except TypeError:
        symbol = -1
    if not 0 <= symbol < alphabet:
        raise UserError(f"symbol {value!r:.40}: it must be a whole number from 0 to {alphabet - 1}")
    return symbol


def _written(code: bytes) -> Iterator[int]:
    """The bits of a code; zeros stand after the last one."""
    for byte in code:
        for k in range(7, -1, -1):
            yield byte >> k & 1
    yield from repeat(0)


class _Bits:
    """Bits that are written one after the other."""

    def __init__(self):
        self.bits: list[int] = []

    def put(self, bit: int, waiting: int) -> int:
        """A bit and those that waited for it, which are its opposite; none waits afterwards."""
        self.bits.append(bit)
        self.bits.extend([1 - bit] * waiting)
        return 0

    def read(self) -> bytes:
        """All of them, filled up with zeros."""
        return np.packbits(np.array(self.bits, np.uint8)).tobytes()


def _require_alphabet(alphabet: int) -> None:
    if not 1 <= alphabet <= LARGEST_ALPHABET:
        raise UserError(f"alphabet = {alphabet}: give 1 to {LARGEST_ALPHABET} symbols")
