"""The largest norm over offsets, against dense products turned by complex numbers."""

import jax
import numpy as np
import pytest

from attlas.bounds.attention import rotary_core_norm as module
from attlas.bounds.attention.rotary_core_norm import rotary_core_norm
from attlas.core.errors import UserError
from attlas.norms.product import orthogonal_core


def turned(W, angle, interleaved):
    pairs = angle.size
    rows = W.copy()
    first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
    second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
    z = (W[:, first] + 1j * W[:, second]) * np.exp(1j * angle)
    rows[:, first], rows[:, second] = z.real, z.imag
    return rows


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("interleaved", [True, False])
def test_all_offsets_are_seen(interleaved, causal):
    rng = np.random.default_rng(2)
    W_Q, W_K, theta = rng.normal(size=(2, 7, 5)), rng.normal(size=(2, 7, 5)), np.array([1.0, 0.1])
    offsets = range(6) if causal else range(-5, 6)
    exact = [
        max(np.linalg.norm(turned(Q, m * theta, interleaved) @ K.T, 2) for m in offsets)
        for Q, K in zip(W_Q, W_K, strict=True)
    ]
    found = np.asarray(rotary_core_norm(W_Q, W_K, theta, 6, interleaved, causal))
    assert np.all(found >= np.array(exact) * (1 - 1e-15))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.mark.parametrize("fastest", [1.0, 1e-3])
def test_offsets_that_no_eigenvectors_are_computed_for_are_below(fastest):
    """A head of Llama's size; slow pairs alone make all norms nearly equal, and many records."""
    rng, k, n = np.random.default_rng(1), 128, 40
    W_Q, W_K = rng.normal(size=(2, k, k))
    theta = fastest * 10_000.0 ** (-np.arange(k // 2) / (k // 2))
    exact = max(
        np.linalg.norm(turned(W_Q, m * theta, interleaved=False) @ W_K.T, 2) for m in range(n)
    )
    for dtype, loose in ((np.float64, 1e-9), (np.float32, 0.02)):
        found = float(rotary_core_norm(W_Q.astype(dtype), W_K.astype(dtype), theta, n))
        assert exact * (1 - 1e-7 * (dtype == np.float32)) <= found <= exact * (1 + loose)


@pytest.mark.parametrize("size", [0.0, 1e-170, 1e160])
def test_sizes_whose_squares_are_no_numbers(size):
    W = np.diag([1.0, 0.5])
    found = float(rotary_core_norm(size * W, W, [0.3], 5))
    np.testing.assert_allclose(found, size, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize(
    ("pairs", "tokens", "said"),
    [
        (2, 1, "^frequencies turn 2 pairs of k = 3 coordinates: give at most k / 2$"),
        (1, 0, "^tokens = 0: it must be finite and at least 1$"),
        (
            1,
            10**15,
            "^an angle of each of 1000000000000000 positions takes .* GiB here: give fewer$",
        ),
    ],
)
def test_angles_that_there_are_not_are_one_line(pairs, tokens, said):
    with pytest.raises(UserError, match=said):
        rotary_core_norm(np.ones((2, 3)), np.ones((2, 3)), np.ones(pairs), tokens)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_last_offset_is_seen_and_none_beyond(sign, causal):
    """|cos(m - 7 s)| on one pair: largest at the end of the offsets, and larger beyond it."""
    angle = 0.1
    key = np.array([[np.cos(7 * angle), sign * np.sin(7 * angle)]])
    found = rotary_core_norm(np.array([[1.0, 0.0]]), key, [angle], 7, causal=causal)
    best = 1 if sign > 0 or not causal else 7
    np.testing.assert_allclose(found, np.cos(best * angle), rtol=1e-10)


@pytest.mark.thorough
def test_allowances_are_those_of_the_proof(monkeypatch, coarse_rounding):
    """With a coarse rounding, and factors that are far from orthonormal ones."""
    eps, additions = coarse_rounding(module, 1e-4), [(0.1, 0.03), (0.2, 0.12)]
    waiting = iter(additions)

    def poor_core(W):
        C, beta, rho = orthogonal_core(W)
        more_beta, more_rho = next(waiting)
        return C, beta + more_beta, rho + more_rho

    monkeypatch.setattr(module, "orthogonal_core", poor_core)
    jax.clear_caches()
    rng, theta, n = np.random.default_rng(9), np.array([0.002, 0.0005]), 23
    Q, K = rng.normal(size=(2, 3, 4))
    found = float(rotary_core_norm(Q, K, theta, n))
    jax.clear_caches()
    (C, D), ((b, r), (key_b, key_r)) = (np.linalg.qr(W)[1] for W in (Q, K)), additions
    loss, top, largest = 3 * (3 + 2) * eps, 0.0, 0.0
    for m in np.random.default_rng(0).permutation(n):
        size = np.linalg.norm(turned(C, m * theta, interleaved=False) @ D.T, 2)
        largest = max(largest, size)
        top = top if size < top * (1 + loss) ** 0.5 else size
    assert top < largest
    c, d = np.linalg.norm(C), np.linalg.norm(D)
    top = top * (1 + 2 * loss) + (2 * 22 * 0.002 + 16 + 4) * eps * c * d
    expected = top * (1 + b) * (1 + key_b) + (d * (1 + key_b) + key_r) * r + c * (1 + b) * key_r
    np.testing.assert_allclose(found, expected * (1 + 16 * eps), rtol=1e-10)
