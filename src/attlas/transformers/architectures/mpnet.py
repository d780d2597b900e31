"""MPNet: BERT's layers, to whose logits a bias by the distance of two tokens is added."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

_BUCKETS = 32  # which the reference library takes whatever the configuration says
_REACH = 128  # distances from here on are in the last bucket
_PADDING = 1  # likewise
SETTINGS = {
    "mpnet": Settings(
        read=(
            *("hidden_act", "hidden_size", "intermediate_size", "layer_norm_eps"),
            *("max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
            "vocab_size",
        ),
        required={"relative_attention_num_buckets": _BUCKETS},
        unused=("tie_word_embeddings",),  # the file holds the embedding once, or also as LM head
    )
}

_NAMES = Names(
    tokens="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    embedding_norm="embeddings.LayerNorm",
    transform="lm_head.dense",
    transform_norm="lm_head.layer_norm",
    lm_heads=("lm_head.decoder",),
    lm_biases=("lm_head.decoder.bias", "lm_head.bias"),
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    output="attention.attn.o",
    attention_norm="attention.LayerNorm",
    inner="intermediate.dense",
    outer="output.dense",
    feedforward_norm="output.LayerNorm",
)


def _buckets() -> tuple[int, ...]:
    """The bucket of each distance from -128 to 128, of the key behind the query."""
    distance = np.arange(-_REACH, _REACH + 1)
    half, exact = _BUCKETS // 2, _BUCKETS // 4
    away = np.abs(distance)
    # in float32, in which the library rounds down
    ratio = np.maximum(away, 1).astype(np.float32) / np.float32(exact)
    share = np.log(ratio) / np.float32(np.log(_REACH / exact)) * np.float32(half - exact)
    coarse = np.minimum(exact + share.astype(int), half - 1)
    buckets = np.where(away < exact, away, coarse) + half * (distance > 0)
    return tuple(int(bucket) for bucket in buckets)


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    bias = "encoder.relative_attention_bias.weight"
    return StoredTransformer(
        architecture="mpnet",
        names=_NAMES,
        prefixes=("mpnet.", ""),
        layers=tuple(f"encoder.layer.{i}." for i in range(values.layers("num_hidden_layers"))),
        width=d,
        heads=heads,
        hidden=values.count("intermediate_size"),
        vocabulary=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        first_position=_PADDING + 1,
        padding=_PADDING,
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
        head_activation="gelu",
        norm_placement="post-norm",
        causal=False,
        relative=(bias, _buckets()),
        required={bias: (_BUCKETS, heads)},
        optional={"pooler.dense.weight": (d, d), "pooler.dense.bias": (d,)},
        buffers=r"(^|\.)embeddings\.position_ids$",
    )


read, fused_attention = readers(_table)
