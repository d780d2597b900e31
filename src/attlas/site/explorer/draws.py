"""Random numbers for the explorer, drawn by the library when it writes the page."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np

from attlas._jax.device_arrays import generator
from attlas.core.errors import refuse_unreadable

if TYPE_CHECKING:  # models and data, which a page without the explorer does not need
    from attlas.data.tokenized_mixture import MixtureSamples, TokenizedMixture

TOKENS, HEAD_SIZE = 24, 4
"""Largest number of tokens and token dimension of the attention head."""
MIXTURE_TOKENS, SIZE, IRRELEVANT, SHARE = 4, 8, 3, 0.25
"""T, d, M and zeta of the mixture, as in the experiments of deora2023optimization."""
SAMPLES, HEADS = 192, 32
"""Number of samples for training and testing, and largest number of heads."""


def mixture(S: float, Z: float) -> "tuple[TokenizedMixture, MixtureSamples]":
    """The explorer's mixture and its samples; all S and Z use the same draws.

    Args:
        S: norm of a pattern.
        Z: norm of the noise, which is orthogonal to all patterns.
    """
    from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture

    pattern, sample = jax.random.split(jax.random.key(2023))
    distribution = make_tokenized_mixture(pattern, d=SIZE, M=IRRELEVANT, S=S, zeta=SHARE, Z=Z)
    return distribution, sample_mixture(sample, distribution, SAMPLES, MIXTURE_TOKENS, "corners")


def mixture_draws() -> dict[str, np.ndarray]:
    """The draws from which the page makes samples of the mixture at any S and Z.

    Returns:
        `patterns` of norm 1, mu_+ and mu_- first; `labels`, `relevant`, `pattern` and `noise` of
        norm 1; `signs` of the heads in the first step; and the sizes T and d.
    """
    from attlas.optim.one_step import first_phase_steps

    distribution, samples = mixture(1.0, 1.0)
    patterns = np.concatenate([distribution.patterns, distribution.irrelevant])
    noise = np.asarray(samples.X) - np.asarray(distribution.irrelevant)[np.asarray(samples.pattern)]
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
    """Tokens `X` of norm 1, and matrices `core` and `value` of spectral norm 1."""
    draw = generator(jax.random.key(7))
    X = draw.normal(size=(TOKENS, HEAD_SIZE))
    core, value = draw.normal(size=(2, HEAD_SIZE, HEAD_SIZE))
    return {
        "X": X / np.linalg.norm(X, axis=1, keepdims=True),
        "core": core / np.linalg.norm(core, 2),
        "value": value / np.linalg.norm(value, 2),
    }


@refuse_unreadable
def encoded(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Arrays as base64 of little-endian float64 numbers, row by row.

    Examples:
        >>> encoded({"x": np.array([1.0])})
        {'x': 'AAAAAAAA8D8='}
    """
    return {
        name: base64.b64encode(np.asarray(array, "<f8").tobytes()).decode()
        for name, array in arrays.items()
    }
