"""The upper bound of a weight among bounded logits, and that of the Jacobian's norm."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from attlas_audit.library.softmax_weights import repeated_token_ceiling, yudin2025_jacobian

EPS = Decimal(2) ** -52


def test_one_logit_against_all_others_attains_it():
    z = np.array([2.0, -2, -2, -2, -2])
    p = np.exp(z) / np.exp(z).sum()
    np.testing.assert_allclose(repeated_token_ceiling(2.0, 5), p[0], rtol=1e-13)
    assert float(repeated_token_ceiling(2.0, 1)) >= 1
    assert np.isinf(repeated_token_ceiling([-np.inf, -1.0], 5)).all()
    assert np.isinf(repeated_token_ceiling(1.0, 0.5))


@pytest.mark.parametrize("tokens", [2, 7, 300])
def test_it_is_rounded_up_by_what_an_exponential_may_lose_and_no_more(tokens):
    """Twenty roundings of the exponential and four of the others, where it is all of the sum."""
    radii = np.linspace(0, 9, 400)
    found = np.asarray(repeated_token_ceiling(radii, float(tokens)))
    with localcontext(prec=40):
        for radius, value in zip(radii, found, strict=True):
            exact = 1 / (1 + (tokens - 1) * (-2 * Decimal(radius)).exp())
            above = Decimal(value) / exact - 1
            assert 21 * EPS < above < 27 * EPS


def test_random_laws_stay_below_and_two_tokens_attain():
    laws = np.random.default_rng(0).dirichlet(0.4 * np.ones(5), 300)
    norms = [np.linalg.norm(np.diag(p) - np.outer(p, p), 2) for p in laws]
    assert np.all(np.asarray(yudin2025_jacobian(laws)) >= norms)
    p = np.array([0.7, 0.3])
    exact = np.linalg.norm(np.diag(p) - np.outer(p, p), 2)
    np.testing.assert_allclose(yudin2025_jacobian(p), exact, rtol=1e-14)


def test_the_jacobian_is_rounded_up_by_four_roundings_of_one():
    """Each row of its own two largest weights; a sum, a difference and a product lose three."""
    laws = np.random.default_rng(1).dirichlet(0.7 * np.ones(4), 300)
    for law, value in zip(laws, np.asarray(yudin2025_jacobian(laws)), strict=True):
        second, first = (Decimal(p) for p in sorted(law)[-2:])
        above = Decimal(value) - first * (1 - first + second)
        assert 2 * EPS < above < 6 * EPS
