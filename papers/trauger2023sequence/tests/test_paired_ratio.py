import numpy as np
import pytest

from attlas.measures.statistics.student_interval import student_interval
from trauger2023sequence.library.measures.paired_ratio import paired_ratio


def test_a_common_factor_has_no_spread_and_a_shift_that_of_its_residuals():
    x = np.array([1.0, 1.1, 0.9, 1.0])
    ratio, reach = paired_ratio(x, 2 * x)
    assert ratio == pytest.approx(2)
    assert reach < 1e-12
    noise = np.array([0.1, -0.1, 0.1, -0.1])  # uncorrelated with x, so that the slope stays
    ratio, reach = paired_ratio(x, 2 * x + noise)
    assert ratio == pytest.approx(2)
    assert reach == pytest.approx(student_interval(noise).half_width / x.mean())


def test_the_interval_is_that_of_the_residuals_over_the_mean_of_the_first():
    # Means 3 and 7.5; residuals y - 2.5 x of 1.5, -1, 0 and -0.5, whose mean is 0.
    x, y = np.array([1.0, 2.0, 4.0, 5.0]), np.array([4.0, 4.0, 10.0, 12.0])
    ratio, reach = paired_ratio(x, y)
    assert float(ratio) == 2.5
    # 3.182446 is the quantile 0.975 of Student's t with three degrees of freedom.
    deviation = np.sqrt((1.5**2 + 1 + 0.25) / 3)
    assert float(reach) == pytest.approx(3.182446 * deviation / 3 / 2, rel=1e-6)
