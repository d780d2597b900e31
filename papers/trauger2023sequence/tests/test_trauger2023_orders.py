"""Orders by quadrature of their own, and the length at which two covers break even."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.comparison.single_layer_class import LayerNorms, single_layer_bounds
from trauger2023sequence.library.bounds.trauger2023_orders import (
    break_even_ratio,
    trauger2023_orders,
)


@pytest.mark.parametrize(("B", "m"), [(1.0, 1e6), (10.0, 1e6), (3.0, 1e7)])
def test_orders_agree_with_quadrature(B, m):
    d, T = 16, 200
    found = np.asarray(trauger2023_orders(B, m, [T], d))

    def bracket(C: float) -> float:
        def value(delta: float) -> float:
            whole = np.log(2 * d) ** 0.5 * (1 - delta) + 2 * C**0.5 * np.log(1 / delta)
            return delta + whole / m**0.5

        return minimize_scalar(value, bounds=(1e-9, 1), method="bounded").fun

    def root(epsilon: float) -> float:
        return np.sqrt((d * d * np.log1p(4 * B / epsilon) + np.log(2 * d)) / m)

    counted = quad(root, 0, 1, limit=200)[0]
    covers = B**2 * np.log(2 * d * d + 1), B**2 * np.log(d * m * T)
    np.testing.assert_allclose(found, [*map(bracket, covers), counted], rtol=1e-4)


def test_two_bounds_are_equal_at_the_break_even_ratio():
    d, m, T = 16, 10**6, 300.0
    ratio = break_even_ratio(T, d, m)
    norms = LayerNorms(ratio, 1.0, 1.0, 1.0, 1.0)
    first, second = single_layer_bounds(norms, ["1,1", m * T], d, float(m))
    assert float(first) == pytest.approx(float(second), rel=1e-12)
