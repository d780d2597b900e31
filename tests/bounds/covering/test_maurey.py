"""Lemma 3.1: the sparsifier meets the corrected bound; the printed one fails below 1."""

import itertools

import jax
import numpy as np
import pytest

from attlas.bounds.covering.maurey import maurey_bound, maurey_sample, maurey_sparsify
from attlas.core.errors import UserError


@pytest.mark.parametrize("constants", ["corrected", "sharp"])
@pytest.mark.parametrize("gamma", [1.0, 0.4])
def test_both_forms_meet_their_bounds(constants, gamma):
    rng = np.random.default_rng(0)
    for _ in range(5):
        V = rng.normal(size=(6, 4))
        alpha = gamma * rng.dirichlet(np.ones(6))
        f, b = alpha @ V, np.linalg.norm(V, axis=1).max()
        for k in (1, 3, 20):
            average, counts = maurey_sparsify(alpha, V, k, constants=constants)
            size = float(np.linalg.norm(f))
            bound = maurey_bound(float(alpha.sum()), float(b), size, k, constants=constants)
            assert np.sum((f - average) ** 2) <= float(bound) * (1 + 1e-12)
            scale = alpha.sum() if constants == "sharp" else 1.0
            np.testing.assert_allclose(average, scale * counts @ V / k, atol=1e-14)
            assert counts.sum() == k if constants == "sharp" else counts.sum() <= k


def test_printed_bound_is_refuted_below_one():
    alpha, V = np.array([0.5]), np.ones((1, 1))
    errors = [(0.5 - count) ** 2 for count in (0, 1)]
    assert min(errors) == 0.25 > float(maurey_bound(0.5, 1.0, 0.5, 1, constants="printed")) == 0.0
    assert np.sum((0.5 - maurey_sparsify(alpha, V, 1, constants="corrected")[0]) ** 2) == 0.25


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(("gamma", "b"), [(1.0, 1.0), (0.4, 3.0)])
def test_bound_is_the_expected_error_over_all_draws(gamma, b, k):
    """Atoms of one length b, drawn k times: with the zero for 1 - gamma, or scaled by gamma."""
    V = b * np.array([[0.6, 0.8], [1.0, 0.0], [0.0, -1.0]])
    alpha = gamma * np.array([0.5, 0.2, 0.3])
    f = alpha @ V
    with_zero = np.vstack([V, np.zeros(2)]), np.append(alpha, 1 - gamma)
    expected = []
    for atoms, law in ((gamma * V, alpha / gamma), with_zero):
        draws = [list(each) for each in itertools.product(range(len(law)), repeat=k)]
        errors = [np.sum((f - atoms[each].mean(0)) ** 2) for each in draws]
        expected.append(np.dot([np.prod(law[each]) for each in draws], errors))
    for constants, value in zip(("sharp", "corrected"), expected, strict=True):
        bound = maurey_bound(gamma, b, float(np.linalg.norm(f)), k, constants=constants)
        np.testing.assert_allclose(bound, value, rtol=1e-13)
    printed = maurey_bound(gamma, b, float(np.linalg.norm(f)), k, constants="printed")
    np.testing.assert_allclose(printed, expected[0], rtol=1e-13)


def test_expected_error_of_the_sample_is_the_variance():
    alpha, V = np.full(4, 0.25), np.eye(4)
    errors = [
        np.sum((maurey_sample(jax.random.key(s), alpha, V, 2)[0] - 0.25) ** 2) for s in range(400)
    ]
    # equality for orthonormal atoms; the error of a pair is 1/4 or 3/4, deviation 0.22 / 20
    bound = float(maurey_bound(1.0, 1.0, 0.5, 2))
    assert abs(np.mean(errors) - bound) < 5 * np.std(errors) / 20
    assert bound == 0.375


def test_no_negative_coefficient():
    with pytest.raises(UserError, match="must be >= 0"):
        maurey_sparsify(np.array([-0.5, 1.0]), np.eye(2), 1)
