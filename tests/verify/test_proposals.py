"""Proposals: what they move, and that they keep within the laws of the numbers."""

import numpy as np
import pytest

from attlas.verify.proposals import Covariance, Extremes, Moves, packed, unpacked
from attlas.verify.space import Block


def blocks():
    rng = np.random.default_rng(0)
    return {
        "x": Block(rng.normal(size=(6, 2, 2)), np.arange(6), "normal"),
        "u": Block(rng.uniform(size=(6, 3)), np.arange(6), "uniform"),
        # Drawn instance by instance: one row each, for two of the instances.
        "a": Block(np.ones((1, 2)), np.array([1])),
        "b": Block(np.ones((1, 2)), np.array([4])),
    }


def test_packing_is_undone():
    flat = packed(blocks(), 6)
    assert flat.shape == (6, 9)
    np.testing.assert_array_equal(flat[0, 7:], 0)
    change = np.zeros((6, 9))
    change[4, 8] = 0.5
    moved = unpacked(blocks(), change, 6)
    np.testing.assert_array_equal(moved["b"].values, [[1.0, 1.5]])
    np.testing.assert_array_equal(moved["a"].values, blocks()["a"].values)
    np.testing.assert_array_equal(moved["x"].values, blocks()["x"].values)


@pytest.mark.parametrize("make", [Moves, Covariance, Extremes])
def test_proposals_stay_within_their_laws_and_repeat(make):
    def run():
        proposal, at, seen = make(6, np.random.default_rng(1)), blocks(), []
        for k in range(20):
            proposed = proposal.propose(at)
            seen.append(packed(proposed, 6))
            proposal.learn(at, proposed, None if k == 5 else np.arange(6) % 2 == 0)
            assert (proposed["u"].values > 0).all()
            assert (proposed["u"].values < 1).all()
            assert (np.abs(proposed["x"].values) <= 8).all()
        return np.stack(seen)

    first = run()
    np.testing.assert_array_equal(first, run())
    assert (np.abs(first - packed(blocks(), 6)[None]).max(axis=(0, 2)) > 0).all()


@pytest.mark.parametrize("size", [10, 60])
def test_covariance_reaches_the_top_of_an_ill_conditioned_hill(size):
    # Full matrices up to 48 numbers, variances above: axes of condition 1e3 either way.
    scale = 10 ** np.linspace(0, 1.5, size)
    at = {"x": Block(np.ones((8, size)), np.arange(8))}
    proposal = Covariance(8, np.random.default_rng(2))

    def height(found):
        return -np.sum((scale * found["x"].values) ** 2, axis=1)

    before = height(at)
    for _ in range(1500 if size == 10 else 3000):
        proposed = proposal.propose(at)
        gained = height(proposed) > height(at)
        proposal.learn(at, proposed, gained)
        at = {"x": at["x"].at(np.where(gained[:, None], proposed["x"].values, at["x"].values))}
    assert (height(at) > 1e-2 * before).all()


def test_extremes_reach_the_ends():
    proposal, at = Extremes(6, np.random.default_rng(1)), blocks()
    seen = [proposal.propose(at) for _ in range(40)]
    u = np.concatenate([one["u"].values.ravel() for one in seen])
    x = np.concatenate([one["x"].values.ravel() for one in seen])
    assert u.min() < 1e-9 < 1 - 1e-9 < u.max()
    assert {0.0, 8.0, -8.0} <= set(x)
