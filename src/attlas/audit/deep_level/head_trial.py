"""Actions on a model that is read here: heads left out, weights rounded, attention maps changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.deep_level.ablation import (
    REPLACEMENTS,
    AlikeSequences,
    leave_replaced,
    pass_layer,
    replaced_heads,
)
from attlas.audit.deep_level.changed_maps import LayerChange, leave_changed, observed_layer
from attlas.audit.head_cosines import HeadPair, head_cosines
from attlas.audit.sequence_loss import JudgedBatch, similar_lengths
from attlas.audit.trial import MapObservation, sharing_heads
from attlas.transformers.canonical import Layer, Rotary
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import whole_model

_ZERO = REPLACEMENTS.index("zero")


class HeadTrial:
    """The loss of a batch with heads, weights or maps changed, see `attlas.audit.trial`.

    Args:
        model: the model, whose layers are read once.
        batch: sequences with their loss.
    """

    examples = "sequences"
    errors = None

    def __init__(self, model: TrainedTransformer, batch: JudgedBatch) -> None:
        weights = whole_model(model)
        self._layers = [weights.layers[stored] for stored in weights.order]
        self._stored = weights.order
        self._number = batch.tokens.shape[0]
        self._alike = [
            AlikeSequences(model, self._layers, batch, members)
            for members in similar_lengths(batch)
        ]
        self.unit = batch.unit
        self.layers = len(self._layers)
        self.heads = tuple(np.ndindex(self.layers, model.heads_per_layer))
        self.removable = sharing_heads(
            self.heads, self._stored, [np.asarray(layer.attention.W_O) for layer in self._layers]
        )

    def losses(self, heads: Sequence[tuple[int, int]] = ()) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with nothing in place of some heads."""
        members = _by_layer(heads)

        def leave(group: AlikeSequences, index: int, x: Array) -> Array:
            layer = self._layers[index]
            if index not in members:
                return pass_layer(layer, x, group.present)
            replaced, nothing = replaced_heads(layer, members[index]), jnp.zeros_like(x[0, 0])
            return leave_replaced(layer, x, group.present, replaced, nothing, _ZERO)

        return self._losses(leave, min(members, default=self.layers))

    def rounded(self, bits: Mapping[int, int]) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the weights of some layers rounded."""
        layers = [
            rounded_weights(layer, bits[index]) if index in bits else layer
            for index, layer in enumerate(self._layers)
        ]
        losses = np.zeros(self._number)
        for group in self._alike:
            losses[group.members] = group.through(layers)
        return losses

    def observed(self) -> MapObservation:
        """What the maps and products of the unchanged model are."""
        per_layer = len(self.heads) // self.layers
        parts = np.zeros((4, self._number, self.layers, per_layer))
        for group in self._alike:
            for index, layer in enumerate(self._layers):
                seen = observed_layer(layer, group.entering[index], group.present)
                parts[:, group.members, index] = np.asarray(seen)
        return MapObservation(*parts.reshape(4, self._number, -1))

    def hidden(self, heads: Sequence[tuple[int, int]], place: int) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the token at a place hidden from some heads."""
        members = _by_layer(heads)

        def change(index: int, number: int) -> LayerChange | None:
            if index not in members:
                return None
            hides = np.isin(np.arange(number), members[index])
            return LayerChange(jnp.asarray(hides), jnp.asarray(place), jnp.arange(number))

        return self._changed(change)

    def in_type(self, name: str) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with all logits rounded to a type of numbers."""

        def change(_: int, number: int) -> LayerChange:
            nobody = jnp.zeros(number, bool)
            return LayerChange(nobody, jnp.asarray(0), jnp.arange(number), name)

        return self._changed(change)

    def sharing(self, pair: HeadPair) -> Float[np.ndarray, " n"]:
        """Loss of each sequence when the second head of a pair has the map of the first."""

        def change(index: int, number: int) -> LayerChange | None:
            if index != pair.layer:
                return None
            source = jnp.arange(number).at[pair.second].set(pair.first)
            return LayerChange(jnp.zeros(number, bool), jnp.asarray(0), source)

        return self._changed(change)

    def pairs(self) -> tuple[HeadPair, ...]:
        """Pairs of heads of a stored layer, with the cosines of their weights."""
        pairs = []
        for index, layer in enumerate(self._layers):
            if self._stored.index(self._stored[index]) < index:
                continue  # the layer is used again
            parts = layer.attention
            group = np.array(parts.group)
            key = np.asarray(parts.W_K)[group], np.asarray(parts.b_K)[group]
            value = np.asarray(parts.W_V)[group], np.asarray(parts.b_V)[group]
            query = np.asarray(parts.W_Q), np.asarray(parts.b_Q)
            pairs += head_cosines(index, query, key, value, np.asarray(parts.W_O))
        return tuple(pairs)

    def _changed(self, change: Callable[[int, int], LayerChange | None]) -> Float[np.ndarray, " n"]:
        """Losses with changed maps of the layers for which there is a change."""
        changes = [
            change(index, len(layer.attention.group)) for index, layer in enumerate(self._layers)
        ]
        first = next(index for index, each in enumerate(changes) if each is not None)

        def leave(group: AlikeSequences, index: int, x: Array) -> Array:
            each = changes[index]
            if each is None:
                return pass_layer(self._layers[index], x, group.present)
            return leave_changed(self._layers[index], x, group.present, each)

        return self._losses(leave, first)

    def _losses(
        self, leave: Callable[[AlikeSequences, int, Array], Array], first: int
    ) -> Float[np.ndarray, " n"]:
        """Losses when hidden states leave each layer from the first changed one on in some way."""
        losses = np.zeros(self._number)
        for group in self._alike:
            x = group.entering[first]
            for index in range(first, self.layers):
                x = leave(group, index, x)
            losses[group.members] = group.judge(x)
        return losses


def _by_layer(heads: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for layer, head in heads:
        members.setdefault(layer, []).append(head)
    return members


def rounded_weights(layer: Layer, bits: int) -> Layer:
    """A layer with its matrices rounded to equal steps, one size of step per output.

    Returns:
        Its matrices; vectors and positions are as before. Blocks of the output projection have a
        size of step per head.
    """
    most = 2 ** (bits - 1) - 1

    def rounded(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf) or leaf.ndim < 2:
            return leaf
        step = jnp.max(jnp.abs(leaf), axis=-2, keepdims=True) / most
        step = jnp.broadcast_to(step, leaf.shape)
        return jnp.where(step > 0, jnp.round(leaf / jnp.where(step > 0, step, 1)) * step, leaf)

    return jax.tree.map(rounded, layer, is_leaf=lambda leaf: isinstance(leaf, Rotary))
