"""Risk of regression on attended tokens."""

import math

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.attended_risk import (
    attention_advantage,
    least_squares_risk,
    regression_risk_floor,
)


def test_least_squares_has_the_stated_risk():
    rng, n, P = np.random.default_rng(0), 20, 4
    Z = rng.normal(size=(4000, n, P))
    risks = np.trace(np.linalg.inv(np.swapaxes(Z, 1, 2) @ Z), axis1=1, axis2=2)
    error = np.std(risks) / math.sqrt(len(risks))
    assert abs(np.mean(risks) - least_squares_risk(n, P)) < 5 * error


def test_the_floor_solves_its_equation_and_meets_its_limit():
    for n, P, kappa in [(3, 7, 0.2), (50, 7, 3.0), (7, 7, 1e-6)]:
        R = regression_risk_floor(n, P, kappa)
        assert (n + 1) * R / (1 + R) + kappa * R == pytest.approx(P, rel=1e-9)
    assert regression_risk_floor(50, 7, 1e-9) == pytest.approx(regression_risk_floor(50, 7))
    assert regression_risk_floor(6, 7) == math.inf
    assert regression_risk_floor(50, 7) < least_squares_risk(50, 7)


def test_samples_have_the_risks_they_are_named_for():
    found = attention_advantage(0.5, 10, 2, 3)
    assert least_squares_risk(int(found.known_support), 6) == 0.5
    assert regression_risk_floor(int(found.moving_support), 30) == 0.5


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="infinite"):
        least_squares_risk(5, 4)
    with pytest.raises(UserError, match="attend to at most"):
        attention_advantage(0.5, 2, 3)


@pytest.mark.parametrize("n", [7, 8, 30])
def test_the_minimax_floor_is_that_of_its_closed_form_from_one_spare_sample(n):
    assert regression_risk_floor(n, 7) == pytest.approx(7 / (n - 6), rel=1e-15)


def test_the_factor_is_the_ratio_and_tends_to_the_ratio_of_the_tokens():
    found = attention_advantage(0.3, 11, 4, 5)
    sides = 20 * (1 + 1 / 0.3) + 1, 55 * (1 + 1 / 0.3) - 1
    assert found == pytest.approx((*sides, sides[1] / sides[0]), rel=1e-14)
    assert attention_advantage(1e-9, 11, 4, 5).factor == pytest.approx(11 / 4, rel=1e-8)
