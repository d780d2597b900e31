import numpy as np

from attlas.core.solution import Result, Solution
from attlas.solvers.kernel_svm import kernel_svm
from deora2023optimization.library.solvers.known_margin import known_margin


def test_a_margin_is_known_where_it_is_certified():
    K = np.eye(2)
    np.testing.assert_allclose(known_margin(kernel_svm(K, np.array([1.0, -1.0]))), np.sqrt(0.5))


def test_what_nothing_separates_has_margin_zero():
    assert known_margin(kernel_svm(np.ones((2, 2)), np.array([1.0, -1.0]))) == 0


def test_without_a_certificate_nothing_is_known():
    open_end = {"lower": np.asarray(0.1)}
    code = np.asarray(Result.MAX_STEPS.value)
    assert np.isnan(known_margin(Solution(np.asarray(0.1), code, open_end)))
