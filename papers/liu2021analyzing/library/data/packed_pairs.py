r"""Several sentence pairs in one row, so that little of a batch is padding.

Most sentences are much shorter than the longest. The pairs of a batch are laid one after another
into rows as wide as the longest one, and a word attends to those of its own pair: every sum over
words is the one over padded pairs, from fewer rows.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from attlas.core.errors import UserError
from liu2021analyzing.library.data.translation_pairs import SentencePairs


class PackedPairs(NamedTuple):
    """Rows of sentence pairs.

    Attributes:
        source: numbers of the source pieces.
        source_pair: which pair of its row a piece belongs to, from 1; 0 at padding.
        target: numbers of the target pieces from which a next one is predicted.
        target_pair: which pair of its row such a piece belongs to.
        labels: the next target pieces.
    """

    source: Int[Array, "r S"]
    source_pair: Int[Array, "r S"]
    target: Int[Array, "r T"]
    target_pair: Int[Array, "r T"]
    labels: Int[Array, "r T"]


def pack_batches(
    pairs: SentencePairs, batches: Int[np.ndarray, "steps b"]
) -> Int[np.ndarray, "steps r k"]:
    """Which pairs share a row: first fit, the longest pairs first.

    Args:
        pairs: sentence pairs, padded at their ends.
        batches: numbers of the pairs of each batch.

    Returns:
        Numbers of the pairs of each row, -1 where there are no more; as many rows as the fullest
        batch needs.

    Raises:
        UserError: if there is no batch, or a pair has no source piece or nothing to predict.

    Examples:
        >>> shown = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0]], bool)
        >>> pairs = SentencePairs(np.ones((3, 3), int), shown, np.ones((3, 4), int),
        ...                       np.pad(shown, ((0, 0), (1, 0)), constant_values=True))
        >>> pack_batches(pairs, np.array([[0, 1, 2]])).tolist()
        [[[0, -1], [2, 1]]]
    """
    batches = np.asarray(batches)
    lengths = np.stack([pairs.mask.sum(axis=1), pairs.target_mask.sum(axis=1) - 1], axis=1)
    if batches.ndim != 2 or batches.size == 0:
        raise UserError(f"batches of shape {batches.shape}: give one row of pairs per batch")
    if np.min(lengths[batches]) < 1:
        raise UserError("a pair without a source piece, or without a target piece: leave it out")
    room = np.array([pairs.source.shape[1], pairs.target.shape[1] - 1])
    packed = [_rows(batch, lengths, room) for batch in batches]
    rows = max(len(batch_rows) for batch_rows in packed)
    most = max(len(row) for batch_rows in packed for row in batch_rows)
    numbers_of_rows = np.full((len(packed), rows, most), -1, np.int32)
    for step, batch_rows in enumerate(packed):
        for row, numbers in enumerate(batch_rows):
            numbers_of_rows[step, row, : len(numbers)] = numbers
    return numbers_of_rows


def _rows(batch: np.ndarray, lengths: np.ndarray, room: np.ndarray) -> list[list[int]]:
    needed = lengths[batch]
    free, rows = np.tile(room, (batch.size, 1)), [[] for _ in batch]
    for item in np.argsort(-np.max(needed / room, axis=1), kind="stable"):
        row = int(np.argmax(np.all(free >= needed[item], axis=1)))
        free[row] -= needed[item]
        rows[row].append(int(batch[item]))
    return [row for row in rows if row]


def packed_pairs(pairs: SentencePairs, rows: Int[Array, "r k"]) -> PackedPairs:
    """The rows of a batch.

    Args:
        pairs: sentence pairs, as arrays of JAX.
        rows: numbers of the pairs of each row, -1 where there are no more.

    Examples:
        >>> ids, shown = jnp.array([[5, 6, 0], [7, 0, 0]]), jnp.array([[1, 1, 0], [1, 0, 0]]) > 0
        >>> rows = packed_pairs(SentencePairs(ids, shown, ids, shown), jnp.array([[0, 1]]))
        >>> rows.source.tolist(), rows.source_pair.tolist(), rows.labels[0, :1].tolist()
        ([[5, 6, 7]], [[1, 1, 2]], [6])
    """
    pair = jnp.maximum(rows, 0)
    there = (rows >= 0).astype(rows.dtype)
    pieces = jnp.sum(pairs.mask[pair], axis=2, dtype=rows.dtype) * there
    labels = (jnp.sum(pairs.target_mask[pair], axis=2, dtype=rows.dtype) - 1) * there
    at, source_pair = _places(pieces, pairs.source.shape[1])
    source = jnp.take_along_axis(pair, at[0], axis=1), at[1]
    at, target_pair = _places(labels, pairs.target.shape[1] - 1)
    target = jnp.take_along_axis(pair, at[0], axis=1), at[1]
    return PackedPairs(
        pairs.source[source],
        source_pair,
        pairs.target[target],
        target_pair,
        pairs.target[target[0], target[1] + 1],
    )


def _places(lengths: Array, width: int) -> tuple[tuple[Array, Array], Array]:
    """For each place of a row: which pair of the row, which of its pieces, and its number."""
    ends = jnp.cumsum(lengths, axis=1, dtype=lengths.dtype)
    place = jnp.arange(width, dtype=lengths.dtype)[None, :]
    before = jnp.sum(ends[:, :, None] <= place[:, None, :], axis=1, dtype=lengths.dtype)
    filled = place < ends[:, -1:]
    which = jnp.where(filled, before, 0)
    piece = place - jnp.take_along_axis(ends - lengths, which, axis=1)
    return (which, jnp.where(filled, piece, 0)), jnp.where(filled, which + 1, 0)
