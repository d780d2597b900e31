"""Files of quantised arrays: decoded bit for bit, and none the beginning of another."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attlas.bounds.generalisation.arithmetic_code import encode_symbols
from attlas.bounds.generalisation.occam_code import decode, decode_number, encode, encode_number
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


def a_number(file, place):
    """Groups of seven bits, the lowest first, the last one marked by its eighth."""
    value, unit = 0, 1
    while file[place] < 128:
        value, unit, place = value + unit * file[place], 128 * unit, place + 1
    return value + unit * (file[place] - 128), place + 1


@pytest.mark.parametrize("levels", [1, 5, 128, 2000])
def test_the_file_is_the_one_that_is_described(levels):
    """Sizes below, at and above the 128 of one group, and scales from the least to a large one."""
    arrays = [
        RNG.normal(size=(128, 2)),
        50 * RNG.uniform(-1, 1, size=(3, 1, 130)),
        np.full(127, 2.0**-24 * levels),
        np.array([3 * levels * 2.0**-5]),
        np.zeros(4),
    ]
    file = encode(arrays, levels)
    length, start = a_number(file, 0)
    assert len(file) == start + length
    found, place = a_number(file, start)
    count, place = a_number(file, place)
    assert (found, count) == (levels, 5)
    scales = [2.0 ** (k - 24) * (1 + j / 8) for k in range(32) for j in range(8)][:255]
    symbols, expected = [], []
    for w in arrays:
        axes, place = a_number(file, place)
        shape = []
        for _ in range(axes):
            size, place = a_number(file, place)
            shape.append(size)
        assert tuple(shape) == w.shape
        byte, place = file[place], place + 1
        if not w.any():
            assert byte == 255
            expected.append(w)
            continue
        scale = min(s for s in scales if s >= np.max(np.abs(w)) / levels)
        assert scales[byte] == scale
        multiples = [round(entry / scale) for entry in w.ravel()]
        symbols += [levels + multiple for multiple in multiples]
        expected.append(np.array(multiples).reshape(w.shape) * scale)
    assert file[place:] == encode_symbols(symbols, 2 * levels + 1)
    for w, wanted in zip(decode(file), expected, strict=True):
        np.testing.assert_array_equal(w, wanted.astype(np.float32))


def test_fewer_levels_and_peaked_weights_need_fewer_bytes():
    w = RNG.normal(size=(40, 40))
    lengths = [len(encode([w], levels)) for levels in (1, 3, 15, 127)]
    assert lengths == sorted(lengths)
    assert len(encode([w**3], 15)) < lengths[2]
    # 1600 weights of at most 31 levels, peaked: below 5 bits each
    assert 8 * lengths[2] < 1600 * 4.7


@pytest.mark.parametrize("levels", [1, 2, 5, 60])
def test_the_nearest_scale_is_the_one_of_least_squared_error(levels):
    """Every scale of the description is tried; one in 40 below the largest entry is nearest."""
    w = RNG.normal(size=300)
    scales = [2.0 ** (k - 24) * (1 + j / 8) for k in range(32) for j in range(8)][:255]

    def rounded(scale):
        return scale * np.clip(np.round(w / scale), -levels, levels)

    least = min(np.sum((w - rounded(scale)) ** 2) for scale in scales)
    (near,), (reaching,) = decode(encode([w], levels, nearest=True)), decode(encode([w], levels))
    assert np.sum((w - near) ** 2) == pytest.approx(least, rel=1e-5)
    assert np.sum((w - reaching) ** 2) > 1.05 * least
    assert decode(encode([np.zeros(3)], levels, nearest=True))[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 2**32 - 1])
def test_numbers_are_read_as_they_were_written(value):
    written = encode_number(value)
    assert a_number(written, 0) == (value, len(written))
    assert decode_number(b"..." + written, 3) == (value, 3 + len(written))


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
        (lambda: encode_number(-1), "value = -1: it must be finite and at least 0"),
        (lambda: encode_number(1.5), "value"),
        (lambda: decode(b""), "the file of 0 bytes ends within a number"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(UserError, match=said):
        call()
