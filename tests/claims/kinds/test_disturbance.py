"""What errors may be, and from which disturbance on a rule complies no more."""

import numpy as np

from attlas.claims.kinds.disturbance import possible_errors, smallest_refused
from attlas.claims.kinds.extrapolation import SCALES


def test_errors_take_either_sign_at_each_scale_and_certified_ones_lie_between():
    corners, grid = (
        possible_errors(np.zeros((2, 1, SCALES))),
        possible_errors(np.ones((2, 1, SCALES))),
    )
    assert corners.shape == (1 + 2**SCALES, 1, 1, SCALES)
    assert set(np.unique(corners)) == {-1.0, 0.0, 1.0}
    assert grid.shape == (5**SCALES, 1, 1, SCALES)
    assert 0.5 in grid


def test_the_smallest_disturbance_that_is_refused_lies_above_all_that_comply():
    limit = np.array([[0.01], [0.5], [1e9], [0.0]])
    refused = smallest_refused(lambda part: limit > part)[:, 0]
    assert 0.01 <= refused[0] < 0.03
    assert 0.5 <= refused[1] < 1.2
    assert np.isinf(refused[2])
    assert refused[3] == 1e-4
