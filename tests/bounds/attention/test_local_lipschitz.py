"""The local certificate against the Jacobian by finite differences and by differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.attention import local_lipschitz as module
from attlas.bounds.attention.local_lipschitz import local_lipschitz
from attlas.core.errors import UserError
from attlas.norms.product import orthogonal_core
from attlas_audit.heads import Head, attend, certificate, jacobian_norm, small_heads

BATCH = small_heads(np.random.default_rng(5), 60)
X = jnp.asarray(BATCH["X"])
HEADS = Head(*(jnp.asarray(BATCH[name]) for name in Head._fields))
N, D, K, V, E = 5, 7, 3, 2, 4
SCALE = 0.7


def a_head(maps):
    """A head with sizes that are all different, rotations and norms by general matrices."""
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.ones(N), N)
    q, k, v = (rng.normal(size=(N, width)) for width in (K, K, V))
    W = [rng.normal(size=shape) for shape in ((D, K), (D, K), (D, V), (V, E))]
    T, S = rng.normal(size=(2, N, K, K)) if maps else (None, None)
    return (P, q, k, v, *W), (T, S)


def compiled(head, turns=(None, None), squarings=None):
    """Traced anew for every call."""
    return jax.jit(lambda *arrays: local_lipschitz(*arrays, squarings=squarings))(
        *head, SCALE, *turns
    )


def covariance(p, x, y):
    return sum(w * np.outer(a - p @ x, b - p @ y) for w, a, b in zip(p, x, y, strict=True))


def top_of_power(power, eps):
    """(tr G^p)^(1/p), raised by what its squarings may lose."""

    def top(G):
        values = np.abs(np.linalg.eigvalsh((G + G.T) / 2)) ** power
        k = len(G)
        return values.sum() ** (1 / power) * (1 + 2 * np.log2(power) * (k + 8) * k**0.5 * eps)

    def norm(M):
        return top(M.T @ M) ** 0.5 * (1 + (M.shape[0] + 8) * M.shape[1] * eps)

    return top, norm


def spectral(M):
    return np.linalg.norm(M, 2)


def parts(head, maps, cores, top, norm, eps):
    """The three parts, token by token, with C, beta and rho of W_O', W_Q and W_K."""
    P, q, k, v, _, _, W_V, _ = head
    (C_O, beta_O, rho_O), (C_Q, beta_Q, rho_Q), (C_K, beta_K, rho_K) = cores
    T, S = (np.eye(K)[None].repeat(N, 0) if m is None else m for m in maps)
    size_T, size_S = (1.0 if m is None else max(map(np.linalg.norm, m)) for m in maps)
    o, a, b = map(np.linalg.norm, (C_O, C_Q, C_K))
    loss = (2 * N + 4 * max(K, V) + 64) * eps
    longest, widest = (max(map(np.linalg.norm, x - x.mean(0))) for x in (v, k))
    by_values = (spectral(W_V @ C_O.T) * beta_O + np.linalg.norm(W_V) * rho_O) * norm(P)
    spread = [top(C_O @ covariance(p, v, v) @ C_O.T) for p in P]
    lam = beta_O**2 * np.array(spread) + (loss * o + 3 * rho_O) * o * longest**2
    cross = [norm(SCALE * C_O @ covariance(p, v, k) @ t @ C_Q.T) for p, t in zip(P, T, strict=True)]
    lost = SCALE * size_T * (loss * o * a + rho_O * a + rho_Q * o) * longest * widest
    moments = [
        sum(lam[i] * P[i, j] * np.outer(u, u) for i, u in enumerate(SCALE * q @ S[j] @ C_K.T))
        for j in range(N)
    ]
    mass = max(sum(lam[i] * P[i, j] * q[i] @ q[i] for i in range(N)) for j in range(N))
    under_root = beta_K**2 * max(map(top, moments))
    under_root += (SCALE * size_S) ** 2 * mass * b * (loss * b + 3 * rho_K)
    found = by_values, beta_O * beta_Q * max(cross) + 2 * lost, under_root**0.5
    return np.array(found) * (1 + 32 * eps)


@pytest.mark.thorough
@pytest.mark.parametrize("maps", [True, False])
def test_the_three_parts_are_their_definitions(maps):
    head, turns = a_head(maps)
    P, q, k, v, W_Q, W_K, W_V, W_O = head
    T, S = turns if maps else np.eye(K)[None, None].repeat(2, 0).repeat(N, 1)
    gains = [W_O.T @ covariance(p, v, SCALE * k @ t @ W_Q.T) for p, t in zip(P, T, strict=True)]
    lam = [spectral(W_O.T @ covariance(p, v, v) @ W_O) for p in P]
    u = SCALE * np.einsum("ia,jab,db->ijd", q, S, W_K)
    keys = np.einsum("i,ij,ijd,ije->jde", lam, P, u, u)
    exact = spectral(W_V @ W_O) * spectral(P), max(map(spectral, gains))
    found = compiled(head, turns)
    np.testing.assert_allclose(found, [*exact, max(map(spectral, keys)) ** 0.5], rtol=1e-11)
    assert found.total >= sum(found)
    np.testing.assert_allclose(found.total, sum(found), rtol=1e-14)


