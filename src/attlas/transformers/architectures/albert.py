"""ALBERT: layers share their weights, and the embedding is narrower than the hidden states."""

from collections.abc import Mapping
from typing import Any

from attlas._files.budget import MOST_LAYERS
from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

SETTINGS = {
    "albert": Settings(
        read=(
            *("embedding_size", "hidden_act", "hidden_size", "inner_group_num"),
            *("intermediate_size", "layer_norm_eps", "max_position_embeddings"),
            *("num_attention_heads", "num_hidden_groups", "num_hidden_layers"),
            *("type_vocab_size", "vocab_size"),
        ),
        required={
            "down_scale_factor": 1,
            "gap_size": 0,
            "net_structure_type": 0,
            "num_memory_blocks": 0,
            "position_embedding_type": "absolute",
        },
        unused=("tie_word_embeddings",),  # the file holds the embedding once, or also as LM head
    )
}

_NAMES = Names(
    tokens="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    token_types="embeddings.token_type_embeddings",
    embedding_norm="embeddings.LayerNorm",
    projection="encoder.embedding_hidden_mapping_in",
    transform="predictions.dense",
    transform_norm="predictions.LayerNorm",
    lm_heads=("predictions.decoder",),
    lm_biases=("predictions.decoder.bias", "predictions.bias"),
    query="attention.query",
    key="attention.key",
    value="attention.value",
    output="attention.dense",
    attention_norm="attention.LayerNorm",
    inner="ffn",
    outer="ffn_output",
    feedforward_norm="full_layer_layer_norm",
)


def _order(values: Configuration) -> tuple[int, ...]:
    """Which stored layer each layer uses; a pass through a group uses all of its layers."""
    passes, groups = values.layers("num_hidden_layers"), values.layers("num_hidden_groups", 1)
    depth = values.layers("inner_group_num", 1)
    if groups > passes:
        raise UserError(
            f"num_hidden_groups = {groups} exceeds num_hidden_layers = {passes}: correct "
            "config.json"
        )
    if passes * depth > MOST_LAYERS:
        raise UserError(
            f"num_hidden_layers = {passes} of inner_group_num = {depth} in the configuration are "
            f"more than {MOST_LAYERS} layers: correct config.json"
        )
    return tuple(
        int(index / (passes / groups)) * depth + layer
        for index in range(passes)
        for layer in range(depth)
    )


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    order = _order(values)
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    return StoredTransformer(
        architecture="albert",
        names=_NAMES,
        prefixes=("albert.", ""),
        layers=tuple(
            f"encoder.albert_layer_groups.{group}.albert_layers.{layer}."
            for group in range(values.layers("num_hidden_groups", 1))
            for layer in range(values.layers("inner_group_num", 1))
        ),
        order=order,
        width=d,
        heads=heads,
        hidden=values.count("intermediate_size"),
        embedding_width=values.count("embedding_size"),
        vocabulary=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        token_types=values.count("type_vocab_size"),
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu_new"),
        norm_placement="post-norm",
        causal=False,
        optional={"pooler.weight": (d, d), "pooler.bias": (d,)},
        buffers=r"(^|\.)embeddings\.position_ids$",
    )


read, fused_attention = readers(_table)
