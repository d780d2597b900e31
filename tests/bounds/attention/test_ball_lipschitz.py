"""Both bounds on the ball, against a head that is formed by hand and against each other."""

import numpy as np
import pytest

from attlas.bounds.attention import ball_lipschitz as module
from attlas.bounds.attention.ball_lipschitz import ball_lipschitz, castin2024_lipschitz


@pytest.mark.parametrize("n", [1, 2, 64])
def test_ratio_to_castin_stays_in_its_range(n):
    logits = 10 ** np.linspace(-4, 4, 81)
    ratio = np.asarray(ball_lipschitz(1.0, logits, 1.0, n)) / np.asarray(
        castin2024_lipschitz(1.0, logits, 1.0, n)
    )
    assert ratio.max() <= 0.7364
    assert ratio.min() >= 2 / 9


def test_two_tokens_on_a_line_by_finite_differences():
    def head(x):
        z = 0.5 * np.outer(x, x)
        P = np.exp(z - z.max(axis=1, keepdims=True))
        return 2 * (P / P.sum(axis=1, keepdims=True)) @ x

    rng = np.random.default_rng(0)
    gains = []
    for x in rng.uniform(-1.5, 1.5, (50, 3)):
        step = 1e-6
        J = np.stack([(head(x + step * e) - head(x - step * e)) / (2 * step) for e in np.eye(3)])
        gains.append(np.linalg.norm(J, 2))
    assert 0.2 < max(gains) / float(ball_lipschitz(2.0, 0.5, 1.5, 3)) <= 1


def test_both_formulas_term_by_term_with_their_allowance(coarse_rounding):
    eps = coarse_rounding(module, 1e-3)
    V, A, R, n, a, c = 1.7, 0.6, 2.3, 7, 0.9, 1.9
    atom = max(p * 4 * p * (1 - p) for p in np.linspace(0, 1, 30_001)) ** 0.5
    expected = V * (n**0.5 * (1 + atom * R * (A * R + a)) + R * (A * R + c)) * (1 + 24 * eps)
    np.testing.assert_allclose(ball_lipschitz(V, A, R, n, a, c), expected, rtol=1e-8)
    expected = 3**0.5 * V * (A**2 * R**4 * (4 * n + 1) + n) ** 0.5 * (1 + 24 * eps)
    np.testing.assert_allclose(castin2024_lipschitz(V, A, R, n), expected, rtol=1e-13)
