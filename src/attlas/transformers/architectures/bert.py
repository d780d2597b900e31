"""BERT and RoBERTa: norms after the sums; RoBERTa's positions begin behind the padding's row.

RoBERTa's count of positions passes over the token of padding, wherever it stands; its attention
sees that token like any other.
"""

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

_READ = (
    *("hidden_act", "hidden_size", "intermediate_size", "layer_norm_eps"),
    *("max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers"),
    *("type_vocab_size", "vocab_size"),
)
_REQUIRED = {"directionality": "bidi", "position_embedding_type": "absolute"}
_UNUSED = (
    "tie_word_embeddings",  # the file holds the words once, or once more
    *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
    *("pooler_size_per_head", "pooler_type"),
)
SETTINGS = {
    "bert": Settings(_READ, _REQUIRED, _UNUSED),
    "roberta": Settings((*_READ, "pad_token_id"), _REQUIRED, _UNUSED),
}

_LAYER = LayerNames(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    inner="intermediate.dense",
    outer="output.dense",
    feedforward_norm="output.LayerNorm",
)
_HEADS = {
    "bert": HeadNames(
        transform="cls.predictions.transform.dense",
        norm="cls.predictions.transform.LayerNorm",
        words="cls.predictions.decoder",
        bias="cls.predictions.bias",
    ),
    "roberta": HeadNames(
        transform="lm_head.dense",
        norm="lm_head.layer_norm",
        words="lm_head.decoder",
        bias="lm_head.bias",
    ),
}


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
    kind, sizes = values.choice("model_type", tuple(SETTINGS), "bert"), _sizes(values)
    stored = _stored(values, tensors)
    # the library's own readout knows one activation for RoBERTa
    after = sizes.activation if kind == "bert" else "gelu"
    padding = None if kind == "bert" else values.count("pad_token_id", 1, least=0)
    first = 0 if padding is None else padding + 1
    return TrainedTransformer(
        name=name,
        architecture=kind,
        width=sizes.d,
        heads_per_layer=sizes.heads,
        vocabulary=sizes.words,
        context=sizes.positions - first,
        stored_layer=tuple(range(values.count("num_hidden_layers"))),
        read_layer=encoder_layers(stored, _LAYER, sizes, "encoder.layer.{}.".format),
        read_embedding=lambda: read_embedding(stored, sizes, first_position=first, padding=padding),
        read_readout=lambda: read_masked_word_head(stored, _HEADS[kind], sizes, after),
        parameters=stored.parameters - repeated_numbers(stored, _HEADS[kind]),
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
    heads = values.count("num_attention_heads")
    path = f"encoder.layer.{index}."
    return unsliced_encoder_attention(_stored(values, tensors), _LAYER, heads, path, x)


def _sizes(values: Configuration) -> Sizes:
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    return Sizes(
        d=d,
        e=d,
        heads=heads,
        inner=values.count("intermediate_size"),
        words=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        kinds=values.count("type_vocab_size"),
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
    )


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    sizes, kind = _sizes(values), values.word("model_type", "bert")
    d = sizes.d
    shapes = dict(embedding_shapes(sizes))
    for index in range(values.count("num_hidden_layers")):
        shapes |= layer_shapes(_LAYER, sizes, f"encoder.layer.{index}.")
    others = {
        "pooler.dense.weight": (d, d),
        "pooler.dense.bias": (d,),
        "cls.seq_relationship.weight": (2, d),
        "cls.seq_relationship.bias": (2,),
    }
    return StoredTensors(
        tensors,
        shapes,
        optional={**head_shapes(_HEADS[kind], sizes), **others},
        prefixes=(f"{kind}.", ""),
        buffers=r"(^|\.)embeddings\.position_ids$",
    )
