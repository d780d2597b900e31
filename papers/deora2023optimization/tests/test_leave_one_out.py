"""Leave-one-out trainings against trainings without the sample."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import make_multi_head
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.training.leave_one_out import leave_one_out

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
