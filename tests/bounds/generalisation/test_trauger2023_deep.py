"""Theorem 4.2: the recursion measured on random layers; the printed gamma is another number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dudley_by_search import least_chain

from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.generalisation.trauger2023_deep import (
    trauger2023_amplification,
    trauger2023_deep,
    trauger2023_deep_entropy,
    trauger2023_parts,
)


def ball(rows):
    return rows / np.maximum(1, np.linalg.norm(rows, axis=-1, keepdims=True))


def forward(layers, readout, X):
    for heads in layers:
        total = 0.0
        for qk, v, c in heads:
            law = np.asarray(jax.nn.softmax(X @ qk @ X.T, -1))
            total = total + np.maximum(ball(law @ X @ v), 0) @ c
        X = ball(total)
    return X[0] @ readout


@pytest.mark.parametrize("B_x", [0.8, 3.0])
def test_costs_bound_the_measured_change(B_x):
    rng = np.random.default_rng(0)
    L, H, d, T = 2, 2, 3, 5
    for _ in range(20):
        layers = rng.normal(size=(L, H, 3, d, d)) * rng.uniform(0.2, 1.5)
        X = rng.normal(size=(T, d))
        X *= B_x / np.linalg.norm(X, axis=1).max()
        readout = rng.normal(size=d)
        norms = np.linalg.norm(layers, 2, axis=(-2, -1))
        qk, v, c = (jnp.asarray(norms[:, :, part]) for part in range(3))
        length = float(np.linalg.norm(readout))
        parts = trauger2023_parts(c, v, qk, length, B_x, constants="sharp")
        order = {"output": 2, "value": 1, "query_key": 0}
        scale = 10.0 ** rng.uniform(-5, -1, size=len(parts))
        change, allowed = np.zeros_like(layers), 0.0
        for index, part in enumerate(parts[1:], 1):
            head = ((index - 1) // 3) % H
            step = rng.normal(size=(d, d)) * scale[index]
            change[part.layer - 1, head, order[part.kind]] = step
            # an error on inputs of norm `reach` is at most the spectral norm times the reach
            allowed += float(part.beta) * part.input_norm * np.linalg.norm(step, 2)
        moved = abs(forward(layers + change, readout, X) - forward(layers, readout, X))
        assert moved <= allowed * (1 + 1e-12)


@pytest.mark.thorough
def test_corrected_closed_form_is_the_allocation_and_the_printed_is_not():
    B_c, B_v, B_qk, B_w, L, lipschitz = 1.5, 0.7, 0.9, 2.0, 3, 1.2
    one = jnp.ones((L, 1))
    norms = (B_c, B_v, B_qk, B_w)
    for constants in ("corrected", "sharp"):
        sizes = (B_c * one, B_v * one, B_qk * one)
        parts = trauger2023_parts(*sizes, B_w, 1.0, lipschitz, constants=constants)
        beta = jnp.stack([part.beta for part in parts])
        first = jnp.array([part.layer == 1 and part.kind == "query_key" for part in parts])
        C = jnp.where(first, 4.0, 1.3)
        total, _ = trauger2023_allocation(C, beta)
        closed = trauger2023_deep_entropy(1.3, 4.0, norms, L, lipschitz, constants=constants)
        np.testing.assert_allclose(closed, total, rtol=1e-12)
    printed, corrected = (
        float(trauger2023_deep_entropy(1.3, 4.0, norms, L, lipschitz, constants=constants))
        for constants in ("printed", "corrected")
    )
    assert printed < 0.6 * corrected


@pytest.mark.parametrize(
    ("constants", "norms", "lipschitz", "L", "root"),
    [
        # C_1 = 8, C_x = 27; norms are B_c, B_v, B_QK, B_w, and all products are cubes.
        # 3 (2 * 4 * 0.5 * 2)^(2/3) + 2 (1 + (2 * 0.5)^(2/3)): B_QK stands in alpha alone
        ("printed", (4.0, 0.5, 3.0, 2.0), 1.0, 1, 3 * 4 + 2 * 2),
        # lambda B_v = 4; alpha = 64, 8, 1; the terms of eta are at 8 alpha, 64 alpha, 8 alpha
        ("printed", (4.0, 0.5, 0.25, 8.0), 2.0, 1, 3 * 16 + 2 * (1 + 4)),
        ("printed", (4.0, 0.5, 0.25, 8.0), 2.0, 2, 3 * 64 + 2 * 5 + 2 * 24),
        ("printed", (4.0, 0.5, 0.25, 8.0), 2.0, 3, 3 * 256 + 2 * 5 + 2 * (24 + 96)),
        # L_sigma B_c = 8 in place of L_sigma B_v = 1, and the first layer has its alpha
        ("corrected", (4.0, 0.5, 0.25, 8.0), 2.0, 1, 3 * 16 + 2 * (1 + 4 + 16)),
        ("corrected", (4.0, 0.5, 0.25, 8.0), 2.0, 2, 3 * 64 + 2 * (1 + 16 + 64) + 2 * 36),
        # lambda B_v = 8, growth 8 (1 + 2 * 3.5) = 64
        ("sharp", (4.0, 1.0, 3.5, 8.0), 2.0, 1, 3 * 16 + 2 * (1 + 4 + 16)),
        ("sharp", (4.0, 1.0, 3.5, 8.0), 2.0, 2, 3 * 256 + 2 * (1 + 64 + 256) + 2 * 36),
        ("printed", (4.0, 0.5, 0.25, 0.0), 2.0, 3, 2),
    ],
)
def test_entropy_of_equal_layers_by_hand(constants, norms, lipschitz, L, root):
    found = trauger2023_deep_entropy(8.0, 27.0, norms, L, lipschitz, constants=constants)
    np.testing.assert_allclose(found, root**3, rtol=1e-13)


@pytest.mark.parametrize(
    ("C", "beta", "m", "radius", "total"),
    [
        ([8.0, 1.0], [1.0, 8.0], 1e5, 2.0, (2 + 4) ** 3),
        ([27.0], [0.125], 400, 0.5, (3 / 4) ** 3),
        ([1.0, 1.0, 64.0], [1.0, 8.0, 1.0], 1e4, 3.0, (1 + 4 + 4) ** 3),
    ],
)
def test_complexity_is_the_chain_over_the_total(C, beta, m, radius, total):
    found = trauger2023_deep(jnp.array(C), jnp.array(beta), m, radius)
    chain = least_chain(lambda epsilon: total / epsilon**2, m, radius)
    np.testing.assert_allclose(found, chain, rtol=1e-11)


def test_amplification_and_heads():
    one = jnp.ones((3, 2))
    corrected = trauger2023_amplification(one, one, one, constants="corrected")
    assert corrected.tolist() == [100.0, 10.0, 1.0]
    assert trauger2023_amplification(one, one, one).tolist() == [36.0, 6.0, 1.0]
    # H heads of equal parts: entropy H^3, complexity H^{1.5}
    value, _ = trauger2023_allocation(jnp.ones(8), jnp.ones(8))
    assert float(value) == pytest.approx(8.0**3)


def test_never_above_the_radius():
    assert float(trauger2023_deep(jnp.full(3, 1e40), jnp.ones(3), 10, 2.0)) == 2.0


def test_cost_of_the_first_keys_is_attained():
    """Tokens +-B_x, W_QK = 0: the softmax moves by tanh(h B_x^2), the output by B_x times it."""
    one, B_x, step = jnp.ones((1, 1)), 4.0, 1e-4
    part = trauger2023_parts(one, one, 0 * one, 1.0, B_x, constants="sharp")[3]
    X, eye = np.array([[B_x], [-B_x]]), np.eye(1)
    moved = forward([[(step * eye, eye, eye)]], np.ones(1), X)
    allowed = float(part.beta) * part.input_norm * step
    # tanh(z) / z = 1 - z^2 / 3 at z = 1.6e-3
    np.testing.assert_allclose(moved, allowed, rtol=1e-6)
