"""Norms of the tokens of a comparison, measured or known in advance."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from attlas.bounds.comparison.compare_inputs import measure_inputs
from attlas.core.errors import UserError

EPS = np.finfo(float).eps
X = np.random.default_rng(0).normal(size=(4, 6, 3))


def test_norms_are_the_largest_of_all_tokens():
    found = measure_inputs(X, 3, None)
    sizes = np.abs(X).reshape(-1, 3)
    exact = np.linalg.norm(sizes, axis=1).max(), sizes.sum(axis=1).max(), sizes.max()
    assert found.T == 6
    # a count of d + N + 40 roundings
    np.testing.assert_allclose(found[1:], exact, rtol=70 * EPS)
    assert found.l2 >= exact[0]
    assert found.l1 >= exact[1]
    assert measure_inputs(X, 3, 9.0) == found._replace(l2=9.0)


def test_a_norm_known_in_advance_bounds_the_others_for_samples_that_are_not_at_hand():
    """Unseen tokens are bounded by B_x alone: their l_1 norm and entries may be larger."""
    bound = 1.01 * np.linalg.norm(X, axis=-1).max()
    few = measure_inputs(X, 3, bound, m=5)
    np.testing.assert_allclose(few[1:], [bound, 3**0.5 * bound, bound], rtol=4 * EPS)
    worst = np.full((1, 6, 3), bound / 3**0.5)
    assert measure_inputs(worst, 3, None).l1 < few.l1 * (1 + 70 * EPS)
    for d, size in itertools.product((2, 3, 5, 7, 11), np.linspace(1, 2, 9)):
        norm = Fraction(measure_inputs(np.zeros((1, 1, d)), d, float(size), m=2).l1)
        assert 1 <= norm**2 / (d * Fraction(size) ** 2) <= 1 + Fraction(1, 2**49)
    assert measure_inputs(X, 3, bound, m=4) == measure_inputs(X, 3, bound)


def test_a_norm_that_is_exceeded_is_the_euclidean_one():
    with pytest.raises(UserError, match=r"B_x = 4\.9, but a token has norm 5: raise"):
        measure_inputs([[[3.0, 4.0], [1.0, 1.0]]], 2, 4.9)


def test_tokens_scaled_to_the_bound_may_be_above_it_by_their_rounding():
    for kind in (np.float64, np.float32):
        eps = np.finfo(kind).eps
        for d, slack in ((4, 8), (9, 12)):
            token = np.zeros((1, 1, d), kind)
            token[..., 1] = 1 + (slack - 1) * eps
            found = measure_inputs(token, d, 1.0)
            assert 1 + (slack - 1) * eps <= found.l2
            token[..., 1] = 1 + (slack + 1) * eps
            with pytest.raises(UserError, match=r"B_x = 1\.0, but a token has norm 1: raise"):
                measure_inputs(token, d, 1.0)
