r"""The encoder stack of `attlas.models.networks.translator`, read without its decoder.

The canonical form has one attention per layer, on one sequence: the decoder's blocks, which attend
to the encoder's output as well, do not fit it. What is read is the encoder, a Transformer of its
own; the model's name says so.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas._files.budget import MOST_LAYERS
from attlas.transformers._readers.plain_attention import plain_fused, plain_layers
from attlas.transformers.attlas_tensors import NOTES, AttlasTensors
from attlas.transformers.canonical import Embedding, Readout
from attlas.transformers.settings import Settings
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "attlas_translator": Settings(
        read=("blocks", "heads", "hidden", "source_vocabulary", "width"),
        unused=("target_vocabulary", *NOTES),  # of the decoder
    )
}

_ATTENTION = ("query", "key", "value", "output")
_EPS = 1e-6
_POSITIONS = 1024
"""Rows of the unbounded table of sinusoids: the longest sequence that is read."""


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The encoder in canonical form.

    Args:
        config: source_vocabulary, target_vocabulary, width, blocks, heads, hidden.

    Returns:
        The encoder; its parameters include the source's embedding.
    """
    stored = AttlasTensors(name, config, tensors)
    V, d = stored.size("source_vocabulary"), stored.size("width")
    blocks = stored.size("blocks", MOST_LAYERS)
    stored.require_names(_names(blocks))
    stored.require_shapes({"source_words": (V, d)})

    def embedding() -> Embedding:
        table = jnp.asarray(stored.read("source_words", V, d))
        return Embedding(table, jnp.asarray(_sinusoids(d), table.dtype), scale=math.sqrt(d))

    per_block = 4 * d * d + 2 * d * stored.size("hidden") + 2 * d
    return TrainedTransformer(
        name=f"{name} (encoder; the decoder with its cross attention is not read)",
        architecture="attlas_translator",
        width=d,
        heads_per_layer=stored.size("heads"),
        vocabulary=V,
        context=_POSITIONS,
        stored_layer=tuple(range(blocks)),
        read_layer=plain_layers(
            stored, "encoder.{}.own.".format, "encoder.{}.".format, "relu", _EPS
        ),
        read_embedding=embedding,
        read_readout=Readout,
        parameters=V * d + blocks * per_block,
    )


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    return plain_fused(tensors, f"encoder.{index}.own.", config["heads"], x)


def _sinusoids(d: int) -> np.ndarray:
    angles = np.arange(_POSITIONS)[:, None] / 1e4 ** (np.arange(0, d, 2)[None, :] / d)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _names(blocks: int) -> set[str]:
    names = {"source_words", "target_words", "readout"}
    for side, attentions in (("encoder", ("own",)), ("decoder", ("own", "source"))):
        for index in range(blocks):
            place = f"{side}.{index}"
            names |= {f"{place}.{kind}.{part}" for kind in attentions for part in _ATTENTION}
            names |= {f"{place}.{part}" for part in ("up", "down", "scales")}
    return names
