"""Random numbers of the explorer, drawn by the library when the page is written."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np

from attlas._jax.generator import generator

if TYPE_CHECKING:  # models and data, which a page without the explorer does not need
    from attlas.data.tokenized_mixture import MixtureSamples, TokenizedMixture

TOKENS, HEAD_SIZE = 24, 4
"""Of the attention head: the longest text, and the size of a token."""
MIXTURE_TOKENS, SIZE, IRRELEVANT, SHARE = 4, 8, 3, 0.25
"""Of the mixture, as the experiments of deora2023optimization have it: T, d, M and zeta."""
SAMPLES, HEADS = 192, 32
"""Samples to train and to test on; the largest number of heads."""


def mixture(S: float, Z: float) -> "tuple[TokenizedMixture, MixtureSamples]":
    """The mixture of the explorer and its samples, scaled: equal draws for every S and Z.

    Args:
        S: norm of a pattern.
        Z: norm of the noise, which no pattern's direction has a part in.

    Returns:
        The distribution, and the samples.
    """
    from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture

    pattern, sample = jax.random.split(jax.random.key(2023))
    made = make_tokenized_mixture(pattern, d=SIZE, M=IRRELEVANT, S=S, zeta=SHARE, Z=Z)
    return made, sample_mixture(sample, made, SAMPLES, MIXTURE_TOKENS, "corners")


def mixture_draws() -> dict[str, np.ndarray]:
    """What the page makes samples of the mixture from, at any S and Z.

    Returns:
        `patterns` of norm one, mu_+ and mu_- first; `labels`, `relevant`, `pattern` and `noise` of
        norm one; `signs` of the heads in the first step; and the sizes T and d.
    """
    from attlas.optim.one_step import first_phase_steps

    made, samples = mixture(1.0, 1.0)
    patterns = np.concatenate([made.patterns, made.irrelevant])
    noise = np.asarray(samples.X) - np.asarray(made.irrelevant)[np.asarray(samples.pattern)]
    return {
        "patterns": patterns,
        "labels": np.asarray(samples.y),
        "relevant": np.asarray(samples.relevant),
        "pattern": np.asarray(samples.pattern),
        "noise": np.where(np.asarray(samples.relevant)[..., None], 0.0, noise),
        "signs": np.asarray(first_phase_steps(jax.random.key(2), HEADS)),
        "T": np.array(MIXTURE_TOKENS),
        "d": np.array(SIZE),
    }


def head_draws() -> dict[str, np.ndarray]:
    """Tokens and matrices of the attention head.

    Returns:
        `X`, tokens of norm one; `core` and `value`, matrices of spectral norm one.
    """
    draw = generator(jax.random.key(7))
    X = draw.normal(size=(TOKENS, HEAD_SIZE))
    core, value = draw.normal(size=(2, HEAD_SIZE, HEAD_SIZE))
    return {
        "X": X / np.linalg.norm(X, axis=1, keepdims=True),
        "core": core / np.linalg.norm(core, 2),
        "value": value / np.linalg.norm(value, 2),
    }


def encoded(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Arrays as the page stores them.

    Args:
        arrays: by name.

    Returns:
        Base64 of their numbers in float64, little-endian, row by row.

    Examples:
        >>> encoded({"x": np.array([1.0])})
        {'x': 'AAAAAAAA8D8='}
    """
    return {
        name: base64.b64encode(np.asarray(array, "<f8").tobytes()).decode()
        for name, array in arrays.items()
    }
