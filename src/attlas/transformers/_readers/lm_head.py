"""The LM head, which may share the embedding's matrix."""

from collections.abc import Mapping, Sequence

import numpy as np

from attlas.transformers._readers.head_blocks import dense
from attlas.transformers.canonical import Dense
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.stored_tensors import StoredTensors


def read_lm_head(
    stored: StoredTensors, embedding: str, names: Sequence[str], *, tied: bool
) -> Dense | None:
    """The LM head of a file.

    Args:
        embedding: name of the tensor with one row per token of the vocabulary.
        names: names of the LM head; the first that the file has counts.
        tied: whether the embedding is the LM head too, where the file has no other.

    Returns:
        The map; None for a model without LM head or with the head of another task.

    Examples:
        >>> stored = StoredTensors({"in": np.eye(2)}, {"in": (2, 2)})
        >>> read_lm_head(stored, "in", ("out",), tied=True).W.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        >>> read_lm_head(stored, "in", ("out",), tied=False) is None
        True
    """
    name = next((name for name in names if name in stored), None)
    if name is None:
        return dense(stored[embedding], None) if tied and stored.for_language else None
    # The library ties only what is equal: a file whose two matrices differ is read as it is.
    return dense(stored[name], None)


def with_embedding(
    tensors: Mapping[str, np.ndarray], embedding: str, names: Sequence[str], prefixes: Sequence[str]
) -> Mapping[str, np.ndarray]:
    """Tensors of a file with a tied LM head, of which some programs store the LM head alone.

    Args:
        embedding: name of the tensor with one row per token of the vocabulary.
        names: names of the LM head.
        prefixes: beginnings that the names in the file may have.

    Returns:
        The tensors; with the LM head as the embedding, where there is no embedding.

    Examples:
        >>> head = {"lm_head": np.eye(2), "model.norm": np.ones(2)}
        >>> sorted(with_embedding(head, "embed", ["lm_head"], ["model.", ""]))
        ['lm_head', 'model.embed', 'model.norm']
    """
    if any(prefix + embedding in tensors for prefix in prefixes):
        return tensors
    places = [prefix + name for name in names for prefix in ("", *prefixes)]
    head = next((place for place in places if place in tensors), None)
    if head is None:
        return tensors
    used = (each for each in prefixes if each and any(name.startswith(each) for name in tensors))
    prefix = next(used, "")
    if isinstance(tensors, LazyTensors):
        return tensors.with_copy(prefix + embedding, head)
    return {**tensors, prefix + embedding: tensors[head]}


def repeated_lm_head(
    stored: StoredTensors, embedding: str, names: Sequence[str], *, tied: bool
) -> int:
    """How many numbers of a file are the embedding once more.

    A state dict holds a shared matrix under both names. Where nothing is tied, nothing is read.

    Args:
        embedding: name of the tensor with one row per token of the vocabulary.
        names: names of the LM head; the first that the file has counts.

    Examples:
        >>> both = {"in": np.eye(2), "out": np.eye(2)}
        >>> stored = StoredTensors(both, dict.fromkeys(both, (2, 2)))
        >>> [repeated_lm_head(stored, "in", ("out",), tied=tied) for tied in (True, False)]
        [4, 0]
    """
    name = next((name for name in names if name in stored), None)
    if name is None or not tied:
        return 0
    table = stored[embedding]
    return table.size if np.array_equal(table, stored[name]) else 0
