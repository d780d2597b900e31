r"""Decoders with rotary positions, RMSNorm, grouped keys and gated units: llama's descendants.

An architecture says how its configuration reads (`GatedDecoder`) and what its tensors are called.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.transformers.canonical import (
    AttentionBlock,
    Embedding,
    Feedforward,
    Norm,
    Readout,
    Rotary,
)
from attlas.transformers.fused_reference import apart, linear, mixed_values, turned
from attlas.transformers.head_blocks import attention_of
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lm_head import output_words, repeated_words
from attlas.transformers.stored_parts import read_dense
from attlas.transformers.stored_tensors import StoredTensors
from attlas.transformers.trained_transformer import TrainedTransformer

_BUFFERS = r"(^|\.)(rotary_emb\.inv_freq|freqs_(cos|sin|cis))$"


@dataclass(frozen=True)
class GatedDecoder:
    """What a configuration says about such a model.

    Attributes:
        architecture: its name in the table.
        names: name of each tensor in the file, without a prefix; those of a layer below
            `layers.INDEX.`, biases and norms' gains included.
        prefixes: what may stand before the names.
        width: d.
        layers: number of layers.
        heads: H.
        groups: number of key/value groups.
        head_size: k.
        hidden: number of units of the feedforward.
        vocabulary: number of words.
        context: number of positions.
        eps: of the norms.
        frequencies: of the rotary positions, in float64.
        interleaved: whether pairs of coordinates are neighbours.
        windows: of each layer; None sees all.
        activation: of the units.
        input_bias: whether queries, keys and values have biases.
        output_bias: whether the attention's output has one.
        units_bias: whether the feedforward has them.
        head_norms: whether queries and keys of a head are normalised.
        gain_shift: what is added to a stored gain: 1 for gemma, which stores gain - 1.
        embedding_scale: factor of a word's row.
        tied: whether the words' rows are the output layer too, where the file has no other.
    """

    architecture: str
    names: Mapping[str, str]
    prefixes: tuple[str, ...]
    width: int
    layers: int
    heads: int
    groups: int
    head_size: int
    hidden: int
    vocabulary: int
    context: int
    eps: float
    frequencies: np.ndarray
    interleaved: bool
    windows: tuple[int | None, ...]
    activation: str
    input_bias: bool = False
    output_bias: bool = False
    units_bias: bool = False
    head_norms: bool = False
    gain_shift: float = 0.0
    embedding_scale: float = 1.0
    tied: bool = False

    def name(self, role: str, index: int | None = None) -> str:
        """Name of a tensor in the file.

        Args:
            role: key of `names`.
            index: of the layer.

        Returns:
            The name, without the file's prefix.
        """
        return self.names[role] if index is None else f"layers.{index}.{self.names[role]}"

    def layer_shapes(self, index: int) -> dict[str, tuple[int, ...]]:
        """Tensors of a layer.

        Args:
            index: of the layer.

        Returns:
            Shape by name.
        """
        d, m, k = self.width, self.hidden, self.head_size
        q, g = self.heads * k, self.groups * k
        matrices = {
            "queries": (q, d, self.input_bias),
            "keys": (g, d, self.input_bias),
            "values": (g, d, self.input_bias),
            "output": (d, q, self.output_bias),
            "gate": (m, d, self.units_bias),
            "inner": (m, d, self.units_bias),
            "outer": (d, m, self.units_bias),
        }
        shapes: dict[str, tuple[int, ...]] = {}
        for role, (rows, columns, biased) in matrices.items():
            shapes[self.name(role, index) + ".weight"] = (rows, columns)
            if biased:
                shapes[self.name(role, index) + ".bias"] = (rows,)
        for role in ("attention_norm", "feedforward_norm"):
            shapes[self.name(role, index) + ".weight"] = (d,)
        if self.head_norms:
            for role in ("query_norm", "key_norm"):
                shapes[self.name(role, index) + ".weight"] = (k,)
        return shapes

    def stored(self, tensors: Mapping[str, np.ndarray]) -> StoredTensors:
        """The file's tensors under the names of this model.

        Args:
            tensors: of the file.

        Returns:
            Them, checked.
        """
        table = (self.vocabulary, self.width)
        shapes: dict[str, tuple[int, ...]] = {self.name("words") + ".weight": table}
        shapes[self.name("last_norm") + ".weight"] = (self.width,)
        for index in range(self.layers):
            shapes |= self.layer_shapes(index)
        readout = {self.name("readout") + ".weight": table}
        return StoredTensors(
            tensors, shapes, optional=readout, prefixes=self.prefixes, buffers=_BUFFERS
        )


def read_gated_decoder(
    plan: GatedDecoder, tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form.

    Args:
        plan: what its configuration says.
        tensors: of its file.
        name: what the user called it.

    Returns:
        The model; its layers are read when they are asked for.
    """
    stored = plan.stored(tensors)
    words = plan.name("words") + ".weight"
    readout = (plan.name("readout") + ".weight",)
    return TrainedTransformer(
        name=name,
        architecture=plan.architecture,
        width=plan.width,
        heads_per_layer=plan.heads,
        vocabulary=plan.vocabulary,
        context=plan.context,
        stored_layer=tuple(range(plan.layers)),
        read_layer=LayerReader(
            lambda index: _block(plan, stored, index),
            lambda index: _feedforward(plan, stored, index),
        ),
        read_embedding=lambda: Embedding(jnp.asarray(stored[words]), scale=plan.embedding_scale),
        read_readout=lambda: Readout(
            norm=_norm(plan, stored[plan.name("last_norm") + ".weight"]),
            words=output_words(stored, words, readout, tied=plan.tied),
        ),
        parameters=stored.parameters - repeated_words(stored, words, readout, tied=plan.tied),
    )


