"""Layers whose attention maps are changed, and what their maps are unchanged."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.trial import SINK_TOKENS
from attlas.transformers.canonical import Attention, Layer
from attlas.transformers.forward import (
    attended,
    attention_input,
    attention_logits,
    complete_layer,
    placed,
    projections,
    visible,
)


class LayerChange(NamedTuple):
    """How the maps of a layer are changed.

    Attributes:
        hides: whether a token is hidden from each head.
        place: which token it is.
        source: the head whose map each head has.
        rounding: type of numbers to which logits are rounded; empty for none.
    """

    hides: Bool[Array, " H"]
    place: Int[Array, ""]
    source: Int[Array, " H"]
    rounding: str = ""


@eqx.filter_jit
def leave_changed(
    layer: Layer, x: Float[Array, "n T d"], present: Bool[Array, "n T"], change: LayerChange
) -> Float[Array, "n T d"]:
    """Hidden states that leave a layer with changed maps."""

    def of_sequence(row: tuple[Array, Array]) -> Array:
        rows, there = row
        read = attention_input(layer, rows)
        weights = changed_weights(layer.attention, read, there, change)
        return complete_layer(layer, rows, attended(layer.attention, weights, read))

    return jax.lax.map(of_sequence, (x, present))


def changed_weights(
    attention: Attention, x: Float[Array, "T d"], present: Bool[Array, " T"], change: LayerChange
) -> Float[Array, "H T T"]:
    """Attention maps with the change; a row that sees the hidden token alone sees it still."""
    logits = attention_logits(attention, x)
    if change.rounding:
        logits = logits.astype(change.rounding).astype(logits.dtype)
    seen = visible(attention, x.shape[0], present)
    others = seen & (jnp.arange(x.shape[0]) != change.place)[None]
    others = jnp.where(jnp.any(others, axis=-1, keepdims=True), others, seen)
    seen_by = jnp.where(change.hides[:, None, None], others[None], seen[None])
    return jax.nn.softmax(jnp.where(seen_by, logits, -jnp.inf), axis=-1)[change.source]


@eqx.filter_jit
def observed_layer(
    layer: Layer, x: Float[Array, "n T d"], present: Bool[Array, "n T"]
) -> tuple[Float[Array, "n H"], ...]:
    """The parts of a `MapObservation`, for the heads of one layer."""

    def of_sequence(row: tuple[Array, Array]) -> tuple[Array, ...]:
        rows, there = row
        attention = layer.attention
        read = attention_input(layer, rows)
        seen = visible(attention, rows.shape[0], there)
        logits = attention_logits(attention, read)
        weights = jax.nn.softmax(jnp.where(seen[None], logits, -jnp.inf), axis=-1)
        place = jnp.arange(rows.shape[0])
        later = there & (place > 0) & (place < SINK_TOKENS)
        count = jnp.maximum(jnp.sum(later), 1).astype(weights.dtype)
        shown = seen.astype(weights.dtype)
        equal = shown[:, 0] / jnp.sum(shown, axis=-1)
        projected = projections(attention, read)
        queries, keys = placed(attention, projected.queries, projected.keys)
        both = there[:, None] & there[None]
        products = jnp.where(both, jnp.einsum("hik,hjk->hij", queries, keys), 0)
        return (
            jnp.sum(jnp.where(later, weights[:, :, 0], 0), axis=1) / count,
            jnp.broadcast_to(jnp.sum(jnp.where(later, equal, 0)) / count, weights.shape[:1]),
            jnp.max(jnp.abs(products), axis=(1, 2)),
            jnp.max(jnp.abs(jnp.where(seen & both, logits, 0)), axis=(1, 2)),
        )

    return jax.lax.map(of_sequence, (x, present))
