"""The limit at any time: its integral by quadrature, and how often it ever fails, exactly."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize

from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.error_sequence import error_sequence_limit
from attlas.core.errors import UserError


@pytest.mark.parametrize(("k", "n"), [(0, 20), (3, 50), (17, 40)])
def test_the_integral_by_quadrature(k, n):
    def excess(p):
        def ratio(q):
            return (q / p) ** k * ((1 - q) / (1 - p)) ** (n - k)

        return integrate.quad(ratio, 0, p)[0] / p - 20

    wanted = optimize.brentq(excess, (k + 1) / (n + 1), 0.999)
    found = error_sequence_limit(k, n, 0.05)
    np.testing.assert_allclose(found, wanted, rtol=1e-7)
    assert found >= wanted


def _ever_missed(limit, p, n):
    """P(limit(K_t, t) < p for some t <= n), by the counts that have not missed yet."""
    alive, missed = {0: 1.0}, 0.0
    for t in range(1, n + 1):
        after = {}
        for k, weight in alive.items():
            for errors, chance in ((k, 1 - p), (k + 1, p)):
                if limit(errors, t) < p:
                    missed += weight * chance
                else:
                    after[errors] = after.get(errors, 0.0) + weight * chance
        alive = after
    return missed


@pytest.mark.thorough
def test_it_ever_fails_with_the_probability_it_says_and_an_exact_limit_does_not():
    delta, n = 0.2, 50
    places = [(k, t) for t in range(1, n + 1) for k in range(t + 1)]
    sequence = {place: error_sequence_limit(*place, delta) for place in places}
    exact = {place: binomial_upper_limit(*place, delta) for place in places}
    chances = [_ever_missed(lambda k, t: sequence[k, t], p, n) for p in (0.05, 0.2, 0.5)]
    assert 0.2 * delta < max(chances) <= delta
    assert _ever_missed(lambda k, t: exact[k, t], 0.2, n) > 1.5 * delta


def test_it_is_above_the_limit_of_one_look_and_falls_with_examples():
    for k, n in ((0, 1), (0, 1000), (40, 1000), (999, 1000)):
        assert error_sequence_limit(k, n, 0.05) > binomial_upper_limit(k, n, 0.05) - 1e-12
    assert error_sequence_limit(5, 5, 0.05) == 1.0
    falling = [error_sequence_limit(n // 10, n, 0.05) for n in (10, 100, 1000, 10**6)]
    assert falling == sorted(falling, reverse=True)
    assert math.isclose(falling[-1], 0.1, rel_tol=0.02)


@pytest.mark.parametrize("arguments", [(2, 1, 0.1), (-1, 5, 0.1), (0, 0, 0.1), (0, 5, 0.0)])
def test_bad_input_is_one_line(arguments):
    with pytest.raises(UserError):
        error_sequence_limit(*arguments)
