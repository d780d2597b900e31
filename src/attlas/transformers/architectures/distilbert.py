"""DistilBERT: BERT's layers under other names, without segments."""

from collections.abc import Mapping
from typing import Any

import numpy as np

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
    "distilbert": Settings(
        read=(
            *("activation", "dim", "hidden_dim", "max_position_embeddings", "n_heads", "n_layers"),
            "vocab_size",
        ),
        # The table of positions and the words are in the file, whatever they began as.
        unused=("sinusoidal_pos_embds", "tie_weights_", "tie_word_embeddings"),
    )
}

_LAYER = LayerNames(
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    attention_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    feedforward_norm="output_layer_norm",
)
_HEAD = HeadNames("vocab_transform", "vocab_layer_norm", "vocab_projector", None)
_EPS = 1e-12  # the configuration does not name it


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        name: what the user called the model.

    Returns:
        The model; without words where the file holds the encoder alone.
    """
    values = Configuration(config)
    sizes, stored = _sizes(values), _stored(values, tensors)
    return TrainedTransformer(
        name=name,
        architecture="distilbert",
        width=sizes.d,
        heads_per_layer=sizes.heads,
        vocabulary=sizes.words,
        context=sizes.positions,
        stored_layer=tuple(range(values.count("n_layers"))),
        read_layer=encoder_layers(stored, _LAYER, sizes, "transformer.layer.{}.".format),
        read_embedding=lambda: read_embedding(stored, sizes),
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
        index: of the layer.
        x: (T, d), what the attention reads.

    Returns:
        (T, d).
    """
    values = Configuration(config)
    path = f"transformer.layer.{index}."
    heads = values.count("n_heads")
    return unsliced_encoder_attention(_stored(values, tensors), _LAYER, heads, path, x)


def _sizes(values: Configuration) -> Sizes:
    d, heads = values.count("dim"), values.count("n_heads")
    values.divides("n_heads", heads, d, "dim")
    return Sizes(
        d=d,
        e=d,
        heads=heads,
        inner=values.count("hidden_dim"),
        words=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        kinds=0,
        eps=_EPS,
        activation=values.choice("activation", ACTIVATIONS, "gelu"),
    )


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    sizes = _sizes(values)
    shapes = dict(embedding_shapes(sizes))
    for index in range(values.count("n_layers")):
        shapes |= layer_shapes(_LAYER, sizes, f"transformer.layer.{index}.")
    return StoredTensors(
        tensors,
        shapes,
        optional=head_shapes(_HEAD, sizes),
        prefixes=("distilbert.", ""),
        buffers=r"(^|\.)embeddings\.position_ids$",
    )
