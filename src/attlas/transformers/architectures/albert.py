"""ALBERT: layers share their weights, words are narrower than rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.bidirectional_encoder import (
    HeadNames,
    LayerNames,
    Sizes,
    embedding_shapes,
    encoder_layers,
    head_shapes,
    layer_shapes,
    read_embedding,
    read_masked_word_head,
    repeated_numbers,
    unsliced_encoder_attention,
)
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_tensors import StoredTensors
from attlas.transformers.trained_transformer import TrainedTransformer

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
        unused=("tie_word_embeddings",),  # the file holds the words once, or once more
    )
}

_LAYER = LayerNames(
    query="attention.query",
    key="attention.key",
    value="attention.value",
    output="attention.dense",
    attention_norm="attention.LayerNorm",
    inner="ffn",
    outer="ffn_output",
    feedforward_norm="full_layer_layer_norm",
)
_HEAD = HeadNames(
    "predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"
)
_PROJECTION = "encoder.embedding_hidden_mapping_in"


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form; a shared layer is stored once.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        name: what the user called the model.

    Returns:
        The model; without words where the file holds the encoder alone.
    """
    values = Configuration(config)
    sizes, stored = _sizes(values), _stored(values, tensors)
    paths = _paths(values)
    return TrainedTransformer(
        name=name,
        architecture="albert",
        width=sizes.d,
        heads_per_layer=sizes.heads,
        vocabulary=sizes.words,
        context=sizes.positions,
        stored_layer=_order(values),
        read_layer=encoder_layers(stored, _LAYER, sizes, paths.__getitem__),
        read_embedding=lambda: read_embedding(stored, sizes, projection=_PROJECTION),
        read_readout=lambda: read_masked_word_head(stored, _HEAD, sizes, sizes.activation),
        parameters=stored.parameters - repeated_numbers(stored, _HEAD),
    )


def unsliced_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention from the file's own matrices, in NumPy float64.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        index: of the layer that a token passes.
        x: (T, d), what the attention reads.

    Returns:
        (T, d).
    """
    values = Configuration(config)
    path, heads = _paths(values)[_order(values)[index]], values.count("num_attention_heads")
    return unsliced_encoder_attention(_stored(values, tensors), _LAYER, heads, path, x)


def _paths(values: Configuration) -> list[str]:
    """Names of the stored layers, group after group."""
    return [
        f"encoder.albert_layer_groups.{group}.albert_layers.{inner}."
        for group in range(values.count("num_hidden_groups", 1))
        for inner in range(values.count("inner_group_num", 1))
    ]


def _order(values: Configuration) -> tuple[int, ...]:
    """Which stored layer each layer uses; a pass through a group uses all of its layers."""
    passes, groups = values.count("num_hidden_layers"), values.count("num_hidden_groups", 1)
    inner = values.count("inner_group_num", 1)
    if groups > passes:
        raise UserError(
            f"num_hidden_groups = {groups} exceeds num_hidden_layers = {passes}: correct "
            "config.json"
        )
    return tuple(
        int(place / (passes / groups)) * inner + one
        for place in range(passes)
        for one in range(inner)
    )


def _sizes(values: Configuration) -> Sizes:
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    return Sizes(
        d=d,
        e=values.count("embedding_size"),
        heads=heads,
        inner=values.count("intermediate_size"),
        words=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        kinds=values.count("type_vocab_size"),
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu_new"),
    )


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    sizes = _sizes(values)
    d = sizes.d
    shapes = dict(embedding_shapes(sizes))
    shapes |= {f"{_PROJECTION}.weight": (d, sizes.e), f"{_PROJECTION}.bias": (d,)}
    for path in _paths(values):
        shapes |= layer_shapes(_LAYER, sizes, path)
    return StoredTensors(
        tensors,
        shapes,
        optional={**head_shapes(_HEAD, sizes), "pooler.weight": (d, d), "pooler.bias": (d,)},
        prefixes=("albert.", ""),
        buffers=r"(^|\.)embeddings\.position_ids$",
    )
