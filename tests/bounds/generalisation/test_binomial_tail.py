"""Confidence limits of an error rate: beside scipy's, and on the safe side by exact arithmetic."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from attlas.bounds.generalisation import binomial_tail
from attlas.bounds.generalisation.binomial_tail import (
    binomial_lower_limit,
    binomial_upper_limit,
    log_binomial_tail,
)
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.core.errors import UserError

CASES = [
    (0, 1, 0.3),
    (0, 40, 0.05),
    (1, 2, 0.1),
    (7, 40, 0.05),
    (39, 40, 0.01),
    (20, 40, 0.7),
    (3, 200, 1e-9),
]


def tail(k, n, p):
    """P(Bin(n, p) <= k) as a fraction."""
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1))


@pytest.mark.parametrize(("k", "n", "delta"), CASES)
def test_the_upper_limit_is_the_next_float_above_the_exact_one(k, n, delta):
    found = binomial_upper_limit(k, n, delta)
    assert tail(k, n, Fraction(found)) <= Fraction(delta)
    assert tail(k, n, Fraction(math.nextafter(found, 0.0))) >= Fraction(delta)


@pytest.mark.parametrize(("k", "n", "delta"), CASES)
def test_the_lower_limit_is_the_next_float_below_the_exact_one(k, n, delta):
    found = binomial_lower_limit(n - k, n, delta)
    assert 1 - tail(n - k - 1, n, Fraction(found)) <= Fraction(delta)
    assert 1 - tail(n - k - 1, n, Fraction(math.nextafter(found, 1.0))) >= Fraction(delta)


@pytest.mark.parametrize(("k", "n", "delta"), [*CASES, (120, 10_010, 0.05), (50_000, 10**6, 0.01)])
def test_scipy_agrees(k, n, delta):
    np.testing.assert_allclose(
        binomial_upper_limit(k, n, delta), stats.beta.isf(delta, k + 1, n - k), rtol=1e-10
    )
    if k:
        np.testing.assert_allclose(
            binomial_lower_limit(k, n, delta), stats.beta.ppf(delta, k, n - k + 1), rtol=1e-10
        )


def test_nine_errors_of_a_billion_where_the_incomplete_beta_function_loses_digits():
    delta = 0.05
    found, theirs = binomial_upper_limit(9, 10**9, delta), stats.beta.isf(delta, 10, 10**9 - 9)
    np.testing.assert_allclose(found, theirs, rtol=1e-8)
    with localcontext(Context(prec=60)):
        level = Decimal(delta).ln()

        def tail_at(p):
            P = Decimal(p)
            terms = (math.comb(10**9, j) * P**j * (1 - P) ** (10**9 - j) for j in range(10))
            return sum(terms, Decimal(0)).ln()

        assert tail_at(found) <= level < tail_at(math.nextafter(found, 0.0))


def test_a_limit_is_beyond_the_level_by_more_than_the_rounding_of_the_tail(monkeypatch):
    monkeypatch.setattr(binomial_tail, "_SLACK", Decimal("0.01"))
    for k, n, delta in ((7, 40, 0.05), (1, 9, 0.3), (30, 33, 1e-4)):
        for found in (binomial_upper_limit(k, n, delta), 1 - binomial_lower_limit(n - k, n, delta)):
            np.testing.assert_allclose(1.01 * tail(k, n, found), delta, rtol=1e-12)


def test_the_search_begins_beside_the_limit(monkeypatch):
    """To six digits where double precision reaches, and by Chernoff's exponent where not."""
    guesses, search = [], binomial_tail.first_float

    def noted(holds, guess, **direction):
        guesses.append(guess)
        return search(holds, guess, **direction)

    monkeypatch.setattr(binomial_tail, "first_float", noted)
    for k, n, bits in ((7, 10_000, 30), (3, 50, 5)):
        np.testing.assert_allclose(binomial_upper_limit(k, n, 0.05, bits), guesses[-1], rtol=1e-6)
    found = binomial_lower_limit(7, 50, 0.05)
    np.testing.assert_allclose(found, guesses[-1], rtol=1e-6)
    found, nats = binomial_upper_limit(400, 1000, 0.05, 1000), 1000 * math.log(2) - math.log(0.05)
    # all errors among the first k examples, the others right
    np.testing.assert_allclose(guesses[-1], 0.4 + 0.6 * (1 - math.exp(-nats / 600)), rtol=1e-13)
    np.testing.assert_allclose(guesses[-1], found, rtol=0.1)


@pytest.mark.parametrize("n", [998, 999, 1000, 1001, 1700])
def test_logarithms_of_factorials_are_right_on_both_sides_of_stirlings_series(n):
    half = Decimal("0.5")
    with localcontext(Context(prec=60)):
        exact = Decimal(sum(math.comb(n, j) for j in range(n // 3 + 1))).ln() - n * Decimal(2).ln()
        assert abs(log_binomial_tail(n // 3, n, half, half) - exact) < Decimal("1e-48")


def test_a_limit_beside_one_is_below_it():
    delta = 1 - 2**-53
    assert binomial_lower_limit(10, 10, delta) == delta
    assert 0 < binomial_upper_limit(0, 10**15, delta) < 1e-30


def test_no_error_of_10010_is_three_in_ten_thousand():
    found = binomial_upper_limit(0, 10_010, 0.05)
    np.testing.assert_allclose(found, -math.expm1(math.log(0.05) / 10_010), rtol=1e-14)
    assert f"{found:.1e}" == "3.0e-04"


@pytest.mark.parametrize("bits", [1, 30, 700, 5000, 60_000])
def test_a_code_of_b_bits_is_a_level_that_is_smaller_by_2_to_the_b(bits):
    """Below the range of floats, too; Chernoff's form is above the exact one, but not by much."""
    k, n, delta = 7, 10_000, 0.05
    found = binomial_upper_limit(k, n, delta, bits)
    with localcontext(Context(prec=60)):
        level = Decimal(delta).ln() - bits * Decimal(2).ln()
        assert log_binomial_tail(k, n, Decimal(found), 1 - Decimal(found)) <= level
        below = Decimal(math.nextafter(found, 0.0))
        assert log_binomial_tail(k, n, below, 1 - below) >= level
    chernoff = kl_upper_inverse(k / n, float(-level) / n)
    assert 0.8 * chernoff < found < chernoff
    if bits == 1:
        assert found == binomial_upper_limit(k, n, 0.025)


def test_the_series_of_large_factorials_meets_the_exact_ones():
    with localcontext(Context(prec=60)):
        half = Decimal("0.5")
        exact = Fraction(sum(math.comb(2000, j) for j in range(951)), 2**2000)
        truth = Decimal(exact.numerator) / Decimal(exact.denominator)
        found = log_binomial_tail(950, 2000, half, half).exp()
        assert abs(found / truth - 1) < Decimal("1e-45")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: binomial_upper_limit(3, 2, 0.05), "3 errors of 2: there cannot be more"),
        (lambda: binomial_upper_limit(0, 0, 0.05), "0 errors of 0: give whole numbers"),
        (lambda: binomial_upper_limit(-1, 5, 0.05), "-1 errors of 5"),
        (lambda: binomial_upper_limit(1, 5, 1.5), r"delta = 1\.5: the probability of failure"),
        (lambda: binomial_lower_limit(1, 5, 0.0), r"delta = 0\.0"),
        (lambda: binomial_upper_limit(1, 5, 0.1, -3), r"bits = -3"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(UserError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
