"""CMA-ES with restarts: it follows directions, moves choices, and refuses what it cannot copy."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Box
from attlas.claims.statement import inequality
from attlas.verify.challenge import challenge
from attlas.verify.evolution import Strategies

HALF = [Control("half", factor=0.5)]


@pytest.fixture
def statement():
    """A statement of the benchmark, under the promotion that a user's file has."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield lambda module, name: getattr(
            importlib.import_module(f"benchmarks.statements.{module}"), name
        )


@pytest.mark.parametrize("width", [8, 60])
def test_each_island_reaches_the_top_of_an_ill_conditioned_hill(width):
    # Full matrices up to 48 numbers, variances above: axes of condition 1e3 either way.
    scale = 10 ** np.linspace(0, 1.5, width)
    strategies = Strategies(2, 16, width, np.random.default_rng(2))
    strategies.begin(np.arange(2), np.ones((2, width)))
    for _ in range(1500):
        points = strategies.ask()
        strategies.tell(points, -np.sum((scale * points) ** 2, axis=2))
    assert np.abs(strategies.mean).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_the_entropy_of_six_logits_is_not_lipschitz_with_constant_one(statement, seed):
    entropy = statement("false_learning", "entropy_is_lipschitz")
    searched = challenge(entropy, method="evolution", evaluations=51_200, seed=seed)
    assert searched.violated
    assert 1 < searched.ratio < 1.0319


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_choices_and_graphs_are_moved(statement, seed):
    """Polyak's momentum on curvatures of two values, and connectivity on graphs of random edges."""
    for module, name in (("false_learning", "heavy_ball"),
                         ("false_matrices", "connectivity_and_degree")):  # fmt: skip
        searched = challenge(
            statement(module, name), method="evolution", evaluations=51_200, seed=seed
        )
        assert searched.violated, name


def test_what_the_sampler_draws_beside_moved_numbers_is_not_copied():
    def counts(rng, count):
        return {"x": rng.normal(size=count), "k": 1.0 * rng.geometric(0.3, size=count)}

    @inequality(sample=counts, controls=[Control("one more", more=1.0)])
    def squares(x, k, *, more=0.0):
        r"""$$-k \le x^2$$"""
        return more * (1 + x**2) - k, x**2

    assert challenge(squares, method="evolution", evaluations=640).method == "covariance"


def test_islands_turn_over_the_components():
    """A bound that is tight in another coordinate for each component: all are approached."""

    @inequality(domains=[Box("x", -1.0, 1.0, shape=4)], controls=HALF)
    def each(x, *, factor=1.0):
        r"""$$x_i - \sum_{j \ne i} |x_j| \le 1$$"""
        others = jnp.sum(jnp.abs(x)) - jnp.abs(x)
        return 2 + x - others, factor * 3.0 * jnp.ones(4)

    searched = challenge(each, method="evolution", evaluations=64 * 150)
    assert not searched.violated
    assert max(searched.detection) < 1e-3
