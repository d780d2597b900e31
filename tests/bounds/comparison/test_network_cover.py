"""The bounds by covers of all matrices, and how one is added."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attlas.bounds.comparison import normalised as listed
from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.comparison import Entry
from attlas.bounds.comparison.network_cover import Cover
from attlas.bounds.comparison.normalised import NORMALISED
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights

HEAD = Head(
    np.diag([0.5, 0.25]), np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0, -1.0], [0, 3]])
)
SAMPLES, DELTA = 10**9, 0.05
EPS = float(np.finfo(np.float64).eps)


@pytest.mark.thorough
def test_the_bound_of_the_guide_is_one_more_row(monkeypatch):
    """Rows that were there have the same complexities, and one more bound shares the union bound.

    Every row takes the best of several grids of norms: its gap before and after differ by what one
    more bound costs on a grid that is the best of either, also where two grids are almost equal.
    """
    guide = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
    module: dict[str, Any] = {}
    section = guide.partition("## A bound")[2]
    exec(section.partition("```python\n")[2].partition("```")[0], module)
    cover: Cover = module["SPECTRAL"]
    added = cover.bound("sharp")
    weights = TransformerWeights(((HEAD,),), np.array([1e-3, 1e-3]))

    def table() -> tuple[Entry, ...]:
        return compare_bounds(weights, np.eye(2)[None], SAMPLES, DELTA).entries

    before = table()
    monkeypatch.setattr(listed, "NORMALISED", (*NORMALISED, added))
    after = table()
    assert [e.name for e in after] == [*(e.name for e in before), "spectral sharp"]
    assert [e.rademacher for e in after[:-1]] == [e.rademacher for e in before]
    nats = math.log(len(after) / len(before))
    for one, other in zip(before, after[:-1], strict=True):
        # a dozen roundings of terms below the gap
        assert other.gap <= one.gap + _tail(one.union_cost, nats) + 12 * EPS * one.gap
        assert one.gap <= other.gap + _tail(other.union_cost, -nats) + 12 * EPS * one.gap
    values = {e.name: e.rademacher for e in after}
    # W has two rows of rank 2: the sum of their lengths is at most twice the spectral norm
    assert values["log T sharp"] < values["spectral sharp"] < values["trivial"]
    assert "Theorem 4.2, all matrices by their spectral norms" in after[-1].reason
    assert after[-1].dominant.startswith("complexity")
    assert math.isfinite(after[-1].log10_samples)


def _tail(union_cost: float, nats: float) -> float:
    """What `nats` more in the union bound add to the gap of a row."""
    confidence = math.log(2 / DELTA) + union_cost
    return 3 * (math.sqrt(confidence + nats) - math.sqrt(confidence)) / math.sqrt(2 * SAMPLES)
