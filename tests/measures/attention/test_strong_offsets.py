"""Heads that look at one relative position, and some that do not."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.attention.strong_offsets import strong_offsets

T = 6


def test_counts_by_offset():
    rows = np.arange(T) > 0
    maps = np.stack([np.eye(T, k=-1), np.eye(T, k=2), np.full((T, T), 1 / T)])
    found = np.asarray(strong_offsets(maps, rows))
    offsets = np.arange(1 - T, T)
    assert found[0, offsets == -1] == T - 1
    assert found[0].sum() == T - 1
    assert found[1, offsets == 2] == T - 3
    assert found[1].sum() == T - 3
    assert found[2].sum() == 0


def test_the_level_is_exceeded_or_not():
    maps = np.array([[[0.8, 0.2], [0.1, 0.9]]])
    every = np.ones(2, bool)
    assert strong_offsets(maps, every).tolist() == [[0, 1, 0]]
    assert strong_offsets(maps, every, 0.5).tolist() == [[0, 2, 0]]
    with pytest.raises(UserError, match="level = 1"):
        strong_offsets(maps, every, 1.0)
