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

TEN = math.log(10)
ROOT = TEN / 2
"""Here e^{2B} is 10."""


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


@pytest.mark.parametrize(
    ("n", "d", "delta", "sigma", "C", "B"),
    [
        # n d / delta = e^4 and e^9, whose logarithms have the roots 2 and 3.
        (2, 3, 6 * math.exp(-4), 0.5, 7.0, 7.0),
        (3, 2, 6 * math.exp(-9), 0.5, 7.0, 10.5),
        (1, 1, math.exp(-9), 2.0, 0.5, 3.0),
        (1, 1, math.exp(-4), 0.1, 0.5, 1.0),
    ],
)
def test_printed_radius_by_hand(n, d, delta, sigma, C, B):
    found = (
        gu2024_radius(n, d, delta, sigma, C=C, constants="printed"),
        gu2024_radius(n, d, delta, C * sigma / 10, constants="printed"),
    )
    np.testing.assert_allclose(found, B, rtol=1e-14)


@pytest.mark.parametrize(
    ("n", "m", "delta", "sigma", "B"),
    [
        # n m / (2 delta) = e^2 and e^8.
        (3, 4, 6 * math.exp(-2), 1.5, 3.0),
        (5, 4, 10 * math.exp(-8), 0.7, 2.8),
        (1, 2, math.exp(-8), 2.0, 8.0),
        (1, 2, math.exp(-8), 0.2, 1.0),
    ],
)
def test_corrected_radius_by_hand_whatever_the_outputs(n, m, delta, sigma, B):
    for d in (1, 6):
        found = gu2024_radius(n, d, delta, sigma, m=m)
        np.testing.assert_allclose(found, B, rtol=1e-14)


@pytest.mark.parametrize(
    ("n", "d", "smallest", "B", "logs", "width", "step", "steps"),
    [
        # m = 10^3 for the step. Powers of 10 of lambda, n d, e^B and the logarithm, of 0.1 for
        # the step and of 20 * 5 for the steps.
        (1, 1, 1.0, 0.0, 1, 0, -1 - 3, 2),
        (1, 1, 0.01, 0.0, 1, 4, -1 - 2 - 3, 4 + 2),
        (1, 10, 1.0, 0.0, 1, 2, -1 - 2 - 3, 2 + 2),
        (10, 1, 1.0, 0.0, 1, 2, -1 - 2 - 3, 2 + 2),
        (2, 5, 0.1, ROOT, 10, 2 + 2 + 9 + 2, -1 - 1 - 2 - 8 - 3, 2 + 2 + 8 + 3),
        (20, 50, 0.1, 3 * ROOT, 10, 2 + 6 + 27 + 2, -1 - 1 - 6 - 24 - 3, 2 + 6 + 24 + 3),
    ],
)
def test_width_step_and_steps_are_these_powers_of_ten(n, d, smallest, B, logs, width, step, steps):
    """With log(n d / delta) = `logs` and log(n d / epsilon) = 5 `logs`."""
    delta, epsilon = n * d * math.exp(-logs), n * d * math.exp(-5 * logs)
    found = (
        gu2024_width_at_radius_log10(n, d, smallest, B, delta),
        gu2024_width_at_radius_log10(n, d, smallest, B, delta, 3),
        gu2024_step_log10(n, d, smallest, B, 3.0),
        gu2024_steps_log10(n, d, smallest, B, epsilon),
    )
    expected = (width, width + math.log10(n * d), step, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("sigma", "C", "B"), [(1.0, 0.2, 2.0), (0.5, 1.0, 5.0), (0.2, 1.0, 2.0)])
def test_printed_width_is_that_at_the_printed_radius(sigma, C, B):
    # n d = 10 and log(n d / delta) = 100: B = 10 C sigma. C is 10 by default.
    args = 2, 5, 0.1, 10 * math.exp(-100)
    expected = 2 + 2 + 18 * B / TEN + 4
    for power in (2, 3):
        found = (
            gu2024_width_log10(*args, sigma, C=C, power=power, constants="printed"),
            gu2024_width_log10(*args, C * sigma / 10, power=power, constants="printed"),
        )
        np.testing.assert_allclose(found, expected + power - 2, rtol=1e-13)


