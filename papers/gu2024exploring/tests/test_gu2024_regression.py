"""The sharpened Theorem F.2 along flows of kernels that change, and where it is attained."""

from decimal import Decimal, localcontext

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from attlas.core.errors import UserError
from gu2024exploring.library.bounds.gu2024_regression import (
    gu2024_coupling,
    gu2024_regression_gap,
    gu2024_regression_gap_in_time,
)

STEPS = 400


def flows(rng, n, horizon):
    """Both predictors along u' = -H(t) (u - Y), by the classical Runge-Kutta method."""
    factor = rng.normal(size=(n, 2 * n))
    H, row, Y = (
        factor @ factor.T / (2 * n) + 0.2 * np.eye(n),
        rng.normal(size=n),
        rng.normal(size=n),
    )
    smallest = np.linalg.eigvalsh(H)[0]
    turn = rng.normal(size=(n, n))
    turn = (turn + turn.T) / np.linalg.norm(turn + turn.T)
    side = rng.normal(size=n)
    side /= np.linalg.norm(side)
    eps_H, eps_test, speed = 0.5 * smallest, 0.3, rng.uniform(0, 3)
    sign = rng.choice([-1.0, 1.0])

    def slopes(t, state):
        u, v = state[0], state[1]
        move = np.cos(speed * t)
        du = -(H + sign * eps_H * move * turn) @ (u - Y)
        dg = -(row + eps_test * move * side) @ (u - Y) + row @ (v - Y)
        return np.stack([du, -H @ (v - Y), np.full(n, dg)])

    state, h, gaps = np.zeros((3, n)), horizon / STEPS, [0.0]
    for step in range(STEPS):
        t = step * h
        one = slopes(t, state)
        two = slopes(t + h / 2, state + h / 2 * one)
        three = slopes(t + h / 2, state + h / 2 * two)
        state = state + h / 6 * (one + 2 * two + 2 * three + slopes(t + h, state + h * three))
        gaps.append(abs(state[2, 0]))
    scales = np.linalg.norm(Y), np.linalg.norm(row), smallest, eps_H, eps_test
    return np.linspace(0, horizon, STEPS + 1), np.array(gaps), scales


def test_the_gap_stays_below_the_bound_at_every_time():
    rng = np.random.default_rng(0)
    for _ in range(20):
        times, gaps, scales = flows(rng, 4, 20.0)
        bound = gu2024_regression_gap_in_time(jnp.asarray(times), *scales)
        # The method's error, of order (h ||H||)^4 h, is below 1e-4 of these gaps.
        assert np.all(gaps <= np.asarray(bound) * (1 + 1e-3) + 1e-6)
        assert float(bound[-1]) <= float(gu2024_regression_gap(*scales)) * (1 + 1e-12)


def test_one_sample_attains_the_bound():
    smallest, eps_H, eps_test, row, y = 0.7, 0.2, 0.1, 1.3, 0.9
    # H = lambda - eps_H and K_te + eps_test from the start: both predictors in closed form.
    network, kernel = (row + eps_test) * y / (smallest - eps_H), row * y / smallest
    rho = smallest - eps_H
    bound = gu2024_regression_gap(y, row, smallest, eps_H, eps_test, contraction=rho)
    np.testing.assert_allclose(network - kernel, bound, rtol=1e-12)


@pytest.mark.parametrize(
    ("start", "smallest", "kernel_change", "test_change", "options", "logs", "bound"),
    [
        # start^2 / (eps_H m lambda) = e^logs: C start (eps_test / lambda + logs^2 eps_H / lambda^2)
        (1.0, 1.0, 0.5, 0.25, {}, 0, 0.25),
        (2.0, 0.5, 0.25, 0.5, {}, 2, 2 * (1 + 4)),
        (2.0, 0.5, 0.25, 0.5, {"C": 3.0}, -1, 6 * (1 + 1)),
        (6.0, 2.0, 0.5, 0.1, {}, 3, 6 * (0.05 + 9 * 0.125)),
    ],
)
def test_printed_bound_by_hand(start, smallest, kernel_change, test_change, options, logs, bound):
    width = start**2 / (kernel_change * smallest) / np.exp(logs)
    found = gu2024_regression_gap(
        start, 7.0, smallest, kernel_change, test_change, m=width, constants="printed", **options
    )
    np.testing.assert_allclose(found, bound, rtol=1e-13)


def worst_case(start, row, rate, smallest, eps_H, eps_test):
    """The flow that the proof compares with, as a matrix, and its start.

    r is the residual, e = |u - v| and g the gap: r' = -rate r, e' = -smallest e + eps_H r,
    g' = eps_test r + row e.
    """
    slopes = np.array([[-rate, 0, 0], [eps_H, -smallest, 0], [eps_test, row, 0]])
    return slopes, np.array([start, 0, 0])


