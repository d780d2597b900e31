"""Projections beside a quadratic programme, and beside no better point that a search finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from attlas.claims.domains.projections import (
    inward,
    project_ball,
    project_eigenvalues,
    project_l1_ball,
    project_ordered,
    project_simplex,
    project_singular_values,
    project_sphere,
)

X = np.random.default_rng(3).normal(size=(4, 5)) * np.array([0.1, 1.0, 1.0, 5.0])[:, None]


def nearest(x, constraints, bounds=None, start=None):
    """The projection as a quadratic programme, by sequential quadratic programming."""
    found = minimize(
        lambda y: 0.5 * np.sum((y - x) ** 2),
        np.full(x.size, 0.1) if start is None else start,
        jac=lambda y: y - x,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-9, "maxiter": 500},
    )
    assert found.success
    return found.x


def test_balls_and_the_simplex_agree_with_a_quadratic_programme():
    one = jnp.asarray(1.0)
    for x in X:
        total = {"type": "eq", "fun": lambda y: y.sum() - 1}
        near = nearest(x, [total], [(0, None)] * 5)
        np.testing.assert_allclose(project_simplex(jnp.asarray(x), one), near, atol=1e-6)
        inside = {"type": "ineq", "fun": lambda y: 1 - y @ y, "jac": lambda y: -2 * y}
        near = nearest(x, [inside])
        np.testing.assert_allclose(project_ball(jnp.asarray(x), one), near, atol=1e-6)
        # |x| <= 1 in l1 as y = a - b with a, b >= 0.
        split = minimize(
            lambda ab, x=x: 0.5 * np.sum((ab[:5] - ab[5:] - x) ** 2),
            np.full(10, 0.1),
            bounds=[(0, None)] * 10,
            constraints=[{"type": "ineq", "fun": lambda ab: 1 - ab.sum()}],
            method="SLSQP",
            options={"ftol": 1e-9, "maxiter": 500},
        ).x
        near = split[:5] - split[5:]
        np.testing.assert_allclose(project_l1_ball(jnp.asarray(x), one), near, atol=1e-6)


@pytest.mark.thorough
def test_ordering_agrees_with_a_quadratic_programme_and_is_exactly_ordered():
    for x in X:
        order = {"type": "ineq", "fun": np.diff}
        near = nearest(x, [order], start=np.sort(x))
        found = np.asarray(project_ordered(jnp.asarray(x)))
        np.testing.assert_allclose(found, near, atol=1e-6)
        assert (np.diff(found) >= 0).all()


def test_no_sampled_point_of_a_spectral_set_is_nearer():
    rng = np.random.default_rng(5)
    x = jnp.asarray(rng.normal(size=(3, 3)) * 2)

    def distances(found, others):
        return float(np.linalg.norm(found - x)), np.linalg.norm(others - np.asarray(x), axis=(1, 2))

    # Points of each set near the projection, by applying the set's own description to others.
    far = np.asarray(x) + rng.normal(size=(4000, 3, 3)) * 10 ** rng.uniform(
        -4, 0, size=(4000, 1, 1)
    )
    u, s, vt = np.linalg.svd(far)
    cases = {
        "spectral": (lambda s: jnp.minimum(s, 1), np.minimum(s, 1)),
        "rank": (lambda s: jnp.where(jnp.arange(3) < 1, s, 0), s * (np.arange(3) < 1)),
        "orthogonal": (jnp.ones_like, np.ones_like(s)),
    }
    for project, values in cases.values():
        own, others = distances(project_singular_values(x, project), (u * values[:, None]) @ vt)
        assert own <= others.min() + 1e-9
        assert others.min() < own * 1.01
    t, v = np.linalg.eigh((far + np.swapaxes(far, 1, 2)) / 2)
    psd = (v * np.maximum(t, 0)[:, None]) @ np.swapaxes(v, 1, 2)
    own, others = distances(project_eigenvalues(x, lambda s: jnp.maximum(s, 0)), psd)
    assert own <= others.min() + 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("size", [3, 1000])
def test_rounding_does_not_leave_a_ball(size):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(50, size)) * 100)
    found = jax.vmap(lambda one: project_ball(one, jnp.asarray(0.7)))(x)
    assert bool((jnp.sqrt(jnp.sum(found**2, axis=1)) <= 0.7).all())
    assert float(inward(x[0])) > 1 - 1e-11
    found = jax.vmap(lambda one: project_l1_ball(one, jnp.asarray(0.7)))(x)
    assert bool((jnp.sum(jnp.abs(found), axis=1) <= 0.7).all())


@pytest.mark.thorough
def test_gradients_are_finite_also_at_zero():
    one = jnp.asarray(1.0)
    for project in (project_ball, project_sphere, project_simplex):
        slope = jax.grad(lambda x, project=project: jnp.sum(project(x, one) ** 3))(jnp.zeros(3))
        assert bool(jnp.isfinite(slope).all())
