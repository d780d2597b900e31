"""Linear covers: constructed for small sizes, sizes against the bounds, orientation refuted."""

import math

import numpy as np
import pytest

from attlas.bounds.covering.edelman2022_cover import edelman2022_cover, perceptron_cover
from attlas.bounds.covering.trauger2023_cover import (
    covering_lower_bound,
    trauger2023_cover,
    trauger2023_mapping_entropy,
)
from trauger2023sequence.library.bounds.greedy_cover import greedy_cover_centre, greedy_cover_steps


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1.3])
def test_constructed_covers_of_the_two_l1_balls(epsilon):
    rng = np.random.default_rng(1)
    k, d, B, B_x = 3, 4, 1.0, 1.2
    X = rng.normal(size=(200, d))
    X_two = B_x * X / np.linalg.norm(X, axis=1)[:, None]
    X_one = B_x * X / np.abs(X).sum(1)[:, None]
    steps = greedy_cover_steps(B * B_x / epsilon)
    for _ in range(20):
        W = rng.dirichlet(np.ones(k * d)) * rng.choice([-1, 1], k * d) * B
        centre = greedy_cover_centre(W, B, steps) if steps else np.zeros(k * d)
        error = X_two @ (W - centre).reshape(k, d).T
        assert np.max(np.linalg.norm(error, axis=1)) <= epsilon * (1 + 1e-12)
        columns = rng.dirichlet(np.ones(k), d) * B
        centres = [greedy_cover_centre(c, B, steps) if steps else 0 * c for c in columns]
        error = X_one @ (columns - np.array(centres))
        assert np.max(np.linalg.norm(error, axis=1)) <= epsilon * (1 + 1e-12)
    C = trauger2023_cover("1,1", B, B_x, k, d)
    assert steps * math.log(2 * k * d + 1) <= float(C) / epsilon**2
    C = trauger2023_cover("1,inf", B, B_x, k, d)
    assert d * steps * math.log(2 * k + 1) <= float(C) / epsilon**2


def test_printed_orientation_of_lemma_3_4_is_refuted_by_volumes():
    printed = float(trauger2023_cover("2,1", 2.0, 1.0, 64, 1, constants="printed"))
    assert float(covering_lower_bound(2.0, 1.0, 64, 1.0)) > 2 * printed
    # no constant in front helps: the one is linear in k, the other logarithmic
    ratios = [
        float(covering_lower_bound(2.0, 1.0, k, 1.0))
        / float(trauger2023_cover("2,1", 2.0, 1.0, k, 1, constants="printed"))
        for k in (64, 4096)
    ]
    assert ratios[1] > 30 * ratios[0]


@pytest.mark.parametrize(
    ("ball", "constants", "B", "B_x", "k", "d", "value"),
    [
        # (B B_x)^2 and the signed unit matrices with the zero: 2 * 3 * 4 + 1, 2 * 4 * 3 + 1, 3
        ("1,1", "sharp", 2.0, 3.0, 3, 4, 36 * math.log(25)),
        ("1,1", "printed", 3.0, 0.5, 4, 3, 2.25 * math.log(25)),
        ("1,1", "corrected", 1.0, 1.0, 1, 1, math.log(3)),
        # four columns, of 2 * 3 + 1 signed unit vectors each; then one of 2 * 5 + 1
        ("1,inf", "sharp", 2.0, 3.0, 3, 4, 4 * 36 * math.log(7)),
        ("1,inf", "printed", 0.5, 4.0, 5, 1, 4 * math.log(11)),
        ("2,1", "printed", 2.0, 3.0, 3, 4, 36 * math.log(12)),
        ("2,1", "printed", 2.0, 3.0, 1, 1, 0.0),
        # one row: each update of the perceptron is one of 2 * 5 signed unit vectors or none
        ("2,1", "sharp", 2.0, 3.0, 1, 5, 36 * math.log(11)),
        ("1,1", "sharp", 0.0, 3.0, 3, 4, 0.0),
    ],
)
def test_coefficients_are_numbers_of_atoms(ball, constants, B, B_x, k, d, value):
    found = trauger2023_cover(ball, B, B_x, k, d, constants=constants)
    np.testing.assert_allclose(found, value, rtol=1e-14)


def test_row_cover_has_the_perceptron_of_all_rows_and_unit_vectors():
    found = trauger2023_cover("2,1", 2.0, 3.0, 3, 4, 5000.0)
    np.testing.assert_allclose(found, edelman2022_cover(2.0, 3.0, 3, 4, 5000.0), rtol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_lower_bound_is_a_ratio_of_volumes(k):
    def log_volume(radius):
        return k / 2 * math.log(math.pi) - math.lgamma(k / 2 + 1) + k * math.log(radius)

    # the images of the ball of radius B at one input of length B_x, and a ball of radius epsilon
    expected = log_volume(2.0 * 3.0) - log_volume(0.4)
    np.testing.assert_allclose(covering_lower_bound(2.0, 3.0, k, 0.4), expected, rtol=1e-14)


@pytest.mark.parametrize(("centres", "k"), [(7, 1), (7, 3), (2, 10)])
def test_a_product_of_covers_has_the_product_of_their_sizes(centres, k):
    found = trauger2023_mapping_entropy(math.log(centres), k)
    np.testing.assert_allclose(found, math.log(centres**k), rtol=1e-14)


@pytest.mark.parametrize("q", [1.0, 2.0, 4.0])
def test_covers_of_the_rows_cover_the_map(q):
    """The product of perceptron covers of three rows, at k^{1/q} epsilon and not below it."""
    rng = np.random.default_rng(2)
    k, epsilon = 3, 0.5
    W = np.repeat(rng.normal(size=(1, 4)), k, axis=0)
    W /= np.linalg.norm(W[0])
    X = rng.normal(size=(8, 4))
    X /= np.linalg.norm(X, axis=1)[:, None]
    found = [perceptron_cover(row, X, epsilon) for row in W]
    gap = (W - np.stack([centre for centre, _ in found])) @ X.T
    row_gap = np.abs(gap).max()
    map_gap = np.linalg.norm(gap, ord=q, axis=0).max()
    assert map_gap == pytest.approx(k ** (1 / q) * row_gap)
    assert row_gap <= epsilon
    # a centre is named by its updates, each one of 2 N + 1 choices: the names of the rows add up
    one_row = math.log(2 * len(X) + 1) / epsilon**2
    named = sum(updates for _, updates in found) * math.log(2 * len(X) + 1)
    assert named <= float(trauger2023_mapping_entropy(one_row, k))