def unsliced_gated_attention(
    plan: GatedDecoder, tensors: Mapping[str, np.ndarray], index: int, x: Any
) -> np.ndarray:
    """A layer's attention from the file's own matrices, in NumPy float64.

    Args:
        plan: what the configuration says.
        tensors: of the file.
        index: of the layer.
        x: (T, d), what the attention reads.

    Returns:
        (T, d), bias of the output included.
    """
    stored, rows = plan.stored(tensors), np.asarray(x, np.float64)

    def projected(role: str, given: np.ndarray) -> np.ndarray:
        return linear(stored, plan.name(role, index), given)

    def prepared(role: str, norm: str, blocks: int) -> np.ndarray:
        found = apart(projected(role, rows), blocks)
        if plan.head_norms:
            gain = stored[plan.name(norm, index) + ".weight"].astype(np.float64) + plan.gain_shift
            size = np.sqrt(np.mean(found**2, axis=-1, keepdims=True) + plan.eps)
            found = gain * found / size
        return turned(found, plan.frequencies, interleaved=plan.interleaved)

    mixed = mixed_values(
        prepared("queries", "query_norm", plan.heads),
        prepared("keys", "key_norm", plan.groups),
        apart(projected("values", rows), plan.groups),
        scale=plan.head_size**-0.5,
        window=plan.windows[index],
    )
    return projected("output", mixed)


def _norm(plan: GatedDecoder, stored_gain: np.ndarray) -> Norm:
    gain = jnp.asarray(stored_gain) + plan.gain_shift
    return Norm(gain, jnp.zeros_like(gain), plan.eps, centred=False)


def _feedforward(plan: GatedDecoder, stored: StoredTensors, index: int) -> Feedforward:
    roles = ("inner", "outer", "gate")
    inner, outer, gate = (read_dense(stored, plan.name(role, index)) for role in roles)
    return Feedforward(inner, outer, gate, plan.activation)


def _block(plan: GatedDecoder, stored: StoredTensors, index: int) -> AttentionBlock:
    def norm(role: str) -> Norm:
        return _norm(plan, stored[plan.name(role, index) + ".weight"])

    roles = ("queries", "keys", "values", "output")
    attention = attention_of(
        (read_dense(stored, plan.name(role, index)) for role in roles),
        plan.heads,
        causal=True,
        groups=plan.groups,
        window=plan.windows[index],
        rotary=Rotary(plan.frequencies, plan.interleaved),
        query_norm=norm("query_norm") if plan.head_norms else None,
        key_norm=norm("key_norm") if plan.head_norms else None,
    )
    return AttentionBlock(
        attention=attention,
        attention_norm=norm("attention_norm"),
        feedforward_norm=norm("feedforward_norm"),
        placement="before",
    )
