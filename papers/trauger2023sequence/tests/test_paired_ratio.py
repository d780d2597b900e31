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
