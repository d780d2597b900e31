"""Samples with the complexity of the one-layer class of Theorem 4.1, from below, without sampling.

Two sequences stand n times each, so that signs count by two binomial sums and the mean over all 2^m
sign vectors, m = 2 n, is a finite sum. W_QK and W_v run over extreme points of their balls.
"""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_cover import Ball
from attlas.claims.sampling import six_decades

DIMENSIONS = (1, 2, 4)
BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
TOKENS, D = 3, 2
"""Tokens per sequence and dimension of `small_sequences`."""
ROUNDINGS = 256
"""The longest path: 48 links of a chain, each with a square root and a logarithm."""
_MATRICES = 24


def _shape_tokens(rng, index, tokens):
    """Gaussian tokens, equal lengths, or the corners of a cube: there every entry is largest."""
    # Every instance draws as many numbers, so that an attack can tell whose they are.
    equal, alike = rng.random(2) < (0.7, 0.5)
    kind = index % 3
    if kind == 1:
        return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    if kind == 2:
        tokens = np.sign(tokens)
        tokens[:, 1:] = tokens[:, :1] if equal else tokens[:, 1:]
        # tokens that are all alike have the largest complexity
        tokens = np.abs(tokens) if alike else tokens
    return tokens


def _radius(rng, index):
    """Most classes are so small that the bounds are non-vacuous; some saturate the softmax."""
    low, high = (0.3, 500.0) if index % 4 == 3 else (0.0005, 0.3)
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _extreme_points(rng, ball, d):
    """Matrices of norm 1: entries, columns of one entry each, or one column of any direction."""
    columns = np.eye(d)[rng.integers(d, size=(_MATRICES, d))]
    if ball == "2,1":
        columns = rng.normal(size=columns.shape)
        columns /= np.linalg.norm(columns, axis=2, keepdims=True)
    W = np.swapaxes(columns, 1, 2) * rng.choice([-1.0, 1.0], (_MATRICES, 1, d))
    return W if ball == "1,inf" else W * np.eye(d)[rng.integers(d, size=_MATRICES)][:, None]


def sign_sums(counts):
    """For each n the values of a sum of n signs in up to 128 groups: their means and probabilities.

    Values beyond 7 deviations are left out. Probabilities are products of ratios from the middle.
    """
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    middle = counts // 2
    return [
        _grouped(int(n), int(c), highest)
        for n, c, highest in zip(counts, middle, binom.pmf(middle, counts, 0.5), strict=True)
    ]


def _grouped(n, middle, highest):
    half_width = min(n / 2, 3.5 * math.sqrt(n))
    k = np.arange(math.ceil(n / 2 - half_width), math.floor(n / 2 + half_width) + 1)
    above = np.arange(middle, k[-1])
    upper = highest * np.cumprod(np.concatenate([[1.0], (n - above) / (above + 1)]))
    chance = upper[np.maximum(k, n - k) - middle]
    edges = np.unique(np.linspace(0, len(k), 129).astype(int)[:-1])
    mass, mean = (np.add.reduceat(values, edges) for values in (chance, chance * (2.0 * k - n)))
    return mean / mass, mass


_ANGLE = np.linspace(0, np.pi, 64)
_DIRECTIONS = np.stack([np.cos(_ANGLE), np.sin(_ANGLE)])


def mean_supremum(values, n, signs):
    """A lower value of the mean of max |f_1 S + f_2 S'| / 2n, S and S' sums of n signs.

    Functions are rows; `signs` are the `sign_sums` of n. A maximum of linear functions is convex:
    means of groups of signs bring it down (Jensen), and so does the choice of those functions that
    are largest in 64 directions.
    """
    steepest = np.argmax(np.abs(values @ _DIRECTIONS), axis=0)
    sums, chance = signs
    first, second = values[np.unique(steepest)].T[:, :, None, None]
    best = np.abs(first * sums[:, None] + second * sums).max(axis=0)
    return chance @ best @ chance / (2 * n)


def _drawn(rng, index, ball, d):
    """One sample and one class: the values of its functions; those of the sum of tokens beside."""
    T, n = int(rng.choice([2, 3, 6])), int(4 ** rng.uniform(2, 10))
    tokens = _shape_tokens(rng, index, rng.normal(size=(2, T, d)))
    norm = float(rng.choice([0.3, 1.0, 3.0]))
    tokens *= norm / np.linalg.norm(tokens, ord=2 if ball == "1,1" else 1, axis=-1).max()
    radius, B = _radius(rng, index) / norm**2, math.exp(rng.uniform(-2, 2))
    W = radius * _extreme_points(rng, ball, d)
    logits = np.einsum("btd,kde,be->kbt", tokens, W, tokens[:, 0])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    pooled = np.einsum("kbt,btd->kdb", weights / weights.sum(-1, keepdims=True), tokens)
    values = np.concatenate([np.maximum(s * pooled, 0).reshape(-1, 2) for s in (1, -1)])
    return {
        "radius": radius,
        "B_x": norm,
        "largest": np.abs(tokens).max(),
        "B": B,
        "n": n,
        "values": values,
        "sums": np.maximum(tokens.sum(1).T, 0),
    }


def _measured(samples, shape):
    """The arrays of samples that were drawn in turn, with their complexities."""
    counts = np.array([one["n"] for one in samples])
    signs = sign_sums(counts)
    arrays = {name: [one[name] for one in samples] for name in ("radius", "B_x", "largest", "B")}
    for name, functions in (("rademacher", "values"), ("summed", "sums")):
        arrays[name] = [
            one["B"] * mean_supremum(one[functions], one["n"], law)
            for one, law in zip(samples, signs, strict=True)
        ]
    return {name: np.reshape(each, shape) for name, each in {**arrays, "m": 2.0 * counts}.items()}


def measured(rng, count, ball: Ball = "1,1"):
    """One sample for each of `DIMENSIONS`, with 2, 3 or 6 tokens and 32 to 2 million samples.

    `ball` bounds W_QK; tokens are l_1-bounded for "1,inf" and "2,1". Drawn are the radius of
    W_QK, B_x, the largest entry of a token, B (the norms outside the attention), m, rademacher,
    and summed (for the sum of the tokens in place of their average).
    """
    samples = [_drawn(rng, index, ball, d) for index in range(count) for d in DIMENSIONS]
    return _measured(samples, (count, len(DIMENSIONS)))


def on_all_balls(rng, count):
    """The samples of `measured` for each of the three balls, on an axis after the first."""
    samples = [_drawn(rng, *case) for case in product(range(count), BALLS, DIMENSIONS)]
    return _measured(samples, (count, len(BALLS), len(DIMENSIONS)))


def sign_vectors(m):
    """All of length m, one per row."""
    return np.array(list(product((1.0, -1.0), repeat=m)))


def exact_complexity(values):
    """The empirical Rademacher complexity of functions given by their values on m samples."""
    m = values.shape[1]
    return jnp.mean(jnp.max(jnp.asarray(sign_vectors(m)) @ values.T, axis=1)) / m


def small_sequences(rng, count, m, matrices):
    """Short sequences and query-key matrices of all scales, for exact enumeration."""
    tokens = rng.normal(size=(count, m, TOKENS, D))
    scale = six_decades(rng, (count, 1, 1, 1), -0.9, 1.3)
    return {"X": tokens, "M": scale * rng.normal(size=(count, matrices, D, D))}
