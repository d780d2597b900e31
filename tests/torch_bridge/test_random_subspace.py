"""Random subspaces: their directions, and that they stay the same."""

import numpy as np
import pytest

from attlas.core.errors import UserError

torch = pytest.importorskip("torch", reason="the extra attlas[torch] is not installed")

from attlas.torch.random_subspace import LARGEST_SEED, random_subspace  # noqa: E402


def matrix(weights, dimensions, seed):
    """P with w = w_0 + P z."""
    places, signs = random_subspace(weights, dimensions, seed)
    P = np.zeros((weights, dimensions))
    P[np.arange(weights), places] = signs
    return P


@pytest.mark.parametrize(("weights", "dimensions"), [(1, 1), (7, 7), (50, 7), (1000, 999)])
def test_directions_are_orthogonal_and_of_equal_length_up_to_one_weight(weights, dimensions):
    P = matrix(weights, dimensions, 3)
    gram = P.T @ P
    lengths = np.diag(gram)
    assert np.all(gram == np.diag(lengths))
    assert lengths.sum() == weights
    assert lengths.max() - lengths.min() <= 1


def test_places_and_signs_are_those_of_the_raw_stream():
    """A decoder elsewhere needs the words of Philox alone, and sorting."""
    words = np.random.Philox(key=5).random_raw(22)
    order = sorted(range(11), key=lambda j: words[j])
    places, signs = random_subspace(11, 4, 5)
    assert [int(places[j]) for j in order] == [k % 4 for k in range(11)]
    assert signs.tolist() == [1 if word >= 2**63 else -1 for word in words[11:]]


def test_seeds_differ_and_neither_places_nor_signs_are_lopsided():
    """Chi-square of signs beside places, within six standard deviations."""
    places, signs = random_subspace(100_000, 10, 0)
    others, _ = random_subspace(100_000, 10, 1)
    assert abs((places == others).mean() - 0.1) < 6 * np.sqrt(0.09 / 100_000)
    sums = np.bincount(places, weights=signs, minlength=10)
    assert np.sum(sums**2 / 10_000) < 10 + 6 * np.sqrt(20)
    # neighbours, such as the entries of a row, share a coordinate no more often than any two
    assert abs((places[1:] == places[:-1]).mean() - 0.1) < 6 * np.sqrt(0.09 / 100_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1, 0), "weights = 0: give a whole number from 1"),
        ((5, 6, 0), "dimensions = 6: give a whole number from 1 to 5"),
        ((5, 2.0, 0), "dimensions = 2.0"),
        ((5, True, 0), "dimensions = True"),
        ((5, 2, -1), "seed = -1"),
        ((5, 2, LARGEST_SEED + 1), "seed = 4294967296"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        random_subspace(*arguments)
