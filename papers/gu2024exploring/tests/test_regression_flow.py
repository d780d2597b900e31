"""Kernel regression at all times against steps that are really made."""

import numpy as np
import pytest
from scipy.linalg import expm

from attlas.core.errors import UserError
from gu2024exploring.library.kernels.regression_flow import descent_loss, regression_flow

EPS = float(np.finfo(float).eps)


def problem():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(7, 9))
    kernel = features @ features.T / 9
    return kernel[:5, :5], kernel[5:, :5], rng.normal(size=(5, 2)), rng.normal(size=(7, 2))


def test_descent_is_the_steps_one_by_one():
    kernel, cross, Y, start = problem()
    flow = regression_flow(kernel, Y, start[:5])
    step_size = 1.2 / flow.eigenvalues[-1]  # fast directions alternate, slow ones do not
    u, test = start[:5].copy(), start[5:].copy()
    for _ in range(6):
        test, u = test - step_size * cross @ (u - Y), u - step_size * kernel @ (u - Y)
    np.testing.assert_allclose(flow.train(np.array([6.0]), step_size)[0], u, rtol=1e-12)
    found = flow.test(cross, np.array([6.0]), step_size, start[5:])[0]
    np.testing.assert_allclose(found, test, rtol=1e-12)


def test_the_flow_is_the_matrix_exponential():
    kernel, cross, Y, start = problem()
    flow = regression_flow(kernel, Y, start[:5])
    t = 1.7
    away = expm(-t * kernel) @ (start[:5] - Y)
    np.testing.assert_allclose(flow.train(np.array([t]))[0], Y + away, rtol=1e-11)
    moved = start[5:] + cross @ np.linalg.solve(kernel, Y + away - start[:5])
    np.testing.assert_allclose(
        flow.test(cross, np.array([t]), None, start[5:])[0], moved, rtol=1e-9
    )


def test_a_singular_kernel_moves_only_in_its_range():
    kernel = np.ones((2, 2))
    Y = np.array([[1.0], [0.0]])
    flow = regression_flow(kernel, Y)
    # The range is the mean: both samples go to 1/2, and no number overflows.
    np.testing.assert_allclose(flow.train(np.array([1e6]))[0], [[0.5], [0.5]], atol=1e-12)
    test = flow.test(np.ones((1, 2)), np.array([0.0, 1e6]))
    np.testing.assert_allclose(test[:, 0, 0], [0.0, 0.5], atol=1e-9)


def test_a_step_of_the_inverse_eigenvalue_arrives_at_once():
    flow = regression_flow(np.diag([1.0, 0.5]), np.ones((2, 1)))
    found = flow.test(np.eye(2), np.array([0.0, 1.0, 3.0]), 1.0)
    np.testing.assert_allclose(found[..., 0], [[0, 0], [1, 1], [1, 1.75]], atol=1e-15)


def test_a_million_steps_are_one_power():
    flow = regression_flow(np.array([[1.0]]), np.array([[1.0]]))
    left = 1 - flow.train(np.array([1e6]), 1e-6).item()
    assert left == pytest.approx(np.exp(1e6 * np.log1p(-1e-6)), rel=1e-9)


def test_bad_kernels_are_one_line():
    with pytest.raises(UserError, match="one size for n"):
        regression_flow(np.ones((2, 3)), np.ones((2, 1)))
    with pytest.raises(UserError, match="not symmetric"):
        regression_flow(np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones((2, 1)))
    with pytest.raises(UserError, match=r"targets has shape \(3, 1\)"):
        regression_flow(np.eye(2), np.ones((3, 1)))
    with pytest.raises(UserError, match="NaN"):
        regression_flow(np.eye(2) * np.nan, np.ones((2, 1)))


def test_the_loss_of_descent_is_that_of_steps_made_one_by_one():
    kernel, _, Y, _ = problem()
    y, u, expected = Y[:, 0], np.zeros(5), []
    for _ in range(4):
        expected.append(np.sum((u - y) ** 2) / np.sum(y**2))
        u = u - kernel @ (u - y) / np.linalg.eigvalsh(kernel)[-1]
    np.testing.assert_allclose(descent_loss(kernel, y, np.arange(4)), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("largest", "apart", "fits"),
    [(3, 0.97, True), (3, 1.03, False), (0.25, 0.9, True), (0.25, 2.0, False)],
)
def test_a_kernel_may_be_asymmetric_by_the_rounding_of_a_gram_product(largest, apart, fits):
    n = 7
    kernel = largest * np.eye(n)
    kernel[0, 1] = apart * n * EPS * largest
    if fits:
        assert regression_flow(kernel, np.ones((n, 1))).cut == 0
    else:
        with pytest.raises(UserError, match="not symmetric"):
            regression_flow(kernel, np.ones((n, 1)))


def test_the_cut_is_the_most_negative_eigenvalue():
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    kernel = turn @ np.diag([-0.3, 0.5, 2.0]) @ turn.T
    flow = regression_flow((kernel + kernel.T) / 2, np.ones((3, 1)))
    np.testing.assert_allclose(flow.cut, -0.3, rtol=1e-13)
    np.testing.assert_allclose(flow.eigenvalues, [0, 0.5, 2.0], rtol=1e-13)
    assert regression_flow(np.diag([0.3, 0.5]), np.ones((2, 1))).cut == 0
