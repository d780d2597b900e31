"""Attention SVMs with a solution, drawn at random, which several benchmarks solve."""

import numpy as np

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens X, queries z and the tokens that are selected."""


def feasible(seed: int, n: int, T: int, d: int) -> Problem:
    """Gaussian tokens and queries; the tokens selected are the best of a planted matrix."""
    rng = np.random.default_rng(seed)
    X, z, W = rng.normal(size=(n, T, d)), rng.normal(size=(n, d)), rng.normal(size=(d, d))
    return X, z, np.argmax(np.einsum("ntd,de,ne->nt", X, W, z, optimize=True), axis=1)


def differences(X: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """X_ia - X_it for t != a_i, [n, T - 1, d]."""
    n, T, d = X.shape
    others = np.arange(T)[None] != tokens[:, None]
    return (X[np.arange(n), tokens][:, None] - X)[others].reshape(n, T - 1, d)


def rows(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The constraint matrix: one row vec((X_ia - X_it) z_i') for each i and t != a_i."""
    return np.einsum("nsd,ne->nsde", differences(X, tokens), z).reshape(-1, X.shape[2] ** 2)
