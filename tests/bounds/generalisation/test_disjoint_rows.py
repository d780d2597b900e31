"""Rows that are in both sets are found, whatever type they are stored in."""

import numpy as np
import pytest

from attlas.bounds.generalisation.disjoint_rows import require_disjoint
from attlas.core.errors import UserError


def test_equal_rows_are_found_in_every_type_and_layout():
    rng = np.random.default_rng(0)
    training = rng.integers(0, 9, (50, 2, 3)).astype(np.float32)
    fresh = rng.integers(10, 20, (20, 2, 3))
    require_disjoint(training, fresh)
    fresh[7] = training[31]
    fresh[9] = training[30]
    for given in (fresh, np.asfortranarray(fresh.astype(float)), fresh.tolist()):
        with pytest.raises(UserError, match="held_out: row 7 is in the training set, 2 of 20 are"):
            require_disjoint(training, given)


def test_zeros_of_both_signs_are_one_number_and_shapes_differ():
    with pytest.raises(UserError, match="row 0"):
        require_disjoint([[0.0]], [[-0.0]])
    require_disjoint(np.ones((3, 4)), np.ones((3, 2, 2)))
    with pytest.raises(UserError, match="training is one number"):
        require_disjoint(1.0, [1.0])
