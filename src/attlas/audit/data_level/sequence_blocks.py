"""Sequences of unequal lengths in padded blocks of few shapes, and their controls."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.padded_sequences import padded_tokens, padded_width
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.canonical import PatchEmbedding
from attlas.transformers.trained_transformer import TrainedTransformer

# Weights of one layer's maps that are worked on at once: some tens of megabytes.
_WEIGHTS = 8_000_000


class SequenceBlock(NamedTuple):
    """Sequences of similar lengths, padded at the end.

    Attributes:
        members: which sequences these are, in order; the block's further rows are copies.
        present: False for padding.
        special: True for special tokens.
        hidden: hidden states that enter the next layer.
    """

    members: Int[np.ndarray, " m"]
    present: Bool[np.ndarray, "b T"]
    special: Bool[np.ndarray, "b T"]
    hidden: Float[Array, "b T d"]

    @property
    def lengths(self) -> Int[np.ndarray, " b"]:
        """Number of tokens of each sequence."""
        return self.present.sum(axis=1)


def read_sequences(model: TrainedTransformer, sequences: Sequence[ArrayInput]) -> list[np.ndarray]:
    """The sequences of token numbers, checked.

    Raises:
        UserError: if there is no sequence, one that the model cannot read (named by its place),
            or a model of images.
    """
    if isinstance(model.embedding, PatchEmbedding):
        raise UserError(f"{model.name} reads images: level data reads sequences of tokens")
    if len(sequences) == 0:
        raise UserError("no sequence: give at least one vector of token numbers")
    arrays = []
    for place, tokens in enumerate(sequences):
        try:
            arrays.append(np.asarray(model.read_tokens(tokens)))
        except UserError as error:
            raise UserError(f"sequence {place}: {error}") from error
    return arrays


def enclosing_tokens(sequences: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Tokens that open or close every sequence: the special tokens where no file names any.

    Args:
        sequences: token numbers of at least one sequence; of a single sequence the first token is
            taken.

    Examples:
        >>> enclosing_tokens([np.array([1, 7, 2]), np.array([1, 5, 6, 2])])
        (1, 2)
    """
    first, last = {int(s[0]) for s in sequences}, {int(s[-1]) for s in sequences}
    if len(sequences) == 1:
        return tuple(first)
    return tuple(
        sorted({token for tokens in (first, last) if len(tokens) == 1 for token in tokens})
    )


def shuffled(
    tokens: Int[np.ndarray, " T"], special: Sequence[int], draw: np.random.Generator
) -> Int[np.ndarray, " T"]:
    """The same tokens in another order; special ones stay where they are.

    Examples:
        >>> found = shuffled(np.array([1, 7, 8, 9]), [1], np.random.default_rng(0))
        >>> int(found[0]), sorted(found.tolist())
        (1, [1, 7, 8, 9])
    """
    moved = ~np.isin(tokens, list(special))
    order = tokens.copy()
    order[moved] = draw.permutation(tokens[moved])
    return order


def repeated(
    tokens: Int[np.ndarray, " T"], special: Sequence[int], draw: np.random.Generator
) -> Int[np.ndarray, " T"]:
    """One token of the sequence, not a special one if there is another, at every position.

    Examples:
        >>> repeated(np.array([1, 7]), [1], np.random.default_rng(0)).tolist()
        [7, 7]
    """
    plain = tokens[~np.isin(tokens, list(special))]
    return np.full_like(tokens, draw.choice(plain if plain.size else tokens))


def sequence_blocks(
    model: TrainedTransformer,
    sequences: Sequence[np.ndarray],
    special: Sequence[int],
) -> list[SequenceBlock]:
    """The sequences in blocks, the short ones first, as they enter the first layer.

    All blocks have one number of rows; where sequences are lacking, the last one is repeated.
    """
    lengths = np.array([tokens.size for tokens in sequences])
    order = np.argsort(lengths, kind="stable")
    width = padded_width(int(lengths.max()), model.context)
    rows = _rows(len(sequences), _WEIGHTS // (model.heads_per_layer * width**2))
    blocks = []
    for start in range(0, len(sequences), rows):
        members = order[start : start + rows]
        filled = np.concatenate([members, np.repeat(members[-1:], rows - members.size)])
        width = padded_width(int(lengths[members].max()), model.context)
        tokens, present = padded_tokens([sequences[member] for member in filled], width)
        marked = present & np.isin(tokens, list(special))
        blocks.append(SequenceBlock(members, present, marked, model.embed_batch(tokens)))
    return blocks


def _rows(sequences: int, most: int) -> int:
    """Rows of a block: of the larger numbers that fit, the one that repeats fewest sequences."""
    most = max(1, min(most, sequences))
    return min(range(most, most // 2, -1), key=lambda rows: -sequences % rows)
