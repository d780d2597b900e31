"""The gap holds for a finite class by simulation, and bad input is refused."""

import math

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


@pytest.mark.parametrize(
    ("constants", "R", "m", "tail", "c", "union", "value"),
    [
        # delta = 4 / e^tail and 2 / e^tail, so that the logarithms are whole numbers
        ("printed", 0.25, 100, 2, 3.0, 0.0, 0.5 + 12 * 0.2),
        ("printed", 0.0, 36, 8, 1.0, 0.0, 4 * 4 / 6),
        ("sharp", 0.25, 100, 2, 3.0, 0.0, 0.5 + 9 * 0.1),
        ("sharp", 0.25, 100, 2, 3.0, 6.0, 0.5 + 9 * 0.2),
        ("sharp", 1.0, 1, 8, 0.5, 0.0, 2 + 1.5 * 2),
        ("sharp", 1.0, 1, 8, 0.0, 0.0, 2),
        ("sharp", 0.25, np.array([100, 2500]), 2, 3.0, 6.0, np.array([2.3, 0.5 + 9 * 0.04])),
    ],
)
def test_values_by_hand(constants, R, m, tail, c, union, value):
    delta = (4 if constants == "printed" else 2) / math.exp(tail)
    found = generalisation_gap(R, m, delta, c, constants=constants, union_cost=union)
    np.testing.assert_allclose(found, value, rtol=1e-14)


def test_refuses_what_is_no_probability():
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(UserError, match=r"must lie in \(0, 1\)"):
            generalisation_gap(0.1, 10, delta)
    with pytest.raises(UserError, match="at least 1"):
        generalisation_gap(0.1, 0, 0.5)
