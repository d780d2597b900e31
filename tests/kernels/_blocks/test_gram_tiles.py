"""Plans of a tiled Gram matrix: within the budget, complete, and refused where nothing fits."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.kernels._blocks.gram_tiles import GramShape, plan_tiles, ranges, tile_bytes

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
    assert least == min(tile_bytes(SHAPE, samples, 1) for samples in (1, 90))
    assert plan_tiles(SHAPE, least).heads == 1
    with pytest.raises(UserError):
        plan_tiles(SHAPE, least - 1)


def test_ranges_cover_an_axis_once():
    assert [list(range(7))[r] for r in ranges(7, 3)] == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize("widths", [(5,), (5, 11)])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("samples", [3, 8, 9])
def test_bytes_are_those_of_the_arrays(widths, symmetric, samples):
    columns = 9 if symmetric else 7
    shape = GramShape(9, columns, symmetric, 13, widths, scratch=17, parameters=19, itemsize=4)
    heads, i, j = 2, samples, min(samples, columns)
    joined = len(widths) == 2
    one = samples == 9
    tokens = [i] if one and symmetric else [i, j]
    arrays = [(n, heads * width) for n in tokens for width in widths]  # features
    arrays += [(i, j)] * (len(widths) - one)  # accumulators; one tile is the output itself
    arrays += [(i, j), *((n, 11) for n in tokens)] if joined else []  # last tokens, their products
    arrays += [(samples, heads * 17), (heads, 19)]  # scratch of all samples, and parameters
    arrays += [(1, heads * 17)]  # a buffer of NumPy
    assert tile_bytes(shape, samples, heads) == 4 * sum(a * b for a, b in arrays)


def test_scratch_stays_in_the_cache_and_holds_a_sample_at_least():
    shape = GramShape(5000, 5000, True, 6, (4,), scratch=100, parameters=1, itemsize=8)
    plan = plan_tiles(shape, 10**9)
    assert (plan.samples, plan.heads, plan.chunk) == (5000, 6, 2**19 // (100 * 6 * 8))
    assert plan_tiles(shape._replace(scratch=10**6), 10**9).chunk == 1
    assert plan_tiles(shape._replace(widths=(3000, 1000)), 10**10).heads == 8192 // 4000
    assert plan_tiles(shape._replace(widths=(9000,)), 10**10).heads == 1


@pytest.mark.parametrize("rows", [88, 9, 7])
@pytest.mark.parametrize("blocks", [[24, 12, 6, 3, 1], [8, 4, 2, 1], [1]])
def test_plans_are_the_first_that_fit_among_all(rows, blocks):
    """One tile with the most heads; else an eighth of them, or fewer where a tile is too small."""
    shape = GramShape(rows, rows - 3, False, blocks[0], (40, 60), 120, 60, 8)
    sizes = {h: [tile_bytes(shape, n, h) for n in range(1, rows + 1)] for h in blocks}
    exact = {size for of_heads in sizes.values() for size in of_heads}
    for budget in sorted(exact | {size - 1 for size in exact}):
        if budget < min(sizes[1][0], sizes[1][-1]):
            continue
        plan = plan_tiles(shape, budget)
        if whole := [heads for heads in blocks if sizes[heads][-1] <= budget]:
            assert (plan.samples, plan.heads) == (rows, whole[0])
            continue
        for heads in blocks[3:] or blocks[-1:]:
            fitting = sum(size <= budget for size in sizes[heads][:-1])
            if 8 * fitting >= rows:
                break
        assert (plan.samples, plan.heads) == (fitting, heads)
