"""OPT: positions from row 2 on, norms before or after, in one size words narrower than rows."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import (
    AttentionBlock,
    Embedding,
    Feedforward,
    Norm,
    Readout,
)
from attlas.transformers.configuration import Configuration
from attlas.transformers.fused_reference import unsliced_heads
from attlas.transformers.head_blocks import attention_of, dense
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lm_head import output_words, repeated_words
from attlas.transformers.settings import Settings
from attlas.transformers.stored_parts import read_dense
from attlas.transformers.stored_tensors import StoredTensors
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "opt": Settings(
        read=(
            *("_remove_final_layer_norm", "activation_function", "do_layer_norm_before"),
            *("enable_bias", "ffn_dim", "hidden_size", "layer_norm_elementwise_affine"),
            *("max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
            *("tie_word_embeddings", "vocab_size", "word_embed_proj_dim"),
        ),
        required={"learned_embeddings": True, "scale_embeddings": False},  # Galactica names them
        unused=("is_decoder",),
    )
}

_WORDS = "embed_tokens.weight"
_OFFSET = 2  # rows of the positions that no token reads
_EPS = 1e-5  # of torch's LayerNorm; the configuration does not name it


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Where the words' rows are narrower than the model, their projection is multiplied into them: the
    library adds positions after it.

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
    outward = (_WORDS, ("lm_head.weight",))
    values.choice("activation_function", ACTIVATIONS, "relu")
    narrow = "project_in.weight" in stored

    def embedding() -> Embedding:
        words = stored[_WORDS]
        return Embedding(
            jnp.asarray(words @ stored["project_in.weight"].T if narrow else words),
            positions=jnp.asarray(stored["embed_positions.weight"]),
            first_position=_OFFSET,
        )

    def readout() -> Readout:
        return Readout(
            norm=_norm(values, stored, "final_layer_norm") if _last_norm(values) else None,
            transform=dense(stored["project_out.weight"], None) if narrow else None,
            activation="linear",
            words=output_words(stored, *outward, tied=tied),
        )

    return TrainedTransformer(
        name=name,
        architecture="opt",
        width=values.count("hidden_size"),
        heads_per_layer=values.count("num_attention_heads"),
        vocabulary=values.count("vocab_size"),
        context=values.count("max_position_embeddings"),
        stored_layer=tuple(range(values.count("num_hidden_layers"))),
        read_layer=LayerReader(
            lambda index: _block(values, stored, index),
            lambda index: _feedforward(values, stored, index),
        ),
        read_embedding=embedding,
        read_readout=readout,
        parameters=stored.parameters - repeated_words(stored, *outward, tied=tied),
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
    stored, heads = _stored(values, tensors), values.count("num_attention_heads")
    return unsliced_heads(stored, _paths(index), heads, x, causal=True)


def _paths(index: int) -> list[str]:
    """Names of the four maps of a layer's attention."""
    return [f"layers.{index}.self_attn.{role}_proj" for role in ("q", "k", "v", "out")]


def _last_norm(values: Configuration) -> bool:
    before = values.flag("do_layer_norm_before", True)
    return before and not values.flag("_remove_final_layer_norm", False)


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    d, m = values.count("hidden_size"), values.count("ffn_dim")
    values.divides("num_attention_heads", values.count("num_attention_heads"), d, "hidden_size")
    e = values.count("word_embed_proj_dim", d)
    table = (values.count("vocab_size"), e)
    positions = values.count("max_position_embeddings") + _OFFSET
    shapes: dict[str, tuple[int, ...]] = {
        _WORDS: table,
        "embed_positions.weight": (positions, d),
    }
    if e != d:
        shapes |= {"project_in.weight": (d, e), "project_out.weight": (e, d)}
    norms = ["final_layer_norm"] if _last_norm(values) else []
    matrices = {f"self_attn.{role}_proj": (d, d) for role in ("q", "k", "v", "out")}
    matrices |= {"fc1": (m, d), "fc2": (d, m)}
    for index in range(values.count("num_hidden_layers")):
        norms += [f"layers.{index}.{norm}" for norm in ("self_attn_layer_norm", "final_layer_norm")]
        for role, shape in matrices.items():
            shapes[f"layers.{index}.{role}.weight"] = shape
            if values.flag("enable_bias", True):
                shapes[f"layers.{index}.{role}.bias"] = shape[:1]
    if values.flag("layer_norm_elementwise_affine", True):
        shapes |= {f"{norm}.{part}": (d,) for norm in norms for part in ("weight", "bias")}
    return StoredTensors(
        tensors,
        shapes,
        optional={"lm_head.weight": table},
        prefixes=("model.decoder.", "decoder.", ""),
        buffers=r"(^|\.)decoder\.version$",
    )


def _norm(values: Configuration, stored: StoredTensors, path: str) -> Norm:
    if path + ".weight" in stored:
        gain, bias = stored[path + ".weight"], stored[path + ".bias"]
    else:
        dtype = stored["embed_positions.weight"].dtype
        gain = np.ones(values.count("hidden_size"), dtype)
        bias = np.zeros_like(gain)
    return Norm(jnp.asarray(gain), jnp.asarray(bias), _EPS, centred=True)


def _feedforward(values: Configuration, stored: StoredTensors, index: int) -> Feedforward:
    return Feedforward(
        read_dense(stored, f"layers.{index}.fc1"),
        read_dense(stored, f"layers.{index}.fc2"),
        None,
        values.word("activation_function", "relu"),
    )


def _block(values: Configuration, stored: StoredTensors, index: int) -> AttentionBlock:
    return AttentionBlock(
        attention=attention_of(
            (read_dense(stored, path) for path in _paths(index)),
            values.count("num_attention_heads"),
            causal=True,
        ),
        attention_norm=_norm(values, stored, f"layers.{index}.self_attn_layer_norm"),
        feedforward_norm=_norm(values, stored, f"layers.{index}.final_layer_norm"),
        placement="before" if values.flag("do_layer_norm_before", True) else "after",
    )
