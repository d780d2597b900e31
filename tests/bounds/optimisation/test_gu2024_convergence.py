import math

import numpy as np
import pytest

from attlas.bounds.optimisation.gu2024_convergence import (
    gu2024_gradient,
    gu2024_movement,
    gu2024_movement_radius,
    gu2024_radius,
    gu2024_start,
    gu2024_step_log10,
    gu2024_steps,
    gu2024_steps_log10,
    gu2024_table_1_log10,
    gu2024_width_at_radius_log10,
    gu2024_width_log10,
)
from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import Activation


@pytest.mark.parametrize(("n", "d", "width"), [(5, 3, 1.8e23), (10, 2, 1.1e24), (100, 10, 4.5e33)])
def test_the_printed_width_is_vacuous_at_every_size(n, d, width):
    # sigma = 1, delta = 0.1, lambda = 0.1 and even C = 1; a number with two digits.
    log10 = gu2024_width_log10(n, d, 0.1, 0.1, 1.0, C=1.0, constants="printed")
    np.testing.assert_allclose(10 ** float(log10), width, rtol=0.03)


def test_printed_step_and_iterations_contract_as_the_theorem_says():
    n, d, smallest, B, epsilon = 3, 2, 0.4, 1.1, 0.01
    m = 10 ** float(gu2024_width_at_radius_log10(n, d, smallest, B, 0.1))
    eta = 10 ** float(gu2024_step_log10(n, d, smallest, B, math.log10(m)))
    rate = m * eta * smallest / 2
    np.testing.assert_allclose(rate, 0.05 * smallest**2 / (n * d) ** 2 / math.exp(16 * B))
    least = float(gu2024_steps(n, d, rate, epsilon))
    printed = 10 ** float(gu2024_steps_log10(n, d, smallest, B, epsilon))
    assert 0.999 * printed < least <= printed + 1
    assert gu2024_steps(n, d, rate, epsilon, start=n) < least
    # The movement stays within the radius at the printed width.
    start = float(gu2024_start(n, d, "printed"))
    assert gu2024_movement(n, d, m, smallest, B, start) < gu2024_movement_radius(n, d, smallest, B)
    assert eta * gu2024_gradient(n, d, B, start) < 0.01


def test_the_corrected_width_solves_its_equation():
    n, d, smallest, delta, sigma = 5, 3, 0.1, 0.1, 0.3
    log10 = float(gu2024_width_log10(n, d, smallest, delta, sigma))
    B = gu2024_radius(n, d, delta, sigma, m=10**log10)
    again = float(gu2024_width_at_radius_log10(n, d, smallest, B, delta))
    np.testing.assert_allclose(log10, again, rtol=1e-12)


