"""Models of llama2.c: Llama's layers, neighbouring coordinates turned, other names."""

from collections.abc import Mapping
from typing import Any

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import Configuration
from attlas.transformers.rotary_frequencies import rotary_frequencies
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

SETTINGS = {
    "llama2.c": Settings(
        read=(
            *("dim", "hidden_dim", "max_seq_len", "n_heads", "n_kv_heads", "n_layers", "norm_eps"),
            *("rope", "rope_theta", "tied_embeddings", "vocab_size"),
        ),
        unused=("bos_id", "eos_id", "multiple_of"),
    )
}

_NAMES = Names(
    tokens="tok_embeddings",
    last_norm="norm",
    lm_heads=("output",),
    query="attention.wq",
    key="attention.wk",
    value="attention.wv",
    output="attention.wo",
    gate="feed_forward.w1",
    inner="feed_forward.w3",
    outer="feed_forward.w2",
    attention_norm="attention_norm",
    feedforward_norm="ffn_norm",
)


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    rope = values.word("rope", "interleaved")
    if not rope.startswith("interleaved"):
        raise UserError(
            f"rope = '{rope}' in the configuration is not supported: llama2.c's is interleaved"
        )
    width, heads, layers = values.count("dim"), values.count("n_heads"), values.layers("n_layers")
    groups = values.count("n_kv_heads", heads)
    values.divides("n_kv_heads", groups, heads, "n_heads")
    head_size = values.divides("n_heads", heads, width, "dim")
    if head_size % 2:
        raise UserError(
            f"dim / n_heads = {head_size} in the configuration is odd: rotary positions turn pairs "
            "of coordinates"
        )
    return StoredTransformer(
        architecture="llama2.c",
        names=_NAMES,
        layers=tuple(f"layers.{i}." for i in range(layers)),
        width=width,
        heads=heads,
        groups=groups,
        head_size=head_size,
        hidden=values.count("hidden_dim"),
        vocabulary=values.count("vocab_size"),
        context=values.count("max_seq_len"),
        eps=values.number("norm_eps", 1e-5),
        activation="silu",
        norm_placement="pre-norm",
        centred=False,
        biased=(),
        causal=True,
        rotaries=(Rotary(rotary_frequencies(values, head_size), interleaved=True),) * layers,
        tied=values.flag("tied_embeddings", True),
        buffers=r"(^|\.)freqs_(cos|sin|cis)$",
    )


read, fused_attention = readers(_table)
