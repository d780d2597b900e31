"""Leave-one-out measures against trainings that are run one by one."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.losses.logistic import logistic
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.measures.left_out import left_out
from deora2023optimization.library.models.repeated_heads import RepeatedHeads


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
