"""Bounds hold along a short descent, and its records agree with what the model says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.losses.empirical_risk import empirical_risk
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.training.bounded_descent import (
    BoundedDescent,
    descend_beside_bounds,
)

SCHEDULE = (0, 5, 20)


@pytest.fixture(scope="module")
def problem():
    keys = jax.random.split(jax.random.key(0), 2)
    X = jax.random.normal(keys[0], (6, 2, 3))
    y = jnp.where(X[:, 0, 0] > 0, 1.0, -1.0)
    return one_step_initialisation(keys[1], X, y, 2), X, y


@pytest.fixture(scope="module")
def found(problem) -> BoundedDescent:
    R = max(1.0, float(jnp.linalg.norm(problem[1], axis=-1).max()))
    return descend_beside_bounds(*problem, R, 0.1, SCHEDULE)


@pytest.mark.thorough
def test_no_record_exceeds_a_bound(found):
    assert found.ratio.shape == (3, len(VERSIONS), len(SCHEDULE))
    assert found.converged.all()
    assert (found.ratio <= 1).all()
    assert (found.self_bounded <= 1).all()


@pytest.mark.thorough
def test_the_first_record_is_the_start(found, problem):
    start, X, y = problem
    leaves, shape = jax.flatten_util.ravel_pytree(start)
    hessian = jax.jit(jax.hessian(lambda z: empirical_risk(shape(z), X, y)))(leaves)
    values = np.linalg.eigvalsh(hessian)
    assert found.loss[0] == pytest.approx(float(empirical_risk(start, X, y)))
    # The default tolerance of the eigenvalues, relative to the largest.
    assert found.smallest[0] == pytest.approx(values[0], abs=1e-6 * values[-1])
    assert found.largest[0] == pytest.approx(values[-1], rel=1e-6)


def test_theory_demands_more_heads_and_smaller_steps_with_printed_constants(found):
    printed, sharp = (VERSIONS.index(version) for version in ("printed", "sharp"))
    assert (found.heads_demanded[:, printed] >= found.heads_demanded[:, sharp]).all()
    assert (found.step_certified[:, printed] <= found.step_certified[:, sharp]).all()