@pytest.mark.parametrize("maps", [True, False])
@pytest.mark.parametrize("squarings", [None, 3])
def test_allowances_are_those_of_the_proof(maps, squarings, monkeypatch, coarse_rounding):
    """With a coarse rounding, and factors that are far from orthonormal ones."""
    head, turns = a_head(maps)
    eps = coarse_rounding(module, 1e-3)
    additions = [(0.1, 0.03), (0.2, 0.12), (0.3, 0.27)]
    waiting = iter(additions)

    def poor_core(W):
        C, beta, rho = orthogonal_core(W)
        more_beta, more_rho = next(waiting)
        return C, beta + more_beta, rho + more_rho

    monkeypatch.setattr(module, "orthogonal_core", poor_core)
    found = compiled(head, turns, squarings)
    W_Q, W_K, _, W_O = head[4:]
    cores = [
        (np.linalg.qr(W)[1], 1 + beta, rho)
        for W, (beta, rho) in zip((W_O.T, W_Q, W_K), additions, strict=True)
    ]
    top, norm = (spectral, spectral) if squarings is None else top_of_power(2**squarings, eps)
    expected = parts(head, turns, cores, top, norm, eps)
    # the powers of many matrices are taken in float32
    np.testing.assert_allclose(found, expected, rtol=1e-9 if squarings is None else 2e-5)
    np.testing.assert_allclose(found.by_values, expected[0], rtol=1e-12)
    np.testing.assert_allclose(found.total, sum(found) * (1 + 4 * eps), rtol=1e-12)


def test_powers_neither_overflow_nor_vanish():
    (P, q, k, v, *W), _ = a_head(maps=False)
    call = jax.jit(
        lambda v: local_lipschitz(*map(jnp.asarray, (P, q, k, v, *W)), SCALE, squarings=6)
    )
    ordinary = call(v)
    for size in (1e-12, 1e25):
        np.testing.assert_allclose(call(v * size)[1:], np.array(ordinary[1:]) * size, rtol=1e-5)
    np.testing.assert_allclose(call(np.ones((N, V)))[1:], 0, atol=1e-5)


def test_powers_of_matrices_with_tiny_entries_stay_finite():
    """After each turn the largest entry is one, beside which the others may be of any size."""
    gram = np.array([[3.0, 1e-22], [1e-22, 2.0]])[None].repeat(2, 0)
    found = jax.jit(lambda gram: module._top(gram, 7))(jnp.asarray(gram))
    # eigenvalues 3 and 2: (3^128 + 2^128)^(1/128), and what float32 may lose in seven squarings
    np.testing.assert_allclose(found, 3 * (1 + 14 * 10 * 2**0.5 * 2**-23), rtol=1e-6)


def one(place):
    return jax.tree.map(lambda leaf: leaf[place], HEADS), X[place]


@pytest.mark.thorough
@pytest.mark.parametrize("place", [0, 1])
def test_jacobian_agrees_with_finite_differences(place):
    head, x = one(place)
    step = 1e-6
    columns = []
    for move in np.eye(x.size).reshape(-1, *x.shape):
        ends = [attend(head, x + sign * step * move)[0] for sign in (1, -1)]
        columns.append(np.asarray((ends[0] - ends[1]) / (2 * step)).ravel())
    norm = np.linalg.norm(np.stack(columns, axis=1), 2)
    # A central difference is off by step^2 and by eps over step.
    np.testing.assert_allclose(jacobian_norm(head, x), norm, rtol=1e-7)


@pytest.mark.thorough
def test_certificate_is_not_passed_and_attained_by_a_sink():
    norms = np.asarray(jax.jit(jax.vmap(jacobian_norm))(HEADS, X))
    bound = np.asarray(jax.jit(jax.vmap(lambda h, x: certificate(h, x).total))(HEADS, X))
    ratio = norms / bound
    assert ratio.max() <= 1
    assert ratio[2::6].min() > 0.999
    assert ratio.min() > 0.05


@pytest.mark.thorough
def test_moments_bound_the_eigenvalues_from_above():
    head, x = one(0)
    _, (P, q, k, v) = attend(head, x)
    given = (P, q, k, v, head.W_Q, head.W_K, head.W_V, head.W_O, 1.0)
    exact = local_lipschitz(*given)
    for squarings, factor in ((1, 5**0.5), (4, 5 ** (1 / 16))):
        rough = local_lipschitz(*given, squarings=squarings)
        assert exact.total <= rough.total * (1 + 1e-9)
        assert rough.total <= exact.total * factor * 1.0001
    with pytest.raises(UserError, match="squarings = 0"):
        local_lipschitz(*given, squarings=0)
