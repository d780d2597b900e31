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


def test_two_runs_have_an_interval():
    # The quantile of one degree of freedom is the tangent: t = tan(pi c / 2).
    found = student_interval(np.array([1.0, 4.0]), 0.9)
    half = np.tan(np.pi * 0.45) * 1.5
    np.testing.assert_allclose([found.mean, found.half_width], [2.5, half], rtol=1e-12)
