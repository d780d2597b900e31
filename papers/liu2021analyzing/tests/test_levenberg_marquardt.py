"""The minimiser against closed forms: least squares, ridge regression, soft thresholding."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from liu2021analyzing.library.data.attended_regression import layer_outputs
from liu2021analyzing.library.levenberg_marquardt import best_starts, levenberg_marquardt
from liu2021analyzing.library.losses import squared_risk
from liu2021analyzing.library.models.two_layer import TwoLayer

SMOOTH = 1e-3


def linear(theta, x):
    return theta @ x


def problems():
    """Three problems, one with fewer samples."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 9, 4)), rng.standard_normal((3, 9))
    weights = np.ones((3, 9))
    weights[1, 6:] = 0.0
    return rng.standard_normal((3, 4)), x, y, weights


def test_ridge_regression_over_the_samples_that_count():
    start, x, y, weights = problems()
    factors = np.array([0.3, 0.3, 0.6])
    found = levenberg_marquardt(
        linear, start, x, y, weights=weights, l2=factors, max_steps=60, at_once=2
    )
    assert found.converged.all()
    for k, factor in enumerate(factors):
        rows = weights[k] > 0
        own, labels, n = x[k, rows], y[k, rows], rows.sum()
        exact = np.linalg.solve(own.T @ own / n + factor * np.eye(4), own.T @ labels / n)
        # The gradient is below 1e-6 of its greatest size, curvature is at least .3.
        np.testing.assert_allclose(found.value[k], exact, atol=1e-4)
        risk = np.mean((own @ exact - labels) ** 2) / 2 + factor / 2 * exact @ exact
        np.testing.assert_allclose(found.stats["risk"][k], risk, rtol=1e-9)


def test_l1_penalty_thresholds_the_parameters_that_it_names():
    n, l1 = 4, np.array([[0.3, 0.3, 0.3, 0.0]])
    target = np.array([2.0, -1.0, 0.1, 0.1])
    x, y = np.sqrt(n) * np.eye(n), np.sqrt(n) * target
    found = levenberg_marquardt(
        linear, np.ones((1, n)), x[None], y[None], l1=l1, smooth=SMOOTH, max_steps=500
    )
    exact = np.sign(target) * np.maximum(np.abs(target) - l1[0], 0)
    # sqrt(z^2 + eps^2) differs from |z| by its width.
    np.testing.assert_allclose(found.value[0], exact, atol=SMOOTH)


def test_the_best_start_is_taken_and_a_failed_one_is_not():
    start, x, y, _ = problems()
    x[0] = np.nan
    found = levenberg_marquardt(linear, start, x, y)
    assert found.result.tolist() == [Result.NOT_FINITE, Result.CONVERGED, Result.CONVERGED]
    best = best_starts(found, 3)
    np.testing.assert_array_equal(best.value, found.value[[1 + found.stats["risk"][1:].argmin()]])


@pytest.mark.thorough
def test_networks_are_fitted_as_they_are_with_arguments_of_their_own():
    rng = np.random.default_rng(1)
    W1, w2 = rng.standard_normal((1, 3, 2)), np.ones((1, 2))
    x, noise = rng.standard_normal((1, 40, 3)), rng.standard_normal((1, 40))
    y = 1.5 * layer_outputs(x[0], W1[0], w2[0], 5.0)[None] + noise
    start = jax.vmap(partial(TwoLayer, sharpness=5.0))(W1, w2)
    plain = levenberg_marquardt(TwoLayer.__call__, start, x, y, l2=0.01)
    twice = levenberg_marquardt(
        lambda network, x, factor: factor * network(x), start, x, 2 * y, np.array([2.0]),
        l2=0.04,
    )  # fmt: skip
    assert plain.unwrap().sharpness == 5.0
    # Powers of two round nothing: both take the same steps.
    np.testing.assert_allclose(twice.unwrap().W1, plain.value.W1, rtol=1e-9)
    network = jax.tree.map(lambda a: jnp.asarray(a[0]), plain.value)
    slope = jax.grad(squared_risk)(
        network, jnp.asarray(x[0]), jnp.asarray(y[0]), jnp.ones(40), 0.01
    )
    assert max(float(jnp.max(jnp.abs(a))) for a in jax.tree.leaves(slope)) < 1e-5


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"y": np.ones((2, 9))}, r"leading axes \[2, 3\]"),
        ({"y": np.ones((3, 8))}, "labels of shape"),
        ({"l1": np.ones((3, 5))}, "a penalty of shape"),
        ({"max_steps": 0}, "max_steps = 0"),
    ],
)
def test_what_does_not_fit_is_refused(change, told):
    start, x, y, _ = problems()
    with pytest.raises(UserError, match=told):
        levenberg_marquardt(linear, start, x, **{"y": y, **change})
