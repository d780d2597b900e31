"""Phi-3 and Phi-4-mini: Llama's layers, with fused matrices, of which a part of each head turns."""

from collections.abc import Mapping
from typing import Any

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import ChangedConfiguration, Configuration
from attlas.transformers.rotary_frequencies import rotary_positions, rotary_rule
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

SETTINGS = {
    "phi3": Settings(
        read=(
            *("hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings"),
            *("num_attention_heads", "num_hidden_layers", "num_key_value_heads"),
            *("original_max_position_embeddings", "partial_rotary_factor", "rms_norm_eps"),
            *("rope_parameters", "rope_scaling", "rope_theta", "sliding_window"),
            *("tie_word_embeddings", "vocab_size"),
        ),
        required={
            "attention_bias": False,
            "full_attn_mod": 1,
            "interpolate_factor": 1,
            "lm_head_bias": False,
            "mlp_bias": False,
        },
    )
}

_NAMES = Names(
    tokens="embed_tokens",
    last_norm="norm",
    lm_heads=("lm_head",),
    fused="self_attn.qkv_proj",
    output="self_attn.o_proj",
    gate_inner="mlp.gate_up_proj",
    outer="mlp.down_proj",
    attention_norm="input_layernorm",
    feedforward_norm="post_attention_layernorm",
)
_ORIGINAL = 4096  # the class's own default, which outranks the rule's


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    context = Configuration(config).count("original_max_position_embeddings", _ORIGINAL)
    values = Configuration(ChangedConfiguration(config, original_max_position_embeddings=context))
    width, heads = values.count("hidden_size"), values.count("num_attention_heads")
    groups = values.count("num_key_value_heads", heads)
    values.divides("num_key_value_heads", groups, heads, "num_attention_heads")
    size = values.divides("num_attention_heads", heads, width, "hidden_size")
    share = rotary_rule(values).number(
        "partial_rotary_factor", values.number("partial_rotary_factor", 1.0)
    )
    turning = int(size * share)
    if turning % 2 or not 2 <= turning <= size:
        raise UserError(
            f"partial_rotary_factor = {share} in the configuration turns {turning} of the {size} "
            "coordinates of a head: pairs of them can turn"
        )
    positions = rotary_positions(values, turning)
    layers, context = values.layers("num_hidden_layers"), values.count("max_position_embeddings")
    window = values.count("sliding_window") if values.has("sliding_window") else None
    return StoredTransformer(
        architecture="phi3",
        names=_NAMES,
        prefixes=("model.", ""),
        layers=tuple(f"layers.{i}." for i in range(layers)),
        width=width,
        heads=heads,
        groups=groups,
        hidden=values.count("intermediate_size"),
        vocabulary=values.count("vocab_size"),
        context=min(context, positions.context or context),
        eps=values.number("rms_norm_eps", 1e-5),
        activation=values.choice("hidden_act", ACTIVATIONS, "silu"),
        norm_placement="pre-norm",
        centred=False,
        biased=(),
        causal=True,
        windows=(window,) * layers,
        rotaries=(Rotary(positions.frequencies, interleaved=False),) * layers,
        turned_factor=positions.factor,
        tied=values.flag("tie_word_embeddings", False),
        buffers=r"(^|\.)rotary_emb\.inv_freq$",
    )


read, fused_attention = readers(_table)
