r"""The encoder of `attlas.models.networks.encoder`, which classifies by its first position.

Its learned first token stands before each sequence: here it is one more token, the last of the
vocabulary, which a sequence begins with. Continuous tokens are the columns of an image of T x 1
pixels, one channel per coordinate, whose class token is that first token.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas._files.budget import MOST_LAYERS
from attlas.core.errors import UserError
from attlas.transformers._readers.plain_attention import plain_fused, plain_layers
from attlas.transformers.attlas_tensors import NOTES, AttlasTensors
from attlas.transformers.canonical import Dense, Embedding, PatchEmbedding, Readout
from attlas.transformers.settings import Settings
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "attlas_encoder": Settings(
        read=("blocks", "continuous", "heads", "hidden", "length", "vocabulary", "width"),
        unused=NOTES,
    )
}

_OF_BLOCK = ("query", "key", "value", "output", "up", "down", "scales")
_EPS = 1e-5


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: vocabulary, width, length, blocks, heads, hidden; `continuous` where tokens are
            vectors of `vocabulary` coordinates.

    Returns:
        The model; its vocabulary includes the first token.

    Raises:
        UserError: if configuration and tensors do not fit each other.
    """
    stored = AttlasTensors(name, config, tensors)
    V, d, T = stored.size("vocabulary"), stored.size("width"), stored.size("length")
    blocks = stored.size("blocks", MOST_LAYERS)
    continuous = config.get("continuous", False)
    if not isinstance(continuous, bool):
        raise UserError(f"{name}: continuous = {continuous!r:.80} is neither true nor false")
    stored.require_names(
        {"embedding", "start", "positions", "readout"}
        | {f"blocks.{i}.{part}" for i in range(blocks) for part in _OF_BLOCK}
    )
    stored.require_shapes(
        {"embedding": (V, d), "start": (d,), "positions": (T + 1, d), "readout": (d,)}
    )

    def embedding() -> Embedding | PatchEmbedding:
        table, start = stored.read("embedding", V, d), stored.read("start", d)
        positions = jnp.asarray(stored.read("positions", T + 1, d))
        if continuous:
            patches = Dense(jnp.asarray(table), jnp.zeros(d, positions.dtype))
            return PatchEmbedding(patches, jnp.asarray(start), positions, size=1, grid=(T, 1))
        return Embedding(jnp.asarray(np.concatenate([table, start[None]])), positions)

    def readout() -> Readout:
        weights = jnp.asarray(stored.read("readout", d)[:, None])
        return Readout(lm_head=Dense(weights, jnp.zeros(1, weights.dtype)), first_only=True)

    place = "blocks.{}.".format
    return TrainedTransformer(
        name=name,
        architecture="attlas_encoder",
        width=d,
        heads_per_layer=stored.size("heads"),
        vocabulary=0 if continuous else V + 1,
        context=T + 1,
        stored_layer=tuple(range(blocks)),
        read_layer=plain_layers(stored, place, place, "gelu", _EPS),
        read_embedding=embedding,
        read_readout=readout,
        parameters=_parameters(stored, V, d, T, blocks),
    )


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    return plain_fused(tensors, f"blocks.{index}.", config["heads"], x)


def _parameters(stored: AttlasTensors, V: int, d: int, T: int, blocks: int) -> int:
    per_block = 4 * d * d + 2 * d * stored.size("hidden") + 2 * d
    return V * d + d + (T + 1) * d + blocks * per_block + d
