"""The minimiser against closed forms: least squares, ridge regression, soft thresholding."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
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


def _steps_by_hand(theta, x, y, weights, l1, l2, factor, smooth, steps):
    """Damped Gauss-Newton steps in NumPy: the end, its risk, the gradient over its bound."""
    n = weights.sum()

    def measured(theta):
        hidden = np.tanh(x @ theta[:2])
        inner = factor * theta[2] * (1 - hidden**2)
        J = np.stack([inner * x[:, 0], inner * x[:, 1], factor * hidden], axis=1)
        left = factor * theta[2] * hidden - y
        size = np.sqrt(theta**2 + smooth**2)
        risk = np.sum(weights * left**2) / (2 * n) + np.sum(l1 * size + l2 * theta**2 / 2)
        slope = np.einsum("i,i,ij->j", weights, left, J) / n + l1 * theta / size + l2 * theta
        square = np.einsum("i,ij,ik->jk", weights, J, J) / n + np.diag(l1 / size + l2)
        # Norms of J and of what is left, over the samples that count, and of the penalties.
        most = np.sqrt(np.sum(weights[:, None] * J**2) * np.sum(weights * left**2)) / n
        most += np.sum(l1**2) ** 0.5 + np.sum((l2 * theta) ** 2) ** 0.5
        return risk, slope, square, most

    damping, now, improved = 0.01, measured(theta), []
    for _ in range(steps):
        _, slope, square, _ = now
        trial = theta - np.linalg.solve(square + damping * np.trace(square) / 3 * np.eye(3), slope)
        improved.append(bool(measured(trial)[0] < now[0]))
        if improved[-1]:
            theta, now, damping = trial, measured(trial), damping / 4
        else:
            damping *= 4
    return theta, now[0], np.sum(now[1] ** 2) ** 0.5 / now[3], improved


def test_steps_are_those_of_the_definition():
    """Four steps of two problems, some undone, with samples and penalties of their own."""
    rng = np.random.default_rng(16)
    starts = rng.standard_normal((2, 3))
    x, y = 2 * rng.standard_normal((2, 5, 2)), 2 * rng.standard_normal((2, 5))
    l1, l2 = rng.uniform(0.05, 0.2, (2, 3)), rng.uniform(0.02, 0.1, (2, 3))
    weights, factors = np.array([[1.0, 1, 1, 1, 1], [1, 1, 1, 1, 0]]), np.array([1.3, 0.6])
    found = levenberg_marquardt(
        lambda theta, x, factor: factor * theta[2] * jnp.tanh(theta[:2] @ x),
        starts, x, y, factors, weights=weights, l1=l1, l2=l2, smooth=0.1, max_steps=4,
    )  # fmt: skip
    histories = []
    for k in range(2):
        parts = (starts, x, y, weights, l1, l2, factors)
        *expected, history = _steps_by_hand(*(part[k] for part in parts), 0.1, 4)
        measured = found.value[k], found.stats["risk"][k], found.certificate["gradient"][k]
        for mine, theirs in zip(measured, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)
        histories.append(history)
    assert histories == [[True, False, True, True], [True, True, False, False]]
    assert found.stats["steps"].tolist() == [4, 4]
    assert found.result.tolist() == [Result.MAX_STEPS] * 2


def test_a_gradient_of_just_the_tolerance_is_converged():
    """One sample and one weight: the gradient attains its upper bound, or both are zero."""
    x, y = np.ones((2, 1, 1)), np.array([[3.0], [0.0]])
    found = levenberg_marquardt(linear, np.zeros((2, 1)), x, y, tolerance=1.0)
    assert found.certificate["gradient"].tolist() == [1.0, 0.0]
    assert found.result.tolist() == [Result.CONVERGED] * 2
    assert found.stats["steps"].tolist() == [0, 0]


def test_steps_end_where_no_damping_lowers_the_risk():
    """A slope of the wrong sign, and one of a constant: 1e-2 times 4^17 is the first over 1e8."""

    def misleading(theta, x, slope, true_slope):
        constant = (true_slope - slope) * jax.lax.stop_gradient(theta) + 1 - true_slope
        return (slope * theta + constant) @ x

    ones, slopes = np.ones((2, 1)), (np.array([-1.0, 1.0]), np.array([1.0, 0.0]))
    found = levenberg_marquardt(misleading, ones, ones[:, None], 0 * ones, *slopes)
    assert found.stats["steps"].tolist() == [17, 17]
    assert found.value.tolist() == [[1.0], [1.0]]
    assert found.stats["risk"].tolist() == [0.5, 0.5]
    assert found.result.tolist() == [Result.MAX_STEPS] * 2


def test_of_each_problems_starts_the_least_finite_risk_counts():
    risk = np.array([3.0, np.nan, 2.0, 4.0, -np.inf, 1.5, 7.0, np.inf, np.nan, 9.0, 8.0, 8.0])
    ends = Solution(10 * np.arange(12), np.arange(12), {}, {"risk": risk, "steps": np.arange(12)})
    best = best_starts(ends, 4)
    assert best.value.tolist() == [20, 50, 100]
    assert best.result.tolist() == [2, 5, 10]
    assert best.stats["risk"].tolist() == [2.0, 1.5, 8.0]
    assert best_starts(ends, 3).value.tolist() == [20, 50, 60, 100]


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 7])
def test_problems_come_back_in_their_order_whatever_the_batch(at_once):
    """The end of a linear problem without penalties is its interpolation, weight by weight."""
    x, y = np.ones((5, 1, 1)), np.arange(2.0, 7)[:, None]
    found = levenberg_marquardt(linear, np.zeros((5, 1)), x, y, l2=0.5, at_once=at_once)
    np.testing.assert_allclose(found.value[:, 0], np.arange(2.0, 7) / 1.5, rtol=1e-5)


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
