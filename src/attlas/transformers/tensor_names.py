"""Names of the tensors of a Transformer in a file."""

from typing import NamedTuple

MAPS = ("query", "key", "value", "fused", "output", "gate", "inner", "gate_inner", "outer")
"""Fields of `Names` that are dense maps of a layer."""


class Names(NamedTuple):
    """Paths of tensors, without the file's prefix and `.weight`; "" for what there is not.

    The first nine stand once in a file, the others in each layer, below the layer's path.

    Attributes:
        tokens: embedding, one row per token of the vocabulary.
        token_types: its rows of segments, of which the first is read.
        token_projection: from narrow tokens to the width, before positions are added.
        projection: from the embedding to the width, after its norm.
        last_norm: before the LM head.
        transform: dense map before the LM head; with a norm, it may be absent from a file.
        lm_heads: the LM head; the first that a file has counts.
        lm_biases: full names of the LM head's bias; the first that a file has counts.
        fused: queries, keys and values in one matrix, in place of `query`, `key` and `value`.
        gate: of gated units.
        gate_inner: gate and inner units in one matrix, the gate first, in place of both.
        attention_norm: before the attention, or after it where all norms stand behind.
        attention_out_norm: of what the attention adds; `feedforward_out_norm` likewise.
        query_norm: of each head's queries.
    """

    tokens: str = ""
    positions: str = ""
    token_types: str = ""
    embedding_norm: str = ""
    token_projection: str = ""
    projection: str = ""
    last_norm: str = ""
    transform: str = ""
    transform_norm: str = ""
    lm_heads: tuple[str, ...] = ()
    lm_biases: tuple[str, ...] = ()
    query: str = ""
    key: str = ""
    value: str = ""
    fused: str = ""
    output: str = ""
    gate: str = ""
    inner: str = ""
    gate_inner: str = ""
    outer: str = ""
    attention_norm: str = ""
    feedforward_norm: str = ""
    attention_out_norm: str = ""
    feedforward_out_norm: str = ""
    query_norm: str = ""
    key_norm: str = ""
