"""The minimum over l_p balls: the lift to the spheres, the certificate and what is counted."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from julistiono2024optimizing.library.solvers import ball_minimum as module
from julistiono2024optimizing.library.solvers.ball_minimum import (
    Cone,
    _on_spheres,
    ball_minimum,
)

RNG = np.random.default_rng(3)
HEAD, MATRIX, PULL, TILT = (RNG.normal(size=s) for s in ((3,), (2, 4), (3,), (2, 4)))
RADII = jnp.array([2.5, 0.7])


def size(a, exponent):
    return np.sum(np.abs(a) ** exponent) ** (1 / exponent)


def divergence(centre, W, p):
    """The Bregman divergence of |w|^p / p between the two directions."""
    C, U = centre / size(centre, p), W / size(W, p)
    slope = np.sign(U) * np.abs(U) ** (p - 1)
    return (np.sum(np.abs(C) ** p) - np.sum(np.abs(U) ** p)) / p - np.sum(slope * (C - U))


@pytest.fixture
def no_descent(monkeypatch):
    """Each descent looks at its start once, and ends there."""

    def stay(function, start, given, **options):
        del options
        function(start, *given)
        return SimpleNamespace(x=start)

    monkeypatch.setattr(module, "minimize", stay)


def linear(v, W):
    return jnp.sum(PULL * v) + jnp.sum(TILT * W) + jnp.sum(v) * jnp.sum(W)


@pytest.mark.parametrize("p", [1.4, 2.0, 2.5])
@pytest.mark.usefixtures("no_descent")
def test_a_start_lies_on_its_spheres_and_its_certificate_is_by_hand(p):
    start = (jnp.asarray(HEAD), jnp.asarray(100 * MATRIX))
    end = ball_minimum(linear, [start], RADII, p, 0)
    v, W = 2.5 * HEAD / size(HEAD, p), 0.7 * MATRIX / size(MATRIX, p)
    np.testing.assert_allclose(end.blocks[0], v, rtol=1e-13)
    np.testing.assert_allclose(end.blocks[1], W, rtol=1e-13)
    assert end.value == pytest.approx(float(linear(v, W)), rel=1e-12)
    slopes, q = (PULL + W.sum(), TILT + v.sum()), p / (p - 1)
    pulls = [2.5 * size(slopes[0], q), 0.7 * size(slopes[1], q)]
    gaps = [pulls[0] + np.sum(slopes[0] * v), pulls[1] + np.sum(slopes[1] * W)]
    assert end.frank_wolfe_gap == pytest.approx(sum(gaps), rel=1e-11)
    assert end.relative_gap == pytest.approx(max(gaps[0] / pulls[0], gaps[1] / pulls[1]), rel=1e-11)
    assert end.cone_excess == -1
    # Two descents, the second from the first one's end at another scale.
    assert (end.starts_agreeing, end.evaluations) == (1, 2)


def test_unknowns_of_any_scale_are_lifted():
    U = np.array([1.0, -0.5, 0.0])
    for scale in (1e-30, 1.0, 1e30):
        (found,) = _on_spheres((jnp.asarray(scale * U),), jnp.array([3.0]), jnp.asarray(1.05))
        expected = np.sign(U) * np.abs(U) ** 20
        np.testing.assert_allclose(found, 3 * expected / size(expected, 1.05), rtol=1e-12)


@pytest.mark.parametrize("p", [2.0, 2.5])
def test_a_start_with_a_zero_is_left(p):
    end = ball_minimum(jnp.sum, [(jnp.array([1.0, 0.0, 0.5]),)], jnp.array([2.0]), p, 60)
    np.testing.assert_allclose(end.blocks[0], -2 / 3 ** (1 / p), rtol=1e-6)
    assert end.relative_gap < 1e-10


@pytest.mark.parametrize("p", [1.4, 3.5])
def test_minimum_of_a_linear_function_is_that_of_its_dual_norm(p):
    pull = np.array([1.0, -2.0, 0.5, 3.0])
    starts = [(jnp.asarray(RNG.normal(size=4)),) for _ in range(2)]
    end = ball_minimum(lambda w: jnp.sum(pull * w), starts, jnp.array([1.7]), p, 200)
    assert end.value == pytest.approx(-1.7 * size(pull, p / (p - 1)), rel=1e-10)
    assert end.relative_gap < 1e-9


def on_circle(angle):
    return (jnp.array([np.cos(angle), np.sin(angle)]),)


@pytest.mark.usefixtures("no_descent")
def test_the_lowest_start_wins_and_those_within_a_millionth_agree():
    def value(w):
        return 3 * w[0]

    # 3 cos has its minimum -3 at pi: the tolerance is 4e-6.
    above = [0.0, 3.9e-6, 4.1e-6, 1.0]
    starts = [on_circle(np.arccos(-1 + rise / 3)) for rise in above]
    end = ball_minimum(value, [starts[k] for k in (3, 1, 0, 2)], jnp.ones(1), 2.0, 0)
    assert end.value == pytest.approx(-3, rel=1e-15)
    assert end.starts_agreeing == 2
    assert end.evaluations == 8


@pytest.mark.usefixtures("no_descent")
def test_a_value_that_is_no_number_never_wins():
    starts = [on_circle(angle) for angle in (-2.0, 0.4, 1.2)]
    end = ball_minimum(lambda w: jnp.sqrt(w[1]), starts, jnp.ones(1), 2.0, 0)
    assert end.value == pytest.approx(np.sqrt(np.sin(0.4)), rel=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.4, 2.0, 3.5])
@pytest.mark.usefixtures("no_descent")
def test_outside_the_cone_the_heaviest_penalty_enters_the_certificate(p):
    centre, W = 5 * RNG.normal(size=(2, 4)), 0.7 * MATRIX / size(MATRIX, p)
    centre[0, 1], start = 0.0, (jnp.asarray(HEAD), jnp.asarray(MATRIX))
    apart = divergence(centre, W, p)
    width = apart / 1.3
    end = ball_minimum(linear, [start], RADII, p, 0, Cone(jnp.asarray(centre), jnp.asarray(width)))
    assert end.cone_excess == pytest.approx(0.3, rel=1e-10)
    # Two descents at each of four weights.
    assert end.evaluations == 8
    v = 2.5 * HEAD / size(HEAD, p)

    def penalised(W):
        U = W / jnp.sum(jnp.abs(W) ** p) ** (1 / p)
        along = jnp.sum(jnp.sign(U) * jnp.abs(U) ** (p - 1) * (centre / size(centre, p)))
        return linear(v, W) + 3e4 * ((1 - along) / width - 1) ** 2

    slopes, q = (PULL + W.sum(), np.asarray(jax.grad(penalised)(jnp.asarray(W)))), p / (p - 1)
    pulls = [2.5 * size(slopes[0], q), 0.7 * size(slopes[1], q)]
    gaps = [pulls[0] + np.sum(slopes[0] * v), pulls[1] + np.sum(slopes[1] * W)]
    assert end.frank_wolfe_gap == pytest.approx(sum(gaps), rel=1e-9)
    # The penalty is no part of the value.
    assert end.value == pytest.approx(float(linear(v, W)), rel=1e-12)


@pytest.mark.parametrize("p", [2.0, 3.0])
@pytest.mark.usefixtures("no_descent")
def test_the_penalty_has_a_gradient_where_an_entry_is_zero(p):
    centre, W, width = np.array([2.0, 1.0, -1.0]), np.array([0.6, 0.0, 0.8]), 0.2
    centre, W = centre / size(centre, p), W / size(W, p)
    cone = Cone(jnp.asarray(centre), jnp.asarray(width))
    end = ball_minimum(lambda w: 0 * w[0], [(jnp.asarray(W),)], jnp.ones(1), p, 0, cone)
    along = np.sum(W ** (p - 1) * centre)
    excess = (1 - along) / width - 1
    slope = (p - 1) * (W ** (p - 2) * centre - along * W ** (p - 1))
    slope *= -2 * 3e4 * excess / width
    assert end.cone_excess == pytest.approx(excess, rel=1e-12)
    assert end.frank_wolfe_gap == pytest.approx(size(slope, p / (p - 1)), rel=1e-10)


@pytest.mark.usefixtures("no_descent")
def test_every_point_is_a_minimum_of_a_constant():
    end = ball_minimum(lambda w: 0 * w[0], [(jnp.asarray(HEAD),)], jnp.ones(1), 2.5, 0)
    assert (end.value, end.relative_gap, end.frank_wolfe_gap) == (0, 0, 0)


@pytest.mark.usefixtures("no_descent")
def test_a_point_in_the_cone_wins_over_lower_ones_outside():
    cone = Cone(jnp.array([3.0, 0.0]), jnp.array(0.1))

    def value(w):
        return w[0]

    inner, border, outer = on_circle(0.1), on_circle(np.arccos(1 - 0.1 * 1.0009)), on_circle(2.0)
    end = ball_minimum(value, [outer, inner], jnp.ones(1), 2.0, 0, cone)
    assert end.value == pytest.approx(np.cos(0.1), rel=1e-12)
    assert end.cone_excess == pytest.approx((1 - np.cos(0.1)) / 0.1 - 1, rel=1e-9)
    # Inside, one weight is enough; a thousandth beyond the border counts as inside.
    assert (end.starts_agreeing, end.evaluations) == (1, 8 + 2)
    end = ball_minimum(value, [inner, border], jnp.ones(1), 2.0, 0, cone)
    assert end.value == pytest.approx(1 - 0.1 * 1.0009, rel=1e-12)
    assert end.evaluations == 4
    end = ball_minimum(value, [outer], jnp.ones(1), 2.0, 0, cone)
    assert end.value == pytest.approx(np.cos(2.0), rel=1e-12)


@pytest.mark.parametrize("p", [1.4, 3.0])
def test_a_minimum_outside_the_cone_is_moved_to_its_border(p):
    centre = np.array([2.0, 0.0, -1.0])
    cone = Cone(jnp.asarray(centre), jnp.asarray(0.05))
    start = (jnp.asarray(centre + 0.1),)
    end = ball_minimum(lambda w: w[1], [start], jnp.array([2.0]), p, 300, cone)
    assert abs(end.cone_excess) <= 1e-3
    assert divergence(centre, np.asarray(end.blocks[0]), p) == pytest.approx(0.05, rel=2e-3)
    assert end.relative_gap < 1e-5
