"""Against SciPy, pair by pair."""

import numpy as np
import pytest
import scipy.spatial.distance

from attlas.core.errors import UserError
from attlas.measures.attention.head_distances import head_distances

DRAW = np.random.default_rng(2)


@pytest.mark.parametrize("heads", [1, 4, 5])
def test_agrees_with_scipy(heads):
    maps = DRAW.dirichlet(np.ones(6), size=(heads, 3))
    found = head_distances(maps)
    for a in range(heads):
        for b in range(heads):
            known = scipy.spatial.distance.jensenshannon(maps[a], maps[b], base=2, axis=1).mean()
            # The root of a difference of entropies: half of the digits near 0.
            assert abs(found[a, b] - known) < 1e-7


def test_other_rows_meet_each_pair_once():
    maps, others = DRAW.dirichlet(np.ones(6), size=(2, 3, 4))
    found = np.asarray(head_distances(maps, others))
    assert np.array_equal(found, found.T)
    assert not np.diag(found).any()
    for a in range(3):
        b = (a + 1) % 3
        known = scipy.spatial.distance.jensenshannon(maps[a], others[b], base=2, axis=1).mean()
        assert abs(found[a, b] - known) < 1e-12
    with pytest.raises(UserError, match="others has shape"):
        head_distances(maps, others[:2])


def test_of_an_even_number_of_heads_the_first_of_opposite_heads_is_read_from_maps():
    maps, others = DRAW.dirichlet(np.ones(6), size=(2, 4, 3))
    found = head_distances(maps, others)
    for a, b in ((0, 2), (1, 3)):
        known = scipy.spatial.distance.jensenshannon(maps[a], others[b], base=2, axis=1).mean()
        assert abs(found[a, b] - known) < 1e-12


def test_maps_in_float32_stay_so():
    maps = DRAW.dirichlet(np.ones(6), size=(4, 3)).astype(np.float32)
    found = head_distances(maps)
    assert found.dtype == np.float32
    wide = head_distances(maps.astype(np.float64))
    # roots of differences of entropies near 1: half of the digits of float32 at least
    np.testing.assert_allclose(found, wide, atol=np.finfo(np.float32).eps ** 0.5)
