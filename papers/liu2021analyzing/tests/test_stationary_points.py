"""Stationary points of functions with known ones, and of a small two-layer network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from liu2021analyzing.library.measures.stationary_points import (
    _default_tolerance,
    _descend,
    stationary_points,
)


def double_well(x, tilt):
    """Minima near (1, 0) and (-1, 0), a saddle between them."""
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2 + tilt * x[0]


def test_every_kind_of_stationary_point_is_found():
    starts = jnp.asarray(np.random.default_rng(0).uniform(-2, 2, (30, 2)))
    found = stationary_points(double_well, starts, jnp.zeros(30), in_axes=(0,))
    points = found.unwrap()
    nearest = np.rint(np.asarray(points[:, 0]))
    np.testing.assert_allclose(points, np.stack([nearest, 0 * nearest], 1), atol=1e-9)
    assert set(nearest) == {-1.0, 0.0, 1.0}
    # Second derivative 3 x^2 - 1, and 1 across.
    smallest = np.where(nearest == 0, -1.0, 1.0)
    np.testing.assert_allclose(found.certificate["smallest"], smallest, atol=1e-8)


def test_each_start_may_have_data_of_its_own():
    starts = jnp.ones((30, 2))
    found = stationary_points(double_well, starts, jnp.linspace(-6.0, 0.0, 30), in_axes=(0,))
    # x^3 - x = 6 at x = 2, and 0 at x = 1.
    np.testing.assert_allclose(found.unwrap()[::29, 0], [2.0, 1.0], atol=1e-9)


def test_failures_are_told_start_by_start():
    # g = 1 + x^2 never vanishes; g^2 has its minimum where H g = 0, at x = 0. Beyond 1e154 the
    # gradient overflows.
    starts = jnp.asarray([[0.7], [1e200]])
    found = stationary_points(lambda x: x[0] + x[0] ** 3 / 3, starts, max_steps=60)
    assert found.result.tolist() == [Result.MAX_STEPS, Result.NOT_FINITE]
    assert float(found.certificate["gradient_norm"][0]) == pytest.approx(1.0)


def network_risk(parameters, x, y):
    """Squared error of a softplus network."""
    W, w = parameters
    return jnp.mean((jax.nn.softplus(x @ W) @ w - y) ** 2) / 2


@pytest.mark.thorough
def test_points_of_a_network_are_certified_by_another_computation():
    draw = np.random.default_rng(1)
    x, y = jnp.asarray(draw.standard_normal((20, 2))), jnp.asarray(draw.standard_normal(20))
    starts = (
        jnp.asarray(draw.standard_normal((16, 2, 2))),
        jnp.asarray(draw.standard_normal((16, 2))),
    )
    found = stationary_points(network_risk, starts, x, y)
    good = np.flatnonzero(np.asarray(found.converged))
    assert good.size >= 4
    W, w = (np.asarray(part)[good[0]] for part in found.value)
    x, y = np.asarray(x), np.asarray(y)
    hidden = np.logaddexp(0, x @ W)
    error = hidden @ w - y
    by_hand = [x.T @ (error[:, None] / (1 + np.exp(-x @ W)) * w) / 20, hidden.T @ error / 20]
    assert max(np.abs(part).max() for part in by_hand) < 1e-9
    assert float(found.stats["risk"][good[0]]) == pytest.approx(float(np.mean(error**2)) / 2)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ((jnp.ones((2, 1)), jnp.ones((3, 1))), "every array needs one"),
        (jnp.ones((1, 2001)), "take 1 to 2000"),
    ],
)
def test_unusable_starts_are_refused(starts, message):
    with pytest.raises(UserError, match=message):
        stationary_points(lambda x: jnp.sum(x[0]), starts)


def test_the_rounding_of_an_eigenvalue_is_that_of_the_hessian():
    found = stationary_points(double_well, jnp.asarray([[1.2, 0.3]]), 0.0)
    # The Hessian at (1, 0) is diag(2, 1).
    rounding = 2 * float(np.finfo(float).eps) * np.sqrt(5.0)
    assert float(found.certificate["rounding"][0]) == pytest.approx(rounding, rel=1e-7, abs=0)


def test_the_largest_eigenvalue_is_the_last():
    found = stationary_points(double_well, jnp.asarray([[1.2, 0.3]]), 0.0)
    assert float(found.certificate["largest"][0]) == pytest.approx(2.0, rel=1e-8)
    assert float(found.certificate["smallest"][0]) == pytest.approx(1.0, rel=1e-8)


def test_the_tolerance_left_open_is_a_multiple_of_single_precision_s_rounding():
    assert _default_tolerance([jnp.ones(2, jnp.float32)]) == 64 * 2.0**-23
    assert _default_tolerance([jnp.ones(2, jnp.float64)]) == 1e-10


def test_a_number_without_an_axis_of_starts_is_refused():
    with pytest.raises(UserError, match="every array needs one"):
        stationary_points(lambda x: x**2, jnp.float64(1.0))


def hills(x):
    """Steep along one axis: some damped steps raise the gradient."""
    return jnp.sin(3 * x[0]) + x[0] * x[1] / 2 + x[1] ** 4 / 4 - x[1]


@pytest.mark.parametrize("steps", [1, 9])
def test_damped_steps_by_hand(steps):
    x, damping, taken = np.array([0.9, -1.6]), 1e-3, 0
    rejected = 0

    def gradient(x):
        return np.array([3 * np.cos(3 * x[0]) + x[1] / 2, x[0] / 2 + x[1] ** 3 - 1])

    for _ in range(steps):
        H = np.array([[-9 * np.sin(3 * x[0]), 0.5], [0.5, 3 * x[1] ** 2]])
        mu = damping * np.linalg.norm(H, 2) ** 2
        trial = x - np.linalg.solve(H @ H + mu * np.eye(2), H @ gradient(x))
        if np.linalg.norm(gradient(trial)) < np.linalg.norm(gradient(x)):
            x, damping, taken = trial, damping / 3, taken + 1
        else:
            damping, rejected = 4 * damping, rejected + 1
    point, count = _descend(hills, jnp.array([0.9, -1.6]), jnp.array(1e-200), steps)
    np.testing.assert_allclose(point, x, rtol=1e-9)
    assert int(count) == taken
    assert steps == 1 or rejected


def test_steps_end_below_half_the_tolerance_and_without_a_descent():
    bowl = jax.jit(lambda x: jnp.sum(x**2) / 2, inline=True)
    start = jnp.array([0.6, 0.8])  # a gradient of norm 1
    assert [int(_descend(bowl, start, jnp.array(t), 1)[1]) for t in (1.9, 2.1)] == [1, 0]
    # A slope without curvature stays as it is: no step is taken.
    assert int(_descend(lambda x: x[0], start, jnp.array(1e-9), 3)[1]) == 0
