import numpy as np
import pytest

from julistiono2024optimizing.library.measures.path_exponents import (
    end_gap,
    entry_times,
    interpolated,
    path_exponents,
)


def test_a_path_that_ends_too_early_or_is_unknown_has_no_exponent():
    time = np.geomspace(1.0, 100.0, 20) * np.ones((3, 1))
    time[1, 15:] = np.nan
    values = time**-2.0
    values[2] = np.nan
    found = path_exponents(time, time, values, lambda x: 1 / x, (2.0, 50.0))
    assert found.measured[0] == pytest.approx(-2.0, rel=1e-12)
    assert np.isnan(found.measured[1:]).all()
    assert np.isnan(found.growth[1:]).all()


def test_interpolation_is_exact_for_powers_or_lines():
    x = np.array([[1.0, 4.0, 16.0, np.nan]])
    at = np.array([2.0, 8.0])
    np.testing.assert_allclose(interpolated(at, x, x**1.5), [at**1.5], rtol=1e-14)
    np.testing.assert_allclose(interpolated(at, x, 3 * x + 1, logarithms=False), [3 * at + 1])


def test_gap_is_taken_at_the_end_of_the_shorter_path():
    time = np.array([[1.0, 2.0, np.nan]])
    longer = np.array([[1.0, 2.0, 4.0]])
    gap = end_gap(time, time, longer, 1.5 * longer)
    np.testing.assert_allclose(gap, [0.5], rtol=1e-14)


def test_a_path_enters_when_it_stays():
    time = np.tile([1.0, 2.0, 3.0, np.nan], (3, 1))
    values = np.array([[3, 1, 1, np.nan], [1, 1, 3, np.nan], [1, 1, 1, np.nan]])
    found = entry_times(time, values, np.array([2.0, 2.0, np.nan]))
    np.testing.assert_array_equal(found, [2.0, np.inf, np.inf])
