r"""Encoder-decoder Transformer (Vaswani et al. 2017) that returns its attention weights.

The model of experiment 1 of liu2021analyzing: learned word vectors times sqrt(d) plus sinusoidal
positions, blocks of multi-head attention and a ReLU network, layer norm after each sum.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attlas.core.arrays import read_indices
from attlas.core.errors import UserError
from attlas.core.memory import require_memory

Rows = Float[Array, "L H queries keys"]


class AttentionRows(NamedTuple):
    """Attention weights of one sentence pair; each row belongs to a query and sums to one.

    Attributes:
        encoder: attention of source tokens to source tokens, for each layer and head.
        decoder: attention of target tokens to themselves and earlier target tokens.
    """

    encoder: Rows
    decoder: Rows
    cross: Rows


class MultiHeadAttention(eqx.Module):
    r"""Heads softmax(X W_Q (Y W_K)' / sqrt(d / H)) Y W_V, side by side, times W_O.

    Attributes:
        query: W_Q of all heads.
        heads: H, a divisor of d.
    """

    query: Float[Array, "d d"]
    key: Float[Array, "d d"]
    value: Float[Array, "d d"]
    output: Float[Array, "d d"]
    heads: int = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "*n S d"],
        y: Float[Array, "*n T d"],
        seen: Bool[Array, "*n S T"],
    ) -> tuple[Float[Array, "*n S d"], Float[Array, "*n H S T"]]:
        """The output for each query, and the attention weights."""
        q, k, v = (
            _product(a, w).reshape(*a.shape[:-1], self.heads, -1)
            for a, w in ((x, self.query), (y, self.key), (y, self.value))
        )
        logits = jnp.einsum("...shc,...thc->...hst", q, k) / math.sqrt(q.shape[-1])
        weights = jax.nn.softmax(jnp.where(seen[..., None, :, :], logits, -jnp.inf), axis=-1)
        read = jnp.einsum("...hst,...thc->...shc", weights, v)
        return _product(read.reshape(x.shape), self.output), weights


class TranslatorBlock(eqx.Module):
    r"""Self-attention, in the decoder also attention to the source, and a ReLU network.

    Attributes:
        own: self-attention.
        source: attention to the encoder's output; None in the encoder.
        up: first matrix of the network.
        scales: scales of the layer norms, one for each residual sum.
    """

    own: MultiHeadAttention
    source: MultiHeadAttention | None
    up: Float[Array, "d m"]
    down: Float[Array, "m d"]
    scales: Float[Array, "sums d"]

    def __call__(
        self,
        x: Float[Array, "*n S d"],
        seen: Bool[Array, "*n S S"],
        memory: Float[Array, "*n T d"] | None = None,
        memory_seen: Bool[Array, "*n S T"] | None = None,
    ) -> tuple[Float[Array, "*n S d"], tuple[Array, ...]]:
        """Apply the block: outputs, and the weights of each attention.

        Args:
            memory: the encoder's output, in the decoder.
            memory_seen: True where a position may attend to a position of `memory`.
        """
        mixed, weights = self.own(x, x, seen)
        x, maps = _layer_norm(x + mixed, self.scales[0]), (weights,)
        if self.source is not None and memory is not None and memory_seen is not None:
            mixed, weights = self.source(x, memory, memory_seen)
            x, maps = _layer_norm(x + mixed, self.scales[1]), (*maps, weights)
        hidden = _product(jax.nn.relu(_product(x, self.up)), self.down)
        return _layer_norm(x + hidden, self.scales[-1]), maps


class Translator(eqx.Module):
    """Encoder and decoder with the logits of the next target word.

    Attributes:
        source_words: word vectors of the source language.
        target_words: word vectors of the target language.
        readout: maps the decoder's output to logits over the target vocabulary.
    """

    source_words: Float[Array, "V d"]
    target_words: Float[Array, "W d"]
    encoder: tuple[TranslatorBlock, ...]
    decoder: tuple[TranslatorBlock, ...]
    readout: Float[Array, "d W"]

    def __call__(
        self,
        source: Int[Array, "*n S"],
        mask: Bool[Array, "*n S"] | Int[Array, "*n S"],
        target: Int[Array, "*n T"],
        target_mask: Bool[Array, "*n T"] | Int[Array, "*n T"] | None = None,
    ) -> Float[Array, "*n T W"]:
        """The logits of the token after each target token, for one row of tokens or many.

        Args:
            source: token numbers of the source, within its vocabulary: compiled programs cannot
                check them, and read the last token's vector for a number beyond it.
            mask: True for source tokens, False for padding; the output is NaN without any token. If
                a row holds several sentence pairs, the number of each token's pair, from 1, and 0
                for padding.
            target: token numbers of the target, the first one marking the start.
            target_mask: the same for the target tokens; all belong to pair 1 when None.

        Returns:
            Logits; those at target token t depend only on its pair's source and its pair's target
            tokens up to t. Logits at padding have no meaning.
        """
        return self._forward(source, mask, target, target_mask)[0]

    def attention(
        self, source: Int[Array, " S"], mask: Bool[Array, " S"], target: Int[Array, " T"]
    ) -> AttentionRows:
        """The attention weights of all layers and heads; rows of padding have no meaning."""
        return self._forward(source, mask, target, None)[1]

    def _forward(
        self, source: Array, mask: Array, target: Array, target_mask: Array | None
    ) -> tuple[Array, AttentionRows]:
        if mask.shape != source.shape:
            raise UserError(f"mask of shape {mask.shape} for source {source.shape}: one per word")
        source_pair = mask.astype(jnp.int32)
        target_pair = jnp.ones(target.shape, jnp.int32)
        target_pair = target_pair if target_mask is None else target_mask.astype(jnp.int32)
        x = _placed(self.source_words, source, source_pair)
        seen = _same_pair(source_pair, source_pair)
        encoded, maps = [], []
        for block in self.encoder:
            x, (weights,) = block(x, seen)
            encoded.append(weights)
        memory, y = x, _placed(self.target_words, target, target_pair)
        before = jnp.tril(_same_pair(target_pair, target_pair))
        across = _same_pair(target_pair, source_pair)
        for block in self.decoder:
            y, pair = block(y, before, memory, across)
            maps.append(pair)
        decoder, cross = (jnp.stack(part) for part in zip(*maps, strict=True))
        return _product(y, self.readout), AttentionRows(jnp.stack(encoded), decoder, cross)


def make_translator(
    key: PRNGKeyArray,
    vocabularies: tuple[int, int],
    width: int = 128,
    blocks: int = 4,
    heads: int = 8,
    hidden: int = 512,
    dtype: Any | None = None,
) -> Translator:
    r"""A model with Xavier's uniform start and Gaussian word vectors of variance 1/d.

    Args:
        vocabularies: words of the source and of the target language.
        blocks: layers L of the encoder, and of the decoder.
        hidden: width of the network in each block.
        dtype: floating type; JAX's default when None.

    Raises:
        UserError: if a size is below 1, the width odd, or no multiple of the heads.

    Examples:
        >>> model = make_translator(jax.random.key(0), (7, 9), 4, 1, 2, 8)
        >>> ids = jnp.arange(3)
        >>> model(ids, ids < 2, jnp.arange(5)).shape
        (5, 9)
    """
    source, target = read_indices(vocabularies, "vocabularies", (2,), 2**31).tolist()
    require_memory(
        4 * width * (source + target + blocks * hidden), "the translator", "make it smaller"
    )
    if min(source, target, width, blocks, heads, hidden) < 1:
        sizes = f"vocabularies = {vocabularies}, width = {width}, blocks = {blocks}"
        raise UserError(f"{sizes}, heads = {heads}, hidden = {hidden}: all must be at least 1")
    if width % heads or width % 2:
        raise UserError(f"width = {width}: choose an even multiple of the {heads} heads")
    keys = jax.random.split(key, 3 + 2 * blocks)
    words = [
        jax.random.normal(k, (v, width), dtype) / math.sqrt(width)
        for k, v in zip(keys[:2], (source, target), strict=True)
    ]
    encoder = tuple(
        _make_block(k, width, heads, hidden, False, dtype) for k in keys[3 : 3 + blocks]
    )
    decoder = tuple(_make_block(k, width, heads, hidden, True, dtype) for k in keys[3 + blocks :])
    readout = jax.nn.initializers.glorot_uniform()(keys[2], (width, target), dtype)
    return Translator(words[0], words[1], encoder, decoder, readout)


def _make_block(
    key: PRNGKeyArray, width: int, heads: int, hidden: int, decodes: bool, dtype: Any | None
) -> TranslatorBlock:
    xavier = jax.nn.initializers.glorot_uniform()
    keys = jax.random.split(key, 10)

    def attention(first: int) -> MultiHeadAttention:
        four = (xavier(k, (width, width), dtype) for k in keys[first : first + 4])
        return MultiHeadAttention(*four, heads=heads)

    up, down = xavier(keys[8], (width, hidden), dtype), xavier(keys[9], (hidden, width), dtype)
    scales = jnp.ones((3 if decodes else 2, width), up.dtype)
    return TranslatorBlock(attention(0), attention(4) if decodes else None, up, down, scales)


def _product(x: Float[Array, "*n S d"], w: Float[Array, "d m"]) -> Float[Array, "*n S m"]:
    """X W as one product of two matrices, whose gradient XLA keeps in their layout."""
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], w.shape[1])


def _same_pair(query: Int[Array, "*n S"], key: Int[Array, "*n T"]) -> Bool[Array, "*n S T"]:
    """Which token may attend to which; padding attends to all, which avoids NaN."""
    query, key = query[..., :, None], key[..., None, :]
    return (query == key) | (query == 0)


def _layer_norm(x: Float[Array, "*n S d"], scale: Float[Array, " d"]) -> Float[Array, "*n S d"]:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-6) * jnp.broadcast_to(scale, x.shape)


def _placed(
    words: Float[Array, "V d"], numbers: Int[Array, "*n S"], pair: Int[Array, "*n S"]
) -> Float[Array, "*n S d"]:
    """Word vectors with their sinusoidal positions, counted from the first word of each pair."""
    d, width = words.shape[1], numbers.shape[-1]
    angles = np.arange(width)[:, None] / 1e4 ** (np.arange(0, d, 2)[None, :] / d)
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    place = jnp.broadcast_to(jnp.arange(width), numbers.shape)
    begins = jnp.concatenate([jnp.ones_like(pair[..., :1]), jnp.diff(pair)], axis=-1) != 0
    first = jax.lax.cummax(jnp.where(begins, place, 0), axis=pair.ndim - 1)
    return math.sqrt(d) * words[numbers] + jnp.asarray(waves, words.dtype)[place - first]
