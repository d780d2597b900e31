import math

import numpy as np
import pytest

from gu2024exploring.library.bounds.gu2024_score import (
    gu2024_approximation,
    gu2024_complexity,
    gu2024_log_smallest_eigenvalue,
    gu2024_score_error,
)


def test_the_approximation_peaks_where_its_derivative_vanishes_and_then_falls():
    d = 4
    peak = (math.sqrt(d) * math.exp(d / 2)) ** 2
    at = [float(gu2024_approximation(R, d)) for R in (0.5 * peak, peak, 2 * peak)]
    assert at[1] > max(at[0], at[2])
    far = [float(gu2024_approximation(R, d)) for R in (1e30, 1e34)]
    # R^(-1/d) up to the ratio of logarithms.
    logs = math.log(1e17 / 2) / math.log(1e15 / 2)
    np.testing.assert_allclose(far[1] / far[0], 1e4 ** (-1 / d) * logs, rtol=1e-9)


@pytest.mark.parametrize(
    ("R_H", "d", "options", "A"),
    [
        # sqrt(R_H) / Lambda = e^3, e^3, e^6, e and e; Lambda = 1, 1/2 and then d^{1/2}.
        (math.exp(6), 3, {"scale": 1.0}, 3 * math.exp(-2)),
        (math.exp(6) / 4, 6, {"scale": 0.5, "c_1": 4.0}, 6 * math.exp(-1)),
        (4 * math.exp(12), 4, {}, 2 * 6 * math.exp(-3)),
        (9 * math.exp(2), 9, {"c_1": 2.0}, 6 * math.exp(-2 / 9)),
        (math.exp(2), 1, {"c_1": 0.5}, 0.5 * math.exp(-2)),
    ],
)
def test_the_approximation_by_hand(R_H, d, options, A):
    np.testing.assert_allclose(gu2024_approximation(R_H, d, **options), A, rtol=1e-13)


N = math.exp(3) - 1
"""Here e (n + 1) = e^4, whose logarithm to the power 3/2 is 8."""
DELTA = math.log(N) * math.exp(-5)
"""Here log(1 / delta) + log log n = 5."""


@pytest.mark.parametrize(("d", "n_times_Gamma"), [(1, 17**2 + 5), (2, 65**2 + 4 * 5)])
def test_the_complexity_where_its_logarithms_are_whole_numbers(d, n_times_Gamma):
    np.testing.assert_allclose(N * gu2024_complexity(N, d, DELTA), n_times_Gamma, rtol=1e-12)


def test_the_complexity_with_the_inside_of_its_logarithm_given():
    # log log n = log(1 / delta) = 1, and log 1 = 0: only (1 + 2 d^2) / n is left.
    n = math.exp(math.e)
    found = [n * gu2024_complexity(n, d, math.exp(-1), inside=1.0) for d in (1, 3)]
    np.testing.assert_allclose(found, [3, 19], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "A"),
    [
        ({"c_1": math.e / math.sqrt(2)}, 1.0),
        ({"c_1": 3 * math.e / math.sqrt(2)}, 3.0),
        ({}, math.sqrt(2) / math.e),
    ],
)
def test_the_terms_by_hand(options, A):
    # sqrt(R_H) = e Lambda: A = c_1 Lambda / e with Lambda = sqrt(2) at d = 2, and c_1 = 1.
    terms = gu2024_score_error(N, 2, 0.1, DELTA, 2 * math.exp(2), 0.25, **options)
    assert float(terms["early_stopping"]) == 0.25
    found = [float(terms[name]) for name in ("approximation_squared", "approximation")]
    np.testing.assert_allclose(found, [2 * A**2, 2 * A], rtol=1e-12)
    squares = {"coupling": 100, "complexity": 4245**2 / N, "mixed": 2 * A * 4245}
    found = [N * float(terms[name]) ** 2 for name in squares]
    np.testing.assert_allclose(found, list(squares.values()), rtol=1e-12)
    assert len(terms) == 6


@pytest.mark.parametrize(("d", "n"), [(2, 1.3e5), (8, 1.2e8)])
def test_predicting_zero_is_better_than_the_bound_up_to_these_sizes(d, n):
    # Labels have norm at most 1, so that the error of the zero function is at most 1.
    below, above = (float(gu2024_complexity(part * n, d, 0.1)) for part in (0.9, 1.1))
    assert above < 1 < below


@pytest.mark.parametrize("sigma", [0.5, 2.0, 3.9, 4.1, 12.0])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (152, 2), (152, 60)])
def test_the_smallest_eigenvalue_is_the_tail_of_an_exponential_series(n, d, sigma):
    q = next(q for q in range(1, 40) if math.comb(d + q, d) - 1 >= n)
    terms = [math.exp(2 * j * math.log(sigma) - math.lgamma(j + 1)) for j in range(600)]
    known = math.log(n) + math.log(math.fsum(terms[q - 1 :]))
    np.testing.assert_allclose(gu2024_log_smallest_eigenvalue(n, d, sigma), known, rtol=1e-12)


def test_the_smallest_eigenvalue_is_known_at_once_for_any_size():
    # One input and so many dimensions that q = 1: all of e^(sigma^2).
    assert gu2024_log_smallest_eigenvalue(2**53, 10**17, 1e3) == 1e6 + math.log(2**53)
    assert gu2024_log_smallest_eigenvalue(2**53, 1, 0.5) < -1e17
