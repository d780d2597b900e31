"""Files of quantised arrays: decoded bit for bit, and none the beginning of another."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas.bounds.generalisation.occam_code import decode, encode
from attlas.core.errors import UserError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("levels", [1, 2, 7, 127, 2000])
def test_what_is_decoded_is_the_nearest_multiple_and_is_encoded_to_itself(levels):
    arrays = [
        RNG.normal(size=(6, 5)),
        10.0 ** RNG.uniform(-3, 2) * RNG.normal(size=7),
        np.zeros((2, 0, 3)),
        np.zeros(4),
        np.float64(0.3),
    ]
    file = encode(arrays, levels)
    found = decode(file)
    assert [w.shape for w in found] == [np.shape(w) for w in arrays]
    assert {w.dtype for w in found} == {np.dtype(np.float32)}
    for given_array, w in zip(arrays, found, strict=True):
        largest = np.max(np.abs(given_array), initial=0.0)
        # a scale is at most 9/8 of the largest entry over L; float32 rounds once
        assert np.all(np.abs(w - given_array) <= largest / levels * 9 / 16 + 1e-6 * largest)
    again = decode(file)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(found, again, strict=True))


def test_fewer_levels_and_peaked_weights_need_fewer_bytes():
    w = RNG.normal(size=(40, 40))
    lengths = [len(encode([w], levels)) for levels in (1, 3, 15, 127)]
    assert lengths == sorted(lengths)
    assert len(encode([w**3], 15)) < lengths[2]
    # 1600 weights of at most 31 levels, peaked: below 5 bits each
    assert 8 * lengths[2] < 1600 * 4.7


@pytest.mark.thorough
@settings(max_examples=40)
@given(
    st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(1, 40),
    st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(1, 40),
)
def test_no_file_is_the_beginning_of_another(one, few, other, many):
    a, b = encode(one, few), encode(other, many)
    assert a == b or not (a.startswith(b) or b.startswith(a))


def test_all_files_of_a_small_family_obey_the_inequality_of_kraft():
    """All vectors of up to three ternary weights: distinct files, and a sum of at most 1."""
    files = {
        encode([list(w)], 1)
        for size in (1, 2, 3)
        for w in itertools.product((-1, 0, 1), repeat=size)
    }
    assert len(files) == 3 + 9 + 27
    assert sum(2.0 ** (-8 * len(f)) for f in files) <= 1
    ordered = sorted(files)
    assert not any(b.startswith(a) for a, b in itertools.pairwise(ordered))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: encode([], 3), "arrays are empty"),
        (lambda: encode([[np.nan]], 3), r"arrays\[0\]"),
        (lambda: encode([[1.0], [1e9]], 3), r"arrays\[1\] needs a scale of 3.33e\+08"),
        (lambda: encode([[1.0]], 0), "levels = 0: give a whole number from 1"),
        (lambda: decode(encode([[1.0]], 3)[:-1]), "the file has 6 bytes and says 7"),
        (lambda: decode(encode([[1.0]], 3) + b"x"), "the file has 8 bytes and says 7"),
        (lambda: decode(b""), "the file of 0 bytes ends within a number"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(UserError, match=said):
        call()
