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