def test_the_corrected_radius_bounds_all_units():
    rng = np.random.default_rng(0)
    n, m, sigma, delta, d = 4, 200, 0.7, 0.2, 3
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    B = float(gu2024_radius(n, 1, delta, sigma, m=m))
    exceeded = np.mean([
        np.abs(X @ rng.normal(size=(d, m // 2)) * sigma).max() > B for _ in range(400)
    ])  # fmt: skip
    assert exceeded < delta
    # The printed one with C = 1 has no m, and fails far more often than delta.
    printed = float(gu2024_radius(n, 1, delta, sigma, C=1.0, constants="printed"))
    failed = np.mean([
        np.abs(X @ rng.normal(size=(d, m // 2)) * sigma).max() > printed for _ in range(100)
    ])  # fmt: skip
    assert failed > delta


def test_table_1_has_the_same_row_for_softmax_and_exponential():
    rows = {a: gu2024_table_1_log10(a, 100, 0.1, 0.01, 0.1) for a in Activation}
    assert rows[Activation.SOFTMAX] == rows[Activation.EXPONENTIAL]
    for name in ("width", "steps"):
        assert rows[Activation.RELU][name] < rows[Activation.SOFTMAX][name]
    # With o(1) read as 18 B / log n the row is Corollary 4.3 up to log(1 / delta).
    B = gu2024_radius(100, 1, 1.0, 1.0, C=1.0, constants="printed")
    row = gu2024_table_1_log10(Activation.SOFTMAX, 100, 0.1, 0.01, 18 * B / math.log(100))
    width = gu2024_width_at_radius_log10(100, 1, 0.1, B, 1.0)
    np.testing.assert_allclose(row["width"], width, rtol=1e-12)


def test_the_corrected_radius_needs_the_width():
    with pytest.raises(UserError, match="the corrected B has no width: give m="):
        gu2024_radius(5, 3, 0.1, 1.0)


N, OUT, LEAST, DELTA = 7, 3, 0.23, 0.04
E = math.log10(math.e)


def test_radii_by_hand():
    printed = 4.0 * 0.6 * math.sqrt(math.log(N * OUT / DELTA))
    found = gu2024_radius(N, OUT, DELTA, 0.6, C=4.0, constants="printed")
    np.testing.assert_allclose(found, printed, rtol=1e-14)
    corrected = 0.6 * math.sqrt(2 * math.log(N * 50 / (2 * DELTA)))
    np.testing.assert_allclose(gu2024_radius(N, OUT, DELTA, 0.6, m=50), corrected, rtol=1e-14)
    assert gu2024_radius(N, OUT, DELTA, 0.01, m=50) == 1


@pytest.mark.parametrize("power", [2, 3])
def test_widths_by_hand(power):
    logs = 2 * math.log10(math.log(N * OUT / DELTA))
    others = power * math.log10(N * OUT) - 2 * math.log10(LEAST) + logs
    at = gu2024_width_at_radius_log10(N, OUT, LEAST, 1.7, DELTA, power)
    np.testing.assert_allclose(at, others + 18 * 1.7 * E, rtol=1e-14)
    printed = gu2024_width_log10(N, OUT, LEAST, DELTA, 0.6, C=4.0, power=power, constants="printed")
    B = 4.0 * 0.6 * math.sqrt(math.log(N * OUT / DELTA))
    np.testing.assert_allclose(printed, others + 18 * B * E, rtol=1e-14)
    # by fixed points: B grows with the width, and is 1 where sigma is small
    for sigma in (0.4, 1e-3):
        log10 = 1.0
        for _ in range(400):
            log_m = log10 / E
            B = max(sigma * math.sqrt(2 * (math.log(N / (2 * DELTA)) + log_m)), 1)
            log10 = others + 18 * B * E
        found = gu2024_width_log10(N, OUT, LEAST, DELTA, sigma, power=power)
        np.testing.assert_allclose(found, log10, rtol=1e-10)


def test_steps_and_movements_by_hand():
    step = 0.1 * LEAST / (10**5.5 * (N * OUT) ** 2 * math.exp(16 * 0.3))
    found = gu2024_step_log10(N, OUT, LEAST, 0.3, 5.5)
    np.testing.assert_allclose(found, math.log10(step), rtol=1e-13)
    steps = 20 / LEAST**2 * (N * OUT) ** 2 * math.exp(16 * 0.3) * math.log(N * OUT / 0.05)
    found = gu2024_steps_log10(N, OUT, LEAST, 0.3, 0.05)
    np.testing.assert_allclose(found, math.log10(steps), rtol=1e-13)
    for start in (None, 4.5):
        error, count = N * OUT if start is None else start, 0
        while error > 0.05:
            error, count = error * (1 - 0.13), count + 1
        assert gu2024_steps(N, OUT, 0.13, 0.05, start) == count
    assert gu2024_steps(N, OUT, 0.13, 100.0) == 0
    radius = LEAST / (2 * N * OUT * math.exp(10 * 0.3))
    np.testing.assert_allclose(gu2024_movement_radius(N, OUT, LEAST, 0.3), radius, rtol=1e-13)
    slope = math.exp(3 * 0.3) * math.sqrt(N * OUT) * 1.4
    np.testing.assert_allclose(gu2024_gradient(N, OUT, 0.3, 1.4), slope, rtol=1e-13)
    moved = gu2024_movement(N, OUT, 90, LEAST, 0.3, 1.4)
    np.testing.assert_allclose(moved, 8 * slope / (90 * LEAST), rtol=1e-13)
    starts = gu2024_start(N, OUT), gu2024_start(N, OUT, "printed")
    np.testing.assert_allclose(starts, [math.sqrt(N), math.sqrt(N * OUT)], rtol=1e-14)


def test_table_1_by_hand():
    for activation in Activation:
        relu = activation is Activation.RELU
        factor = N ** (2 if relu else 2.3) / LEAST**2
        width = factor * math.log(N) ** (1 if relu else 2)
        steps = factor * math.log((N if relu else N**2) / 0.05)
        row = gu2024_table_1_log10(activation, N, LEAST, 0.05, 0.3)
        expected = [math.log10(width), math.log10(steps)]
        np.testing.assert_allclose([row["width"], row["steps"]], expected, rtol=1e-13)
