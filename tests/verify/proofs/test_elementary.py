"""Ends of elementary functions enclose what fifty digits give, and are near to it."""

from decimal import Context, Decimal

import numpy as np
import pytest

from attlas.verify import intervals as iv
from attlas.verify.intervals import Interval
from attlas.verify.proofs import elementary
from attlas.verify.proofs import sharp_intervals as sharp

DIGITS = Context(prec=50, Emax=10**9, Emin=-(10**9))
RNG = np.random.default_rng(0)
SIZES = np.concatenate([
    RNG.uniform(-690, 690, 500), RNG.normal(size=500), 1e-5 * RNG.normal(size=200),
    0.34657359 * np.arange(-1000, 1001),
])  # fmt: skip
SMALL = np.concatenate([RNG.uniform(-0.0625, 0.0625, 500), [1e-300, -1e-17, 0.0]])
POSITIVE = np.concatenate([np.exp(RNG.uniform(-600, 600, 500)), RNG.uniform(0.5, 2, 500), [1.0]])


def quotient(d):
    square = DIGITS.exp(DIGITS.multiply(2, d))
    return DIGITS.divide(DIGITS.subtract(square, Decimal(1)), DIGITS.add(square, 1))


EXACT = {
    "exponential": (DIGITS.exp, SIZES),
    "logarithm": (DIGITS.ln, POSITIVE),
    "exponential_m1": (lambda d: DIGITS.subtract(Context(prec=400).exp(d), 1), SMALL),
    "logarithm_1p": (lambda d: DIGITS.ln(Context(prec=400).add(1, d)), SMALL),
    "hyperbolic_tangent": (quotient, SMALL),
}


@pytest.mark.parametrize("name", EXACT)
def test_ends_enclose_fifty_digits(name):
    exact, points = EXACT[name]
    low, high = getattr(elementary, name)(points)
    for x, below, above in zip(points, low, high, strict=True):
        value = exact(Decimal(float(x)))
        if np.isfinite(above):
            slack = Decimal("1e-45") if abs(x) < 1e-10 else 0
            assert Decimal(float(below)) - slack <= value <= Decimal(float(above)) + slack, x


def test_an_exponential_is_within_a_sixteenth_of_what_is_allowed():
    points = SIZES[np.abs(SIZES) < elementary.FARTHEST]
    low, high = elementary.exponential(points)
    for x, below, above in zip(points, low, high, strict=True):
        middle = (Decimal(float(below)) + Decimal(float(above))) / 2
        assert abs(middle / DIGITS.exp(Decimal(float(x))) - 1) < Decimal(2) ** -52, x


def test_exact_results_are_points():
    zero, unit, three = (iv.exact(np.array(x)) for x in (0.0, 1.0, 3.0))
    results = [
        (sharp.exponential(zero), 1.0),
        (sharp.logarithm(unit), 0.0),
        (sharp.exponential_m1(zero), 0.0),
        (sharp.hyperbolic_tangent(zero), 0.0),
        (sharp.subtract(three, unit), 2.0),
        (sharp.multiply(three, three), 9.0),
        (sharp.divide(unit, iv.exact(np.array(4.0))), 0.25),
        (sharp.root(iv.exact(np.array(9.0))), 3.0),
        (sharp.whole_power(three, -1), None),
    ]
    for enclosure, value in results:
        if value is None:
            assert enclosure.low < 1 / 3 < enclosure.high or enclosure.low <= 1 / 3
            assert enclosure.low < enclosure.high
        else:
            assert float(enclosure.low) == float(enclosure.high) == value


@pytest.mark.parametrize(
    ("rule", "operands"),
    [
        (sharp.logarithm, [(-1.0, 2.0)]),
        (sharp.root, [(-1.0, 2.0)]),
        (sharp.logarithm_1p, [(-1.0, 2.0)]),
        (sharp.divide, [(1.0, 2.0), (-1.0, 1.0)]),
        (sharp.power, [(-1.0, 2.0), (0.5, 0.5)]),
        (sharp.power, [(0.0, 2.0), (-1.0, 1.0)]),
    ],
)
def test_what_has_no_value_has_no_bounds(rule, operands):
    enclosure = rule(*(Interval(np.array(low), np.array(high)) for low, high in operands))
    assert enclosure.low == -np.inf
    assert enclosure.high == np.inf


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power"])
def test_wide_operands_enclose_the_values_at_random_points(name):
    operate = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
               "divide": np.divide, "power": np.power}[name]  # fmt: skip
    ends = np.sort(RNG.normal(size=(4, 200, 2)), axis=-1)
    for x, y in zip(ends[:2].reshape(-1, 2), ends[2:].reshape(-1, 2), strict=True):
        if name == "power":
            x = np.abs(x[::-1]) if x[1] < 0 else np.sort(np.abs(x))
        enclosure = getattr(sharp, name)(*(Interval(e[:1], e[1:]) for e in (x, y)))
        a, b = (RNG.uniform(*e, size=20) for e in (x, y))
        with np.errstate(all="ignore"):
            values = operate(a, b)
        margin = 1e-12 * np.abs(values)
        assert (values >= enclosure.low - margin).all()
        assert (values <= enclosure.high + margin).all()
