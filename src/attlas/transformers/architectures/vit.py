"""ViT: patches of an image behind a class token, norms before the sums."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.bidirectional_encoder import (
    LayerNames,
    Sizes,
    encoder_layers,
    layer_shapes,
    unsliced_encoder_attention,
)
from attlas.transformers.canonical import PatchEmbedding, Readout
from attlas.transformers.configuration import Configuration
from attlas.transformers.head_blocks import dense
from attlas.transformers.settings import Settings
from attlas.transformers.stored_parts import read_dense, read_norm
from attlas.transformers.stored_tensors import StoredTensors
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
_IN_FILES = LayerNames(
    query="attention.attention.query",
    key="attention.attention.key",
    value="attention.attention.value",
    output="attention.output.dense",
    attention_norm="layernorm_before",
    inner="intermediate.dense",
    outer="output.dense",
    feedforward_norm="layernorm_after",
)
_IN_MEMORY = LayerNames(
    query="attention.q_proj",
    key="attention.k_proj",
    value="attention.v_proj",
    output="attention.o_proj",
    attention_norm="layernorm_before",
    inner="mlp.fc1",
    outer="mlp.fc2",
    feedforward_norm="layernorm_after",
)
_PATCHES = "embeddings.patch_embeddings.projection"


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        name: what the user called the model.

    Returns:
        The model; its logits are of classes, none where the file holds the encoder alone.
    """
    values = Configuration(config)
    sizes, stored = _sizes(values), _stored(values, tensors)
    names, path = _names(tensors)
    d = sizes.d

    def embedding() -> PatchEmbedding:
        return PatchEmbedding(
            dense(stored[f"{_PATCHES}.weight"].reshape(d, -1), stored[f"{_PATCHES}.bias"]),
            jnp.asarray(stored["embeddings.cls_token"].reshape(d)),
            jnp.asarray(stored["embeddings.position_embeddings"][0]),
            values.count("patch_size"),
        )

    def readout() -> Readout:
        classes = read_dense(stored, "classifier") if "classifier.weight" in stored else None
        norm = read_norm(stored, "layernorm", sizes.eps)
        return Readout(norm=norm, words=classes, first_only=True)

    return TrainedTransformer(
        name=name,
        architecture="vit",
        width=d,
        heads_per_layer=sizes.heads,
        vocabulary=0,
        context=sizes.positions,
        stored_layer=tuple(range(values.count("num_hidden_layers"))),
        read_layer=encoder_layers(stored, names, sizes, path.format, "before"),
        read_embedding=embedding,
        read_readout=readout,
        parameters=stored.parameters,
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
    names, path = _names(tensors)
    heads = values.count("num_attention_heads")
    stored = _stored(values, tensors)
    return unsliced_encoder_attention(stored, names, heads, path.format(index), x)


def _names(tensors: Mapping[str, np.ndarray]) -> tuple[LayerNames, str]:
    """Names of the tensors of a layer, and of the layers."""
    if any(".attention.attention." in name for name in tensors):
        return _IN_FILES, "encoder.layer.{}."
    return _IN_MEMORY, "layers.{}."


def _sizes(values: Configuration) -> Sizes:
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    side, patch = values.count("image_size"), values.count("patch_size")
    along = values.divides("patch_size", patch, side, "image_size")
    return Sizes(
        d=d,
        e=d,
        heads=heads,
        inner=values.count("intermediate_size"),
        words=0,
        positions=along**2 + 1,
        kinds=0,
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
    )


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    sizes = _sizes(values)
    d, patch = sizes.d, values.count("patch_size")
    names, path = _names(tensors)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.cls_token": (1, 1, d),
        "embeddings.position_embeddings": (1, sizes.positions, d),
        f"{_PATCHES}.weight": (d, values.count("num_channels", 3), patch, patch),
        f"{_PATCHES}.bias": (d,),
        "layernorm.weight": (d,),
        "layernorm.bias": (d,),
    }
    for index in range(values.count("num_hidden_layers")):
        shapes |= layer_shapes(names, sizes, path.format(index))
    if not values.flag("qkv_bias", True):
        ends = tuple(f"{name}.bias" for name in (names.query, names.key, names.value))
        shapes = {name: shape for name, shape in shapes.items() if not name.endswith(ends)}
    classes = tensors.get("classifier.weight")
    labels = 0 if classes is None else np.shape(classes)[0]
    return StoredTensors(
        tensors,
        shapes,
        optional={
            "classifier.weight": (labels, d),
            "classifier.bias": (labels,),
            "pooler.dense.weight": (d, d),
            "pooler.dense.bias": (d,),
        },
        prefixes=("vit.", ""),
    )
