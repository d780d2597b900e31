"""Mirror descent against its definition, its identities and float64."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import (
    bregman,
    inverse_potential_gradient,
    mirror_descent,
    potential,
    potential_gradient,
)

EPS = np.finfo(np.float64).eps


def run(optimiser, w, gradients):
    def step(carry, gradient):
        w, state = carry
        change, state = optimiser.update(gradient, state, w)
        return (optax.apply_updates(w, change), state), None

    return jax.lax.scan(step, (w, optimiser.init(w)), gradients)[0]


@pytest.mark.parametrize("p", [1.1, 2.0, 10.0])
def test_potential_gradient_is_the_derivative_and_is_inverted(p):
    w = jnp.array([[0.5, -2.0], [0.0, 1e-3]])
    u = potential_gradient(w, p)
    # A power of exponent at most 10 multiplies the relative rounding by as much.
    assert jnp.allclose(jax.grad(potential)(w, p), u, rtol=32 * EPS, atol=0)
    assert jnp.allclose(inverse_potential_gradient(u, p), w, rtol=32 * EPS, atol=0)


@pytest.mark.parametrize("p", [1.1, 1.75, 3.0, 10.0])
def test_bregman_keeps_its_digits_near_zero(p):
    v = jnp.array([0.7, -1.3, 2.0])
    for size in (1e-9, 1e-4, 0.05, 0.5):
        w = v * (1 + size * jnp.array([1.0, -0.5, 0.25]))
        # Independent: Taylor's remainder (p-1) int_0^1 (1-s) |v + s(w-v)|^{p-2} (w-v)^2 ds.
        nodes, weights = np.polynomial.legendre.leggauss(20)
        s = jnp.asarray((nodes + 1) / 2)[:, None]
        line = jnp.abs(v[None, :] + s * (w - v)[None, :]) ** (p - 2) * (w - v)[None, :] ** 2
        remainder = (p - 1) * jnp.sum(jnp.asarray(weights / 2)[:, None] * (1 - s) * line)
        # Beyond the series' range the subtraction loses at most a factor 16^2 p.
        assert jnp.allclose(bregman(w, v, p), remainder, rtol=2**12 * EPS, atol=0)


@pytest.mark.parametrize("p", [1.1, 10.0])
def test_float32_follows_float64(p):
    """500 steps, from zero and tiny entries; p = 1.1 needs the mirror variable in the state."""
    gradients = jax.random.normal(jax.random.key(0), (500, 6)) * 0.1 - 0.05
    start = jnp.array([0.0, 1e-30, -1e-6, 0.5, 1.0, 0.0])
    fine, _ = run(mirror_descent(0.1, p), start, gradients)
    coarse, _ = run(
        mirror_descent(0.1, p), start.astype(jnp.float32), gradients.astype(jnp.float32)
    )
    assert coarse.dtype == jnp.float32
    assert jnp.all(jnp.isfinite(coarse))
    coarse = coarse.astype(jnp.float64)
    # The mirror variable collects 500 roundings; the map back has exponent 1 / (p-1) <= 10.
    u = 500 * float(jnp.max(jnp.abs(gradients))) * 0.1
    unit = float(np.finfo(np.float32).eps)
    error = unit * 500 * u
    at = potential_gradient(fine, p)
    low = inverse_potential_gradient(at - error, p)
    high = inverse_potential_gradient(at + error, p)
    slack = 32 * unit * jnp.abs(fine) + 1e-37
    assert jnp.all((coarse >= low - slack) & (coarse <= high + slack))


def test_mirror_variable_survives_underflow_of_the_weight():
    """At p = 1.1 each step leaves w = (1e-5)^10 = 1e-50, zero in float32, yet steps add up."""
    gradients = jnp.full((1000, 1), -1e-5, jnp.float32)
    w, state = run(mirror_descent(1.0, 1.1), jnp.zeros(1, jnp.float32), gradients)
    assert jnp.allclose(state.dual, 1e-2, rtol=1e-4)
    assert w[0] > 0


def test_normalised_step_has_the_length_of_the_rate():
    w = {"a": jnp.array([1.0, -2.0]), "b": jnp.array([[0.5]])}
    gradient = {"a": jnp.array([3e-200, 4e-200]), "b": jnp.array([[1e-200]])}
    optimiser = mirror_descent(0.1, 3.0, normalized=True)
    start = optimiser.init(w)
    _, state = optimiser.update(gradient, start, w)
    change = jnp.concatenate(
        [
            (x - y).ravel()
            for x, y in zip(*map(jax.tree.leaves, (state.dual, start.dual)), strict=True)
        ]
    )
    # Mirror variables of size 4 are subtracted: absolute rounding of 4 eps each.
    assert jnp.allclose(entrywise_norm(change, 1.5), 0.1, rtol=0, atol=16 * EPS)


def test_exponents_normalise_apart():
    w = {"v": jnp.ones(2), "W": jnp.ones((2, 2))}
    optimiser = mirror_descent(0.5, {"v": 2.0, "W": 3.0}, normalized=True)
    start = optimiser.init(w)
    _, state = optimiser.update(jax.tree.map(lambda a: 7 * a, w), start, w)
    assert jnp.allclose(start.dual["v"] - state.dual["v"], 0.5 / np.sqrt(2), atol=4 * EPS)
    assert jnp.allclose(start.dual["W"] - state.dual["W"], 0.5 / 4 ** (2 / 3), atol=4 * EPS)


def test_a_gradient_below_its_floor_stops_and_says_so():
    w = jnp.ones(3)
    optimiser = mirror_descent(0.1, 3.0, normalized=True, floor=1e-12)
    change, state = optimiser.update(jnp.full(3, 1e-13), optimiser.init(w), w)
    assert bool(state.stalled)
    assert not jnp.any(change)
    _, state = optimiser.update(jnp.ones(3), state, w)
    assert not bool(state.stalled)


@pytest.mark.parametrize("p", [1.0, 0.5, float("inf"), float("nan")])
def test_exponents_without_a_mirror_map_are_refused(p):
    with pytest.raises(UserError, match="no mirror map"):
        mirror_descent(0.1, p).init(jnp.ones(2))