@pytest.mark.parametrize("time", [0.0, 0.1, 2.0, 30.0])
@pytest.mark.parametrize(
    ("start", "row", "smallest", "eps_H", "eps_test"),
    [(1.5, 2.0, 0.7, 0.3, 0.2), (0.3, 0.5, 2.0, 1.0, 0.0), (4.0, 0.7, 0.1, 0.02, 1.0)],
)
def test_bounds_in_time_are_the_flow_of_the_worst_case(start, row, smallest, eps_H, eps_test, time):
    sizes = row, smallest, eps_H, eps_test
    slopes, first = worst_case(start, row, smallest / 2, smallest, eps_H, eps_test)
    found = gu2024_regression_gap_in_time(jnp.array([time]), start, *sizes)
    np.testing.assert_allclose(found, [(expm(time * slopes) @ first)[2]], rtol=1e-11)
    slopes, first = worst_case(start, row, 0, 0, eps_H, eps_test)
    found = gu2024_coupling(time, start, row, eps_H, eps_test)
    np.testing.assert_allclose(found, (expm(time * slopes) @ first)[2], rtol=1e-11)


@pytest.mark.parametrize("share", [None, 0.5, 0.9, 0.2])
@pytest.mark.parametrize(
    ("start", "row", "smallest", "eps_H", "eps_test"),
    [(1.5, 2.0, 0.7, 0.3, 0.2), (0.3, 0.5, 2.0, 1.0, 0.0), (4.0, 0.7, 0.1, 0.02, 1.0)],
)
def test_bound_at_all_times_is_the_end_of_the_worst_case(
    start, row, smallest, eps_H, eps_test, share
):
    rho = smallest * (0.5 if share is None else share)
    slopes, first = worst_case(start, row, rho, smallest, eps_H, eps_test)
    ends = np.linalg.solve(slopes[:2, :2], -first[:2])  # integrals of r and e over all times
    found = gu2024_regression_gap(
        start, row, smallest, eps_H, eps_test, contraction=None if share is None else rho
    )
    np.testing.assert_allclose(found, slopes[2, :2] @ ends, rtol=1e-12)


def test_the_printed_bound_scales_wrongly_with_the_kernel():
    # In other units of the kernel (all kernels times s) predictions do not change; nor does the
    # sharpened bound, but the printed one does.
    s = 1e-3
    same = [gu2024_regression_gap(1.0, 2 * c, 0.5 * c, 0.1 * c, 0.3 * c) for c in (1.0, s)]
    np.testing.assert_allclose(same[0], same[1], rtol=1e-12)
    printed = [
        gu2024_regression_gap(
            5**0.5, 2 * c, 0.5 * c, 0.1 * c, 0.3 * c, m=100 / c, constants="printed"
        )
        for c in (1.0, s)
    ]
    assert not 0.9 < printed[1] / printed[0] < 1.1


def test_the_printed_bound_needs_the_width():
    with pytest.raises(UserError, match="the printed bound has no width: give m="):
        gu2024_regression_gap(1.0, 1.0, 1.0, 0.1, 0.1, constants="printed")


def test_the_coupling_bound_is_the_limit_of_a_singular_kernel():
    times = jnp.array([0.0, 0.1, 1.0, 10.0])
    known = (1.5, 2.0, 0.25, 0.5)
    start, row, eps_H, eps_test = known
    nearly = gu2024_regression_gap_in_time(times, start, row, 1e-5, eps_H, eps_test)
    bound = gu2024_coupling(times, start, row, eps_H, eps_test)
    assert np.allclose(nearly, bound, rtol=1e-3)
    wider = gu2024_regression_gap_in_time(times, start, row, 1.0, eps_H, eps_test)
    assert np.all(wider <= bound)


def test_the_coupling_of_fixed_kernels_is_that_of_one_sample_and_below_the_other():
    times = jnp.array([0.0, 1e-4, 9e-4, 1.1e-3, 0.1, 1.0, 100.0])
    start, row, eps_H, eps_test = 1.5, 2.0, 1.0, 0.5
    bound = np.asarray(gu2024_coupling(times, start, row, eps_H, eps_test, fixed=True))
    # the kernel 0 against the kernel eps_H: u(t) = K t Y and K (1 - e^{-eps_H t}) / eps_H Y
    t = np.asarray(times, np.float64)
    exact = start * (row * (t + np.expm1(-eps_H * t) / eps_H) + t * eps_test)
    assert np.allclose(bound, exact, rtol=1e-5, atol=1e-9)
    assert np.all(bound <= gu2024_coupling(times, start, row, eps_H, eps_test) * (1 + 1e-6))


def test_the_coupling_of_fixed_kernels_keeps_its_digits_at_short_times():
    """In 40 digits, on both sides of where the series takes over."""
    start, row, eps_H, eps_test = 1.5, 2.0, 0.7, 0.3
    for x, rtol in ((1e-6, 1e-14), (9.9e-4, 2e-14), (1.01e-3, 1e-12), (0.8, 1e-14), (3.0, 1e-14)):
        t = x / eps_H
        with localcontext(prec=40):
            passed, change = Decimal(t), Decimal(eps_H)
            share = float(passed - (1 - (-passed * change).exp()) / change)
        exact, alone = (start * (t * e + row * share) for e in (eps_test, 0))
        found = [float(gu2024_coupling(t, start, row, eps_H, e, fixed=True))
                 for e in (eps_test, 0.0)]  # fmt: skip
        np.testing.assert_allclose(found, (exact, alone), rtol=rtol)
