"""Patterns met against exact numbers of cells."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.measures.activation_patterns import activation_patterns
from liu2021analyzing.library.measures.linear_regions import count_cells


def test_many_points_meet_every_cell_and_few_points_at_most_themselves():
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((5, 2)), rng.standard_normal(5)
    # Cells of a plane reach far: points at several scales find them.
    points = 10 ** rng.uniform(-1, 3, (40_000, 1)) * rng.standard_normal((40_000, 2))
    assert activation_patterns(W, b, points) == count_cells(W, b)
    assert activation_patterns(W, b, points[:3]) <= 3
    with pytest.raises(UserError, match="one dimension"):
        activation_patterns(W, b, np.ones((3, 4)))
