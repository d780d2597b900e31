"""The change of an average by softmax: attained by two tokens, not exceeded by many."""

import math
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import rel_entr

from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.pac_bayes_margin import (
    Lengths,
    Noise,
    _grouped,
    noise_threshold,
    pac_bayes_margin,
    perturbed_softmax,
)


def test_attained_by_two_tokens_and_no_derivative():
    for h in (1e-3, 1.0, 30.0):
        p, q = (jax.nn.softmax(jnp.array([s * h / 4, -s * h / 4])) for s in (-1, 1))
        np.testing.assert_allclose((q - p) @ jnp.array([1.0, -1.0]), perturbed_softmax(2.0, h))


def test_holds_for_moves_of_any_size():
    rng = np.random.default_rng(0)
    z, h, v = rng.normal(size=(3, 500, 6)) * np.array([2.0, 5.0, 1.0])[:, None, None]
    moved = np.abs(np.sum((jax.nn.softmax(z + h) - jax.nn.softmax(z)) * v, axis=1))
    bound = perturbed_softmax(jnp.asarray(np.ptp(v, axis=1)), jnp.asarray(np.ptp(h, axis=1)))
    assert np.all(moved <= bound)
    assert np.max(moved / bound) > 0.7


SAFE = 1 + 2**-40


def upper_quantile(p):
    return NormalDist().inv_cdf(1 - p)


def test_threshold_of_several_heads_and_tokens_by_hand():
    """Standard deviations of 0.3 on the readouts and 0.2 on the M, three heads, four tokens."""
    lengths = Lengths(np.array([0.7, 1.3]), np.array([1.1, 0.4]), np.array([0.9, 2.0]))
    found = noise_threshold(lengths, 3, 4, Noise(0.3, 0.2, 0.01))
    side, spread = upper_quantile(0.005), upper_quantile(0.01 / (2 * 3 * 12))
    for k, (token, diameter, cls) in enumerate(zip(*lengths, strict=True)):
        moved = 0.3 * token * side + diameter * math.tanh(0.2 * diameter * cls * spread / 4)
        assert found[k] == pytest.approx(math.sqrt(3) * moved * SAFE, rel=1e-13, abs=0)
    one = noise_threshold(lengths, 3, 1, Noise(0.3, 0.2, 0.01))
    np.testing.assert_allclose(one, math.sqrt(3) * 0.3 * side * lengths.token, rtol=1e-11)


def rounded_up(norm):
    """The next power of 2^(1/64), or the one that it exceeds by rounding alone."""
    steps = 64 * math.log2(norm)
    near = round(steps)
    return 2 ** ((near if 0 <= steps - near < 1e-6 else math.ceil(steps)) / 64) * (1 + 1e-6)


def near_upper_inverse(q, c):
    """sup {p : kl(q || p) <= c} by bisection of arrays, to twelve digits."""
    low, high = q.copy(), np.ones_like(q)
    for _ in range(45):
        p = (low + high) / 2
        inside = rel_entr(q, p) + rel_entr(1 - q, 1 - p) <= c
        low, high = np.where(inside, p, low), np.where(inside, high, p)
    return low


@pytest.mark.parametrize("m", [1e5, 1e7])
def test_the_bound_is_the_least_over_all_scales_and_tails(m):
    rng = np.random.default_rng(5)
    a, M = rng.normal(size=(2, 3)), 0.5 * rng.normal(size=(2, 3, 3))
    X, x = rng.uniform(-1, 1, (60, 4, 3)), np.array([0.6, 0.0, 0.8 * (1 + 1e-12)])
    f = measure_margins(LinearAttention(a, M), X, x, np.ones(60)).margins
    own = measure_margins(LinearAttention(a, M), X, x, np.sign(f) * np.where(f > 1, -1, 1))
    token, diameter, cls = (
        np.array([rounded_up(v) for v in norms])
        for norms in (own.length, own.diameter, np.linalg.norm(own.cls, axis=1))
    )
    assert cls[0] == 1 + 1e-6
    for found, norms in zip(_grouped(own).lengths, (token, diameter, cls), strict=True):
        np.testing.assert_allclose(np.unique(found), np.unique(norms), rtol=1e-13)
    scales = np.array([2.0 ** (k / 2) for k in range(-24, 9)])
    eta = np.array([0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4])
    side, spread = ([upper_quantile(e / n) for e in eta] for n in (2, 2 * 2 * 12))
    tau, sigma = scales[:, None, None, None], scales[:, None, None]
    moved = diameter * np.tanh(sigma * diameter * cls * np.array(spread)[:, None] / 4)
    t = math.sqrt(2) * (tau * token * np.array(side)[:, None] + moved) * SAFE
    below = (own.margins / math.sqrt((a**2).sum()) <= 2 * t).mean(axis=-1)
    losses = np.minimum(1, (eta + (1 - eta) * below) * SAFE)
    nats = 1 / (2 * tau**2) + (own.query_keys**2).sum() / (2 * sigma**2)
    nats = np.broadcast_to(nats[..., 0] * SAFE, losses.shape)
    costs = (nats + math.log(2 * math.sqrt(m) * 33 * 33 * 7 / 0.03)) / m * SAFE
    best = np.argmin(near_upper_inverse(losses, costs) / (1 - eta))
    risk = kl_upper_inverse(float(losses.flat[best]), float(costs.flat[best]))
    bound = pac_bayes_margin(own, 0.03)
    assert risk < 0.95
    assert bound.at(m) == pytest.approx(risk / (1 - eta[best % 7]) * SAFE, rel=1e-13, abs=0)
    assert bound.at(3.0) == bound.at(8.0)


def test_a_network_that_is_always_wrong_has_the_bound_one():
    own = LinearAttention([1.0, 0.0], np.eye(2))
    X = np.tile(np.array([[[1.0, 0.0]]]), (20, 1, 1))
    bound = pac_bayes_margin(measure_margins(own, X, [0.0, 1.0], -np.ones(20)), 0.05)
    assert (bound.bound, bound.at(1e9), bound.empirical) == (1.0, 1.0, 1.0)


def test_the_divergence_shown_is_that_of_the_best_noise_at_the_sample():
    own = LinearAttention([1.0, 0.0], np.array([[0.0, 0.0], [0.0, 3.0]]))
    X = np.tile(np.array([[[1.0, 0.0]]]), (10**4, 1, 1))
    sample = measure_margins(own, X, [0.0, 1.0], np.ones(10**4))
    bound = pac_bayes_margin(sample, 0.05)
    assert (bound.n, bound.empirical, bound.delta) == (10**4, 0.0, 0.05)
    # one token: noise on M moves nothing and has the largest scale, 16, where 9 / 512 is left
    tau_squares = [2.0**k for k in range(-24, 9)]
    readout = (bound.complexity / SAFE - 9 / 512) * 2
    assert min(abs(readout * square - 1) for square in tau_squares) < 1e-9
    eta = [
        e
        for e in (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4)
        if 2 * upper_quantile(e / 2) / math.sqrt(readout) * (1 + 2e-6) <= 1
    ]
    cost = (bound.complexity + math.log(2 * 100 * 33 * 33 * 7 / 0.05)) / 10**4
    risk = min(kl_upper_inverse(e, cost) / (1 - e) for e in eta)
    assert bound.bound == pytest.approx(risk, rel=1e-11)
