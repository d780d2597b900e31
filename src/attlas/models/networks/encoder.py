r"""Transformer encoder that classifies a sequence from its first position.

The classifier of section 1.6 of julistiono2024optimizing: embedding with learned positions, blocks
of multi-head attention and a GELU network, layer norm after each sum, no biases. A learned
first token stands before the sequence, and one linear readout of it is the logit.
"""

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.memory import require_memory

Tokens = Int[Array, " T"] | Float[Array, "T k"]


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any) -> Array:
    bound = 1 / math.sqrt(shape[-2])
    return jax.random.uniform(key, shape, dtype, -bound, bound)


def _layer_norm(x: Float[Array, "T d"], scale: Float[Array, " d"]) -> Float[Array, "T d"]:
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    variance = jnp.mean(centred**2, axis=1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * scale[None, :]


def _dropout(x: Array, rate: float, key: PRNGKeyArray | None) -> Array:
    if key is None or rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


class Block(eqx.Module):
    r"""One encoder block: h = LN(x + Attention(x)), then LN(h + GELU(h W_1) W_2).

    Attributes:
        query: W_Q of all heads.
        output: W_O, from the heads' values back to d.
        up: W_1 of the network.
        heads: number of heads, a divisor of d.
        dropout: rate on attention weights, hidden units and both sums.
    """

    query: Float[Array, "d d"]
    key: Float[Array, "d d"]
    value: Float[Array, "d d"]
    output: Float[Array, "d d"]
    up: Float[Array, "d m"]
    down: Float[Array, "m d"]
    scales: Float[Array, "2 d"]
    heads: int = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __call__(
        self,
        x: Float[Array, "T d"],
        mask: Bool[Array, " T"],
        first_only: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "S d"], Float[Array, "H S T"]]:
        """Apply the block: outputs and attention weights of all S = T positions, or of the first.

        Args:
            mask: True at positions that may be attended to.
            first_only: whether only the first position is computed, as a readout needs it.
            key: random key of the dropout; no dropout when None.
        """
        keys = (None,) * 4 if key is None else tuple(jax.random.split(key, 4))
        from_ = x[:1] if first_only else x
        split = (-1, self.heads, x.shape[1] // self.heads)
        q, k, v = (
            (a @ w).reshape(split) for a, w in ((from_, self.query), (x, self.key), (x, self.value))
        )
        logits = jnp.einsum("shc,thc->hst", q, k) / math.sqrt(split[2])
        weights = jax.nn.softmax(jnp.where(mask[None, None, :], logits, -jnp.inf), axis=2)
        dropped_out = _dropout(weights, self.dropout, keys[0])
        mixed = jnp.einsum("hst,thc->shc", dropped_out, v).reshape(from_.shape) @ self.output
        h = _layer_norm(from_ + _dropout(mixed, self.dropout, keys[1]), self.scales[0])
        hidden = _dropout(jax.nn.gelu(h @ self.up, approximate=False), self.dropout, keys[2])
        out = h + _dropout(hidden @ self.down, self.dropout, keys[3])
        return _layer_norm(out, self.scales[1]), weights


class Encoder(eqx.Module):
    """Transformer encoder with one logit, read at a learned first token.

    Attributes:
        embedding: rows of the vocabulary [V, d], or a linear map of continuous tokens [k, d].
        positions: one vector for each of the T + 1 positions.
        readout: weights of the logit.
        dropout: rate on the embedded sequence; the blocks hold their own.
    """

    embedding: Float[Array, "V d"]
    start: Float[Array, " d"]
    positions: Float[Array, "positions d"]
    blocks: tuple[Block, ...]
    readout: Float[Array, " d"]
    dropout: float = eqx.field(static=True)

    def __call__(
        self, tokens: Tokens, mask: Bool[Array, " T"], key: PRNGKeyArray | None = None
    ) -> Float[Array, ""]:
        """The logit of class 1.

        Args:
            tokens: T token numbers, or T continuous tokens.
            mask: True where a token is, False where padding is.
            key: random key of the dropout; no dropout when None.
        """
        return self._forward(tokens, mask, key)[0]

    def attention(
        self, tokens: Tokens, mask: Bool[Array, " T"]
    ) -> tuple[Float[Array, "H queries keys"], ...]:
        """The attention weights of each block, without dropout.

        Returns:
            For each block [H, T + 1, T + 1], position 0 the first token; the last block
            answers for its first position alone, [H, 1, T + 1].
        """
        return self._forward(tokens, mask, None)[1]

    def _forward(
        self, tokens: Tokens, mask: Bool[Array, " T"], key: PRNGKeyArray | None
    ) -> tuple[Float[Array, ""], tuple[Array, ...]]:
        integer = jnp.issubdtype(tokens.dtype, jnp.integer)
        embedded = self.embedding[tokens] if integer else tokens @ self.embedding
        x = jnp.concatenate([self.start[None, :], embedded]) + self.positions
        seen = jnp.concatenate([jnp.ones(1, bool), mask])
        count = len(self.blocks) + 1
        keys = (None,) * count if key is None else tuple(jax.random.split(key, count))
        x = _dropout(x, self.dropout, keys[0])
        maps = []
        for place, (block, block_key) in enumerate(zip(self.blocks, keys[1:], strict=True)):
            x, weights = block(x, seen, place == len(self.blocks) - 1, block_key)
            maps.append(weights)
        return x[0] @ self.readout, tuple(maps)


def make_encoder(
    key: PRNGKeyArray,
    vocabulary: int,
    length: int,
    width: int,
    blocks: int,
    heads: int,
    hidden: int,
    dropout: float = 0.0,
    deviation: float = 1.0,
    dtype: Any | None = None,
) -> Encoder:
    r"""A randomly initialised encoder.

    Matrices are uniform in +-1/sqrt(fan-in); embeddings are standard Gaussian, positions
    and first token Gaussian; norms start at one.

    Args:
        vocabulary: number of token numbers V, or dimension k of continuous tokens.
        length: tokens T of a sequence, padding included.
        blocks: number of blocks L, at least 1.
        heads: heads of each block, a divisor of d.
        hidden: width of the network in each block.
        dropout: rate while training.
        deviation: standard deviation of positions and first token. Where attention averages
            many tokens, a small one lets them be heard at the first position.
        dtype: floating type; JAX's default when None.

    Heads that do not divide the width, a size that is not positive, or a rate outside [0, 1)
    raise a `UserError`.

    Examples:
        >>> model = make_encoder(jax.random.key(0), 9, 5, width=4, blocks=2, heads=2, hidden=8)
        >>> ids, mask = jnp.arange(5), jnp.arange(5) < 3
        >>> model(ids, mask).shape, [w.shape for w in model.attention(ids, mask)]
        ((), [(2, 6, 6), (2, 1, 6)])
    """
    sizes = {"vocabulary": vocabulary, "length": length, "width": width, "blocks": blocks}
    _refuse_unusable(sizes | {"heads": heads, "hidden": hidden}, dropout)
    first, second, third, fourth, *block_keys = jax.random.split(key, 4 + blocks)
    return Encoder(
        embedding=jax.random.normal(first, (vocabulary, width), dtype),
        start=deviation * jax.random.normal(second, (width,), dtype),
        positions=deviation * jax.random.normal(third, (length + 1, width), dtype),
        blocks=tuple(_make_block(k, width, hidden, heads, dropout, dtype) for k in block_keys),
        readout=_uniform(fourth, (width, 1), dtype)[:, 0],
        dropout=dropout,
    )


def _make_block(
    key: PRNGKeyArray, width: int, hidden: int, heads: int, dropout: float, dtype: Any | None
) -> Block:
    keys = jax.random.split(key, 6)
    query, key_matrix, value, output = (_uniform(k, (width, width), dtype) for k in keys[:4])
    return Block(
        query=query,
        key=key_matrix,
        value=value,
        output=output,
        up=_uniform(keys[4], (width, hidden), dtype),
        down=_uniform(keys[5], (hidden, width), dtype),
        scales=jnp.ones((2, width), query.dtype),
        heads=heads,
        dropout=dropout,
    )


def _refuse_unusable(sizes: Mapping[str, int], dropout: float) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise UserError(f"{name} = {size} of an encoder is not positive: choose at least 1")
    words, width = sizes["vocabulary"] + sizes["length"], sizes["width"]
    numbers = width * (words + sizes["blocks"] * (4 * width + 2 * sizes["hidden"]))
    require_memory(4 * numbers, "the encoder", "make it smaller")
    if sizes["width"] % sizes["heads"]:
        raise UserError(
            f"{sizes['heads']} heads do not divide width {sizes['width']}: choose a divisor"
        )
    if not 0 <= dropout < 1:
        raise UserError(f"dropout = {dropout} is not a rate: choose 0 <= dropout < 1")
