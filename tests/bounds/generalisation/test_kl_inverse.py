"""The inverse divergence: on the safe side of the truth with 60 digits, by one float at most."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy

from attlas.bounds.generalisation import kl_inverse
from attlas.bounds.generalisation.kl_inverse import (
    bernoulli_kl,
    kl_lower_inverse,
    kl_upper_inverse,
    near_kl_inverse,
)
from attlas.core.errors import UserError

PRECISE = Context(prec=60)
CASES = [
    (q, c)
    for q in (0.0, 1e-9, 0.003, 0.02, 0.15, 0.5, 0.97)
    for c in (1e-9, 1e-5, 0.002, 0.04, 0.3, 2.0)
]


def divergence(q, p, slack=0):
    """The definition, with 60 digits; less a share of the sizes of its terms."""
    Q = Decimal(q)
    heads = Q * (Q / p).ln() if q > 0 else Decimal(0)
    tails = (1 - Q) * ((1 - Q) / (1 - p)).ln() if q < 1 else Decimal(0)
    return heads + tails - slack * (abs(heads) + abs(tails))


def true_inverse(q, c, end, slack=0):
    """Bisection of decimals, from q towards 0 or 1, to 55 digits."""
    with localcontext(PRECISE):
        near, far = Decimal(q), Decimal(end)
        for _ in range(190):
            middle = (near + far) / 2
            if divergence(q, middle, slack) <= Decimal(c):
                near = middle
            else:
                far = middle
        return near


def last_midpoint(q, c, tolerance=1e-5):
    """Bisection that stops at a relative tolerance and returns its last midpoint, as peers do."""
    low, high, middle = q, 1 - 1e-10, q
    while (high - low) / high >= tolerance:
        middle = (low + high) / 2
        heads = q * math.log(q / middle) if q > 0 else 0.0
        if heads + (1 - q) * math.log((1 - q) / (1 - middle)) > c:
            high = middle
        else:
            low = middle
    return middle


@pytest.mark.parametrize(("q", "c"), CASES)
def test_upper_inverse_is_the_next_float_above_the_truth(q, c):
    found, truth = kl_upper_inverse(q, c), true_inverse(q, c, 1)
    assert Decimal(found) >= truth
    assert Decimal(math.nextafter(found, 0.0)) <= truth


@pytest.mark.parametrize(("q", "c"), CASES)
def test_lower_inverse_is_the_next_float_below_the_truth(q, c):
    found, truth = kl_lower_inverse(1 - q, c), true_inverse(1 - q, c, 0)
    assert Decimal(found) <= truth
    assert Decimal(math.nextafter(found, 1.0)) >= truth


def test_newtons_method_in_double_precision_leaves_few_floats_to_sixty_digits(monkeypatch):
    guesses, search = [], kl_inverse.first_float

    def noted(holds, guess, **direction):
        guesses.append(guess)
        return search(holds, guess, **direction)

    monkeypatch.setattr(kl_inverse, "first_float", noted)
    cases = [(0.0, 1e-9), (0.003, 0.04), (0.15, 1e-5), (0.5, 2.0), (0.97, 0.3), (1e-310, 0.7)]
    for q, c in cases:
        for inverse, start in ((kl_upper_inverse, q), (kl_lower_inverse, 1 - q)):
            found = inverse(start, c)
            # downward the distance is taken from a larger number
            loss = (32 * found + (found < start)) * np.finfo(float).eps
            assert abs(guesses.pop() - found) <= loss


def test_a_bias_counts_as_beyond_only_by_more_than_the_rounding_of_both_terms(monkeypatch):
    slack = Decimal("0.01")
    monkeypatch.setattr(kl_inverse, "_SLACK", slack)
    for q, c in ((0.02, 0.3), (0.5, 0.04), (0.97, 0.002), (0.0, 0.04)):
        found = kl_upper_inverse(q, c), kl_lower_inverse(1 - q, c)
        truth = true_inverse(q, c, 1, slack), true_inverse(1 - q, c, 0, slack)
        np.testing.assert_allclose(found, [float(p) for p in truth], rtol=1e-15)


def test_rough_inverses_are_right_to_nine_digits():
    q, c = np.array([(q, c) for q, c in CASES] + [(1.0, 0.3), (0.2, 900.0), (0.3, 0.0)]).T
    exact = [kl_upper_inverse(*case) for case in zip(q, c, strict=True)]
    np.testing.assert_allclose(near_kl_inverse(q, c), exact, atol=1e-9)


def test_the_last_midpoint_of_a_bisection_is_below_the_truth_in_about_half_of_the_cases():
    """The inverse of a published code base: what it certifies is not what was proved."""
    short = [1 - Decimal(last_midpoint(q, c)) / true_inverse(q, c, 1) for q, c in CASES]
    below = sum(gap > 0 for gap in short)
    assert len(CASES) == 42
    assert 12 <= below <= 30
    assert Decimal("1e-6") < max(short) < Decimal("1e-5")


@pytest.mark.thorough
@settings(max_examples=30)
@given(st.floats(0, 1), st.floats(0, 0.9) | st.floats(1e-12, 1e-3))
def test_divergence_and_inverse_undo_each_other(q, share):
    p = q + share * (1 - q)
    if q < p < 1:
        c = bernoulli_kl(q, p)
        # c is within 64 roundings, 2^-46: p is not near 1 on the scale of 1 - q
        assert kl_upper_inverse(q, c * (1 + 2**-44)) >= p
        assert kl_upper_inverse(q, c * (1 - 2**-44)) <= p


def test_divergence_agrees_with_60_digits_where_the_definition_cancels():
    rng = np.random.default_rng(0)
    for q, step in zip(rng.random(40) ** 4, 10 ** rng.uniform(-14, -1, 40), strict=True):
        p = q + step * (1 - q)
        with localcontext(PRECISE):
            truth = float(divergence(q, Decimal(p)))
        # the distance p - q is exact to a rounding of p, which the square doubles
        assert abs(bernoulli_kl(q, p) - truth) <= 64 * np.finfo(float).eps * truth


def test_extremes():
    assert kl_upper_inverse(1.0, 0.3) == 1.0
    assert kl_lower_inverse(0.0, 0.3) == 0.0
    assert kl_upper_inverse(0.2, math.inf) == 1.0
    assert kl_upper_inverse(0.2, 1e4) == 1.0
    assert kl_lower_inverse(0.2, 1e4) == 0.0
    assert kl_upper_inverse(0.3, 0.0) == kl_lower_inverse(0.3, 0.0) == 0.3
    assert bernoulli_kl(0.0, 0.0) == bernoulli_kl(1.0, 1.0) == 0.0
    assert bernoulli_kl(0.5, 1.0) == bernoulli_kl(0.5, 0.0) == bernoulli_kl(1.0, 0.0) == math.inf
    np.testing.assert_allclose(bernoulli_kl(1e-310, 0.5), math.log(2), rtol=1e-15)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kl_upper_inverse(-0.1, 1.0), r"q = -0\.1: a mean loss"),
        (lambda: kl_upper_inverse(1.1, 1.0), r"q = 1\.1"),
        (lambda: kl_lower_inverse(0.1, -1.0), r"c = -1\.0: a divergence"),
        (lambda: kl_upper_inverse(0.1, math.nan), "c"),
        (lambda: bernoulli_kl(0.1, 2.0), r"p = 2\.0"),
        (lambda: kl_upper_inverse([0.1, 0.2], 1.0), "q has shape"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(UserError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("q", "p"), [(0.25, 0.5), (0.9, 0.1), (1e-6, 1e-3), (0.0, 0.3), (1.0, 0.3), (0.4, 0.4)]
)
def test_the_divergence_is_that_of_two_coins(q, p):
    assert bernoulli_kl(q, p) == pytest.approx(
        entropy([q, 1 - q], [p, 1 - p]), rel=1e-12, abs=1e-15
    )
