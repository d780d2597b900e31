"""The map from the last hidden rows to the words, which may share the embedding's matrix."""

from collections.abc import Sequence

import numpy as np

from attlas.interop.canonical import Dense
from attlas.interop.head_blocks import dense
from attlas.interop.stored_tensors import StoredTensors


def output_words(
    stored: StoredTensors, embedding: np.ndarray, names: Sequence[str], *, tied: bool
) -> tuple[Dense | None, int]:
    """What a file says about the output layer.

    Args:
        stored: the file.
        embedding: one row per word.
        names: which tensor is the output layer; the first that is there.
        tied: whether the embedding is the output layer where the file has no other.

    Returns:
        The map, None for a model without it or with a head of another task; and how many numbers
        of the file are the embedding once more, as in a state dict, which holds a shared matrix
        under both names.

    Examples:
        >>> words = np.eye(2)
        >>> stored = StoredTensors({"in": words}, {"in": (2, 2)})
        >>> output_words(stored, words, ("out",), tied=True)[1]
        0
        >>> output_words(stored, words, ("out",), tied=False)
        (None, 0)
    """
    name = next((name for name in names if name in stored), None)
    if name is None:
        return (dense(embedding, None) if tied and stored.for_words else None), 0
    found = stored[name]
    # The library ties only what is equal: a file whose two matrices differ is read as it is.
    repeated = tied and np.array_equal(embedding, found)
    return dense(found, None), embedding.size if repeated else 0
