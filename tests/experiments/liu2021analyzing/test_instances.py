"""The minimiser against closed forms: least squares, ridge regression, soft thresholding."""

import numpy as np

from attlas.experiments.liu2021analyzing.instances import SMOOTH, Problem, best_of, fit

EPS = np.finfo(float).eps


def linear(theta, x, constants):
    return theta @ x


def problems(penalty):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 9, 4)), rng.standard_normal((3, 9))
    weight = np.ones((3, 9))
    weight[1, 6:] = 0.0
    start = rng.standard_normal((3, 4))
    return Problem(start, x, y, weight, np.tile(penalty, (3, 1)), np.zeros((3, 0)))


def test_ridge_regression_over_the_samples_that_count():
    given = problems(np.array([0.0, 0.3]))
    found = fit(linear, given, steps=60, width=2)
    assert found.stationary.all()
    for k in range(3):
        rows = given.weight[k] > 0
        x, y, n = given.x[k, rows], given.y[k, rows], rows.sum()
        exact = np.linalg.solve(x.T @ x / n + 0.3 * np.eye(4), x.T @ y / n)
        # The gradient is below 1e-6 of its greatest size, curvature is at least .3.
        np.testing.assert_allclose(found.parameters[k], exact, atol=1e-4)
        risk = np.mean((x @ exact - y) ** 2) / 2 + 0.15 * exact @ exact
        np.testing.assert_allclose(found.risk[k], risk, rtol=1e-9)


def test_l1_penalty_thresholds():
    n, l1 = 4, 0.3
    target = np.array([2.0, -1.0, 0.1, 0.0])
    x = np.sqrt(n) * np.eye(n)
    ones = np.ones((1, n))
    given = Problem(
        ones, x[None], (np.sqrt(n) * target)[None], ones, np.array([[l1, 0.0]]), np.zeros((1, 0))
    )
    found = fit(linear, given, steps=500, width=1).parameters[0]
    exact = np.sign(target) * np.maximum(np.abs(target) - l1, 0)
    # sqrt(z^2 + SMOOTH^2) differs from |z| by its width.
    np.testing.assert_allclose(found, exact, atol=SMOOTH)


def test_the_best_start_is_taken_and_a_failed_one_is_not():
    found = fit(linear, problems(np.zeros(2)), steps=40, width=3)
    risk = np.array([np.nan, 2.0, 1.0])
    best = best_of(found._replace(risk=risk), 3)
    np.testing.assert_array_equal(best.parameters, found.parameters[2:])
