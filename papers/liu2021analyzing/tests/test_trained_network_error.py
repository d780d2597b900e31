"""The error of networks that fit their sample."""

import math

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.trained_network_error import (
    deep_attention_stretch,
    finite_class_error,
    trained_network_error,
)


def test_it_is_the_finite_class_at_the_stated_radius():
    n, P, B, noise, s, delta = 5000, 7, 2.0, 0.4, 30.0, 0.1
    b0 = 2 * noise * math.sqrt(2 / n)
    r = b0**2 / 4 / (b0 + 4 * noise)
    L = P * math.log(3 * s * B / r) + math.log(2 / delta)
    b = 2 * noise * math.sqrt(2 * L / n)
    a = max(np.roots([1, -b, -r * (b + 4 * noise)]))
    expected = (max(math.sqrt(2) * (a + r), 4 * B * math.sqrt(2 * L / n)) + r) ** 2
    assert trained_network_error(n, P, B, noise, s, delta) == pytest.approx(expected, rel=1e-12)


def test_a_finite_class_and_its_centres_add_up():
    """Both sides of the maximum, by the quadratic's root, and an excess in its place."""
    for n, L, M, C, r, tau in (
        (700, 3.5, 0.2, 0.7, 0.013, 0.002),
        (300, 1.7, 6.0, 0.3, 0.021, 0.0),
        (900, 0.9, 0.1, 1.3, 0.3, 0.05),
    ):
        b = math.sqrt(8 * C * C * L / n)
        a = max(np.roots([1, -b, -(r * b + 4 * r * C + tau)]))
        expected = (max(math.sqrt(2) * (a + r), math.sqrt(8 * M * M * L / n)) + r) ** 2
        assert finite_class_error(n, L, M, C, r, tau) == pytest.approx(expected, rel=1e-12)


def test_a_cover_that_one_centre_makes_costs_nothing():
    """3 s B < r: the logarithm would be negative."""
    n, B, C, delta = 3, 0.004, 5.0, 0.2
    b0 = 2 * C * math.sqrt(2 / n)
    r = b0**2 / 4 / (b0 + 4 * C)
    assert r > 3 * B
    expected = finite_class_error(n, math.log(2 / delta), 2 * B, C, r)
    assert trained_network_error(n, 4, B, C, delta=delta) == pytest.approx(expected, rel=1e-12)


def test_an_excess_of_training_risk_is_twice_paid():
    alone = finite_class_error(10**9, 1.0, 0.0, 1.0, excess=0.01)
    assert alone == pytest.approx(0.02, rel=0.02)


def test_stretch_of_layers_multiplies():
    assert deep_attention_stretch([1.0, 1.0, 1.0]) == 5 * (1 + 3 + 9)
    assert deep_attention_stretch([0.25, 1.5]) == 3.5 * 4 + 6


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"noise": 0.0}, {"n": 0}, {"excess": -1.0}])
def test_numbers_out_of_range_are_refused(wrong):
    given = {"n": 10, "parameters": 2, "output": 1.0, "noise": 1.0} | wrong
    with pytest.raises(UserError):
        trained_network_error(**given)


def test_no_layer_is_refused():
    with pytest.raises(UserError, match="empty"):
        deep_attention_stretch([])
