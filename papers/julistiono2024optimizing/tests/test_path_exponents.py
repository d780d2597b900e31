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


def test_numbers_of_power_laws_by_hand():
    """Norm = 3 sqrt t and D = c norm^-2; the last path ends at the last time itself."""
    time = np.stack([np.geomspace(1.0, last, 7) for last in (100.0, 80.0, 50.0)])
    norm = 3 * time**0.5
    values = np.array([[5.0], [7.0], [2.0]]) / norm**2
    found = path_exponents(time, norm, values, lambda x: 2 * x**-0.75, (2.0, 50.0))
    np.testing.assert_allclose(found.measured, np.full(3, -2.0), rtol=1e-12)
    np.testing.assert_allclose(found.printed, np.full(3, -0.75), rtol=1e-12)
    np.testing.assert_allclose(found.falls, np.full(3, 25**0.625), rtol=1e-12)
    np.testing.assert_allclose(found.growth, np.full(3, 3 * (50**0.5 - 2**0.5) / 48), rtol=1e-12)


def test_a_path_of_short_times_is_there_when_it_reaches_the_last():
    time = np.array([[0.0, 0.1, 0.5], [0.0, 0.1, 0.9]])
    norm = np.array([[5.0, 0.1, 0.5], [5.0, 0.1, 0.9]])
    found = path_exponents(time, norm, norm**-3.0, lambda x: 1 / x, (0.2, 0.8))
    assert np.isnan(np.array(found)[:, 0]).all()
    np.testing.assert_allclose(np.array(found)[:, 1], [-3, -1, 16, 1], rtol=1e-12)
    late = path_exponents(time, norm, norm, lambda x: x, (2.0, 3.0))
    assert np.isnan(np.array(late)).all()


def test_a_path_without_points_has_no_values_between_them():
    x = np.array([[np.nan, np.nan], [1.0, 4.0]])
    found = interpolated(np.array([2.0, 3.0, 4.0]), x, x)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], [2.0, 3.0, 4.0], rtol=1e-14)


def test_the_gap_of_each_path_is_that_of_its_values():
    time, other = np.tile([1.0, 2.0, 4.0, np.nan], (2, 1)), np.tile([1.0, 3.0, 9.0], (2, 1))
    values = np.array([[1.0, 1.0, 2.0, np.nan], [1.0, 1.0, 40.0, np.nan]])
    gap = end_gap(time, values, other, np.array([[1.0], [5.0]]) * other**1.5)
    np.testing.assert_allclose(gap, [3.0, 0.0], rtol=0, atol=1e-14)
    assert np.isnan(end_gap(np.full((2, 3), np.nan), np.ones((2, 3)), other, other)).tolist() == [
        True, True,
    ]  # fmt: skip


def test_a_value_at_the_level_is_inside():
    time = np.array([[1.0, 2.0, 5.0], [1.0, 3.0, 7.0]])
    found = entry_times(time, np.array([[4.0, 2.0, 1.0], [2.0, 1.0, 2.5]]), np.array([2.0, 2.5]))
    np.testing.assert_array_equal(found, [2.0, 1.0])
