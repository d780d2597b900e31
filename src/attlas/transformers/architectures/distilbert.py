"""DistilBERT: BERT's layers under other names, without segments."""

from collections.abc import Mapping
from typing import Any

from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

SETTINGS = {
    "distilbert": Settings(
        read=(
            *("activation", "dim", "hidden_dim", "max_position_embeddings", "n_heads", "n_layers"),
            *("pruned_heads", "vocab_size"),
        ),
        # The file holds the tables of positions and tokens, however they were initialised.
        unused=("sinusoidal_pos_embds", "tie_weights_", "tie_word_embeddings"),
    )
}

_NAMES = Names(
    tokens="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    embedding_norm="embeddings.LayerNorm",
    transform="vocab_transform",
    transform_norm="vocab_layer_norm",
    lm_heads=("vocab_projector",),
    lm_biases=("vocab_projector.bias",),
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    output="attention.out_lin",
    attention_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    feedforward_norm="output_layer_norm",
)


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    d, heads = values.count("dim"), values.count("n_heads")
    values.divides("n_heads", heads, d, "dim")
    return StoredTransformer(
        architecture="distilbert",
        names=_NAMES,
        prefixes=("distilbert.", ""),
        layers=tuple(f"transformer.layer.{i}." for i in range(values.layers("n_layers"))),
        width=d,
        heads=heads,
        pruned=values.heads_by_layer("pruned_heads", values.layers("n_layers"), heads),
        hidden=values.count("hidden_dim"),
        vocabulary=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        eps=1e-12,  # the configuration does not name it
        activation=values.choice("activation", ACTIVATIONS, "gelu"),
        norm_placement="post-norm",
        causal=False,
        buffers=r"(^|\.)embeddings\.position_ids$",
    )


read, fused_attention = readers(_table)
