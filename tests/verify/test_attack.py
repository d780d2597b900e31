"""The attack without derivatives: what it moves, what it finds, and what it leaves alone."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, assume
from attlas.claims.statement import identity, inequality
from attlas.verify.attack import attack
from attlas.verify.challenge import challenge, replay

HALF = [Control("half", factor=0.5)]


def pairs(rng, count):
    """Uniform vectors in the cube."""
    return {"x": rng.uniform(-1, 1, size=(count, 3)), "y": rng.uniform(-1, 1, size=(count, 3))}


@inequality(sample=pairs, controls=HALF)
def in_the_cube(x, y, *, factor=1.0):
    r"""$$x^T y \le 3$$"""
    return jnp.dot(x, y), 3.0 * factor


def test_without_search_over_the_draws_move_and_stay_in_the_support():
    found = attack(in_the_cube, evaluations=12_800)
    assert not found.violated
    assert 0.99 < found.ratio <= 1
    witness = dict(found.verdict.witness)
    assert max(abs(witness["x"]).max(), abs(witness["y"]).max()) < 1
    np.testing.assert_allclose(replay(in_the_cube, witness).tightness, found.ratio, rtol=1e-12)


def test_a_false_constant_near_the_end_is_found():
    def near(x, y):
        return jnp.dot(x, y), jnp.asarray(2.9)

    found = attack(replace(in_the_cube, function=near, controls=()), evaluations=12_800)
    assert found.violated
    assert found.ratio > 1


def test_assumptions_and_projections_are_kept():
    @inequality(
        sample=pairs,
        assumptions=[assume("$x_1 \\le 1/2$", lambda x: x[0] <= 0.5)],
        controls=HALF,
    )
    def half(x, *, factor=1.0):
        r"""$$x_1 \le 1/2$$"""
        return x[0], 0.5 * factor

    assert not attack(half).violated
    ball = replace(
        in_the_cube,
        sample=lambda rng, count: {k: v / 2 for k, v in pairs(rng, count).items()},
        search_over=("x",),
        project=lambda x: {"x": x / jnp.maximum(1, jnp.linalg.norm(x))},
    )
    witness = attack(ball, evaluations=12_800).verdict.witness
    assert np.linalg.norm(witness["x"]) <= 1 + 1e-12


def test_each_component_is_attacked():
    @inequality(sample=pairs, controls=[Control("half", factor=0.5)])
    def two(x, y, *, factor=1.0):
        r"""$$|x_1| \le 1, \; y_2 + y_3 \le 1.9$$"""
        return jnp.stack([abs(x[0]), y[1] + y[2]]), factor * jnp.array([1.0, 1.9])

    assert attack(two, evaluations=12_800).violated


def test_what_has_nothing_to_move_is_not_attacked():
    @identity(sample=pairs, controls=[Control("twice", factor=2.0)])
    def same(x, *, factor=1.0):
        r"""$$x = x$$"""
        return jnp.sum(x), factor * jnp.sum(x)

    assert attack(same) is None

    whole = replace(in_the_cube, sample=lambda rng, count: {
        k: rng.hypergeometric(2, 2, 2, size=(count, 3)) - 1.0 for k in "xy"
    })  # fmt: skip
    assert attack(whole) is None


@pytest.mark.thorough
def test_a_challenge_begins_with_the_attack():
    assert challenge(in_the_cube).ratio > 0.9
