import numpy as np
import pytest

from attlas.core.errors import UserError
from julistiono2024optimizing.library.measures.weight_sizes import weight_sizes


def test_sizes_are_counted_by_member_and_the_outer_bins_hold_the_rest():
    weights = np.array([[[1e-9, -0.5], [0.05, 3.0]], [[0.2, 0.2], [-0.2, 0.0005]]])
    found = weight_sizes(weights, np.array([-3.0, -1.0, 0.0]))
    assert found.counts.tolist() == [[2, 2], [1, 3]]
    assert found.near_zero.tolist() == [0.25, 0.25]


def test_edges_that_do_not_increase_are_refused():
    with pytest.raises(UserError, match="increase"):
        weight_sizes(np.ones((1, 2)), np.array([0.0, 0.0]))
