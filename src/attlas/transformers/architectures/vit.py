"""ViT: patches of an image behind a class token, pre-norm."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.transformers._readers.fused_reference import fused_heads
from attlas.transformers._readers.head_blocks import dense
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import PatchEmbedding, Readout
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_tensors import read_dense
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import MAPS, Names
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "vit": Settings(
        read=(
            *("hidden_act", "hidden_size", "image_size", "intermediate_size", "layer_norm_eps"),
            *("num_attention_heads", "num_channels", "num_hidden_layers", "patch_size"),
            "qkv_bias",
        ),
        unused=("encoder_stride", "pooler_act", "pooler_output_size", "tie_word_embeddings"),
    )
}

# Files keep the names of the library's first versions; a model in memory has the newer ones.
_IN_FILES = Names(
    last_norm="layernorm",
    query="attention.attention.query",
    key="attention.attention.key",
    value="attention.attention.value",
    output="attention.output.dense",
    attention_norm="layernorm_before",
    inner="intermediate.dense",
    outer="output.dense",
    feedforward_norm="layernorm_after",
)
_IN_MEMORY = _IN_FILES._replace(
    query="attention.q_proj",
    key="attention.k_proj",
    value="attention.v_proj",
    output="attention.o_proj",
    inner="mlp.fc1",
    outer="mlp.fc2",
)
_PATCHES = "embeddings.patch_embeddings.projection"


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form; its logits are of classes, none for an encoder alone."""
    table = _table(config, tensors)
    stored, d = table.stored(tensors), table.width

    def embedding() -> PatchEmbedding:
        return PatchEmbedding(
            dense(stored[f"{_PATCHES}.weight"].reshape(d, -1), stored[f"{_PATCHES}.bias"]),
            jnp.asarray(stored["embeddings.cls_token"].reshape(d)),
            jnp.asarray(stored["embeddings.position_embeddings"][0]),
            Configuration(config).count("patch_size"),
        )

    def readout() -> Readout:
        classes = read_dense(stored, "classifier") if "classifier.weight" in stored else None
        norm = table.norm(stored, table.names.last_norm)
        return Readout(norm=norm, lm_head=classes, first_only=True)

    return replace(table.read(tensors, name), read_embedding=embedding, read_readout=readout)


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    return fused_heads(_table(config, tensors), tensors, index, x)


def _table(config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> StoredTransformer:
    values = Configuration(config)
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    side, patch = values.count("image_size"), values.count("patch_size")
    positions = values.divides("patch_size", patch, side, "image_size") ** 2 + 1
    in_files = any(".attention.attention." in name for name in tensors)
    layer = "encoder.layer.{}." if in_files else "layers.{}."
    classes = tensors.get("classifier.weight")
    labels = 0 if classes is None else np.shape(classes)[0]
    return StoredTransformer(
        architecture="vit",
        names=_IN_FILES if in_files else _IN_MEMORY,
        prefixes=("vit.", ""),
        layers=tuple(layer.format(i) for i in range(values.layers("num_hidden_layers"))),
        width=d,
        heads=heads,
        hidden=values.count("intermediate_size"),
        context=positions,
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_placement="pre-norm",
        biased=MAPS if values.flag("qkv_bias", True) else ("output", "inner", "outer"),
        causal=False,
        tied=False,
        required={
            "embeddings.cls_token": (1, 1, d),
            "embeddings.position_embeddings": (1, positions, d),
            f"{_PATCHES}.weight": (d, values.count("num_channels", 3), patch, patch),
            f"{_PATCHES}.bias": (d,),
        },
        optional={
            "classifier.weight": (labels, d),
            "classifier.bias": (labels,),
            "pooler.dense.weight": (d, d),
            "pooler.dense.bias": (d,),
        },
    )
