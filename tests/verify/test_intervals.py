"""Intervals enclose what exact arithmetic and many digits give."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from attlas.verify import intervals as iv
from attlas.verify.intervals import Interval, Undecided

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=40) * 10.0 ** RNG.integers(-12, 6, size=40), [0.0, 1.0, -1.0]])
Y = np.concatenate([RNG.normal(size=40) * 10.0 ** RNG.integers(-12, 6, size=40), [1.0, 3.0, -7.0]])
MANY = Context(prec=90)


def narrow(found: Interval, ulps: int = 6) -> bool:
    return bool((found.high - found.low <= ulps * np.spacing(np.abs(found.high)) + 1e-300).all())


@pytest.mark.parametrize(
    ("rule", "true"),
    [
        (iv.add, lambda x, y: x + y),
        (iv.subtract, lambda x, y: x - y),
        (iv.multiply, lambda x, y: x * y),
        (iv.divide, lambda x, y: x / y),
    ],
)
def test_arithmetic_encloses_the_rational_result(rule, true):
    found = rule(iv.exact(X), iv.exact(Y))
    for low, high, x, y in zip(found.low, found.high, X, Y, strict=True):
        assert Fraction(low) <= true(Fraction(x), Fraction(y)) <= Fraction(high)
    assert narrow(found)


def test_wide_intervals_hold_all_pairs():
    a, b = Interval(np.array(-2.0), np.array(3.0)), Interval(np.array(-1.0), np.array(5.0))
    found = iv.multiply(a, b)
    assert found.low <= -10
    assert found.high >= 15
    assert iv.absolute(a).low == 0
    assert iv.whole_power(a, 2).low <= 0 <= 9 <= iv.whole_power(a, 2).high
    assert iv.whole_power(a, 3).low <= -8
    assert np.isinf(iv.divide(b, a).high)
    assert iv.divide(b, a).low == -np.inf


@pytest.mark.parametrize(
    ("rule", "true", "points"),
    [
        (iv.exponential, lambda d: MANY.exp(d), X),
        (iv.logarithm, lambda d: MANY.ln(d), np.abs(Y)),
        (iv.root, lambda d: MANY.sqrt(d), np.abs(X)),
        (iv.logarithm_1p, lambda d: MANY.ln(MANY.add(1, d)), np.abs(X)),
        (iv.exponential_m1, lambda d: MANY.subtract(MANY.exp(d), Decimal(1)), np.clip(X, -50, 50)),
        (
            iv.hyperbolic_tangent,
            lambda d: MANY.divide(
                MANY.subtract(MANY.exp(MANY.multiply(2, d)), Decimal(1)),
                MANY.add(MANY.exp(MANY.multiply(2, d)), 1),
            ),
            np.clip(X, -50, 50),
        ),
    ],
)
def test_functions_enclose_ninety_digits(rule, true, points):
    points = points[np.abs(points) < 700]
    found = rule(iv.exact(points))
    for low, high, x in zip(found.low, found.high, points, strict=True):
        assert Decimal(low) <= true(Decimal(float(x))) <= Decimal(high)
    small = np.abs(points) >= 1e-8
    assert narrow(Interval(found.low[small], found.high[small]))


def test_a_sum_encloses_where_floating_point_loses_all_digits():
    found = iv.total(iv.exact(np.array([1e16, 1.0, -1e16])), (0,))
    assert found.low <= 1 <= found.high
    powers = iv.power(iv.exact(np.array(2.0)), iv.exact(np.array(0.5)))
    assert Fraction(float(powers.low)) ** 2 < 2 < Fraction(float(powers.high)) ** 2


def test_what_has_no_value_is_undecided():
    with pytest.raises(Undecided):
        iv.logarithm(iv.exact(np.array(0.0)))
    with pytest.raises(Undecided):
        iv.root(iv.exact(np.array(-1.0)))
    assert iv.exponential(iv.exact(np.array([-1e6, 1e6]))).high[1] == np.inf
