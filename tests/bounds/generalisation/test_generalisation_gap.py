"""The gap holds for a finite class by simulation, and bad input is refused."""

import numpy as np
import pytest

from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.core.errors import UserError


def test_holds_in_simulation():
    """Two coins: losses are the coin and its opposite; the complexity is E|mean of signs|."""
    rng = np.random.default_rng(0)
    m, delta = 50, 0.1
    complexity = float(np.mean(np.abs(rng.choice([-1, 1], (20_000, m)).mean(1)))) / 2
    bound = float(generalisation_gap(complexity, m, delta))
    means = rng.integers(0, 2, (5000, m)).mean(1)
    assert np.mean(np.abs(means - 0.5) > bound) <= delta
    assert bound < float(generalisation_gap(complexity, m, delta, constants="printed"))


def test_refuses_what_is_no_probability():
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(UserError, match=r"must lie in \(0, 1\)"):
            generalisation_gap(0.1, 10, delta)
    with pytest.raises(UserError, match="at least 1"):
        generalisation_gap(0.1, 0, 0.5)
