"""Occam's bound in kl form: the table of adders, its two forms, its coverage over a class."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.occam import occam_gap
from attlas.core.errors import UserError


@pytest.mark.parametrize(
    ("parameters", "n", "percent"),
    [
        (122, 100_000, 1.37),
        (122, 5_760_000, 0.024),
        (311, 100_000, 4.88),
        (260_032, 10**8, 2.8),
    ],
)
def test_small_models_have_bounds_that_the_square_root_form_is_far_from(parameters, n, percent):
    bits = 16 * parameters
    bits += 2 * math.log2(bits)
    bound = compression_bound(0.0, n, bits, 0.05)
    exact = -math.expm1(-(bits * math.log(2) + math.log(20)) / n)
    np.testing.assert_allclose(bound.bound, exact, rtol=1e-12)
    if parameters != 311:
        np.testing.assert_allclose(100 * exact, percent, rtol=0.02)
    assert bound.bound < 0.3 * occam_gap(parameters, 16, n, 0.05)


def test_counted_errors_give_the_smaller_bound():
    for errors in (0, 3, 40):
        kl, exact = (
            compression_bound(errors / 500, 500, 90, 0.05, form=f) for f in ("kl", "binomial")
        )
        assert 0.7 * kl.bound < exact.bound <= kl.bound
        assert kl.complexity == exact.complexity == 90 * math.log(2)


def test_it_holds_for_all_models_at_once_and_a_shorter_code_would_not():
    """64 models of 6 bits with independent errors: the chance that some bound fails."""
    n, delta, p = 50, 0.2, np.linspace(0.05, 0.95, 19)
    law = np.array([[math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)] for q in p])

    def fails(bits):
        bounds = [
            compression_bound(k / n, n, bits, delta, form="binomial").bound for k in range(n + 1)
        ]
        each = (law * (np.array(bounds)[None] < p[:, None])).sum(1)
        return (1 - (1 - each) ** 64).max()

    assert 0.4 * delta < fails(6) <= delta
    assert fails(4) > delta


@pytest.mark.parametrize("bits", [0, 7, 100, 1234])
def test_no_rounding_takes_a_bound_below_what_sixty_digits_give(bits):
    """For losses of zero, where the inverse is -expm1(-nats / n)."""
    for n in range(5000, 5040):
        with localcontext(Context(prec=60)):
            nats = bits * Decimal(2).ln() - Decimal("0.05").ln()
            truth = 1 - (-nats / n).exp()
        found = Decimal(compression_bound(0.0, n, bits, 0.05).bound)
        assert truth <= found <= truth * (1 + Decimal(2) ** -47)


def test_it_is_vacuous_where_guessing_is_as_good():
    bound = compression_bound(0.0, 1000, 8 * 200, 0.05, trivial=0.5)
    assert bound.vacuous
    needed = bound.samples_until_nonvacuous
    assert bound.at(needed) < 0.5 <= bound.at(needed - 1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compression_bound(1.2, 10, 8, 0.05), "loss = 1.2: scale or clip"),
        (lambda: compression_bound(0.2, 10, 8, 2.0), "delta = 2.0"),
        (lambda: compression_bound(0.2, 10, math.inf, 0.1), "bits = inf"),
        (lambda: compression_bound(0.25, 10, 8, 0.1, form="binomial"), "is no mean of 10 errors"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(UserError, match=said):
        call()
