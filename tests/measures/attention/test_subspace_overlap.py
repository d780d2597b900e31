"""Overlaps against principal angles, and the null against subspaces that were drawn."""

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from attlas.core.errors import UserError
from attlas.measures.attention.subspace_overlap import subspace_overlap

DRAW = np.random.default_rng(9)


def test_agrees_with_the_cosines_of_principal_angles():
    bases = DRAW.normal(size=(3, 7, 2))
    found = subspace_overlap(bases).overlap
    np.testing.assert_allclose(np.diagonal(found), 1, rtol=1e-13)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        cosines = np.cos(scipy.linalg.subspace_angles(bases[i], bases[j]))
        assert np.isclose(found[i, j], np.mean(cosines**2), rtol=1e-12)
        assert np.isclose(found[j, i], found[i, j], rtol=1e-13)


def test_only_the_span_matters():
    bases, mixed = DRAW.normal(size=(2, 6, 3)), DRAW.normal(size=(2, 3, 3))
    one, two = subspace_overlap(bases), subspace_overlap(bases @ mixed)
    np.testing.assert_allclose(one.overlap, two.overlap, rtol=1e-9)


@pytest.mark.parametrize(("d", "k"), [(5, 1), (6, 2), (8, 5)])
def test_mean_and_variance_over_random_subspaces(d, k):
    n = 300
    found = subspace_overlap(DRAW.normal(size=(2 * n, d, k)))
    drawn = found.overlap[np.arange(n), np.arange(n, 2 * n)]  # independent pairs
    assert found.expected == k / d
    # five standard errors, of the mean and of the variance by the fourth moment
    assert abs(drawn.mean() - found.expected) < 5 * found.deviation / n**0.5
    squares = (drawn - found.expected) ** 2
    assert abs(squares.mean() - found.deviation**2) < 5 * squares.std() / n**0.5
    assert squares.std() > 0


def test_a_line_in_the_plane_has_the_variance_of_a_squared_cosine():
    # cos^2 of a uniform angle has variance 1/8
    assert np.isclose(subspace_overlap(np.ones((1, 2, 1))).deviation ** 2, 1 / 8)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 1, 1)])
def test_shapes_without_subspaces_are_refused(shape):
    with pytest.raises(UserError, match="bases has shape"):
        subspace_overlap(np.ones(shape))


@pytest.mark.parametrize(("d", "k"), [(5, 1), (7, 3), (8, 8), (9, 4)])
def test_the_reference_is_that_of_a_diagonal_of_constant_trace(d, k):
    """Diagonal entries of a projection: Beta(k / 2, (d - k) / 2), and their sum is k."""
    found = subspace_overlap(DRAW.normal(size=(1, d, k)))
    variance = scipy.stats.beta(k / 2, (d - k) / 2).var() if k < d else 0.0
    covariance = -variance / (d - 1)
    of_sum = k * variance + k * (k - 1) * covariance
    assert found.deviation == pytest.approx(np.sqrt(of_sum) / k, rel=1e-12)
    assert found.expected == k / d
