"""The floors against a search over two-level logits and random ones."""

import numpy as np
import pytest

from attlas.bounds.attention import entropy_floor as module
from attlas.bounds.attention.entropy_floor import entropy_floor, range_entropy_floor


def entropy(z):
    p = np.exp(z - z.max())
    p /= p.sum()
    return -np.sum(p * np.log(np.maximum(p, 1e-300)))


@pytest.mark.parametrize("T", [2, 3, 8, 40])
@pytest.mark.parametrize("size", [1e-3, 0.3, 2.0, 9.0])
def test_floors_are_attained_and_not_passed(T, size):
    one = np.eye(T)[0]
    spread = size * np.sqrt(1 - 1 / T)
    attained = entropy(size * one)
    floor = float(entropy_floor(spread, T))
    # The sum of -p ln p is right to a few eps per term, where the floor is right relatively.
    loss = 4 * T * np.finfo(float).eps
    assert floor - loss <= attained <= floor + 20 * loss
    levels = [entropy(2 * size * (np.arange(T) < k)) for k in range(1, T)]
    floor = float(range_entropy_floor(size, T))
    assert floor - loss <= min(levels) <= floor + 20 * loss
    draws = np.random.default_rng(T).uniform(-size, size, (200, T))
    assert min(map(entropy, draws)) >= floor - loss


def test_one_token_has_no_entropy_and_many_shapes_are_taken():
    assert float(entropy_floor(3.0, 1)) == float(range_entropy_floor(3.0, 1)) == 0
    found = range_entropy_floor(np.array([[0.1], [1.0]]), np.array([2.0, 5.0, 9.0]))
    assert found.shape == (2, 3)
    assert np.all(np.diff(found, axis=0) < 0)


@pytest.mark.parametrize("T", [3, 8, 40])
def test_floors_of_small_and_narrow_ranges_are_attained(T):
    """Where the quotient that says how many logits are large is noise, and beside."""
    for width in (1e-6, 0.9e-4, 1.1e-4, 0.02, 0.7, 1.3):
        p = [np.exp(width * (np.arange(T) < k)) for k in range(1, T)]
        gaps = [np.log(T) + np.sum(q / q.sum() * np.log(q / q.sum())) for q in p]
        # The distance from ln T, width^2 / 8 of it, has fewer digits than its two terms.
        found = np.log(T) - float(range_entropy_floor(width / 2, T))
        loss = 100 * T * np.finfo(float).eps
        np.testing.assert_allclose(found, max(gaps), rtol=1e-4 * width, atol=loss)


def test_floors_are_lowered_by_their_count_of_roundings(coarse_rounding):
    plain = float(entropy_floor(2.0, 5)), float(range_entropy_floor(0.9, 5))
    eps = coarse_rounding(module, 1e-3)
    found = float(entropy_floor(2.0, 5)), float(range_entropy_floor(0.9, 5))
    np.testing.assert_allclose(found, np.array(plain) * (1 - 24 * eps), rtol=1e-13)
