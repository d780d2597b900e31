import numpy as np
from scipy import stats

from attlas.measures.statistics.student_interval import student_interval


def test_interval_is_that_of_scipy_along_the_first_axis():
    values = np.random.default_rng(0).standard_normal((6, 3))
    found = student_interval(values, 0.9)
    want = stats.t.interval(0.9, 5, values.mean(0), stats.sem(values, axis=0))
    np.testing.assert_allclose([found.mean - found.half_width, found.mean + found.half_width], want)


def test_one_run_has_a_mean_and_no_interval():
    found = student_interval(np.array([[1.0, 2.0]]))
    assert found.mean.tolist() == [1.0, 2.0]
    assert np.isnan(found.half_width).all()
