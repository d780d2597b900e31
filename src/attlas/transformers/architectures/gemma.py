"""Gemma 2 and 3: Gemma's layers with norms on both sides; capped logits, or norms of heads.

Gemma 3's layers that slide have rotary positions of their own. Of its models that also read images
the files are not read.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attlas.transformers._readers.fused_reference import readers
from attlas.transformers._readers.layer_kinds import FULL, SLIDING, layer_kinds
from attlas.transformers.architectures.llama import decoder_table
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import ChangedConfiguration, Configuration
from attlas.transformers.rotary_frequencies import RotaryPositions, rotary_positions
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer

_READ = (
    *("attention_bias", "final_logit_softcapping", "head_dim", "hidden_activation"),
    *("hidden_size", "intermediate_size", "layer_types", "max_position_embeddings"),
    *("num_attention_heads", "num_hidden_layers", "num_key_value_heads"),
    *("original_max_position_embeddings", "query_pre_attn_scalar", "rms_norm_eps"),
    *("rope_parameters", "rope_scaling", "rope_theta", "sliding_window", "tie_word_embeddings"),
    "vocab_size",
)
_REQUIRED = {"hidden_act": "gelu_pytorch_tanh", "use_bidirectional_attention": False}
_UNUSED = ("cache_implementation", "sliding_window_size")
SETTINGS = {
    "gemma2": Settings((*_READ, "attn_logit_softcapping"), _REQUIRED, _UNUSED),
    "gemma3_text": Settings(
        (*_READ, "rope_local_base_freq", "sliding_window_pattern"),
        _REQUIRED,
        # which the reference library passes to no layer
        (*_UNUSED, "attn_logit_softcapping", "_sliding_window_pattern"),
    ),
}

_NORMS = {
    "attention_out_norm": "post_attention_layernorm",
    "feedforward_norm": "pre_feedforward_layernorm",
    "feedforward_out_norm": "post_feedforward_layernorm",
}
_HEAD_NORMS = {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
_ROPE = ("rope_parameters", "rope_scaling", "rope_theta")
_BASES = {FULL: ("rope_theta", 1e6), SLIDING: ("rope_local_base_freq", 1e4)}


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    kind = values.word("model_type")
    third = kind == "gemma3_text"
    others = dict.fromkeys(("layer_types", *_ROPE) if third else ("layer_types",))
    activation = values.word("hidden_activation", "gelu_pytorch_tanh")
    table = decoder_table(
        ChangedConfiguration(config, model_type="gemma", hidden_act=activation, **others)
    )
    kinds = layer_kinds(values, len(table.layers), _default(values, third))
    window = values.count("sliding_window", 4096) if SLIDING in kinds else None
    positions = [_positions(values, table.size_of_heads, each, third) for each in kinds]
    scale = values.number("query_pre_attn_scalar", 256.0) ** -0.5
    capped = not third and values.has("attn_logit_softcapping")
    last_capped = values.has("final_logit_softcapping")
    context = values.count("max_position_embeddings")
    return replace(
        table,
        architecture=kind,
        names=table.names._replace(**(_NORMS | (_HEAD_NORMS if third else {}))),
        context=min(context, *(each.context or context for each in positions)),
        scales=tuple(scale * each.factor**2 for each in positions),
        softcap=values.number("attn_logit_softcapping") if capped else None,
        windows=tuple(window if each == SLIDING else None for each in kinds),
        rotaries=tuple(Rotary(each.frequencies, interleaved=False) for each in positions),
        readout_softcap=values.number("final_logit_softcapping") if last_capped else None,
    )


def _default(values: Configuration, third: bool) -> tuple[str, ...]:
    """The kinds of layers of a file without `layer_types`, repeated over the layers."""
    turn = values.count("sliding_window_pattern", 6) if third else 2
    return (SLIDING,) * (turn - 1) + (FULL,)


def _positions(values: Configuration, size: int, kind: str, third: bool) -> RotaryPositions:
    if not third:
        return rotary_positions(values, size)
    theta_key, theta = _BASES[kind]
    return rotary_positions(values, size, theta_key=theta_key, theta=theta, layers=kind)


read, fused_attention = readers(_table)
