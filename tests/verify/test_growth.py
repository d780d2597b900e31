"""Growing sizes: the schedule, its shares, and the ratio at each size."""

import jax.numpy as jnp
import pytest

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.growth import FACTORS, grow, schedule


def vectors(rng, count, *, n=2, d=3):
    """Uniform matrices of two sizes."""
    return {"x": rng.uniform(size=(count, n, d))}


@inequality(sample=vectors, sizes={"n": 2, "d": 3}, controls=[Control("half", factor=0.5)])
def total(x, *, factor=1.0):
    r"""$$\sum x_{ij} \le n d$$"""
    return jnp.sum(x), factor * jnp.asarray(x.size, dtype=float)


def test_all_sizes_grow_together_and_alone():
    tried = list(schedule(total.sizes))
    assert len(tried) == 3 * len(FACTORS)
    assert tried[-3:] == [{"n": 16, "d": 24}, {"n": 16, "d": 3}, {"n": 2, "d": 24}]


@pytest.mark.thorough
def test_each_size_has_its_share_and_is_told():
    found = grow(total, evaluations=9 * 128)
    assert found.evaluations == 9 * 128
    assert found.method == "sizes"
    assert len(found.verdict.statistics) == 9
    assert max(found.verdict.statistics.values()) == found.ratio < 1
    assert grow(total, evaluations=9 * 128).ratio == found.ratio
