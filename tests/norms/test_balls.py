import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.norms.balls import ball_norm, dual_norm, project, support_point

BALLS = ("1,1", "2,1", "1,inf", "spectral", "frobenius")
EPS = np.finfo(float).eps
W = generator(jax.random.key(0)).standard_normal((3, 4, 3))
RADIUS = 1.3


@pytest.mark.thorough
@pytest.mark.parametrize("ball", BALLS)
def test_optimality_of_the_projection(ball):
    """P is the projection if and only if <W - P, P> = radius ||W - P||_* and ||P|| = radius."""
    array = jnp.asarray(W)
    P = jax.jit(project, static_argnums=1)(array, ball, RADIUS)
    left = jnp.sum((array - P) * P, axis=(1, 2))
    # Sums of twelve products, after a few decompositions of 4 x 3 matrices of size one.
    np.testing.assert_allclose(left, RADIUS * dual_norm(array - P, ball), rtol=500 * EPS)
    np.testing.assert_allclose(ball_norm(P, ball), RADIUS, rtol=100 * EPS)


@pytest.mark.thorough
@pytest.mark.parametrize("ball", BALLS)
def test_points_of_the_ball_stay_and_radii_may_differ(ball):
    array = jnp.asarray(W)
    norms = ball_norm(array, ball)
    np.testing.assert_array_equal(project(array, ball, 20.0), array)
    radii = norms * jnp.array([0.0, 0.5, 2.0])
    found = ball_norm(project(array, ball, radii), ball)
    np.testing.assert_allclose(found, norms * jnp.array([0, 0.5, 1.0]), atol=200 * EPS)


@pytest.mark.thorough
@pytest.mark.parametrize("ball", BALLS)
def test_support_point_reaches_the_dual_norm(ball):
    array = jnp.asarray(W)
    point = support_point(array, ball)
    np.testing.assert_allclose(jnp.sum(point * array, axis=(1, 2)), dual_norm(array, ball))
    np.testing.assert_allclose(ball_norm(point, ball), 1, rtol=100 * EPS)
    # Hölder's inequality against random points of the ball.
    others = generator(jax.random.key(1)).standard_normal((3, 4, 3))
    bound = ball_norm(jnp.asarray(others), ball) * dual_norm(array, ball)
    assert np.all(np.sum(others * W, axis=(1, 2)) <= bound)


@pytest.mark.thorough
def test_ties_and_the_zero_matrix():
    tied = jnp.array([[1.0, -1.0], [1.0, 1.0]])
    np.testing.assert_allclose(project(tied, "1,1", 2.0), tied / 2)
    for ball in BALLS:
        assert float(jnp.max(jnp.abs(project(jnp.zeros((2, 3)), ball, 1.0)))) == 0
        assert float(jnp.max(jnp.abs(project(tied, ball, 0.0)))) < 4 * EPS


def test_bad_input_is_refused():
    with pytest.raises(UserError, match="negative"):
        project(jnp.eye(2), "1,1", -1.0)
    with pytest.raises(UserError, match="unknown"):
        project(jnp.eye(2), "1,2", 1.0)


NUMPY_NORMS = {
    "1,1": (lambda M: np.abs(M).sum(), lambda M: np.abs(M).max()),
    "2,1": (
        lambda M: np.linalg.norm(M, axis=0).sum(),
        lambda M: np.linalg.norm(M, axis=0).max(),
    ),
    "1,inf": (lambda M: np.abs(M).sum(axis=0).max(), lambda M: np.abs(M).max(axis=0).sum()),
    "spectral": (lambda M: np.linalg.norm(M, 2), lambda M: np.linalg.norm(M, "nuc")),
    "frobenius": (np.linalg.norm, np.linalg.norm),
}


@pytest.mark.parametrize("ball", BALLS)
def test_the_four_maps_by_their_definitions(ball):
    """Each matrix has its own radius: two inside their ball, one outside, and a zero matrix."""
    array = np.concatenate([W, np.zeros((1, 4, 3))])
    norm, dual = NUMPY_NORMS[ball]
    norms, duals = (np.array([f(M) for M in array]) for f in (norm, dual))
    np.testing.assert_allclose(ball_norm(jnp.asarray(array), ball), norms, rtol=1e-13)
    np.testing.assert_allclose(dual_norm(jnp.asarray(array), ball), duals, rtol=1e-13)
    points = np.asarray(support_point(jnp.asarray(array), ball))
    for M, point, size in zip(W, points, duals, strict=False):
        np.testing.assert_allclose(np.sum(M * point), size, rtol=1e-12)
        np.testing.assert_allclose(norm(point), 1, rtol=1e-12)
    radii = norms * [0.4, 1.0, 1.7, 1.0] + [0, 0, 0, 0.9]
    nearest = np.asarray(project(jnp.asarray(array), ball, jnp.asarray(radii)))
    # P is nearest if and only if <M - P, P> = radius ||M - P||_* and ||P|| = radius.
    rest = array[0] - nearest[0]
    np.testing.assert_allclose(np.sum(rest * nearest[0]), radii[0] * dual(rest), rtol=1e-11)
    np.testing.assert_allclose(norm(nearest[0]), radii[0], rtol=1e-12)
    np.testing.assert_allclose(nearest[1:], array[1:], rtol=1e-12, atol=1e-15)
    assert np.abs(project(jnp.asarray(array), ball, 0.0)).max() < 1e-14


@pytest.mark.parametrize("ball", BALLS)
def test_a_small_matrix_of_one_column_keeps_its_direction_and_zero_stays(ball):
    column = jnp.zeros((3, 2)).at[:, 0].set(jnp.array([0.3, -0.2, 0.1]))
    half = project(column, ball, 0.5 * ball_norm(column, ball))
    assert np.all(np.asarray(half)[:, 1] == 0)
    np.testing.assert_allclose(ball_norm(half, ball), 0.5 * ball_norm(column, ball), rtol=1e-13)
    assert np.all(np.asarray(project(jnp.zeros((3, 2)), ball, 0.0)) == 0)
    point = support_point(column, ball)
    np.testing.assert_allclose(jnp.sum(point * column), dual_norm(column, ball), rtol=1e-13)
    point = np.asarray(support_point(jnp.zeros((3, 2)), ball))
    assert np.isfinite(point).all()
    if ball in ("1,1", "1,inf"):
        np.testing.assert_allclose(ball_norm(jnp.asarray(point), ball), 1)
