import math

import numpy as np

from attlas.bounds.optimisation.gu2024_score import (
    gu2024_approximation,
    gu2024_complexity,
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


def test_terms_are_those_of_the_sum_and_vacuous_at_real_sizes():
    n, d, delta = 1000, 2, 0.1
    Gamma = (2 * d**2 * math.log(math.e * (n + 1)) ** 1.5 / math.sqrt(n) + 1 / math.sqrt(n)) ** 2
    Gamma += d**2 / n * (math.log(1 / delta) + math.log(math.log(n)))
    np.testing.assert_allclose(gu2024_complexity(n, d, delta), Gamma, rtol=1e-12)
    terms = gu2024_score_error(n, d, 0.1, delta, 1e6, 0.25)
    A = float(gu2024_approximation(1e6, d))
    wanted = [1 / (0.1 * math.sqrt(n)), 0.25, d * A**2, d * A, math.sqrt(d * A * Gamma), Gamma]
    np.testing.assert_allclose([float(v) for v in terms.values()], wanted, rtol=1e-12)
    # Labels have norm at most 1: predicting zero does better than this bound.
    assert float(terms["complexity"]) > 1
