"""A training beside regression: the gap is that of steps made by hand, and bounds are kept."""

import numpy as np
import pytest

from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.training.regression_gap import regression_gap, train_beside_regression
from gu2024exploring.library.training.sign_regression import (
    draw_network,
    draw_sign_regression,
    stable_step,
    train_on_signs,
    unit_inputs,
)
from gu2024exploring.library.training.softmax_regression import Keep

STEPS = 5


@pytest.mark.parametrize("activation", [Activation.SOFTMAX, Activation.EXPONENTIAL])
def test_the_gap_is_to_regression_steps_made_one_by_one(activation):
    problem, Z = draw_sign_regression(3, 3, [0], 1.0, activation), unit_inputs(2, 3, [7])
    network = draw_network(3, 256, [1], 1.0, activation)
    size, records = 0.1 * stable_step(network, problem.X), np.arange(STEPS + 1)
    path = train_on_signs(
        [network], [problem.X], [problem.y], [size], STEPS, records, Z, Keep(weights=True)
    )
    predicted = np.asarray(path.test_outputs)[0, ..., 0]
    found = regression_gap(
        network, np.asarray(path.W)[0], predicted, size, problem, Z, records.astype(float), 1.0
    )
    H = np.asarray(softmax_ntk(network, problem.X))
    K = np.asarray(softmax_ntk(network, np.concatenate([problem.X, Z]), problem.X))[3:]
    tangent = 256 if activation is Activation.SOFTMAX else 1
    u, test, expected = np.zeros(3), np.zeros(2), [np.zeros(2)]
    for _ in range(STEPS):
        left = problem.y - u
        u, test = u + tangent * size * H @ left, test + tangent * size * K @ left
        expected.append(test)
    # Gaps of 1e-6 and more are differences of numbers of order one, in float64.
    np.testing.assert_allclose(
        found.gap, np.abs(predicted - np.array(expected)), rtol=1e-6, atol=1e-12
    )
    assert found.eps_H > 0
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(H)[0], rel=1e-9)
    certified = found.eps_H <= found.smallest / 2
    assert np.all(found.gap <= (found.in_time if certified else found.sharp))


def kernel_by_definition(W, a, left, right):
    """H: <x, z> (1 / m) sum_r of the features m S_r (a_r - F / m) of one softmax output."""
    m, features = W.shape[1], []
    for x in (left, right):
        units = np.exp(x @ W)
        S = units / units.sum(axis=1, keepdims=True)
        features.append(m * S * (a - S @ a[0][:, None]))
    return features[0] @ features[1].T / m * (left @ right.T)


def test_two_trainings_beside_regression_have_the_gaps_changes_and_bounds_of_their_definitions():
    sigma, m, n, fraction = 0.8, 10, 4, 0.3
    problems = [draw_sign_regression(n, 3, [k], sigma, Activation.SOFTMAX) for k in range(2)]
    networks = [draw_network(3, m, [k, 1], sigma, Activation.SOFTMAX) for k in range(2)]
    Z, records = unit_inputs(2, 3, [7]), np.array([0, 1, 3])
    found = train_beside_regression(problems, networks, fraction, 3, records, Z, sigma)
    for e, (network, problem) in enumerate(zip(networks, problems, strict=True)):
        X, y, a, W = problem.X, problem.y, np.asarray(network.a), np.asarray(network.W)
        H, K = ([kernel_by_definition(W, a, b, X)] for b in (X, Z))
        eta = fraction / (m * np.linalg.eigvalsh(H[0])[-1])
        both = np.concatenate([X, Z])
        inner = both @ X.T
        limit = inner * np.exp(sigma**2 * inner)
        own, wide = np.zeros(n + 2), np.zeros(n + 2)
        gaps, limit_gaps = [], []
        for step in range(4):
            units = np.exp(both @ W)
            S = units / units.sum(axis=1, keepdims=True)
            F = m * S @ a[0]
            if step in records:
                gaps.append(abs(F - own)[n:])
                limit_gaps.append(abs(F - wide)[n:])
                if step:
                    H.append(kernel_by_definition(W, a, X, X))
                    K.append(kernel_by_definition(W, a, Z, X))
            phi = m * S[:n] * (a - F[:n, None] / m)
            W = W - eta * X.T @ ((F[:n] - y)[:, None] * phi)
            rows = np.concatenate([H[0], K[0]])
            own = own + m * eta * rows @ (y - own[:n])
            wide = wide + m * eta * limit @ (y - wide[:n])
        np.testing.assert_allclose(found.gap[e], gaps, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(found.limit_gap[e], limit_gaps, rtol=1e-8, atol=1e-12)
        values = [np.linalg.eigvalsh(h) for h in H]
        smallest, least = values[0][0], min(v[0] for v in values)
        change = max(np.linalg.norm(h - H[0], 2) for h in H)
        moved = np.max([np.linalg.norm(k - K[0], axis=1) for k in K], axis=0)
        norms, start = np.linalg.norm(K[0], axis=1), np.sqrt(n)
        logs = np.log(n / (change * m * smallest)) ** 2
        gone = -np.expm1(-m * eta * records * smallest / 2)[:, None]
        late = norms * change / smallest
        expected = {
            "eps_H": change,
            "eps_test": moved,
            "smallest": smallest,
            "kept": least,
            "sharp": start / least * (moved + late),
            "printed": start * (moved / smallest + logs * change / smallest**2),
            "in_time": 2 * start / smallest * (gone * moved + gone**2 * late),
        }
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(found, name)[e], value, rtol=1e-8, atol=1e-12)
