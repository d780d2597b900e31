"""ModernBERT: an encoder with rotary positions, pre-norm, most of whose layers see a window.

The window reaches to both sides. The first layer's attention reads the normalised embedding, and
norms have no biases.
"""

from collections.abc import Mapping
from typing import Any

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import readers
from attlas.transformers._readers.layer_kinds import FULL, SLIDING, layer_kinds
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import Configuration
from attlas.transformers.rotary_frequencies import rotary_positions
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

SETTINGS = {
    "modernbert": Settings(
        read=(
            *("attention_bias", "classifier_activation", "global_attn_every_n_layers"),
            *("global_rope_theta", "hidden_activation", "hidden_size", "intermediate_size"),
            *("layer_types", "local_attention", "local_rope_theta", "max_position_embeddings"),
            *("mlp_bias", "norm_bias", "norm_eps", "num_attention_heads", "num_hidden_layers"),
            *("original_max_position_embeddings", "rope_parameters", "tie_word_embeddings"),
            "vocab_size",
        ),
        required={"position_embedding_type": "absolute"},
        unused=(
            # the file holds the biases of the head that it has
            *("classifier_bias", "classifier_pooling", "decoder_bias"),
            *("deterministic_flash_attn", "embedding_dropout", "mlp_dropout"),
            *("initializer_cutoff_factor", "layer_norm_eps", "reference_compile"),
            *("repad_logits_with_grad", "sparse_pred_ignore_index", "sparse_prediction"),
            "sliding_window",  # which is `local_attention` once more
        ),
    )
}

_NAMES = Names(
    tokens="embeddings.tok_embeddings",
    embedding_norm="embeddings.norm",
    last_norm="final_norm",
    transform="head.dense",
    transform_norm="head.norm",
    lm_heads=("decoder",),
    lm_biases=("decoder.bias",),
    fused="attn.Wqkv",
    output="attn.Wo",
    attention_norm="attn_norm",
    gate_inner="mlp.Wi",
    outer="mlp.Wo",
    feedforward_norm="mlp_norm",
)
_BASES = {FULL: ("global_rope_theta", 160000.0), SLIDING: ("local_rope_theta", 10000.0)}


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    size = values.divides("num_attention_heads", heads, d, "hidden_size")
    if size % 2:
        raise UserError(
            f"hidden_size / num_attention_heads = {size} in the configuration is odd: rotary "
            "positions turn pairs of coordinates"
        )
    layers = values.layers("num_hidden_layers")
    turn = values.count("global_attn_every_n_layers", 3)
    kinds = layer_kinds(values, layers, (FULL, *(SLIDING,) * (turn - 1)))
    # so far to each side, beside the token itself
    reach = values.count("local_attention", 128) // 2 + 1
    positions = [
        rotary_positions(values, size, theta_key=key, theta=theta, layers=kind)
        for kind in kinds
        for key, theta in [_BASES[kind]]
    ]
    context = values.count("max_position_embeddings")
    biased = ("fused", "output") if values.flag("attention_bias", False) else ()
    biased += ("gate_inner", "outer") if values.flag("mlp_bias", False) else ()
    return StoredTransformer(
        architecture="modernbert",
        names=_NAMES,
        prefixes=("model.", ""),
        layers=tuple(f"layers.{i}." for i in range(layers)),
        width=d,
        heads=heads,
        hidden=values.count("intermediate_size"),
        vocabulary=values.count("vocab_size"),
        context=min(context, *(each.context or context for each in positions)),
        eps=values.number("norm_eps", 1e-5),
        activation=values.choice("hidden_activation", ACTIVATIONS, "gelu"),
        head_activation=values.choice("classifier_activation", ACTIVATIONS, "gelu"),
        norm_placement="pre-norm",
        first_norm=False,
        biased_norms=values.flag("norm_bias", False),
        biased=biased,
        causal=False,
        scales=tuple(size**-0.5 * each.factor**2 for each in positions),
        windows=tuple(reach if kind == SLIDING else None for kind in kinds),
        rotaries=tuple(Rotary(each.frequencies, interleaved=False) for each in positions),
        tied=values.flag("tie_word_embeddings", True),
        buffers=r"(^|\.)rotary_emb\.",
    )


read, fused_attention = readers(_table)
