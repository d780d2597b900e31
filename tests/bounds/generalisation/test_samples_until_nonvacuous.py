"""The search against thresholds known in closed form."""

import numpy as np

from attlas.bounds.generalisation.samples_until_nonvacuous import samples_until_nonvacuous


def test_thresholds_of_all_sizes_are_found():
    thresholds = np.array([3.0, 1e3, 123456.0, 1e40, 1e300])
    found = samples_until_nonvacuous(lambda m: m >= thresholds, 5, 5)
    assert found[0] == 5
    np.testing.assert_array_equal(found[1:3], thresholds[1:3] + (found[1:3] - thresholds[1:3] > 0))
    # 250 decades in 36 halvings, in natural logarithms
    np.testing.assert_allclose(found[3], 1e40, rtol=2 * 250 * np.log(10) / 2**36)
    assert found[4] == np.inf


def test_whole_numbers_up_to_1e15_and_powers_of_ten_beyond():
    thresholds = np.array([7e14, 1e15 - 3e6, 3e15, 7.5])
    found = samples_until_nonvacuous(lambda m: m >= thresholds, 2, 4)
    np.testing.assert_array_equal(found[:2], np.ceil(found[:2]))
    np.testing.assert_allclose(found[:3], thresholds[:3], rtol=2 * 250 * np.log(10) / 2**36)
    assert np.all(found >= thresholds)
    assert found[3] == 8
    ends = samples_until_nonvacuous(lambda m: m >= np.array([0.0, 1e250, 4.2]), 5, 3)
    np.testing.assert_allclose(ends, [5, 1e250, 5], rtol=1e-5)
