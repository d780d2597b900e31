"""The flow against plain steps, its exact solution, and the factored pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection, make_support_selection
from attlas.norms.entrywise import entrywise_norm
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.gradient import selection_loss
from julistiono2024optimizing.library.token_selection.training import train_selection


def size(a, exponent):
    return np.sum(np.abs(a) ** exponent) ** (1 / exponent)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("p", "first"), [(1.5, 0.05), (3.0, 0.6)])
def test_rescaled_steps_and_their_clock_are_those_of_a_loop(p, first, traced):
    rng, schedule, step = np.random.default_rng(9), (0, 2, 3), 0.7
    arrays = (rng.normal(size=(3, 4, 5)), np.array([1.0, -1, 1]), rng.normal(size=(3, 5)))
    data = TokenSelection(*(jnp.asarray(a) for a in (*arrays, rng.normal(size=5))))
    W = first * rng.normal(size=(5, 5))
    exponent = jnp.asarray(p) if traced else p
    path = mirror_flow(data, jnp.asarray(W), p=exponent, steps=3, step=step, record_at=schedule)
    slope, q, time, norms = jax.jit(jax.grad(selection_loss)), p / (p - 1), 0.0, []
    for k in range(4):
        G, norm = np.asarray(slope(jnp.asarray(W), data)), size(W, p)
        if k in schedule:
            at = schedule.index(k)
            np.testing.assert_allclose(path.W[at], W, rtol=1e-10, atol=1e-12)
            assert float(path.norm[at]) == pytest.approx(norm, rel=1e-12)
            assert float(path.log_gradient_norm[at]) == pytest.approx(np.log(size(G, q)), rel=1e-11)
            clock = np.log(time) if time > 0 else -np.inf
            assert float(path.log_time[at]) == pytest.approx(clock, rel=1e-11)
        length = (p - 1) * step * max(norm, 1) ** (p - 2)
        dual = np.sign(W) * np.abs(W) ** (p - 1) - length * G / size(G, q)
        W, time = np.sign(dual) * np.abs(dual) ** (1 / (p - 1)), time + length / size(G, q)
        norms.append(norm)
    np.testing.assert_array_equal(path.last["W"], path.W[-1])
    assert max(norms) > 1 and (p > 2 or min(norms) < 1)  # noqa: PT018


def test_without_a_gradient_nothing_moves_and_no_time_passes():
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(2, 1, 4)), 3, axis=1)
    data = TokenSelection(*(jnp.asarray(a) for a in (X, np.ones(2), X[:, 0], X[0, 0])))
    W0 = jnp.asarray(rng.normal(size=(4, 4)))
    path = mirror_flow(data, W0, p=2.0, steps=2, record_at=(0, 2))
    np.testing.assert_array_equal(path.W, np.stack([W0, W0]))
    assert path.log_time.tolist() == path.log_gradient_norm.tolist() == [-np.inf, -np.inf]


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_plain_steps_reach_the_same_point_at_the_same_clock(p):
    data = make_support_selection(jax.random.key(0))
    W0 = 0.1 * jnp.ones((4, 4))
    flow = mirror_flow(data, W0, p=p, steps=400, step=0.01, record_at=(400,))
    rate = 0.05
    k = int(jnp.rint(jnp.exp(flow.log_time[0] - float(np.log(rate)))))
    plain = train_selection(
        data, W0, p=p, learning_rate=rate, steps=k, record_at=(k,), normalized=False
    )
    norm = entrywise_norm(plain.W[0], p)
    # Explicit Euler on either clock: first order in the step (0.01) and the rate (0.05).
    assert abs(norm - flow.norm[0]) < 0.05 * norm
    assert jnp.allclose(plain.W[0] / norm, flow.W[0] / flow.norm[0], rtol=0, atol=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_a_traced_exponent_follows_the_same_flow(p):
    data = make_support_selection(jax.random.key(0))
    W0, rest = 0.1 * jnp.ones((4, 4)), {"steps": 60, "step": 0.05, "record_at": (60,)}
    traced = jax.jit(lambda exponent: mirror_flow(data, W0, p=exponent, **rest).W)(p)
    known = mirror_flow(data, W0, p=p, **rest).W
    # Powers of a known exponent are computed by other operations.
    assert jnp.allclose(traced, known, rtol=1e-10, atol=0)


def test_the_correlation_loss_has_a_known_clock():
    """n = 1, T = 2, p = 2: the slope of log t against ||W|| tends to ||x z'||_2 = 1 / ||W_mm||."""
    data = make_support_selection(jax.random.key(1))
    path = mirror_flow(
        data,
        jnp.zeros((4, 4)),
        p=2.0,
        steps=6000,
        step=0.05,
        record_at=(3000, 6000),
        loss="correlation",
    )
    x = jnp.take(data.X[0], data.tokens[0], axis=0) - jnp.take(
        data.X[0], 1 - data.tokens[0], axis=0
    )
    pull = jnp.linalg.norm(x) * jnp.linalg.norm(data.z[0])
    # dw/dt = pull e^{-pull w} (1 + O(e^{-pull w})) gives t = e^{pull w} / pull^2; Euler's sum of
    # exponentials with step s is off by the constant log(pull s / (1 - e^{-pull s})), below pull s.
    slope = (path.log_time[1] - path.log_time[0]) / (path.norm[1] - path.norm[0])
    assert abs(slope / pull - 1) < 1e-10
    assert abs(path.log_time[1] - (pull * path.norm[1] - 2 * jnp.log(pull))) < 0.05 * pull + 0.01
    assert float(path.log_gradient_norm[1]) < np.log(1e-50)
