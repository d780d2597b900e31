"""GPT-2: inputs before outputs in its matrices, and queries, keys and values in one of them."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import (
    AttentionBlock,
    Dense,
    Embedding,
    Feedforward,
    Norm,
    Readout,
)
from attlas.transformers.configuration import Configuration
from attlas.transformers.fused_reference import apart, mixed_values
from attlas.transformers.head_blocks import attention_of
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lm_head import output_words, repeated_words
from attlas.transformers.settings import Settings
from attlas.transformers.stored_parts import read_dense, read_norm
from attlas.transformers.stored_tensors import StoredTensors
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "gpt2": Settings(
        read=(
            *("activation_function", "layer_norm_epsilon", "n_embd", "n_head", "n_inner"),
            *("n_layer", "n_positions", "scale_attn_by_inverse_layer_idx", "scale_attn_weights"),
            *("tie_word_embeddings", "vocab_size"),
        ),
        unused=(
            *("is_decoder", "n_ctx", "reorder_and_upcast_attn"),
            *("summary_activation", "summary_proj_to_labels", "summary_type", "summary_use_proj"),
        ),
    )
}

_PREFIXES = ("transformer.", "")
_BUFFERS = r"(^|\.)h\.\d+\.attn\.(masked_)?bias$"


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        name: what the user called the model.

    Returns:
        The model.
    """
    values = Configuration(config)
    stored = _stored(values, tensors)
    tied = values.flag("tie_word_embeddings", True)
    readout = ("wte.weight", ("lm_head.weight",))
    values.choice("activation_function", ACTIVATIONS, "gelu_new")
    return TrainedTransformer(
        name=name,
        architecture="gpt2",
        width=values.count("n_embd"),
        heads_per_layer=values.count("n_head"),
        vocabulary=values.count("vocab_size"),
        context=values.count("n_positions"),
        stored_layer=tuple(range(values.count("n_layer"))),
        read_layer=LayerReader(
            lambda index: _block(values, stored, index),
            lambda index: _feedforward(values, stored, index),
        ),
        read_embedding=lambda: Embedding(
            jnp.asarray(stored["wte.weight"]), positions=jnp.asarray(stored["wpe.weight"])
        ),
        read_readout=lambda: Readout(
            norm=_norm(values, stored, "ln_f"), words=output_words(stored, *readout, tied=tied)
        ),
        parameters=stored.parameters - repeated_words(stored, *readout, tied=tied),
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
    stored, heads = _stored(values, tensors), values.count("n_head")

    def linear(role: str, rows: np.ndarray) -> np.ndarray:
        path = f"h.{index}.attn.{role}"
        return rows @ stored[path + ".weight"].astype(np.float64) + stored[path + ".bias"]

    fused = linear("c_attn", np.asarray(x, np.float64))
    queries, keys, triple = (apart(each, heads) for each in np.split(fused, 3, axis=1))
    return linear("c_proj", mixed_values(queries, keys, triple, scale=_scale(values, index)))


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    d, vocabulary = values.count("n_embd"), values.count("vocab_size")
    values.divides("n_head", values.count("n_head"), d, "n_embd")
    m = values.count("n_inner", 4 * d)
    shapes: dict[str, tuple[int, ...]] = {
        "wte.weight": (vocabulary, d),
        "wpe.weight": (values.count("n_positions"), d),
        "ln_f.weight": (d,),
        "ln_f.bias": (d,),
    }
    matrices = {
        "attn.c_attn": (d, 3 * d),
        "attn.c_proj": (d, d),
        "mlp.c_fc": (d, m),
        "mlp.c_proj": (m, d),
    }
    for index in range(values.count("n_layer")):
        for norm in ("ln_1", "ln_2"):
            shapes[f"h.{index}.{norm}.weight"] = shapes[f"h.{index}.{norm}.bias"] = (d,)
        for role, shape in matrices.items():
            shapes[f"h.{index}.{role}.weight"] = shape
            shapes[f"h.{index}.{role}.bias"] = shape[1:]
    return StoredTensors(
        tensors,
        shapes,
        optional={"lm_head.weight": (vocabulary, d)},
        prefixes=_PREFIXES,
        buffers=_BUFFERS,
    )


def _scale(values: Configuration, index: int) -> float:
    size = values.count("n_embd") // values.count("n_head")
    scale = size**-0.5 if values.flag("scale_attn_weights", True) else 1.0
    return scale / (index + 1) if values.flag("scale_attn_by_inverse_layer_idx", False) else scale


def _norm(values: Configuration, stored: StoredTensors, path: str) -> Norm:
    return read_norm(stored, path, values.number("layer_norm_epsilon", 1e-5))


def _linear(stored: StoredTensors, index: int, role: str) -> Dense:
    return read_dense(stored, f"h.{index}.{role}", outputs_first=False)


def _feedforward(values: Configuration, stored: StoredTensors, index: int) -> Feedforward:
    return Feedforward(
        _linear(stored, index, "mlp.c_fc"),
        _linear(stored, index, "mlp.c_proj"),
        None,
        values.word("activation_function", "gelu_new"),
    )


def _block(values: Configuration, stored: StoredTensors, index: int) -> AttentionBlock:
    fused, heads = _linear(stored, index, "attn.c_attn"), values.count("n_head")
    thirds = zip(jnp.split(fused.W, 3, axis=1), jnp.split(fused.b, 3), strict=True)
    return AttentionBlock(
        attention=attention_of(
            [*(Dense(W, b) for W, b in thirds), _linear(stored, index, "attn.c_proj")],
            heads,
            causal=True,
            scale=_scale(values, index),
        ),
        attention_norm=_norm(values, stored, f"h.{index}.ln_1"),
        feedforward_norm=_norm(values, stored, f"h.{index}.ln_2"),
        placement="before",
    )
