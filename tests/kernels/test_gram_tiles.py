"""Plans of a tiled Gram matrix: within the budget, complete, and refused where nothing fits."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.kernels.gram_tiles import GramShape, plan_tiles, ranges, tile_bytes

SHAPE = GramShape(
    rows=90, columns=70, symmetric=False, heads=64, widths=(40, 400), scratch=120, parameters=60,
    itemsize=8,
)  # fmt: skip


@pytest.mark.parametrize("budget", [60_000, 300_000, 3_000_000, 10**9])
def test_a_plan_stays_within_its_budget_and_more_memory_means_no_more_tiles(budget):
    plan = plan_tiles(SHAPE, budget)
    assert tile_bytes(SHAPE, plan.samples, plan.heads) <= budget
    assert 1 <= plan.chunk <= plan.samples
    richer = plan_tiles(SHAPE, 2 * budget)
    tiles, fewer = (-(-SHAPE.rows // p.samples) for p in (plan, richer))
    assert fewer <= tiles
    covered = np.concatenate([np.arange(64)[block] for block in plan.blocks(64)])
    np.testing.assert_array_equal(covered, np.arange(64))


def test_a_budget_for_nothing_is_refused_with_what_is_needed():
    with pytest.raises(UserError, match="give at least") as refused:
        plan_tiles(SHAPE, 100)
    least = int(str(refused.value).rsplit(" ", 1)[1])
    assert plan_tiles(SHAPE, least).heads == 1
    with pytest.raises(UserError):
        plan_tiles(SHAPE, least - 1)


def test_ranges_cover_an_axis_once():
    assert [list(range(7))[r] for r in ranges(7, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
