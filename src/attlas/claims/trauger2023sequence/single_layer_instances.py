"""Samples with the measured complexity of the one-layer class, shared by Theorem 4.1's claims.

In two dimensions projected ascent finds functions of the class for drawn signs: a lower value with
a Monte-Carlo interval. In dimension one the mean over all signs is exact, see `on_a_line`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_cover import Ball
from attlas.core.generator import generator
from attlas.core.sampling import shared
from attlas.measures.complexity.norm_ball_classes import AttentionClass, LinearClass, Sequences
from attlas.measures.complexity.rademacher import draw_signs, rademacher_complexity

M, TOKENS, D = 512, 3, 2
"""Samples, tokens per sequence, dimension."""
SIGNS = 24
BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
ROUNDINGS = 256
"""The longest path: 48 links of a chain, each with a square root and a logarithm."""


def _shape_tokens(draws, index, tokens):
    """Gaussian tokens, equal lengths, or the corners of a cube: there every entry is largest."""
    kind = index % 3
    if kind == 1:
        return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)
    if kind == 2:
        tokens = np.sign(tokens)
        tokens[:, 1:] = tokens[:, :1] if draws.random() < 0.7 else tokens[:, 1:]
    return tokens


def _radius(draws, index):
    """Most classes are so small that the bounds are non-vacuous; some saturate the softmax."""
    low, high = (0.3, 30.0) if index % 4 == 3 else (0.0005, 0.3)
    return float(np.exp(draws.uniform(math.log(low), math.log(high))))


def _measure(seed, index, ball):
    """One sample, one class, its lower complexity."""
    draws = np.random.default_rng([*seed, index])
    tokens = _shape_tokens(draws, index, draws.normal(size=(M, TOKENS, D)))
    norm = float(draws.choice([0.3, 1.0, 3.0]))
    tokens *= norm / np.linalg.norm(tokens, ord=2 if ball == "1,1" else 1, axis=-1).max()
    radius = _radius(draws, index) / norm**2
    value, factor = (float(np.exp(draws.uniform(-1, 1))) for _ in range(2))
    sizes = [jnp.asarray(each, tokens.dtype) for each in (radius, value, factor, 1.0)]
    # ||W||_{1,1} is the largest of the three norms: its ball lies in the other two, and one
    # compiled program serves all.
    attention = AttentionClass("1,1", sizes[0], sizes[1], sizes[2], sizes[3])
    sample = Sequences(jax.device_put(tokens), jax.device_put(tokens[:, 0]))
    key = jax.random.key(int(draws.integers(2**31)))
    found = rademacher_complexity(
        key,
        attention,
        sample,
        sign_vectors=SIGNS,
        starts=2,
        steps=3,
        chunk=SIGNS,
        confidence=0.99,
    )
    # Sums of tokens: relu(t) - relu(-t) = t, so that half of the linear supremum is reached.
    linear = LinearClass("1,1", jnp.asarray(value * factor / 2, tokens.dtype))
    sums = jax.device_put(tokens.sum(1)[:, :, None])
    summed = linear.suprema(jax.device_put(draw_signs(key, SIGNS, M)), sums)
    return {
        "radius": radius,
        "B_x": norm,
        "largest": float(np.abs(tokens).max()),
        "B": value * factor,
        "rademacher": found.low,
        "summed": float(summed.mean()),
    }


@shared
def measured(rng, count, ball):
    """Samples of 512 sequences with the lower complexity of the class on each.

    `ball` bounds W_QK; tokens are l_1-bounded for "1,inf" and "2,1". Drawn are the radius of
    W_QK, B_x, the largest entry of a token, B (the norms outside the attention), rademacher (lower
    end of the 99 % interval) and summed (for the sum of the tokens in place of their average).
    """
    seed = rng.integers(2**31, size=2).tolist()
    rows = [_measure(seed, index, ball) for index in range(count)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def on_all_balls(key, count):
    """The samples of `measured` for each of the three balls, on an axis after the first."""
    found = [measured(generator(key), count, ball=ball) for ball in BALLS]
    return {name: np.stack([each[name] for each in found], axis=1) for name in found[0]}


def _sign_sums(n):
    """The values of a sum of n signs and their probabilities."""
    k = np.arange(n + 1)
    log_n = math.lgamma(n + 1)
    log_p = np.array([log_n - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in k])
    return 2.0 * k - n, np.exp(log_p - n * math.log(2))


def _line(draws, index):
    """Two sequences of numbers, 256 times each, and the exact mean over all signs."""
    tokens = _shape_tokens(draws, index, draws.normal(size=(2, TOKENS, 1)))[:, :, 0]
    norm = float(draws.choice([0.3, 1.0, 3.0]))
    tokens *= norm / np.abs(tokens).max()
    radius = _radius(draws, index) / norm**2
    B = float(np.exp(draws.uniform(-2, 2)))
    weights = np.exp(np.linspace(-radius, radius, 9)[:, None, None] * tokens * tokens[:, :1])
    pooled = (weights * tokens).sum(-1) / weights.sum(-1)
    features = np.concatenate([np.maximum(pooled, 0), np.maximum(-pooled, 0)])
    sums, chance = _sign_sums(M // 2)
    # The best of relu(v x), v = 1 or -1, with either sign, at each pair of sign sums.
    totals = features[:, 0, None, None] * sums[:, None] + features[:, 1, None, None] * sums
    mean = chance @ np.abs(totals).max(0) @ chance
    each = np.maximum(0, tokens.sum(1))
    summed = chance @ np.abs(each[0] * sums[:, None] + each[1] * sums) @ chance
    return {
        "radius": radius,
        "B_x": norm,
        "B": B,
        "rademacher": float(B * mean / M),
        "summed": float(B * summed / M),
    }


def on_a_line(rng, count):
    """Samples of dimension one: two sequences that stand 256 times each, so m = 512.

    The signs of equal sequences count by their sum alone, which is binomial: the mean over all
    2^512 sign vectors is a sum over 257^2 pairs, without sampling. W takes nine values, so that
    the complexity is still a lower one. Arrays as in `measured`.
    """
    rows = [_line(rng, index) for index in range(count)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def small_sequences(rng, count, m, matrices):
    """Short sequences and query-key matrices of all scales, for exact enumeration."""
    tokens = rng.normal(size=(count, m, TOKENS, D))
    scale = np.exp(rng.uniform(-2, 3, size=(count, 1, 1, 1)))
    return {"X": tokens, "M": scale * rng.normal(size=(count, matrices, D, D))}