@pytest.mark.parametrize("power", [2, 3])
@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("n", "d", "smallest", "delta"), [(5, 3, 0.1, 0.1), (40, 2, 0.7, 0.01)])
def test_corrected_width_is_what_it_says_at_its_own_radius(n, d, smallest, delta, sigma, power):
    # By bisection: below the width, the width that B(m) asks for is above m. log m is the square
    # of about 18 sqrt(2) sigma: m itself has no floating-point number where sigma is large.
    def excess(log10):
        B = max(sigma * math.sqrt(2 * (math.log(n / (2 * delta)) + TEN * log10)), 1.0)
        return float(gu2024_width_at_radius_log10(n, d, smallest, B, delta, power)) - log10

    low, high = 1.0, 1e5
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    found = gu2024_width_log10(n, d, smallest, delta, sigma, power=power)
    np.testing.assert_allclose(found, low, rtol=1e-11)


@pytest.mark.parametrize("start", [None, 0.7, 5.0])
@pytest.mark.parametrize(
    ("n", "d", "rate", "epsilon"),
    [(1, 3, 0.5, 0.01), (2, 3, 0.03, 0.5), (7, 2, 0.9, 1e-9), (2, 2, 1e-3, 3.0)],
)
def test_steps_are_counted(n, d, rate, epsilon, start):
    square, count = n * d if start is None else start, 0
    while square > epsilon:
        square, count = (1 - rate) * square, count + 1
    assert float(gu2024_steps(n, d, rate, epsilon, start)) == count


@pytest.mark.parametrize(
    ("activation", "smallest", "epsilon", "options", "width", "steps"),
    [
        # n = e^10, n / epsilon = e^100 and n^2 / epsilon = e^100: powers of 10 of lambda, of
        # log n = 10 and of the 100.
        (Activation.RELU, 0.1, math.exp(-90), {"extra": 0.3}, 2 + 1, 2 + 2),
        (Activation.RELU, 1.0, math.exp(-90), {}, 1, 2),
        (Activation.EXPONENTIAL, 0.1, math.exp(-80), {"extra": 0.3}, 4 + 3 / TEN, 4 + 3 / TEN),
        (Activation.SOFTMAX, 0.1, math.exp(-80), {"extra": 0.3}, 4 + 3 / TEN, 4 + 3 / TEN),
        (Activation.SOFTMAX, 1.0, math.exp(-80), {}, 2, 2),
    ],
)
def test_table_1_by_hand(activation, smallest, epsilon, options, width, steps):
    row = gu2024_table_1_log10(activation, math.exp(10), smallest, epsilon, **options)
    expected = {"width": 20 / TEN + width, "steps": 20 / TEN + steps}
    assert row.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=1e-13)


@pytest.mark.parametrize(
    ("n", "d", "m", "smallest", "e_B", "residual", "radius", "movement", "gradient"),
    [
        (4, 9, 16, 0.25, 1, 1.0, 0.25 / 72, 8 * 6 / 4, 6),
        (9, 1, 4, 1.0, 1, 0.5, 1 / 18, 8 * 3 * 0.5 / 4, 1.5),
        (1, 4, 2, 0.5, 2, 1.0, 0.5 / 8 / 1024, 8 * 8 * 2 / 1, 8 * 2),
    ],
)
def test_quantities_of_the_induction_by_hand(
    n, d, m, smallest, e_B, residual, radius, movement, gradient
):
    B = math.log(e_B)
    found = (
        gu2024_movement_radius(n, d, smallest, B),
        gu2024_movement(n, d, m, smallest, B, residual),
        gu2024_gradient(n, d, B, residual),
    )
    np.testing.assert_allclose(found, (radius, movement, gradient), rtol=1e-14)


@pytest.mark.parametrize(("n", "d", "printed", "sharp"), [(4, 9, 6, 2), (9, 1, 3, 3), (1, 4, 2, 1)])
def test_start_by_hand(n, d, printed, sharp):
    found = gu2024_start(n, d, "printed"), gu2024_start(n, d)
    np.testing.assert_allclose(found, (printed, sharp), rtol=1e-15)


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


def test_table_1_of_every_activation_by_hand():
    for activation in Activation:
        relu = activation is Activation.RELU
        factor = N ** (2 if relu else 2.3) / LEAST**2
        width = factor * math.log(N) ** (1 if relu else 2)
        steps = factor * math.log((N if relu else N**2) / 0.05)
        row = gu2024_table_1_log10(activation, N, LEAST, 0.05, 0.3)
        expected = [math.log10(width), math.log10(steps)]
        np.testing.assert_allclose([row["width"], row["steps"]], expected, rtol=1e-13)
