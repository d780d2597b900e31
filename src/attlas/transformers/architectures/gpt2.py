"""GPT-2: inputs before outputs in its matrices, and queries, keys and values in one of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.transformers._readers.fused_reference import apart, mixed_values
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "gpt2": Settings(
        read=(
            *("activation_function", "layer_norm_epsilon", "n_embd", "n_head", "n_inner"),
            *("n_layer", "n_positions", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"),
            *("pruned_heads", "tie_word_embeddings", "vocab_size"),
        ),
        unused=(
            *("is_decoder", "n_ctx", "reorder_and_upcast_attn"),
            *("summary_activation", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
        ),
    )
}

_NAMES = Names(
    tokens="wte",
    positions="wpe",
    last_norm="ln_f",
    lm_heads=("lm_head",),
    fused="attn.c_attn",
    output="attn.c_proj",
    attention_norm="ln_1",
    inner="mlp.c_fc",
    outer="mlp.c_proj",
    feedforward_norm="ln_2",
)


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form."""
    return _table(config).read(tensors, name)


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    values = Configuration(config)
    stored, heads = _table(config).stored(tensors), values.count("n_head")

    def linear(role: str, states: np.ndarray) -> np.ndarray:
        path = f"h.{index}.attn.{role}"
        return states @ stored[path + ".weight"].astype(np.float64) + stored[path + ".bias"]

    fused = linear("c_attn", np.asarray(x, np.float64))
    queries, keys, triple = (apart(part, heads) for part in np.split(fused, 3, axis=1))
    return linear("c_proj", mixed_values(queries, keys, triple, scale=_scale(values, index)))


def _scale(values: Configuration, index: int) -> float:
    size = values.count("n_embd") // values.count("n_head")
    scale = size**-0.5 if values.flag("scale_attn_weights", True) else 1.0
    return scale / (index + 1) if values.flag("scale_attn_by_inverse_layer_idx", False) else scale


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    d, heads, layers = values.count("n_embd"), values.count("n_head"), values.layers("n_layer")
    values.divides("n_head", heads, d, "n_embd")
    return StoredTransformer(
        architecture="gpt2",
        names=_NAMES,
        prefixes=("transformer.", ""),
        layers=tuple(f"h.{i}." for i in range(layers)),
        width=d,
        heads=heads,
        pruned=values.heads_by_layer("pruned_heads", layers, heads),
        hidden=values.count("n_inner", 4 * d),
        vocabulary=values.count("vocab_size"),
        positions=values.count("n_positions"),
        eps=values.number("layer_norm_epsilon", 1e-5),
        activation=values.choice("activation_function", ACTIVATIONS, "gelu_new"),
        norm_placement="pre-norm",
        inputs_first=True,
        causal=True,
        scales=tuple(_scale(values, index) for index in range(layers)),
        tied=values.flag("tie_word_embeddings", True),
        buffers=r"(^|\.)h\.\d+\.attn\.(masked_)?bias$",
    )
