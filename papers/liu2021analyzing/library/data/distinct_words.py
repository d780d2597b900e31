r"""Texts as their distinct words, with how often and where each of them stands.

A model without positions treats equal words of a text alike, so attention between words has to
be computed between distinct words alone: of the first 130 words of a review about 80 differ.
"""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from attlas.data.word_pieces import PADDING

_ROUND = 8
"""Slots are a multiple of this: rows of a matrix product that the processor takes at once."""


class DistinctWords(eqx.Module):
    """Texts of p words, each with at most U distinct ones.

    Attributes:
        words: number of the word in each slot; padding, number 0, is a word too.
        counts: how often it stands in the text; 0 marks a slot that is not used.
        places: for each of the p positions the slot of its word.
        labels: a class for each text.
    """

    words: Int[Array | np.ndarray, "n U"]
    counts: Float[Array | np.ndarray, "n U"]
    places: Int[Array | np.ndarray, "n p"]
    labels: Float[Array | np.ndarray, " n"]


def distinct_words(data: TokenSequences, dtype: type = np.float32) -> DistinctWords:
    """The distinct words of each text.

    Args:
        data: texts as word numbers; what the mask leaves out counts as padding.
        dtype: floating type of counts and labels.

    Returns:
        Slots in the order of the word numbers.

    Raises:
        UserError: if there is no text, or its tokens are no word numbers.

    Examples:
        >>> data = TokenSequences(np.array([[5, 2, 5]]), np.ones((1, 3), bool), np.zeros(1))
        >>> found = distinct_words(data)
        >>> found.words[0, :2].tolist(), found.counts[0, :2].tolist(), found.places.tolist()
        ([2, 5], [1.0, 2.0], [[1, 0, 1]])
    """
    if data.tokens.ndim != 2 or not data.tokens.size:
        raise UserError(f"tokens of shape {data.tokens.shape} are not texts: give word numbers")
    tokens = np.where(data.mask, data.tokens, PADDING)
    order = np.argsort(tokens, axis=1, kind="stable")
    ordered = np.take_along_axis(tokens, order, axis=1)
    first = np.ones(tokens.shape, bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    slot = np.cumsum(first, axis=1) - 1
    width = -(-(int(slot.max()) + 1) // _ROUND) * _ROUND
    places = np.empty(tokens.shape, np.int32)
    np.put_along_axis(places, order, slot.astype(np.int32), axis=1)
    rows = np.arange(tokens.shape[0])[:, None]
    words = np.full((tokens.shape[0], width), PADDING, np.int32)
    words[rows, slot] = ordered
    counts = np.zeros(words.shape, dtype)
    np.add.at(counts, (rows, slot), 1)
    return DistinctWords(words, counts, places, np.asarray(data.labels, dtype))
