"""Encoders of BERT's kind, whose files differ in the names of their tensors."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from attlas.transformers.canonical import (
    AttentionBlock,
    Dense,
    Embedding,
    Feedforward,
    Readout,
)
from attlas.transformers.fused_reference import unsliced_heads
from attlas.transformers.head_blocks import attention_of
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lm_head import output_words, repeated_words
from attlas.transformers.stored_parts import read_dense, read_norm
from attlas.transformers.stored_tensors import Shapes, StoredTensors

_WORDS = "embeddings.word_embeddings.weight"


class LayerNames(NamedTuple):
    """What the tensors of a layer are called below the layer's own name.

    Attributes:
        query: projection to the queries.
        key: to the keys.
        value: to the values.
        output: of the heads together.
        attention_norm: norm around the attention.
        inner: into the feedforward units.
        outer: out of them.
        feedforward_norm: norm around them.
    """

    query: str
    key: str
    value: str
    output: str
    attention_norm: str
    inner: str
    outer: str
    feedforward_norm: str


class Sizes(NamedTuple):
    """Sizes of an encoder, from its configuration.

    Attributes:
        d: width of the hidden rows.
        e: width of the words' rows.
        heads: number of heads.
        inner: number of feedforward units.
        words: of the vocabulary.
        positions: rows of the table of positions.
        kinds: rows of the table of segments, 0 without one.
        eps: of the norms.
        activation: of the feedforward units.
    """

    d: int
    e: int
    heads: int
    inner: int
    words: int
    positions: int
    kinds: int
    eps: float
    activation: str


class HeadNames(NamedTuple):
    """What the tensors of the masked-word readout are called.

    Attributes:
        transform: the dense map before the words.
        norm: after the activation.
        words: the output layer; its bias may also stand in `bias`.
        bias: the bias by itself.
    """

    transform: str
    norm: str
    words: str
    bias: str | None


def layer_shapes(names: LayerNames, sizes: Sizes, path: str) -> Shapes:
    """Shapes of the tensors of a layer.

    Args:
        names: of the architecture.
        sizes: of the model.
        path: name of the layer.

    Returns:
        Shapes by full name.
    """
    d, m = sizes.d, sizes.inner
    matrices = dict.fromkeys(names[:4], (d, d)) | {names.inner: (m, d), names.outer: (d, m)}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in matrices.items():
        shapes |= {f"{path}{name}.weight": shape, f"{path}{name}.bias": shape[:1]}
    for name in (names.attention_norm, names.feedforward_norm):
        shapes |= {f"{path}{name}.weight": (d,), f"{path}{name}.bias": (d,)}
    return shapes


def embedding_shapes(sizes: Sizes, norm: str = "embeddings.LayerNorm") -> Shapes:
    """Shapes of the tensors of the embedding.

    Args:
        sizes: of the model.
        norm: name of its norm.

    Returns:
        Shapes by full name.
    """
    e = sizes.e
    shapes: dict[str, tuple[int, ...]] = {
        _WORDS: (sizes.words, e),
        "embeddings.position_embeddings.weight": (sizes.positions, e),
        f"{norm}.weight": (e,),
        f"{norm}.bias": (e,),
    }
    if sizes.kinds:
        shapes["embeddings.token_type_embeddings.weight"] = (sizes.kinds, e)
    return shapes


def head_shapes(names: HeadNames, sizes: Sizes) -> Shapes:
    """Shapes of the tensors of a masked-word readout, all of them optional.

    Args:
        names: of the architecture.
        sizes: of the model.

    Returns:
        Shapes by full name.
    """
    e, V = sizes.e, sizes.words
    shapes: dict[str, tuple[int, ...]] = {
        f"{names.transform}.weight": (e, sizes.d),
        f"{names.transform}.bias": (e,),
        f"{names.norm}.weight": (e,),
        f"{names.norm}.bias": (e,),
        f"{names.words}.weight": (V, e),
        f"{names.words}.bias": (V,),
    }
    if names.bias is not None:
        shapes[names.bias] = (V,)
    return shapes


def encoder_layers(
    stored: StoredTensors,
    names: LayerNames,
    sizes: Sizes,
    path: Callable[[int], str],
    placement: str = "after",
) -> LayerReader:
    """The layers of the file.

    Args:
        stored: the file.
        names: of the architecture.
        sizes: of the model.
        path: name of a stored layer, given its number.
        placement: where the norms stand.

    Returns:
        What reads them.
    """
    return LayerReader(
        lambda index: _block(stored, names, sizes, path(index), placement),
        lambda index: Feedforward(
            read_dense(stored, path(index) + names.inner),
            read_dense(stored, path(index) + names.outer),
            None,
            sizes.activation,
        ),
    )


def _block(
    stored: StoredTensors, names: LayerNames, sizes: Sizes, path: str, placement: str
) -> AttentionBlock:
    parts = (names.query, names.key, names.value, names.output)
    return AttentionBlock(
        attention=attention_of(
            (read_dense(stored, path + part) for part in parts), sizes.heads, causal=False
        ),
        attention_norm=read_norm(stored, path + names.attention_norm, sizes.eps),
        feedforward_norm=read_norm(stored, path + names.feedforward_norm, sizes.eps),
        placement=placement,
    )


def read_embedding(
    stored: StoredTensors,
    sizes: Sizes,
    *,
    projection: str | None = None,
    first_position: int = 0,
    padding: int | None = None,
) -> Embedding:
    """The embedding of the file; all tokens are of the first kind.

    Args:
        stored: the file.
        sizes: of the model.
        projection: name of the map to the model's width, or None.
        first_position: row of the table of positions that the first token reads.
        padding: token that the count of positions passes over, or None.

    Returns:
        The embedding.
    """
    kinds = stored.get("embeddings.token_type_embeddings.weight")
    return Embedding(
        jnp.asarray(stored[_WORDS]),
        positions=jnp.asarray(stored["embeddings.position_embeddings.weight"]),
        kind=None if kinds is None else jnp.asarray(kinds[0]),
        norm=read_norm(stored, "embeddings.LayerNorm", sizes.eps),
        projection=None if projection is None else read_dense(stored, projection),
        first_position=first_position,
        padding=padding,
    )


def read_masked_word_head(
    stored: StoredTensors, names: HeadNames, sizes: Sizes, activation: str
) -> Readout:
    """The readout of the file.

    Args:
        stored: the file.
        names: of the architecture.
        sizes: of the model.
        activation: after the dense map.

    Returns:
        The readout, without words where the file has no transform.
    """
    if f"{names.transform}.weight" not in stored:
        return Readout()
    words = output_words(stored, _WORDS, (f"{names.words}.weight",), tied=True)
    assert words is not None
    bias, alone = _biases(stored, names)
    found = alone if bias is None else bias
    if found is not None:
        words = Dense(words.W, jnp.asarray(found))
    return Readout(
        transform=read_dense(stored, names.transform),
        transform_norm=read_norm(stored, names.norm, sizes.eps),
        words=words,
        activation=activation,
    )


def repeated_numbers(stored: StoredTensors, names: HeadNames) -> int:
    """How many numbers of the file are others once more.

    Args:
        stored: the file.
        names: of the architecture.

    Returns:
        Those of the tied words, and of the bias under two names.
    """
    if f"{names.transform}.weight" not in stored:
        return 0
    repeated = repeated_words(stored, _WORDS, (f"{names.words}.weight",), tied=True)
    bias, alone = _biases(stored, names)
    if bias is not None and alone is not None and np.array_equal(bias, alone):
        repeated += bias.size
    return repeated


def _biases(stored: StoredTensors, names: HeadNames) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The bias of the words by its two names."""
    alone = None if names.bias is None else stored.get(names.bias)
    return stored.get(f"{names.words}.bias"), alone


def unsliced_encoder_attention(
    stored: Mapping[str, np.ndarray], names: LayerNames, heads: int, path: str, x: np.ndarray
) -> np.ndarray:
    """A layer's attention from the file's own matrices, in NumPy float64.

    Args:
        stored: the file.
        names: of the architecture.
        heads: number of heads.
        path: name of the layer.
        x: (T, d), what the attention reads.

    Returns:
        (T, d).
    """
    parts = (names.query, names.key, names.value, names.output)
    return unsliced_heads(stored, [path + part for part in parts], heads, x, causal=False)
