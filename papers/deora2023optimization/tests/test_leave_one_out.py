"""Leave-one-out trainings against trainings without the sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import make_multi_head
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.repeated_heads import RepeatedHeads
from deora2023optimization.library.training.leave_one_out import leave_one_out, left_out

DRAW = np.random.default_rng(2)
X = jnp.asarray(DRAW.standard_normal((5, 4, 3)))
Y = jnp.asarray([1.0, -1, 1, 1, -1])
MODEL = jax.tree.map(
    lambda a: jnp.asarray(0.5 * DRAW.standard_normal(a.shape)), make_multi_head(2, 4, 3)
)


def arrays(path):
    return jax.tree.map(np.asarray, path.params)


def test_each_trajectory_is_that_of_the_deleted_sample():
    found = leave_one_out(MODEL, X, Y, step_size=0.3, steps=6, record_at=range(7), batch=2)

    full = gradient_descent(MODEL, X, Y, step_size=0.3, steps=6, record_at=range(7))
    np.testing.assert_allclose(found.full.loss, full.loss, rtol=1e-13)
    for i in (0, 4):
        # A row deleted, and the step scaled from 1 / (n - 1) back to 1 / n.
        kept = np.delete(np.arange(5), i)
        deleted = gradient_descent(
            MODEL, X[kept], Y[kept], step_size=0.3 * 4 / 5, steps=6, record_at=range(7)
        )
        np.testing.assert_allclose(found.without.loss[i], deleted.loss * 4 / 5, rtol=1e-13)
        apart = jax.tree.map(lambda a, b: np.asarray(a) - b, *map(arrays, (full, deleted)))
        norms = np.sqrt(sum(np.sum(a.reshape(7, -1) ** 2, axis=1) for a in jax.tree.leaves(apart)))
        np.testing.assert_allclose(found.distance[i], norms, rtol=0, atol=1e-14)
    assert found.without.params.U.shape == (5, 7, 2, 4, 3)
    np.testing.assert_allclose(found.stability, np.mean(found.distance, axis=0), rtol=1e-14)


@pytest.mark.thorough
def test_measures_are_those_of_trainings_one_by_one():
    rng = np.random.default_rng(0)
    copies = jnp.array([2, 1])
    U, W = (jnp.asarray(0.3 * rng.normal(size=(2, k, 4))) for k in (3, 4))
    start = RepeatedHeads(U, W, copies)
    X, y = jnp.asarray(rng.normal(size=(5, 3, 4))), jnp.array([1.0, -1.0, 1.0, -1.0, 1.0])
    X_test, y_test = jnp.asarray(rng.normal(size=(6, 3, 4))), jnp.ones(6)
    settings = {"step_size": 0.2, "steps": 4}
    found = left_out(start, X, y, X_test, y_test, **settings)
    full = gradient_descent(start, X, y, **settings).last
    distances, lost, slopes, heads = [], [], [], []
    for i in range(5):
        weights = jnp.ones(5).at[i].set(0)
        model = gradient_descent(start, X, y, weights=weights, **settings).last
        distances.append(np.sqrt(sum(np.sum((a - b) ** 2) for a, b in
                                     ((model.U, full.U), (model.W, full.W)))))  # fmt: skip
        lost.append(float(logistic(y[i] * model(X[i]))))
        heads.append(float(model.largest_head))
        for x, label in zip(X_test, y_test, strict=True):
            slope = jax.grad(
                lambda p, x=x, label=label: logistic(label * RepeatedHeads(*p, copies)(x))
            )
            parts = slope((model.U, model.W))
            slopes.append(np.sqrt(sum(np.sum(a**2) for a in parts)))
    training = np.mean([float(logistic(y[i] * full(X[i]))) for i in range(5)])
    expected = np.mean(distances), np.mean(lost) - training, np.max(slopes), np.max(heads)
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-9)
