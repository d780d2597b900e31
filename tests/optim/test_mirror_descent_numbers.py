"""Potential, divergence and steps against their definition, in NumPy and in sixty digits."""

from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.optim.mirror_descent import bregman_sum, mirror_descent, mirror_step, potential

EPS = np.finfo(np.float64).eps


def exact_terms(w, v, p):
    """The divergence of two numbers, and the size of what is subtracted, in sixty digits."""
    with localcontext(prec=60):
        w, v, p = Decimal(w), Decimal(v), Decimal(p)
        psi_w, psi_v = (abs(x) ** p / p if x else Decimal(0) for x in (w, v))
        slope = abs(v) ** (p - 1) * (w - v) * (1 if v > 0 else -1) if v else Decimal(0)
        return float(psi_w - psi_v - slope), float(psi_w + psi_v + abs(slope))


RATIOS = (1e-9, 1e-4, 1.7e-3, 0.015, 0.03, 0.055, 0.06, 0.064, 0.12, 0.5, 3.0)


def test_the_divergence_of_two_numbers_has_nearly_all_digits():
    """Within 1/16 of each other, or 3/p of that, all digits; beyond what the subtraction leaves."""
    pairs = [(v * (1 + sign * t), v) for t in RATIOS for v in (0.7, -1.9) for sign in (1, -1)]
    pairs += [(0.0, 0.7), (0.0, -1.9), (0.7, 0.0), (-1.9, 0.0), (0.0, 0.0)]
    pairs += [(1.0, 0.3), (0.3, 1.0), (1.0, 1.01)]
    exponents = (1.1, 1.5, 2.9, 3.7, 10.5, 100.3)
    w, v = (jnp.asarray(part) for part in zip(*pairs, strict=True))
    of_pairs = jax.vmap(bregman_sum, (0, 0, None))
    found = jax.jit(jax.vmap(of_pairs, (None, None, 0)))(w, v, jnp.array(exponents))
    for row, p in zip(found.tolist(), exponents, strict=True):
        for value, (a, b) in zip(row, pairs, strict=True):
            exact, size = exact_terms(a, b, p)
            near = b != 0 and abs(a - b) / abs(b) * max(1, p / 3) <= 1 / 16
            room = 32 * EPS * exact if near else 8 * EPS * size
            assert abs(value - exact) <= room, (a, b, p)


def test_the_slope_of_the_divergence_is_the_difference_of_the_mirror_maps():
    w = np.array([0.7, -0.3, 0.0, 1.2, 1.0, 0.0, -1.49, 1.0])
    v = np.array([0.2, 0.9, 1.3, 0.0, 0.4, 0.0, -1.5, 1.0])
    slope = jax.jit(jax.vmap(jax.grad(bregman_sum), (None, None, 0)))
    exponents = jnp.array([1.5, 2.9])
    for row, p in zip(slope(jnp.asarray(w), jnp.asarray(v), exponents), (1.5, 2.9), strict=True):
        exact = np.sign(w) * np.abs(w) ** (p - 1) - np.sign(v) * np.abs(v) ** (p - 1)
        np.testing.assert_allclose(row, exact, rtol=0, atol=1e-13)


def test_the_potential_and_its_maps_have_their_definition():
    w, g, p = np.array([[0.3, -1.7, 1.0], [0.0, 0.9, 0.0]]), np.array([0.5, -1.5, 0.25]), 2.7
    exact = np.sum(np.abs(w) ** p) / p
    np.testing.assert_allclose(potential(jnp.asarray(w), p), exact, rtol=8 * EPS)
    u = np.sign(w) * np.abs(w) ** (p - 1) - 0.3 * g
    step = mirror_step(jnp.asarray(w), jnp.asarray(np.tile(g, (2, 1))), 0.3, p)
    np.testing.assert_allclose(step, np.sign(u) * np.abs(u) ** (1 / (p - 1)), rtol=32 * EPS)


def test_normalised_steps_with_decay_follow_their_definition():
    """Two leaves share p = 3, one has p = 1.5: each group is divided by its norm, plus eps."""
    p, rate, eps, decay = {"a": 3.0, "b": 3.0, "c": 1.5}, 0.2, 0.3, 0.4
    w = {"a": np.array([0.5, -1.5]), "b": np.array([[0.7]]), "c": np.array([1.2, -0.8, 0.3])}
    g = {"a": np.array([0.9, 2.0]), "b": np.array([[-1.1]]), "c": np.array([0.4, 1.3, -0.6])}
    rule = mirror_descent(rate, p, normalized=True, eps=eps, weight_decay=decay)
    params = jax.tree.map(jnp.asarray, w)
    state, update = jax.jit(rule.init)(params), jax.jit(rule.update)
    for _ in range(2):
        change, state = update(jax.tree.map(jnp.asarray, g), state, params)
        params = optax.apply_updates(params, change)
        shared = np.append(g["a"], g["b"].ravel())
        norms = {"a": np.sum(np.abs(shared) ** 1.5) ** (2 / 3)}
        norms |= {"b": norms["a"], "c": np.sum(np.abs(g["c"]) ** 3) ** (1 / 3)}
        for name, q in p.items():
            u = np.sign(w[name]) * np.abs(w[name]) ** (q - 1)
            u = (1 - rate * decay) * u - rate * g[name] / (norms[name] + eps)
            w[name] = np.sign(u) * np.abs(u) ** (1 / (q - 1))
            np.testing.assert_allclose(params[name], w[name], rtol=64 * EPS)
    assert int(state.count) == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_a_floor_a_norm_stalls_where_products_have_lost_digits(dtype):
    info = np.finfo(dtype)
    w, rule = jnp.ones(1, dtype), mirror_descent(0.1, 3.0, normalized=True)
    for factor, stalled in ((1.001, False), (0.999, True)):
        gradient = jnp.full(1, factor * float(info.tiny) / float(info.eps), dtype)
        _, state = rule.update(gradient, rule.init(w), w)
        assert bool(state.stalled) is stalled


def test_a_norm_at_its_floor_stalls():
    rule, w = mirror_descent(0.1, 2.0, normalized=True, floor=0.25), jnp.ones(1)
    for gradient, stalled in ((0.25, True), (0.2501, False)):
        _, state = rule.update(jnp.full(1, gradient), rule.init(w), w)
        assert bool(state.stalled) is stalled


def test_one_group_below_the_floor_stalls_all():
    w = {"a": jnp.ones(2), "b": jnp.ones(1)}
    rule = mirror_descent(0.1, {"a": 3.0, "b": 2.0}, normalized=True, floor=1e-3, weight_decay=1.0)
    gradient = {"a": jnp.full(2, 1e-4), "b": jnp.ones(1)}
    change, state = rule.update(gradient, rule.init(w), w)
    assert bool(state.stalled)
    assert not any(np.any(part) for part in change.values())


def test_a_decay_of_one_shrinks_the_mirror_variable_by_the_rate():
    w, rule = jnp.array([2.0, -3.0]), mirror_descent(0.25, 2.0, weight_decay=1.0)
    change, _ = rule.update(jnp.array([1.0, 8.0]), rule.init(w), w)
    np.testing.assert_allclose(w + change, [0.75 * 2 - 0.25, 0.75 * -3 - 2], rtol=4 * EPS)
