"""The probability bound of Lanczos against random starts."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.curvature.lanczos_bound import lanczos_error_bound


def test_shortfall_holds_as_often_as_stated():
    size, steps, draws = 200, 12, np.random.default_rng(3)
    # Chebyshev nodes and an outlier close by: hard for a Krylov space, width 1.
    values = (1 + np.cos(np.pi * np.arange(size) / (size - 1))) / 2
    misses = []
    for _ in range(200):
        vector = draws.standard_normal(size)
        space = np.empty((size, steps))
        for k in range(steps):
            for _ in range(2):
                vector = vector - space[:, :k] @ (space[:, :k].T @ vector)
            space[:, k] = vector / np.linalg.norm(vector)
            vector = values * space[:, k]
        misses.append(1 - np.linalg.eigvalsh(space.T @ (values[:, None] * space))[-1])
    short = lanczos_error_bound(steps, size, 0.1)
    assert short < np.inf
    # At most 10 % may exceed it; the bound is pessimistic, so that none does.
    assert np.mean(np.array(misses) > short) <= 0.1
    # It is non-vacuous: a tenth of it is exceeded by some start.
    assert max(misses) > short / 10


def test_more_steps_fall_less_short():
    found = [lanczos_error_bound(steps, 1000, 1e-6) for steps in (40, 80, 160)]
    assert found[0] > 3.9 * found[1] > 3.9**2 * found[2]


@pytest.mark.parametrize("arguments", [(0, 5, 0.1), (5, 0, 0.1), (5, 5, 0.0), (5, 5, 1.0)])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(UserError, match="choose"):
        lanczos_error_bound(*arguments)
