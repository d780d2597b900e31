"""Llama, Mistral, Qwen2, Qwen3, Gemma and Granite, under the names of the transformers library."""

from collections.abc import Mapping
from typing import Any

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import Configuration
from attlas.transformers.rotary_frequencies import rotary_positions, rotary_rule
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

_READ = (
    *("head_dim", "hidden_act", "hidden_size", "intermediate_size", "layer_types"),
    *("max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers"),
    *("num_key_value_heads", "original_max_position_embeddings", "rms_norm_eps"),
    *("rope_parameters", "rope_scaling", "rope_theta", "tie_word_embeddings", "vocab_size"),
)
_WINDOWS = ("max_window_layers", "sliding_window", "use_sliding_window")
_MULTIPLIERS = (
    *("attention_multiplier", "embedding_multiplier", "logits_scaling"),
    "residual_multiplier",
)
_REQUIRED = {
    "attention_bias": False,
    "mlp_bias": False,
    "partial_rotary_factor": 1.0,
    "rope_interleaved": False,
    "use_mrope": False,
    "use_sliding_window": False,
}
_UNUSED = ("is_decoder", "is_llama_config", "max_sequence_length", "pretraining_tp")


def _settings(
    *read: str, required: Mapping[str, Any] | None = None, unused: tuple[str, ...] = ()
) -> Settings:
    """What one model_type knows beside the keys of all, or in another way than they do."""
    others = {key: value for key, value in _REQUIRED.items() if key not in {*read, *unused}}
    return Settings((*_READ, *read), others | dict(required or {}), (*_UNUSED, *unused))


SETTINGS = {
    "llama": _settings("attention_bias", "mlp_bias"),
    "mistral": _settings("sliding_window"),
    # Qwen2 has biases of queries, keys and values, and no others, whatever the key says.
    "qwen2": _settings(*_WINDOWS, unused=("attention_bias",)),
    "qwen3": _settings(*_WINDOWS, "attention_bias"),
    "gemma": _settings(
        "attention_bias",
        required={
            "hidden_activation": "gelu_pytorch_tanh",
            "use_bidirectional_attention": False,
        },
    ),
    "granite": _settings("attention_bias", "mlp_bias", *_MULTIPLIERS),
}

_NAMES = Names(
    tokens="embed_tokens",
    last_norm="norm",
    lm_heads=("lm_head",),
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    output="self_attn.o_proj",
    gate="mlp.gate_proj",
    inner="mlp.up_proj",
    outer="mlp.down_proj",
    attention_norm="input_layernorm",
    feedforward_norm="post_attention_layernorm",
)


def decoder_table(config: Mapping[str, Any]) -> StoredTransformer:
    """What a configuration says, for these models and for those that differ from one of them."""
    values = Configuration(config)
    kind = values.word("model_type")
    gemma = kind == "gemma"
    width, heads = values.count("hidden_size"), values.count("num_attention_heads")
    # Only these classes default to the number of heads; the others have a default of their own,
    # so that their files must say it.
    optional = kind in {"llama", "granite"} or "num_key_value_heads" in config
    groups = values.count("num_key_value_heads", heads if optional else None)
    values.divides("num_key_value_heads", groups, heads, "num_attention_heads")
    head_size = _head_size(values, kind, width, heads)
    attention_bias = kind in {"llama", "qwen3", "gemma", "granite"}
    attention_bias = attention_bias and values.flag("attention_bias", False)
    biased = ("query", "key", "value") if attention_bias or kind == "qwen2" else ()
    biased += ("output",) if attention_bias else ()
    if kind in {"llama", "granite"} and values.flag("mlp_bias", False):
        biased += ("gate", "inner", "outer")
    rotary_rule(values).refuse_unless("partial_rotary_factor", 1.0)
    layers, positions = values.layers("num_hidden_layers"), rotary_positions(values, head_size)
    context = values.count("max_position_embeddings")
    multipliers = _multipliers(values, kind, head_size)
    scale = multipliers["attention_multiplier"] * positions.factor**2
    activation = values.choice("hidden_act", ACTIVATIONS, "gelu_pytorch_tanh" if gemma else "silu")
    head_norms = {"query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm"}
    return StoredTransformer(
        architecture=kind,
        names=_NAMES._replace(**head_norms) if kind == "qwen3" else _NAMES,
        prefixes=("model.", ""),
        layers=tuple(f"layers.{i}." for i in range(layers)),
        width=width,
        heads=heads,
        groups=groups,
        head_size=head_size,
        hidden=values.count("intermediate_size"),
        vocabulary=values.count("vocab_size"),
        context=min(context, positions.context or context),
        eps=values.number("rms_norm_eps", 1e-6),
        # Gemma's first releases say "gelu" and mean the approximation, as the library does.
        activation="gelu_pytorch_tanh" if gemma and activation == "gelu" else activation,
        norm_placement="pre-norm",
        centred=False,
        gain_shift=1.0 if gemma else 0.0,
        biased=biased,
        causal=True,
        windows=_windows(values, kind),
        scales=(scale,) * layers,
        rotaries=(Rotary(positions.frequencies, interleaved=False),) * layers,
        residual_scale=multipliers["residual_multiplier"],
        embedding_scale=width**0.5 if gemma else multipliers["embedding_multiplier"],
        readout_scale=1 / multipliers["logits_scaling"],
        tied=values.flag("tie_word_embeddings", gemma),
        buffers=r"(^|\.)rotary_emb\.inv_freq$",
    )


