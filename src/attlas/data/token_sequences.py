"""Labelled sequences of tokens, padded to one length, for training classifiers."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class TokenSequences(eqx.Module):
    """Sequences of token numbers or of continuous tokens, with a label each.

    Attributes:
        tokens: integers [n, T], or continuous tokens [n, T, k].
        mask: True where a token is, False where padding is.
        labels: classes, counted from 0.
    """

    tokens: Int[Array | np.ndarray, "n T"] | Float[Array | np.ndarray, "n T k"]
    mask: Bool[Array | np.ndarray, "n T"]
    labels: Float[Array | np.ndarray, " n"]
