"""What an audit may try on a model: a protocol for models read here and for captured ones."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from attlas.audit.head_cosines import HeadPair
from attlas.core.arrays import ArrayInput

SINK_TOKENS = 64
"""Rows that are read for a sink, whose weight falls with the length of a text."""


class MapObservation(NamedTuple):
    """What the maps of each head are on each sequence, heads in the order of `Trial.heads`.

    Attributes:
        first: mean weight that the rows behind the first token, up to `SINK_TOKENS`, give it.
        equal: the same of equal weights.
        products: largest |query times key|, before any factor that follows their product.
        logits: largest |logit| that the softmax reads.
    """

    first: Float[np.ndarray, "n heads"]
    equal: Float[np.ndarray, "n heads"]
    products: Float[np.ndarray, "n heads"]
    logits: Float[np.ndarray, "n heads"]


@runtime_checkable
class Trial(Protocol):
    """A model whose heads, weights and maps can be changed, and its loss on a batch."""

    @property
    def unit(self) -> str:
        """What the loss is counted in."""
        ...

    @property
    def examples(self) -> str:
        """What the losses are of, in the plural: sequences, texts, images or queries."""
        ...

    @property
    def errors(self) -> "Trial | None":
        """The same model and examples, with errors, 0 or 1, in place of losses.

        Its unit is the name of the share that is right; None where there is no right answer.
        """
        ...

    @property
    def heads(self) -> Sequence[tuple[int, int]]:
        """Layer and number of every head."""
        ...

    @property
    def removable(self) -> Sequence[tuple[tuple[int, int], ...]]:
        """The heads in sets that a file can lose: a head of all layers that share its weights.

        Heads whose block of the output projection is zero are lost already.
        """
        ...

    @property
    def layers(self) -> int:
        """Number of layers whose weights can be rounded."""
        ...

    def losses(self, heads: Sequence[tuple[int, int]] = ()) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with some heads left out together."""
        ...

    def rounded(self, bits: Mapping[int, int]) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the weights of some layers rounded."""
        ...

    def observed(self) -> MapObservation:
        """What the maps and products of the unchanged model are."""
        ...

    def hidden(self, heads: Sequence[tuple[int, int]], place: int) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the token at a place hidden from some heads.

        Their other weights share what it had; a row that sees it alone sees it still.
        """
        ...

    def in_type(self, name: str) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with all logits rounded, to "float16" or "bfloat16"."""
        ...

    def sharing(self, pair: HeadPair) -> Float[np.ndarray, " n"]:
        """Loss of each sequence when the second head of a pair has the map of the first."""
        ...

    def pairs(self) -> Sequence[HeadPair]:
        """Pairs of heads of one layer, with the cosines of their weights."""
        ...


def silent_heads(W_O: Float[ArrayInput, "H v out"]) -> list[int]:
    """Heads whose block of the output projection is zero: they are removed already.

    Examples:
        >>> silent_heads(np.array([[[0.0]], [[1.0]]]))
        [0]
    """
    return np.flatnonzero(~np.asarray(W_O).any(axis=(1, 2))).tolist()


def sharing_heads(
    heads: Sequence[tuple[int, int]],
    stored: Sequence[Hashable],
    outputs: Sequence[Float[np.ndarray, "H v out"] | None],
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Heads in sets with the same stored weights, without those that write nothing.

    Args:
        heads: layer and number of each.
        stored: what the weights of each layer are stored as, equal for layers that share them.
        outputs: output projection of the heads of each layer, None where it is not known.

    Examples:
        >>> heads, W_O = [(0, 0), (0, 1), (1, 0), (1, 1)], np.ones((2, 1, 1))
        >>> sharing_heads(heads, ["a", "a"], [W_O, W_O])
        (((0, 0), (1, 0)), ((0, 1), (1, 1)))
    """
    sets: dict[Hashable, list[tuple[int, int]]] = {}
    for layer, head in heads:
        W_O = outputs[layer]
        if W_O is None or head not in silent_heads(W_O):
            sets.setdefault((stored[layer], head), []).append((layer, head))
    return tuple(tuple(members) for members in sets.values())