read, fused_attention = readers(decoder_table)


def _multipliers(values: Configuration, kind: str, head_size: int) -> dict[str, float]:
    """Granite's factors by name, and what they are in other models."""
    if kind == "granite":
        return {key: values.number(key, 1.0) for key in _MULTIPLIERS}
    return dict.fromkeys(_MULTIPLIERS, 1.0) | {"attention_multiplier": head_size**-0.5}


def _head_size(values: Configuration, kind: str, width: int, heads: int) -> int:
    if values.has("head_dim"):
        size = values.count("head_dim")
    elif kind in {"gemma", "qwen3"}:  # whose classes default to a size of their own
        size = {"gemma": 256, "qwen3": 128}[kind]
    else:
        size = values.divides("num_attention_heads", heads, width, "hidden_size")
    if size % 2:
        raise UserError(
            f"head_dim = {size} in the configuration is odd: rotary positions turn pairs of "
            "coordinates"
        )
    return size


def _windows(values: Configuration, kind: str) -> tuple[int | None, ...]:
    """How far back each layer sees."""
    # Mistral slides in all layers; Qwen2 and Qwen3 where `layer_types` says so, by default from
    # layer `max_window_layers` on, if `use_sliding_window`; Llama and Gemma see everything.
    layers = values.layers("num_hidden_layers")
    window = None
    if "sliding_window" not in values.values or values.has("sliding_window"):
        window = values.count("sliding_window", 4096)
    if kind == "mistral":
        first = 0
    elif kind in {"qwen2", "qwen3"} and values.flag("use_sliding_window", False):
        first = values.count("max_window_layers", 28, least=0)
    else:
        first, window = layers, None
    implied = tuple(window if index >= first else None for index in range(layers))
    if not values.has("layer_types"):
        return implied
    window_of = {"full_attention": None, "sliding_attention": window}
    kinds = values.values["layer_types"]
    named = isinstance(kinds, list) and all(name in tuple(window_of) for name in kinds)
    if not named or len(kinds) != layers:
        raise UserError(
            f"layer_types = {kinds!s:.80} in the configuration is not supported: one of "
            f"{', '.join(window_of)} for each of the {layers} layers is"
        )
    if window is None and "sliding_attention" in kinds:
        raise UserError(
            "layer_types of the configuration asks for 'sliding_attention', but sliding_window is "
            f"not set for a '{kind}': correct config.json"
        )
    windows = tuple(window_of[name] for name in kinds)
    if kind == "mistral" and windows != implied:
        raise UserError(
            f"layer_types = {kinds!s:.80} in the configuration is not supported for a 'mistral', "
            "whose layers all slide or none does"
        )
    return windows
