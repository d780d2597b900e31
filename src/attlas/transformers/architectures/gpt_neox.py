"""GPT-NeoX and Pythia: queries, keys and values of a head are neighbours in one matrix."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import apart, linear, mixed_values, turned
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import Rotary
from attlas.transformers.configuration import Configuration
from attlas.transformers.rotary_frequencies import rotary_frequencies, rotary_rule
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import MAPS, Names
from attlas.transformers.trained_transformer import TrainedTransformer

SETTINGS = {
    "gpt_neox": Settings(
        read=(
            *("attention_bias", "hidden_act", "hidden_size", "intermediate_size"),
            *("layer_norm_eps", "max_position_embeddings", "num_attention_heads"),
            *("num_hidden_layers", "original_max_position_embeddings", "partial_rotary_factor"),
            *("rope_parameters", "rope_scaling", "rope_theta", "rotary_emb_base", "rotary_pct"),
            *("tie_word_embeddings", "use_parallel_residual", "vocab_size"),
        ),
        unused=("is_decoder",),
    )
}

_NAMES = Names(
    tokens="embed_in",
    last_norm="final_layer_norm",
    lm_heads=("lm_head", "embed_out"),  # today's name, and that of Pythia's files
    fused="attention.query_key_value",
    output="attention.dense",
    attention_norm="input_layernorm",
    inner="mlp.dense_h_to_4h",
    outer="mlp.dense_4h_to_h",
    feedforward_norm="post_attention_layernorm",
)


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form."""
    return _table(config).read(tensors, name)


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    values = Configuration(config)
    stored, frequencies = _table(config).stored(tensors), _frequencies(values)
    path = f"layers.{index}.attention."
    fused = linear(stored, path + "query_key_value", np.asarray(x, np.float64))
    triples = apart(fused, values.count("num_attention_heads"))
    queries, keys, last = np.split(triples, 3, axis=2)
    mixed = mixed_values(
        turned(queries, frequencies),
        turned(keys, frequencies),
        last,
        scale=_head_size(values) ** -0.5,
    )
    return linear(stored, path + "dense", mixed)


def _head_size(values: Configuration) -> int:
    heads = values.count("num_attention_heads")
    return values.divides("num_attention_heads", heads, values.count("hidden_size"), "hidden_size")


def _frequencies(values: Configuration) -> np.ndarray:
    rule = rotary_rule(values)
    share = rule.number("partial_rotary_factor", values.number("rotary_pct", 0.25))
    base = rule.number("rope_theta", values.number("rotary_emb_base", 10000.0))
    # Later releases wrote both numbers once more, under the names of other architectures.
    values.refuse_unless("partial_rotary_factor", share)
    values.refuse_unless("rope_theta", base)
    turning = int(_head_size(values) * share)
    if turning % 2 or not 2 <= turning <= _head_size(values):
        raise UserError(
            f"rotary_pct = {share} in the configuration turns {turning} of the "
            f"{_head_size(values)} coordinates of a head: pairs of them can turn"
        )
    return rotary_frequencies(values, turning, theta_key="rotary_emb_base")


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    attention_bias = values.flag("attention_bias", True)
    parallel = values.flag("use_parallel_residual", True)
    layers = values.layers("num_hidden_layers")
    return StoredTransformer(
        architecture="gpt_neox",
        names=_NAMES,
        prefixes=("gpt_neox.", ""),
        layers=tuple(f"layers.{i}." for i in range(layers)),
        width=values.count("hidden_size"),
        heads=values.count("num_attention_heads"),
        head_size=_head_size(values),
        hidden=values.count("intermediate_size"),
        vocabulary=values.count("vocab_size"),
        context=values.count("max_position_embeddings"),
        eps=values.number("layer_norm_eps", 1e-5),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_placement="parallel" if parallel else "pre-norm",
        biased=MAPS if attention_bias else ("inner", "outer"),
        fused_by_head=True,
        causal=True,
        rotaries=(Rotary(_frequencies(values), interleaved=False),) * layers,
        tied=values.flag("tie_word_embeddings", False),
        buffers=r"\.attention\.((masked_)?bias|rotary_emb\.inv_freq)$|^rotary_emb\.inv_freq$",
    )
