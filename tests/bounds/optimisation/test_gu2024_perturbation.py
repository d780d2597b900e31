"""The sharpened perturbation bounds hold for attacks, and are nearly attained."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.gu2024_perturbation import (
    gu2024_basic_bounds,
    gu2024_kernel_change,
    gu2024_relative_bounds,
)
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork, symmetric_network

D, M, K, N = 3, 64, 2, 5


def moved(network, rng, R, X):
    """A perturbation of norm R in every unit: random, or along a sample with random signs."""
    delta = rng.normal(size=network.W.shape)
    if rng.random() < 0.7:
        signs = rng.choice([-1.0, 1.0], size=M) if rng.random() < 0.5 else np.sign(X[0] @ network.W)
        delta = X[rng.integers(N)][:, None] * np.asarray(signs)[None, :]
    delta *= R / np.linalg.norm(delta, axis=0)
    return SoftmaxNetwork(network.W + jnp.asarray(delta), network.a, network.activation)


@pytest.mark.thorough
@pytest.mark.parametrize("activation", list(Activation))
@pytest.mark.parametrize("R", [1e-3, 0.1, 1.0])
def test_no_perturbation_exceeds_the_sharpened_lemma(activation, R):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) / 2
    worst = 0.0
    for trial in range(6):
        network = symmetric_network(
            jax.random.key(trial), D, M, K, sigma=1.0 + trial / 2, activation=activation
        )
        if trial % 2:
            network = SoftmaxNetwork(network.W, jnp.asarray(rng.uniform(-1, 1, (K, M))), activation)
        bound = np.asarray(gu2024_kernel_change(network, jnp.asarray(X), R))
        change = np.abs(softmax_ntk(moved(network, rng, R, X), X) - softmax_ntk(network, X))
        assert np.all(change <= bound * (1 + 1e-9))
        worst = max(worst, np.max(change[bound > 0] / bound[bound > 0], initial=0.0))
    # No sign changes where no unit of a ReLU network is within 1e-3 of zero.
    assert worst > 0.05 or (activation is Activation.RELU and R < 0.01)


def test_the_constant_of_the_diagonal_is_nearly_attained():
    # One unit of large overlap and small softmax mass, lifted against all the others.
    m, mass, R = 10**6, 0.01, 1e-4
    pair = np.log(mass / 2 / ((1 - mass) / (m - 2)))
    W = np.zeros((1, m))
    W[0, :2] = pair
    a = np.tile([1.0, -1.0], m // 2)[None]
    network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a))
    lifted = np.where(W > 0, R, -R)
    after = softmax_ntk(SoftmaxNetwork(jnp.asarray(W + lifted), jnp.asarray(a)), np.ones((1, 1)))
    change = (after - softmax_ntk(network, np.ones((1, 1)))).item()
    bound = float(gu2024_kernel_change(network, jnp.ones((1, 1)), R)[0, 0])
    assert 0.95 < change / bound <= 1


def test_basic_bounds_hold_and_the_sharp_ones_are_below():
    rng = np.random.default_rng(3)
    R, m, parts = 0.009, 50, {}
    for _ in range(20):
        w = rng.normal(size=m)
        delta = R * rng.choice([-1.0, 1.0], size=m)
        B = max(1.0, np.abs(w).max())
        e, f = np.exp(w), np.exp(w + delta)
        S, T = e / e.sum(), f / f.sum()
        z = rng.choice([-1.0, 1.0], size=m)
        left = {
            1: np.abs(w).max(),
            2: np.abs(w + delta).max(),
            3: np.abs(delta).max(),
            4: e.max(),
            5: f.max(),
            6: np.abs(np.exp(-delta) - 1).max(),
            7: np.abs(e - f).max(),
            8: abs(e.sum() - f.sum()),
            9: abs(1 / e.sum() - 1 / f.sum()),
            10: S.max(),
            11: T.max(),
            12: np.abs(S - T).max(),
            13: abs(z @ (S - T)),
        }
        right = gu2024_basic_bounds(B, R, m)
        assert right.keys() == left.keys()
        for part, value in left.items():
            assert value <= right[part] * (1 + 1e-12), part
        sharp = gu2024_relative_bounds(R)
        ratios = {
            7: (np.abs(e - f) / e).max(),
            8: abs(e.sum() - f.sum()) / e.sum(),
            9: e.sum() * abs(1 / e.sum() - 1 / f.sum()),
            12: (np.abs(S - T) / S).max(),
            13: abs(z @ (S - T)),
        }
        for part, value in ratios.items():
            assert value <= sharp[part] * (1 + 1e-9), part
            parts[part] = max(parts.get(part, 0), value / sharp[part])
    assert parts[7] > 0.999


def test_the_printed_lemma_grows_as_its_exponent():
    X = np.eye(5, 3)

    def whole(B, outputs, activation):
        network = symmetric_network(jax.random.key(0), 3, 4, outputs, activation=activation)
        bound = gu2024_kernel_change(network, jnp.asarray(X), 0.01, B=B, constants="printed")
        return float(jnp.linalg.norm(bound))

    one, two = (whole(B, 3, Activation.SOFTMAX) for B in (1.0, 2.0))
    np.testing.assert_allclose(one, 0.01 * 5 * 3 * np.exp(10), rtol=1e-12)
    np.testing.assert_allclose(two / one, np.exp(10), rtol=1e-12)
    np.testing.assert_allclose(whole(9.0, 1, Activation.RELU), 2 * 5 * 0.01, rtol=1e-12)
    exponential = whole(2.0, 1, Activation.EXPONENTIAL)
    np.testing.assert_allclose(exponential, 3 * 5 * 0.01 * np.exp(4), rtol=1e-12)


@pytest.mark.parametrize(
    ("activation", "W", "R", "entry"),
    [
        (Activation.SOFTMAX, [3.0, -1.0], 0.01, 0.01 * np.exp(30)),
        (Activation.SOFTMAX, [1.0, -2.0], 0.02, 0.02 * np.exp(20)),
        (Activation.SOFTMAX, [0.5, -0.2], 0.01, 0.01 * np.exp(10)),
        (Activation.EXPONENTIAL, [1.0, -2.0], 0.02, 0.06 * np.exp(4)),
        (Activation.RELU, [1.0, -2.0], 0.02, 0.04),
    ],
)
def test_the_printed_lemma_reads_its_radius_from_the_weights(activation, W, R, entry):
    network = SoftmaxNetwork(jnp.array([W]), jnp.array([[1.0, -1.0]]), activation)
    bound = gu2024_kernel_change(network, jnp.ones((1, 1)), R, constants="printed")
    np.testing.assert_allclose(bound, [[entry]], rtol=1e-12)


@pytest.mark.parametrize(
    ("e_B", "e_R", "m", "inside", "over_R"),
    [
        # Parts 4, 5, 10 and 11; parts 7, 8, 9, 12 and 13 over R.
        (2, 3, 5, (2, 6, 4 / 5, 36 / 5), (12, 60, 144 / 5, 1728 / 5, 1728)),
        (3, 2, 4, (3, 6, 9 / 4, 9), (12, 48, 54, 2592 / 4, 2592)),
        (2, 2, 1, (2, 4, 4, 16), (8, 8, 64, 512, 512)),
    ],
)
def test_basic_bounds_by_hand(e_B, e_R, m, inside, over_R):
    B, R = np.log(e_B), np.log(e_R)
    found = gu2024_basic_bounds(B, R, m)
    assert [*found] == [*range(1, 14)]
    for parts, expected in (
        ((1, 2, 3, 6), (B, B + R, R, 2 * R)),
        ((4, 5, 10, 11), inside),
        ((7, 8, 9, 12, 13), R * np.array(over_R)),
    ):
        np.testing.assert_allclose([found[part] for part in parts], expected, rtol=1e-14)


@pytest.mark.parametrize("R", [0.01, 0.3, 1.0, 4.0])
def test_relative_bounds_are_what_the_worst_change_does(R):
    # A part of the mass is lifted by R, and the others are lowered by R.
    mass = np.concatenate([[1e-12], np.linspace(1e-4, 1, 400_001)])
    lifted = mass * np.exp(R) / (mass * np.exp(R) + (1 - mass) * np.exp(-R))
    change = lifted - mass
    alike = max(abs(np.exp(moved) - 1) for moved in (-R, R))  # all units move alike
    worst = {7: alike, 8: alike, 9: alike, 12: (change / mass).max(), 13: 2 * change.max()}
    found = gu2024_relative_bounds(R)
    assert found.keys() == worst.keys()
    for part, value in worst.items():
        np.testing.assert_allclose(found[part], value, rtol=1e-7)


SAMPLES = np.array([[0.6, 0.0, 0.8], [0.3, -0.2, 0.1], [-0.7, 0.5, 0.2], [0.0, 0.0, 0.0]])
WEIGHTS = np.array([[0.9, -0.4, 1.2, 0.1, -1.5], [0.2, 0.7, -0.9, 1.1, 0.3], [-1, 0.5, 0.8, 2, 0]])
SECOND = np.array([[1.0, -1.0, 0.5, -0.8, 1.0], [-0.3, 0.2, 0.0, 0.1, -0.4]])


def blocks(activation, R):
    """The sharp bound at these weights, an entry for (output, sample, output, sample)."""
    network = SoftmaxNetwork(jnp.asarray(WEIGHTS), jnp.asarray(SECOND), activation)
    bound = gu2024_kernel_change(network, jnp.asarray(SAMPLES), R)
    return np.asarray(bound).reshape(2, len(SAMPLES), 2, len(SAMPLES))


@pytest.mark.parametrize("R", [0.01, 0.4, 1.1])
def test_softmax_bounds_by_loops(R):
    m = WEIGHTS.shape[1]
    found, capped = blocks(Activation.SOFTMAX, R), []
    for i, p, j, q in itertools.product(range(len(SAMPLES)), range(2), repeat=2):
        factor, shares = abs(sum(SAMPLES[i] * SAMPLES[j])), []
        for sample, output in ((SAMPLES[i], p), (SAMPLES[j], q)):
            units = [math.exp(sum(sample * WEIGHTS[:, r])) for r in range(m)]
            shares.append([unit / sum(units) for unit in units])
            mean = abs(sum(a * s for a, s in zip(SECOND[output], shares[-1], strict=True)))
            capped.append(mean + R * math.hypot(*sample) > 1)
            factor *= 2 if capped[-1] else 1 + mean + R * math.hypot(*sample)
        overlap = m * sum(s * t for s, t in zip(*shares, strict=True))
        spread = math.exp(2 * R * (math.hypot(*SAMPLES[i]) + math.hypot(*SAMPLES[j]))) - 1
        np.testing.assert_allclose(found[p, i, q, j], factor * overlap * spread, rtol=1e-12)
    assert any(capped) == (R > 1)


@pytest.mark.parametrize("R", [0.01, 0.4, 1.1])
def test_exponential_bounds_are_attained_along_the_sum_of_two_samples(R):
    found = blocks(Activation.EXPONENTIAL, R)

    def kernel(W):
        a = jnp.ones((1, W.shape[1]))
        return softmax_ntk(SoftmaxNetwork(jnp.asarray(W), a, Activation.EXPONENTIAL), SAMPLES)

    for i, j in itertools.product(range(3), repeat=2):
        sums = SAMPLES[i] + SAMPLES[j]
        moved = WEIGHTS + R * (sums / np.linalg.norm(sums))[:, None]
        change = abs(kernel(moved) - kernel(WEIGHTS))[i, j]
        np.testing.assert_allclose(found[:, i, :, j], np.full((2, 2), change), rtol=1e-11)
    np.testing.assert_array_equal(found[:, 3], 0)


@pytest.mark.parametrize("R", [0.01, 0.4, 1.1])
def test_relu_bounds_count_the_units_that_can_change(R):
    # The product of two slopes at the four corners of the logits that a step of length R reaches.
    found, m, shares = blocks(Activation.RELU, R), WEIGHTS.shape[1], set()
    for i, j in itertools.product(range(len(SAMPLES)), repeat=2):
        ends = [
            [[x @ w + side * R * np.linalg.norm(x) for side in (-1, 1)] for w in WEIGHTS.T]
            for x in (SAMPLES[i], SAMPLES[j])
        ]
        corners = [{s > 0 and t > 0 for s in ends[0][r] for t in ends[1][r]} for r in range(m)]
        share = sum(len(products) == 2 for products in corners) / m
        shares.add(share)
        expected = abs(SAMPLES[i] @ SAMPLES[j]) * share
        np.testing.assert_allclose(found[:, i, :, j], np.full((2, 2), expected), rtol=1e-12)
    assert len(shares) > 2 or R < 0.1


def test_a_relu_unit_that_a_step_brings_to_zero_can_change():
    network = SoftmaxNetwork(jnp.array([[0.5, 1.0]]), jnp.ones((1, 2)), Activation.RELU)
    bound = gu2024_kernel_change(network, jnp.ones((1, 1)), 0.5)
    np.testing.assert_array_equal(bound, [[0.5]])


def test_softmax_bounds_at_logits_beyond_the_range_of_exponentials():
    # All the mass on two of four units: the overlap is 4 (1/4 + 1/4), and both <a, S> are 0.
    W = jnp.array([[2000.0, 2000.0, -2000.0, 0.0]])
    network = SoftmaxNetwork(W, jnp.array([[1.0, -1.0, 1.0, 1.0]]))
    bound = gu2024_kernel_change(network, jnp.ones((1, 1)), 0.25)
    np.testing.assert_allclose(bound, [[2 * 1.25**2 * np.expm1(1.0)]], rtol=1e-14)


def test_the_printed_lemma_of_softmax_by_its_radius():
    network = SoftmaxNetwork(jnp.array([[3.0, -1.0]]), jnp.array([[1.0, -1.0]]))
    bound = gu2024_kernel_change(network, jnp.ones((1, 1)), 0.01, constants="printed")
    np.testing.assert_allclose(bound, [[0.01 * np.exp(30)]], rtol=1e-12)


def test_the_thirteen_parts_by_hand():
    B, R, m, e = 0.7, 0.03, 11, np.exp
    hand = [
        B, B + R, R, e(B), e(B + R), 2 * R, 2 * R * e(B + R), m * 2 * R * e(B + R),
        2 * R * e(3 * B + 2 * R) / m, e(2 * B) / m, e(2 * B + 2 * R) / m,
        4 * R * e(4 * B + 3 * R) / m, 4 * R * e(4 * B + 3 * R),
    ]  # fmt: skip
    found = gu2024_basic_bounds(B, R, m)
    np.testing.assert_allclose([found[k] for k in range(1, 14)], hand, rtol=1e-14)
    sharp = gu2024_relative_bounds(0.4)
    once, twice, tanh = np.exp(0.4) - 1, np.exp(0.8) - 1, 2 * np.tanh(0.2)
    expected = [once, once, once, twice, tanh]
    np.testing.assert_allclose([sharp[k] for k in (7, 8, 9, 12, 13)], expected, rtol=1e-14)


@pytest.mark.parametrize("activation", list(Activation))
def test_the_sharp_lemma_entry_by_entry(activation):
    rng = np.random.default_rng(8)
    d, m, k, n, R = 2, 7, 3, 4, 0.23
    W, a, X = rng.normal(size=(d, m)), rng.uniform(-1, 1, (k, m)), rng.normal(size=(n, d))
    expected = np.empty((k, n, k, n))
    for l, i, p, j in np.ndindex(k, n, k, n):
        x, y, size = X[i], X[j], abs(X[i] @ X[j])
        moves = [R * np.linalg.norm(z) for z in (x, y)]
        if activation is Activation.EXPONENTIAL:
            mean = np.mean(np.exp(W.T @ (x + y)))
            expected[l, i, p, j] = size * mean * (np.exp(R * np.linalg.norm(x + y)) - 1)
        elif activation is Activation.RELU:
            ends = [
                {z @ w > -s, z @ w > s} for w in W.T for z, s in zip((x, y), moves, strict=True)
            ]
            pairs = zip(ends[::2], ends[1::2], strict=True)
            products = [{u and v for u in one for v in other} for one, other in pairs]
            expected[l, i, p, j] = size * np.mean([len(values) == 2 for values in products])
        else:
            S, T = (np.exp(z @ W) / np.exp(z @ W).sum() for z in (x, y))
            heights = [
                1 + min(1, abs(head @ share) + s)
                for head, share, s in zip((a[l], a[p]), (S, T), moves, strict=True)
            ]
            size *= m * (S @ T) * np.prod(heights) * (np.exp(2 * sum(moves)) - 1)
            expected[l, i, p, j] = size
    network = SoftmaxNetwork(jnp.asarray(W), jnp.asarray(a), activation)
    found = np.asarray(gu2024_kernel_change(network, jnp.asarray(X), R))
    np.testing.assert_allclose(found, expected.reshape(k * n, k * n), rtol=1e-12)
    if activation is Activation.SOFTMAX:
        large = gu2024_kernel_change(network, jnp.asarray(300 * X), 1e-6)
        assert np.all(np.isfinite(np.asarray(large)))
