"""Arithmetic coding: what is read is what was written, and the length is the one of its law."""

import math

import numpy as np
import pytest

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
@pytest.mark.parametrize("count", [1, 2, 50, 3000])
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
