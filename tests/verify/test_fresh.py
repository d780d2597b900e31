"""Fresh instances as a search: they repeat, differ from the check's, and meet what is rare."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.challenge import challenge
from attlas.verify.check import check


def _whole(rng, count):
    return {"k": rng.integers(0, 1000, size=count)}


@inequality(sample=_whole, controls=[Control("half", c=0.5)])
def below_the_last(k, *, c=1.0):
    r"""$$k \le 998$$"""
    return jnp.asarray(k, float), c * 998.0


def test_one_integer_in_a_thousand_is_met_and_the_search_repeats():
    one, again = (challenge(below_the_last, evaluations=20_000, seed=3) for _ in range(2))
    assert one.violated
    assert one.evaluations == again.evaluations < 20_000
    np.testing.assert_array_equal(one.verdict.witness["k"], again.verdict.witness["k"])


@pytest.fixture
def statement():
    """A statement of the benchmark, under the promotion that a user's file has."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield lambda module, name: getattr(
            importlib.import_module(f"benchmarks.statements.{module}"), name
        )


@pytest.mark.thorough
def test_polyaks_momentum_fails_on_a_function_that_draws_reach(statement):
    heavy_ball = statement("false_learning", "heavy_ball")
    assert challenge(heavy_ball, method="draws", evaluations=25_600).violated


@pytest.mark.thorough
def test_fractions_of_a_dirichlet_law_are_moved_and_pinskers_theorem_passes(statement):
    report = check(statement("true_probability", "pinsker"), challenge=1)
    assert report.defects == ()
    assert report.challenge.ratio > 0.9
