"""GPT-NeoX and Pythia: queries, keys and values of a head are neighbours in one matrix."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.core.errors import UserError
from attlas.interop.activations import ACTIVATIONS
from attlas.interop.canonical import (
    Attention,
    Dense,
    Embedding,
    Feedforward,
    Layer,
    Norm,
    Readout,
    Rotary,
)
from attlas.interop.configuration import Configuration
from attlas.interop.head_blocks import blocks_of_inputs, blocks_of_outputs, dense
from attlas.interop.output_words import output_words
from attlas.interop.rotary_frequencies import rotary_frequencies, rotary_rule
from attlas.interop.stored_tensors import StoredTensors
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.interop.unsliced import apart, mixed_values, turned

MODEL_TYPES = ("gpt_neox",)

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
    words = stored["embed_in.weight"]
    outward, repeated = output_words(
        stored, words, _READOUTS, tied=values.flag("tie_word_embeddings", False)
    )
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
        read_layer=lambda index: _layer(values, stored, index),
        embedding=Embedding(jnp.asarray(words)),
        readout=Readout(norm=_norm(values, stored, "final_layer_norm"), words=outward),
        parameters=stored.parameters - repeated,
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

    def linear(role: str, rows: np.ndarray) -> np.ndarray:
        path = f"layers.{index}.attention.{role}"
        found = rows @ stored[path + ".weight"].astype(np.float64).T
        return found + stored[path + ".bias"] if path + ".bias" in stored else found

    fused = linear("query_key_value", np.asarray(x, np.float64))
    triples = apart(fused, values.count("num_attention_heads"))
    queries, keys, last = np.split(triples, 3, axis=2)
    mixed = mixed_values(
        turned(queries, frequencies),
        turned(keys, frequencies),
        last,
        scale=_head_size(values) ** -0.5,
    )
    return linear("dense", mixed)


def _head_size(values: Configuration) -> int:
    heads = values.count("num_attention_heads")
    return values.divides("num_attention_heads", heads, values.count("hidden_size"), "hidden_size")


def _frequencies(values: Configuration) -> np.ndarray:
    default = values.number("rotary_pct", 0.25)
    share = rotary_rule(values).number("partial_rotary_factor", default)
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
    gain, bias = (jnp.asarray(stored[f"{path}.{part}"]) for part in ("weight", "bias"))
    return Norm(gain, bias, values.number("layer_norm_eps", 1e-5), centred=True)


def _layer(values: Configuration, stored: StoredTensors, index: int) -> Layer:
    def linear(role: str) -> Dense:
        path = f"layers.{index}.{role}"
        return dense(stored[path + ".weight"], stored.get(path + ".bias"))

    heads = values.count("num_attention_heads")
    # One block per head, of its query, its key and its value.
    W, b = blocks_of_outputs(linear("attention.query_key_value"), heads)
    W_Q, W_K, W_V = jnp.split(W, 3, axis=2)
    b_Q, b_K, b_V = jnp.split(b, 3, axis=1)
    W_O, b_O = blocks_of_inputs(linear("attention.dense"), heads)
    parallel = values.flag("use_parallel_residual", True)
    return Layer(
        attention=Attention(
            W_Q=W_Q,
            b_Q=b_Q,
            W_K=W_K,
            b_K=b_K,
            W_V=W_V,
            b_V=b_V,
            W_O=W_O,
            b_O=b_O,
            group=tuple(range(heads)),
            scale=_head_size(values) ** -0.5,
            causal=True,
            rotary=Rotary(_frequencies(values), interleaved=False),
        ),
        attention_norm=_norm(values, stored, f"layers.{index}.input_layernorm"),
        feedforward=Feedforward(
            linear("mlp.dense_h_to_4h"),
            linear("mlp.dense_4h_to_h"),
            None,
            values.word("hidden_act", "gelu"),
        ),
        feedforward_norm=_norm(values, stored, f"layers.{index}.post_attention_layernorm"),
        placement="parallel" if parallel else "before",
    )
