"""The floors against a search over two-level logits and random ones."""

import numpy as np
import pytest

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
