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
