"""Descent in a ball: against the solver of the path, and the joint path's certificate."""

import jax
import jax.numpy as jnp
import pytest

from attlas.data.token_selection import make_separable_selection
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm
from julistiono2024optimizing.library.solvers.regularisation_path import regularisation_path
from julistiono2024optimizing.library.token_selection.ball import descend_in_ball

P = 3.0


@pytest.fixture(scope="module")
def problem():
    """Two samples of three tokens with their attention SVM."""
    data = make_separable_selection(jax.random.key(3), n=2, T=3, d=3)
    return data, jnp.asarray(attention_svm(data.X, data.z, data.tokens, P).unwrap())


def test_reaches_the_point_that_another_solver_finds(problem):
    data, W_mm = problem
    radius = 8 * float(entrywise_norm(W_mm, P))
    found = descend_in_ball(data, W_mm, p=P, radius=radius, steps=600)
    path = regularisation_path(data, [radius], P, key=jax.random.key(0), starts=2)
    # Both are stationary to a relative gap g; the direction is then right to about sqrt(g).
    gap = max(float(found.relative_gap), float(path.certificate["relative_gap"][0]), 1e-15)
    assert gap < 1e-8
    assert float(entrywise_norm(found.W - path.value[0], P)) < 10 * gap**0.5 * radius
    assert float(entrywise_norm(found.W, P)) == pytest.approx(radius, rel=1e-13)


def test_gap_is_positive_away_from_a_stationary_point(problem):
    data, W_mm = problem
    found = descend_in_ball(data, -W_mm, p=P, radius=5.0, steps=1)
    assert float(found.relative_gap) > 0.01


@pytest.mark.thorough
def test_joint_point_lies_on_both_spheres_and_is_stationary():
    data = make_separable_selection(jax.random.key(5), n=2, T=2, d=3)
    found = descend_in_ball(
        data, data.separator, p=P, radius=20.0, steps=1500, head_radius=jnp.asarray(4.0)
    )
    assert float(entrywise_norm(found.v, P)) == pytest.approx(4.0, rel=1e-13)
    assert float(found.relative_gap) < 1e-6
