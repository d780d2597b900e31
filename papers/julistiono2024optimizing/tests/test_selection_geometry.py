"""The numbers of a solved selection against loops over pairs of tokens."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry

SAMPLES, TOKENS, D = 3, 5, 3


def instance(seed):
    """Samples whose attention gaps below the selected token are 1 (twice), and 1.3 and more."""
    rng = np.random.default_rng(seed)
    z, W = rng.normal(size=(SAMPLES, D)), rng.normal(size=(D, D))
    X, tokens = rng.normal(size=(SAMPLES, TOKENS, D)), rng.integers(0, TOKENS, SAMPLES)
    for i in range(SAMPLES):
        pull = W @ z[i]
        gaps = np.array([1.0, 1.0, 1.3, 2.0]) + np.array([0, 0, 1, 1]) * rng.random(4)
        others = [t for t in range(TOKENS) if t != tokens[i]]
        for t, gap in zip(others, gaps, strict=True):
            X[i, t] += (X[i, tokens[i]] @ pull - gap - X[i, t] @ pull) * pull / (pull @ pull)
    y = np.where(rng.random(SAMPLES) < 0.5, -1.0, 1.0)
    return X, y, z, rng.normal(size=D), W, tokens


@pytest.mark.parametrize("p", [1.2, 2.0, 3.5])
@pytest.mark.parametrize("seed", range(4))
def test_loops_over_pairs_give_the_same_numbers(seed, p):
    X, y, z, v, W, tokens = instance(seed)
    q = p / (p - 1)
    gaps, ranges, gains, outer = [], [], [], []
    for i, a in enumerate(tokens):
        attention = [float(x @ W @ z[i]) for x in X[i]]
        score = [float(y[i] * (x @ v)) for x in X[i]]
        others = [t for t in range(TOKENS) if t != a]
        support = [t for t in others if attention[a] - attention[t] < 1 + 1e-6]
        beyond = [t for t in others if t not in support]
        gaps += [attention[t] - attention[u] for t in support for u in beyond]
        ranges += [score[t] - score[u] for t, u in itertools.permutations(range(TOKENS), 2)]
        gains += [score[a] - score[t] for t in support]
        outer += [np.sum(np.abs(np.outer(x, z[i])) ** q) ** (1 / q) for x in X[i]]
    norm = np.sum(np.abs(W) ** p) ** (1 / p)
    data = TokenSelection(*(jnp.asarray(a) for a in (X, y, z, v)))
    found = selection_geometry(data, jnp.asarray(tokens), jnp.asarray(W), p)
    # Gaps of size one are differences of terms a few times as large.
    close = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(found.delta_prime, min(gaps), **close)
    np.testing.assert_allclose(found.delta, min(0.25, min(gaps) / 4), **close)
    np.testing.assert_allclose(found.A, norm * max(outer), **close)
    np.testing.assert_allclose(found.norm, norm, **close)
    np.testing.assert_allclose(found.score_range, max(ranges), **close)
    np.testing.assert_allclose(found.score_gap, min(gains), **close)
