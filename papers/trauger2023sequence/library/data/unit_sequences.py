"""Random sequences of tokens on the unit sphere, whose prefixes are shorter sequences."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class UnitSequences(NamedTuple):
    """Sequences and their [CLS] tokens, all of Euclidean length one.

    Attributes:
        queries: the [CLS] token of each.
    """

    tokens: Float[np.ndarray, "n T d"]
    queries: Float[np.ndarray, "n d"]


def make_unit_sequences(
    n: int, T: int, d: int, centred: bool, seed: int = 0, dtype: str = "float32"
) -> UnitSequences:
    r"""Draw $x_t=(c+g_t)/\|c+g_t\|_2$ with Gaussian $g_t$ and a centre c of each sequence.

    Args:
        centred: whether a sequence has a Gaussian centre of its own; all are zero otherwise.

    Examples:
        >>> tokens, queries = make_unit_sequences(2, 5, 3, centred=True, dtype="float64")
        >>> tokens.shape, float(np.abs(np.linalg.norm(tokens, axis=-1) - 1).max()) < 1e-15
        ((2, 5, 3), True)
    """
    rng = np.random.default_rng([seed, n, d, 0 if centred else 1])
    centres = rng.standard_normal((n, 1, d)) * centred
    tokens = centres + rng.standard_normal((n, T, d))
    queries = rng.standard_normal((n, d))
    unit = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (tokens, queries))
    return UnitSequences(*(a.astype(dtype) for a in unit))


def repeat_tokens(tokens: Float[np.ndarray, "n T d"], length: int) -> Float[np.ndarray, "n S d"]:
    """Repeat sequences whole up to a common length, so that lengths share one compiled program.

    Softmax attention is the same function of a sequence and of its repetitions.

    Args:
        length: common length S.

    Returns:
        Tokens of that length, or as they are where T does not divide it.

    Examples:
        >>> [repeat_tokens(np.ones((1, T, 2)), 100).shape for T in (4, 3)]
        [(1, 100, 2), (1, 3, 2)]
    """
    T = tokens.shape[1]
    return np.tile(tokens, (1, length // T if length % T == 0 else 1, 1))
