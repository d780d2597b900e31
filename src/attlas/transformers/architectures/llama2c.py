"""Models of llama2.c: Llama's layers, neighbouring coordinates turned, other names."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.gated_decoder import (
    GatedDecoder,
    read_gated_decoder,
    unsliced_gated_attention,
)
from attlas.transformers.rotary_frequencies import rotary_frequencies
from attlas.transformers.settings import Settings
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "llama2.c": Settings(
        read=(
            *("dim", "hidden_dim", "max_seq_len", "n_heads", "n_kv_heads", "n_layers", "norm_eps"),
            *("rope", "rope_theta", "tied_embeddings", "vocab_size"),
        ),
        unused=("bos_id", "eos_id", "multiple_of"),
    )
}

_NAMES = {
    "words": "tok_embeddings",
    "last_norm": "norm",
    "readout": "output",
    "queries": "attention.wq",
    "keys": "attention.wk",
    "values": "attention.wv",
    "output": "attention.wo",
    "gate": "feed_forward.w1",
    "inner": "feed_forward.w3",
    "outer": "feed_forward.w2",
    "attention_norm": "attention_norm",
    "feedforward_norm": "ffn_norm",
}


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: dim, n_layers, n_heads, n_kv_heads, hidden_dim, vocab_size, max_seq_len.
        tensors: of the file, by the names of llama2.c's model.py.
        name: what the user called the model.

    Returns:
        The model.
    """
    return read_gated_decoder(_plan(config), tensors, name)


def unsliced_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention from the file's own matrices, in NumPy float64.

    Args:
        config: see `read`.
        tensors: of the file, by name.
        index: of the layer.
        x: (T, d), what the attention reads.

    Returns:
        (T, d).
    """
    return unsliced_gated_attention(_plan(config), tensors, index, x)


def _plan(config: Mapping[str, Any]) -> GatedDecoder:
    values = Configuration(config)
    rope = values.word("rope", "interleaved")
    if not rope.startswith("interleaved"):
        raise UserError(
            f"rope = '{rope}' in the configuration is not supported: llama2.c's is interleaved"
        )
    width, heads, layers = (values.count(key) for key in ("dim", "n_heads", "n_layers"))
    groups = values.count("n_kv_heads", heads)
    values.divides("n_kv_heads", groups, heads, "n_heads")
    head_size = values.divides("n_heads", heads, width, "dim")
    if head_size % 2:
        raise UserError(
            f"dim / n_heads = {head_size} in the configuration is odd: rotary positions turn pairs "
            "of coordinates"
        )
    return GatedDecoder(
        architecture="llama2.c",
        names=_NAMES,
        prefixes=("",),
        width=width,
        layers=layers,
        heads=heads,
        groups=groups,
        head_size=head_size,
        hidden=values.count("hidden_dim"),
        vocabulary=values.count("vocab_size"),
        context=values.count("max_seq_len"),
        eps=values.number("norm_eps", 1e-5),
        frequencies=rotary_frequencies(values, head_size),
        interleaved=True,
        windows=(None,) * layers,
        activation="silu",
        tied=values.flag("tied_embeddings", True),
    )
