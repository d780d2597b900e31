"""Copies of a head are found, and pairs that were not compared stay unknown."""

import numpy as np

from attlas.audit.data_level.redundancy import (
    Redundancy,
    map_distances,
    nearest_heads,
    redundancy,
)

DRAW = np.random.default_rng(14)


def test_a_copy_is_the_nearest_head():
    maps = [DRAW.dirichlet(np.ones(width), size=(4, 6)) for width in (5, 7)]
    maps = [np.concatenate([rows, rows[1:2]]) for rows in maps]
    found = redundancy(map_distances(maps), draws=100, level=0.9, seed=0)
    near = nearest_heads(found)
    assert near.place[1] == 4
    assert near.place[4] == 1
    assert near.distance[1] < 1e-7
    # The same rows moved on are as far apart as any two.
    assert np.all(near.null > 0.1)
    assert np.all((found.low <= found.distance) & (found.distance <= found.high))


def test_pairs_that_were_not_compared_are_never_nearest():
    apart = np.array([[0.0, 0.5, np.nan], [0.5, 0.0, np.nan], [np.nan, np.nan, 0.0]])
    apart[2, 0] = apart[0, 2] = 0.9
    near = nearest_heads(Redundancy(apart, apart, apart, apart))
    assert near.place.tolist() == [1, 0, 0]
    assert nearest_heads(Redundancy(*[np.zeros((1, 1))] * 4)).place.tolist() == [-1]
