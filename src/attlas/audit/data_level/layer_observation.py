r"""One layer on one block of sequences as one program, which stores no attention map."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.bounds.attention.entropy_floor import entropy_floor
from attlas.measures.attention.column_attention import column_attention
from attlas.measures.attention.map_statistics import MapStatistics, map_statistics
from attlas.measures.attention.rank_residual import RankResidual, rank_residual
from attlas.measures.attention.strong_offsets import strong_offsets
from attlas.transformers.canonical import Attention, Layer
from attlas.transformers.forward import (
    attended,
    attention_input,
    attention_logits,
    complete_layer,
    seen_softmax,
    visible,
)


class LayerObservation(NamedTuple):
    """One entry per sequence of the block.

    Attributes:
        statistics: of the maps, each [b, H].
        offsets: counts of confident rows by offset, see `strong_offsets`.
        largest_logit: largest absolute logit that a row sees.
        entropy_floor: mean over rows of the least entropy that logits of their spread allow.
        rows: the picked rows of the maps.
        residual: of the hidden states that enter the layer, each [b].
        radius: largest Euclidean norm of a token as the attention reads it.
    """

    statistics: MapStatistics
    offsets: Int[Array, "b H offsets"]
    largest_logit: Float[Array, "b H"]
    entropy_floor: Float[Array, "b H"]
    rows: Float[Array, "b H R T"]
    residual: RankResidual
    radius: Float[Array, " b"]


@eqx.filter_jit
def observe_layer(
    layer: Layer,
    x: Float[Array, "b T d"],
    present: Bool[Array, "b T"],
    special: Bool[Array, "b T"],
    picked: Int[Array, "b R"],
) -> tuple[Float[Array, "b T d"], LayerObservation]:
    """One layer on a block.

    Args:
        picked: rows of the maps that are returned, by number.
    """

    def of_sequence(
        x: Float[Array, "T d"], present: Array, special: Array, picked: Array
    ) -> tuple[Array, LayerObservation]:
        read = attention_input(layer, x)
        logits, seen = attention_logits(layer.attention, read), _seen(layer, present)
        weights = seen_softmax(logits, seen)
        rows = present & (jnp.sum(seen, axis=1) > 1)
        counted = (seen & present[:, None])[None]
        number = jnp.sum(seen, axis=1).astype(x.dtype)[None, :, None]
        mean = jnp.sum(jnp.where(counted, logits, 0), axis=-1, keepdims=True) / number
        spread = jnp.sqrt(jnp.sum(jnp.where(counted, (logits - mean) ** 2, 0), axis=-1))
        floor = entropy_floor(spread, number[..., 0])
        length = jnp.where(present, jnp.linalg.norm(read, axis=-1), 0)
        observation = LayerObservation(
            map_statistics(weights, present, special),
            strong_offsets(weights, rows),
            jnp.max(jnp.where(counted, jnp.abs(logits), 0), axis=(1, 2)),
            jnp.mean(floor, axis=1, where=present[None]),
            weights[:, picked],
            rank_residual(x, present),
            jnp.max(length),
        )
        return complete_layer(layer, x, attended(layer.attention, weights, read)), observation

    return jax.vmap(of_sequence)(x, present, special, picked)


@eqx.filter_jit
def observe_columns(
    layer: Layer, x: Float[Array, "b T d"], present: Bool[Array, "b T"]
) -> tuple[Float[Array, "b T d"], Float[Array, "b H T"]]:
    """One layer on a block, of which only the attention that tokens receive is returned.

    Returns:
        The hidden states that leave, and alpha_k of `column_attention`.
    """

    def of_sequence(x: Float[Array, "T d"], present: Array) -> tuple[Array, Array]:
        read = attention_input(layer, x)
        seen = _seen(layer, present)
        weights = seen_softmax(attention_logits(layer.attention, read), seen)
        alpha = column_attention(weights, seen & present[:, None])
        return complete_layer(layer, x, attended(layer.attention, weights, read)), alpha

    return jax.vmap(of_sequence)(x, present)


@eqx.filter_jit
def observe_hidden_states(x: Float[Array, "b T d"], present: Bool[Array, "b T"]) -> RankResidual:
    """Residuals of hidden states that no attention reads."""
    return jax.vmap(rank_residual)(x, present)


class UniformObservation(NamedTuple):
    """What uniform attention over the visible tokens would show: the null of every statistic.

    Attributes:
        statistics: each [b].
        columns: alpha_k.
    """

    statistics: MapStatistics
    columns: Float[Array, "b T"]


@eqx.filter_jit
def observe_uniform(
    attention: Attention, present: Bool[Array, "b T"], special: Bool[Array, "b T"]
) -> UniformObservation:
    """The null: every visible token has the same weight; of the heads only the mask is used."""
    dtype = attention.W_Q.dtype

    def of_sequence(present: Array, special: Array) -> UniformObservation:
        seen = visible(attention, present.size, present)
        weights = seen_softmax(jnp.zeros((1, *seen.shape), dtype), seen)
        statistics = map_statistics(weights, present, special)
        columns = column_attention(weights, seen & present[:, None])
        return UniformObservation(jax.tree.map(lambda a: a[0], statistics), columns[0])

    return jax.vmap(of_sequence)(present, special)


def _seen(layer: Layer, present: Bool[Array, " T"]) -> Bool[Array, "T T"]:
    return visible(layer.attention, present.size, present)
