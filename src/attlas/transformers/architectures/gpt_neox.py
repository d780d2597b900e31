"""GPT-NeoX and Pythia: queries, keys and values of a head are neighbours in one matrix."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.canonical import (
    AttentionBlock,
    Dense,
    Embedding,
    Feedforward,
    Norm,
    Readout,
    Rotary,
)
from attlas.transformers.configuration import Configuration
from attlas.transformers.fused_reference import apart, linear, mixed_values, turned
from attlas.transformers.head_blocks import attention_of
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lm_head import output_words, repeated_words
from attlas.transformers.rotary_frequencies import rotary_frequencies, rotary_rule
from attlas.transformers.settings import Settings
from attlas.transformers.stored_parts import read_dense, read_norm
from attlas.transformers.stored_tensors import StoredTensors
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

_READOUTS = ("lm_head.weight", "embed_out.weight")  # today's name, and that of Pythia's files
_BUFFERS = r"\.attention\.((masked_)?bias|rotary_emb\.inv_freq)$|^rotary_emb\.inv_freq$"


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        config: parsed config.json.
        tensors: of the file, by name.
        name: what the user called the model.

    Returns:
        The model.
    """
    values = Configuration(config)
    stored = _stored(values, tensors)
    words, tied = "embed_in.weight", values.flag("tie_word_embeddings", False)
    values.choice("hidden_act", ACTIVATIONS, "gelu")
    _frequencies(values)
    return TrainedTransformer(
        name=name,
        architecture="gpt_neox",
        width=values.count("hidden_size"),
        heads_per_layer=values.count("num_attention_heads"),
        vocabulary=values.count("vocab_size"),
        context=values.count("max_position_embeddings"),
        stored_layer=tuple(range(values.count("num_hidden_layers"))),
        read_layer=LayerReader(
            lambda index: _block(values, stored, index),
            lambda index: _feedforward(values, stored, index),
        ),
        read_embedding=lambda: Embedding(jnp.asarray(stored[words])),
        read_readout=lambda: Readout(
            norm=_norm(values, stored, "final_layer_norm"),
            words=output_words(stored, words, _READOUTS, tied=tied),
        ),
        parameters=stored.parameters - repeated_words(stored, words, _READOUTS, tied=tied),
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
    stored, frequencies = _stored(values, tensors), _frequencies(values)
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


def _stored(values: Configuration, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
    d, m = values.count("hidden_size"), values.count("intermediate_size")
    table = (values.count("vocab_size"), d)
    biased = values.flag("attention_bias", True)
    matrices = {
        "attention.query_key_value": (3 * d, d, biased),
        "attention.dense": (d, d, biased),
        "mlp.dense_h_to_4h": (m, d, True),
        "mlp.dense_4h_to_h": (d, m, True),
    }
    shapes: dict[str, tuple[int, ...]] = {"embed_in.weight": table}
    shapes |= {f"final_layer_norm.{part}": (d,) for part in ("weight", "bias")}
    for index in range(values.count("num_hidden_layers")):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes |= {f"layers.{index}.{norm}.{part}": (d,) for part in ("weight", "bias")}
        for role, (rows, columns, has_bias) in matrices.items():
            shapes[f"layers.{index}.{role}.weight"] = (rows, columns)
            if has_bias:
                shapes[f"layers.{index}.{role}.bias"] = (rows,)
    return StoredTensors(
        tensors,
        shapes,
        optional=dict.fromkeys(_READOUTS, table),
        prefixes=("gpt_neox.", ""),
        buffers=_BUFFERS,
    )


def _norm(values: Configuration, stored: StoredTensors, path: str) -> Norm:
    return read_norm(stored, path, values.number("layer_norm_eps", 1e-5))


def _feedforward(values: Configuration, stored: StoredTensors, index: int) -> Feedforward:
    return Feedforward(
        read_dense(stored, f"layers.{index}.mlp.dense_h_to_4h"),
        read_dense(stored, f"layers.{index}.mlp.dense_4h_to_h"),
        None,
        values.word("hidden_act", "gelu"),
    )


def _block(values: Configuration, stored: StoredTensors, index: int) -> AttentionBlock:
    heads = values.count("num_attention_heads")
    path = f"layers.{index}.attention."
    fused = read_dense(stored, path + "query_key_value")
    # One block per head, of its query, its key and its value.
    W, b = fused.W.reshape(len(fused.W), heads, 3, -1), fused.b.reshape(heads, 3, -1)
    parts = (Dense(W[:, :, i].reshape(len(W), -1), b[:, i].reshape(-1)) for i in range(3))
    parallel = values.flag("use_parallel_residual", True)
    return AttentionBlock(
        attention=attention_of(
            [*parts, read_dense(stored, path + "dense")],
            heads,
            causal=True,
            rotary=Rotary(_frequencies(values), interleaved=False),
        ),
        attention_norm=_norm(values, stored, f"layers.{index}.input_layernorm"),
        feedforward_norm=_norm(values, stored, f"layers.{index}.post_attention_layernorm"),
        placement="parallel" if parallel else "before",
    )
