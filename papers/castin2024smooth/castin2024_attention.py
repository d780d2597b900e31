"""Attention, its Jacobian, and the heads on which the claims are checked."""

import jax
import jax.numpy as jnp
import numpy as np

import attlas as at

ROUNDINGS = 1024


def weights(X, A, seen):
    """Attention of rows that see something; the others are zero."""
    logits = jnp.where(seen > 0, X @ A @ X.T, -jnp.inf)
    top = jnp.max(logits, axis=1, keepdims=True)
    sizes = jnp.exp(logits - jnp.where(jnp.isfinite(top), top, 0.0))
    total = jnp.sum(sizes, axis=1, keepdims=True)
    return sizes / jnp.where(total > 0, total, 1.0)


def attention(X, A, V, seen):
    """The outputs, one row per token."""
    return weights(X, A, seen) @ X @ V.T


def jacobian(X, A, V, seen, asking=1.0, asked=1.0):
    r"""Blocks V (p_ik I + [i = k] C_i A' + p_ik (x_k - m_i) x_i' A), as one matrix."""
    n, d = X.shape
    P = weights(X, A, seen)
    apart = X[None] - (P @ X)[:, None]
    C = jnp.einsum("ik,ika,ikb->iab", P, apart, apart)
    blocks = P[:, :, None, None] * jnp.eye(d)
    blocks = blocks + asking * jnp.eye(n)[:, :, None, None] * (C @ A.T)[:, None]
    blocks = blocks + asked * P[:, :, None, None] * apart[:, :, :, None] * (X @ A)[:, None, None]
    return jnp.einsum("ab,ikbc->iakc", V, blocks).reshape(n * d, n * d)


def gain(X, A, V, seen, D, turns=4):
    """|J D| / |D| after a few power iterations from D: at most the norm of the Jacobian."""

    def forward(rows):
        return attention(rows, A, V, seen)

    _, backward = jax.vjp(forward, X)
    for _ in range(turns):
        (D,) = backward(jax.jvp(forward, (X,), (D / jnp.linalg.norm(D),))[1])
    return jnp.linalg.norm(jax.jvp(forward, (X,), (D / jnp.linalg.norm(D),))[1])


def full(tokens, size):
    """Which tokens see which: the first ones all of themselves."""
    there = np.arange(size) < np.asarray(tokens)[:, None]
    return (there[:, :, None] & there[:, None, :]) * 1.0


def heads(rng, count, n=5, d=3, least=2):
    """Tokens in the unit ball times R, 2 to n of them; the first third random.

    The second third has the authors' adversarial points, one token that all others read; in the
    last third one token asks from the origin and the others stand in pairs at the ends.
    """
    tokens = rng.integers(least, n + 1, count)
    seen = full(tokens, n)
    A = rng.normal(size=(count, d, d)) * 10 ** rng.uniform(-2, 1, (count, 1, 1))
    V = rng.normal(size=(count, d, d))
    X = rng.normal(size=(count, n, d))
    R = 10 ** rng.uniform(-0.5, 1.2, count)
    for place in range(1, count, 3):
        A[place] = np.diag([rng.choice([-1.0, 1.0]), 0, 0][:d]) * 10 ** rng.uniform(-1, 1)
        X[place] = 0
        X[place, :, 0] = 0.5 if A[place, 0, 0] > 0 else -1.0
        X[place, 0, 0] = 1
        V[place] = np.eye(d)
    for place in range(2, count, 3):
        X[place] = 0
        X[place, 1:, 0] = np.where(np.arange(1, n) % 2 > 0, 1.0, -1.0)
        V[place], A[place] = np.eye(d)[0][:, None] * np.eye(d)[0], rng.choice([-1, 1]) * np.eye(d)
    longest = np.linalg.norm(X, axis=-1, keepdims=True).max(axis=1, keepdims=True)
    X = X / longest * R[:, None, None] * (seen.max(axis=2) > 0)[:, :, None]
    return {"X": X, "A": A, "V": V, "seen": seen, "R": R, "n": tokens * 1.0}


def heads_weak_and_wide(rng, count):
    """The same; of twelve one has weak logits and is nearest to the bound, one a large radius.

    The weak ones have two tokens and logits of at most 0.1. The wide ones ask from the origin for
    two tokens at the ends, 20 or more away: there the norm grows like R^2, and no power less holds.
    """
    batch = heads(rng, count)
    weak, wide = slice(0, count, 12), slice(2, count, 12)
    A, R = batch["A"][weak], batch["R"][weak]
    logits = 10 ** rng.uniform(-2, -1, len(A))
    A *= (logits / np.linalg.norm(A, 2, axis=(1, 2)) / R**2)[:, None, None]
    far = 10 ** rng.uniform(1.3, 1.6, len(batch["R"][wide]))
    batch["X"][wide] = 0
    batch["X"][wide, 1, 0], batch["X"][wide, 2, 0], batch["R"][wide] = far, -far, far
    for several, tokens in ((weak, 2), (wide, 3)):
        batch["X"][several, tokens:] = 0
        batch["seen"][several] = full([tokens], batch["seen"].shape[1])
        batch["n"][several] = tokens
    return batch


def masked_heads(rng, count):
    """Those of `heads`, where a token sees only those before it and itself."""
    batch = heads(rng, count)
    return batch | {"seen": np.tril(batch["seen"])}


def into_ball(X, R):
    """Tokens outside the ball come back to its surface."""
    length = jnp.sqrt(jnp.sum(X**2, axis=-1, keepdims=True) + 1e-300)
    return {"X": X / jnp.maximum(1.0, length / R)}


inside = at.assume(
    r"$|x_i|\le R$", lambda X, R: jnp.max(jnp.sum(X**2, axis=-1)) <= R**2 * (1 + 1e-12)
)
