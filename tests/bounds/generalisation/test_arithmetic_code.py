"""Arithmetic coding: what is read is what was written, and the length is the one of its law."""

import math

import numpy as np
import pytest

from attlas.bounds.generalisation import arithmetic_code
from attlas.bounds.generalisation.arithmetic_code import decode_symbols, encode_symbols
from attlas.core.errors import UserError


def ideal_bits(symbols, alphabet):
    """Minus the logarithm of the probability that the learned law gives to the sequence."""
    counts, total, bits = np.full(alphabet, 0.5), alphabet / 2, 0.0
    for s in symbols:
        bits -= math.log2(counts[s] / total)
        counts[s], total = counts[s] + 1, total + 1
    return bits


@pytest.mark.parametrize("alphabet", [1, 2, 3, 7, 31, 255, 4000])
@pytest.mark.parametrize("count", [1, 2, 50, 700])
def test_symbols_of_all_laws_are_read_back_and_cost_what_their_law_says(alphabet, count):
    rng = np.random.default_rng(alphabet * count)
    laws = (
        rng.integers(0, alphabet, count),
        np.minimum(rng.geometric(0.3, count) - 1, alphabet - 1),
        np.zeros(count, int),
        np.full(count, alphabet - 1),
    )
    for symbols in laws:
        code = encode_symbols(symbols.tolist(), alphabet)
        np.testing.assert_array_equal(decode_symbols(code, count, alphabet), symbols)
        # two bits to end in, seven to fill a byte
        assert ideal_bits(symbols, alphabet) <= 8 * len(code) + 1e-6 * count
        assert 8 * len(code) <= ideal_bits(symbols, alphabet) + 9 + 1e-6 * count


def test_no_symbols_need_no_bytes():
    assert encode_symbols([], 5) == b""
    assert decode_symbols(b"", 0, 5).size == 0


def test_bad_input_is_one_line():
    with pytest.raises(UserError, match="symbol 5: it must be a whole number from 0 to 4"):
        encode_symbols([5], 5)
    with pytest.raises(UserError, match="alphabet = 0: give 1 to 65536"):
        encode_symbols([0], 0)


def interval(symbols, alphabet, bits):
    """The ends of the interval that is coded, as binary fractions of that many more bits.

    Digits are never dropped: whether the interval lies in two neighbouring quarters of what the
    register holds is read from the ends themselves.
    """
    low, high, doublings, quarter = 0, 2**bits - 1, 0, 2 ** (bits - 2)
    for n, symbol in enumerate(symbols):
        weights = [1 + 2 * symbols[:n].count(s) for s in range(alphabet)]
        below, span = sum(weights[:symbol]), high - low + 1
        high = low + span * (below + weights[symbol]) // sum(weights) - 1
        low += span * below // sum(weights)
        while high // quarter - low // quarter <= 1:
            low, high, doublings = 2 * low, 2 * high + 1, doublings + 1
    return low, high, doublings


def bytes_of(number, length):
    """A binary fraction, filled up with zeros."""
    return (number << -length % 8).to_bytes(-(-length // 8), "big")


@pytest.mark.parametrize(("bits", "count"), [(7, 6), (8, 12), (9, 25), (48, 200)])
def test_the_code_is_the_shortest_quarter_and_all_of_its_interval_is_read_alike(
    monkeypatch, bits, count
):
    """Short registers, in which the ends of an interval often fall on a quarter."""
    for name, size in (("_BITS", bits), ("_WHOLE", 1 << bits)):
        monkeypatch.setattr(arithmetic_code, name, size)
    monkeypatch.setattr(arithmetic_code, "_HALF", 1 << bits - 1)
    monkeypatch.setattr(arithmetic_code, "_QUARTER", 1 << bits - 2)
    rng = np.random.default_rng(bits)
    for alphabet in (2, 3, 4, 5):
        for _ in range(1 if bits == 48 else 25):
            symbols = np.minimum(rng.geometric(0.4, count) - 1, alphabet - 1).tolist()
            low, high, doublings = interval(symbols, alphabet, bits)
            code = bytes_of(low // 2 ** (bits - 2) + 1, doublings + 2)
            assert encode_symbols(symbols, alphabet) == code
            for number in (low, high):
                whole = bytes_of(number, doublings + bits)
                assert decode_symbols(whole, count, alphabet).tolist() == symbols
