"""A layer on many sequences: attention maps are not stored, and a causal one is half computed."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.transformers.canonical import Attention, Layer
from attlas.transformers.forward import (
    attention_input,
    complete_layer,
    mix_values,
    placed,
    projections,
    relative_logits,
    scaled_logits,
    seen_softmax,
    unite_heads,
    visible,
)

_CACHE = 2**20
"""Bytes of the attention maps that a pass holds at once, to stay in cache."""
_BLOCK = 32
"""Queries of a block at least: smaller ones make products too small."""
_BLOCKS = 4
"""Blocks at most: each adds to the program, and of many the last saves little."""


@eqx.filter_jit
def leave_layer(
    layer: Layer, x: Float[Array, "n T d"], present: Bool[Array, "n T"]
) -> Float[Array, "n T d"]:
    """One layer on many sequences of one length, padded at the end."""
    heads, length = len(layer.attention.group), x.shape[1]
    block = blocks(layer.attention, length)[0].stop
    together = max(1, _CACHE // (heads * block * length * x.dtype.itemsize))
    return jax.lax.map(lambda row: _leave(layer, *row), (x, present), batch_size=together)


def _leave(layer: Layer, x: Float[Array, "T d"], present: Bool[Array, " T"]) -> Array:
    read = attention_input(layer, x)
    return complete_layer(layer, x, attended_by_blocks(layer.attention, read, present))


def attended_by_blocks(
    attention: Attention, x: Float[Array, "T d"], present: Bool[Array, " T"]
) -> Float[Array, "T out"]:
    """What the attention adds, b_O included, by blocks of queries.

    Under a causal mask a block reads the keys up to its own end: with four of them five eighths
    of the map are computed.
    """
    projected = projections(attention, x)
    queries, keys = placed(attention, projected.queries, projected.keys)
    seen = visible(attention, x.shape[0], present)
    mixed = []
    for rows in blocks(attention, x.shape[0]):
        end = rows.stop if attention.causal else x.shape[0]
        products = jnp.einsum("hik,hjk->hij", queries[:, rows], keys[:, :end])
        logits = scaled_logits(attention, products)
        if attention.relative is not None:
            places = jnp.arange(x.shape[0])
            logits = logits + relative_logits(attention.relative, places[rows], places[:end])
        weights = seen_softmax(logits, seen[rows, :end])
        mixed.append(mix_values(attention, weights, projected.values[:, :end]))
    return unite_heads(attention, jnp.concatenate(mixed, axis=1))


def blocks(attention: Attention, length: int) -> list[slice]:
    """Blocks of queries: one where the mask is not causal."""
    count = min(_BLOCKS, max(1, length // _BLOCK)) if attention.causal else 1
    size = -(-length // count)
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
