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
