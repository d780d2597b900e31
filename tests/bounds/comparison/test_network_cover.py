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
SAMPLES = 10**9


def test_the_bound_of_the_contributing_guide_is_one_more_row(monkeypatch):
    """Other rows keep their complexities, and one more bound shares the union bound."""
    guide = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    module: dict[str, Any] = {}
    section = guide.partition("## How a bound is added")[2]
    exec(section.partition("```python\n")[2].partition("```")[0], module)
    cover: Cover = module["SPECTRAL"]
    added = cover.bound("sharp")
    weights = TransformerWeights(((HEAD,),), np.array([1e-3, 1e-3]))

    def table() -> tuple[Entry, ...]:
        return compare_bounds(weights, np.eye(2)[None], SAMPLES, 0.05).entries

    before = table()
    monkeypatch.setattr(listed, "NORMALISED", (*NORMALISED, added))
    after = table()
    assert [e.name for e in after] == [*(e.name for e in before), "spectral sharp"]
    assert [e.rademacher for e in after[:-1]] == [e.rademacher for e in before]
    assert [e.union_cost for e in after[:-1]] == pytest.approx(
        [e.union_cost + math.log(len(after) / len(before)) for e in before], rel=1e-12
    )
    values = {e.name: e.rademacher for e in after}
    # W has two rows of rank 2: the sum of their lengths is at most twice the spectral norm
    assert values["log T sharp"] < values["spectral sharp"] < values["trivial"]
    assert "Theorem 4.2, all matrices by their spectral norms" in after[-1].reason
    assert after[-1].dominant.startswith("complexity")
    assert math.isfinite(after[-1].log10_samples)
