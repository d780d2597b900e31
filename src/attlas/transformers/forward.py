r"""The forward pass of the canonical form, layer by layer, on one sequence; vmap outside."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.core.errors import refuse_misfits
from attlas.models.attention.rotation import turn
from attlas.transformers.activations import activation
from attlas.transformers.canonical import (
    Attention,
    Embedding,
    Experts,
    Feedforward,
    Layer,
    Norm,
    PatchEmbedding,
    Readout,
    Rotary,
)


def embed(embedding: Embedding, tokens: Int[Array, " T"]) -> Float[Array, "T d"]:
    """Hidden states that enter the first layer."""
    x = embedding.scale * embedding.tokens[tokens]
    if embedding.kind is not None:
        x = x + embedding.kind[None]
    if embedding.positions is not None:
        x = x + embedding.positions[_position_rows(embedding, tokens)]
    if embedding.norm is not None:
        x = embedding.norm(x)
    return x if embedding.projection is None else embedding.projection(x)


def _position_rows(embedding: Embedding, tokens: Int[Array, " T"]) -> Int[Array, " T"]:
    """Which row of the table of positions each token reads."""
    if embedding.padding is None:
        return embedding.first_position + jnp.arange(tokens.size)
    counted = tokens != embedding.padding
    return embedding.first_position - 1 + jnp.where(counted, jnp.cumsum(counted), 0)


@eqx.filter_jit
def embed_sequences(embedding: Embedding, tokens: Int[Array, "n T"]) -> Float[Array, "n T d"]:
    """Hidden states of several sequences of one length that enter the first layer."""
    return jax.vmap(lambda sequence: embed(embedding, sequence))(tokens)


def embed_patches(embedding: PatchEmbedding, image: Float[Array, "c h w"]) -> Float[Array, "T d"]:
    """Hidden states that enter the first layer: the class token, then the patches row by row."""
    c, h, w = image.shape
    s = embedding.size
    cut = image.reshape(c, h // s, s, w // s, s).transpose(1, 3, 0, 2, 4).reshape(-1, c * s * s)
    rows = jnp.concatenate([embedding.token[None], embedding.patches(cut)])
    return rows + embedding.positions


def rotate(rotary: Rotary, x: Float[Array, "H T k"]) -> Float[Array, "H T k"]:
    """Queries or keys turned by their positions 0, 1, ..."""
    frequencies = jnp.asarray(rotary.frequencies, x.dtype)
    angle = jnp.arange(x.shape[1], dtype=x.dtype)[:, None] * frequencies[None]
    return turn(x, angle, rotary.interleaved)


def visible(
    attention: Attention, length: int, present: Bool[Array, " T"] | None = None
) -> Bool[Array, "T T"]:
    """Which tokens (columns) each token (row) sees.

    Args:
        present: False for padding, which stands at the end; the first token is present. No padding
            when None.

    Returns:
        True where the row's token sees the column's. Rows of padding see the first token, so that
        their values, which nothing reads, stay finite.
    """
    behind = jnp.arange(length)[:, None] - jnp.arange(length)[None]
    seen = behind >= 0 if attention.causal else jnp.ones_like(behind, dtype=bool)
    if attention.window is not None:
        seen = seen & (jnp.abs(behind) < attention.window)
    if present is None:
        return seen
    first = jnp.arange(length)[None] == 0
    return jnp.where(present[:, None], seen & present[None], first)


class Projections(NamedTuple):
    """Queries, keys and values of a layer, before norms of heads and rotation.

    Attributes:
        queries: one row per head and token.
        keys: one row per key/value group and token.
        values: the same.
    """

    queries: Float[Array, "H T k"]
    keys: Float[Array, "G T k"]
    values: Float[Array, "G T v"]


def projections(attention: Attention, x: Float[Array, "T d"]) -> Projections:
    """Queries, keys and values.

    Args:
        x: the attention's input, after the norm of a pre-norm layer.
    """
    return Projections(
        jnp.einsum("td,hdk->htk", x, attention.W_Q) + attention.b_Q[:, None],
        jnp.einsum("td,gdk->gtk", x, attention.W_K) + attention.b_K[:, None],
        jnp.einsum("td,gdv->gtv", x, attention.W_V) + attention.b_V[:, None],
    )


def placed(
    attention: Attention, queries: Float[Array, "H T k"], keys: Float[Array, "G T k"]
) -> tuple[Float[Array, "H T k"], Float[Array, "H T k"]]:
    """Queries and keys after norms and rotation, whose products are logits before the scale."""
    if attention.query_norm is not None:
        queries = attention.query_norm(queries)
    if attention.key_norm is not None:
        keys = attention.key_norm(keys)
    if attention.rotary is not None:
        queries, keys = rotate(attention.rotary, queries), rotate(attention.rotary, keys)
    return queries, keys[jnp.array(attention.group)]


def compare_heads(
    attention: Attention, queries: Float[Array, "H T k"], keys: Float[Array, "G T k"]
) -> Float[Array, "H T T"]:
    """Logits before the mask, of queries and keys as `projections` gives them."""
    logits = scaled_logits(attention, jnp.einsum("hik,hjk->hij", *placed(attention, queries, keys)))
    if attention.relative is None:
        return logits
    places = jnp.arange(logits.shape[-1])
    return logits + relative_logits(attention.relative, places, places)


@refuse_misfits
def scaled_logits(
    attention: Attention, products: Float[Array, "*lead T"]
) -> Float[Array, "*lead T"]:
    """Logits of the products of queries and keys: times the scale, softly capped.

    Examples:
        >>> one, zero = jnp.eye(2)[None], jnp.zeros((1, 2))
        >>> heads = Attention(one, zero, one, zero, one, zero, one, zero[0], (0,), 0.5, False)
        >>> scaled_logits(heads, jnp.array([4.0])).tolist()
        [2.0]
    """
    return _soft_cap(attention.scale * jnp.asarray(products), attention.softcap)


@refuse_misfits
def relative_logits(
    relative: Float[Array, "*heads offsets"], queries: Int[Array, " S"], keys: Int[Array, " T"]
) -> Float[Array, "*heads S T"]:
    """What positions add to the logits of queries and keys at these places.

    Args:
        relative: by the key's place less the query's, the middle entry for 0; what is further
            apart has the first or the last entry.

    Examples:
        >>> places = jnp.arange(3)
        >>> relative_logits(jnp.array([-1.0, 0.0, 2.0]), places, places).tolist()
        [[0.0, 2.0, 2.0], [-1.0, 0.0, 2.0], [-1.0, -1.0, 0.0]]
    """
    relative, queries, keys = map(jnp.asarray, (relative, queries, keys))
    reach = relative.shape[-1] // 2
    return relative[..., jnp.clip(keys[None] - queries[:, None], -reach, reach) + reach]


def _soft_cap(logits: Float[Array, "*lead T"], cap: float | None) -> Float[Array, "*lead T"]:
    """Cap tanh(logits / cap), or the logits as they are.

    Examples:
        >>> _soft_cap(jnp.array([0.0, 1e9]), 30.0).tolist()
        [0.0, 30.0]
    """
    return logits if cap is None else cap * jnp.tanh(logits / cap)


def attention_logits(attention: Attention, x: Float[Array, "T d"]) -> Float[Array, "H T T"]:
    """Logits before the mask."""
    projected = projections(attention, x)
    return compare_heads(attention, projected.queries, projected.keys)


def attention_weights(
    attention: Attention, x: Float[Array, "T d"], present: Bool[Array, " T"] | None = None
) -> Float[Array, "H T T"]:
    """Attention maps: the softmax of the logits over the tokens that a token sees.

    Args:
        present: False for padding; no padding when None.

    Returns:
        One map per head; its rows sum to one and give padding no weight.
    """
    return seen_softmax(attention_logits(attention, x), visible(attention, x.shape[0], present))


@refuse_misfits
def seen_softmax(logits: Float[Array, "H S T"], seen: Bool[Array, "S T"]) -> Float[Array, "H S T"]:
    """The softmax of logits over the tokens that each token sees.

    Args:
        logits: logits before the mask.
        seen: True where the row's token sees the column's; at least one per row.

    Returns:
        Rows that sum to one, zero where nothing is seen.

    Examples:
        >>> seen = jnp.array([[True, False], [True, True]])
        >>> seen_softmax(jnp.zeros((1, 2, 2)), seen).tolist()
        [[[1.0, 0.0], [0.5, 0.5]]]
    """
    logits, seen = jnp.asarray(logits), jnp.asarray(seen)
    return jax.nn.softmax(jnp.where(seen[None], logits, -jnp.inf), axis=-1)


def head_outputs(
    attention: Attention, weights: Float[Array, "H S T"], x: Float[Array, "T d"]
) -> Float[Array, "H S out"]:
    """What each head adds, P_h (X W_V + b_V) W_O[h], without the layer's b_O.

    Args:
        weights: attention weights, the layer's or others.
    """
    mixed = mix_values(attention, weights, projections(attention, x).values)
    return jnp.einsum("hiv,hvd->hid", mixed, attention.W_O)


def attended(
    attention: Attention, weights: Float[Array, "H S T"], x: Float[Array, "T d"]
) -> Float[Array, "S out"]:
    """What the attention adds: the sum of `head_outputs` and b_O, without one block per head."""
    return unite_heads(attention, mix_values(attention, weights, projections(attention, x).values))


def mix_values(
    attention: Attention, weights: Float[Array, "H S T"], values: Float[Array, "G T v"]
) -> Float[Array, "H S v"]:
    """Values, averaged with the weights of each head."""
    return jnp.einsum("hij,hjv->hiv", weights, values[jnp.array(attention.group)])


def unite_heads(attention: Attention, mixed: Float[Array, "H S v"]) -> Float[Array, "S out"]:
    """What the attention adds, from the mixed values of its heads; b_O included."""
    heads, v, d = attention.W_O.shape
    rows = jnp.swapaxes(mixed, 0, 1).reshape(-1, heads * v)
    return rows @ attention.W_O.reshape(heads * v, d) + attention.b_O[None]


def feed(feedforward: Feedforward | Experts, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """Output of the feedforward units."""
    if isinstance(feedforward, Experts):
        return _feed_experts(feedforward, x)
    bend = activation(feedforward.activation)
    inner = feedforward.inner(x)
    hidden = bend(inner) if feedforward.gate is None else bend(feedforward.gate(x)) * inner
    return feedforward.outer(hidden)


def _feed_experts(experts: Experts, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """Every expert on every token, one after the other; inactive ones have weight 0."""
    shares = jax.nn.softmax(experts.router(x), axis=-1)
    active = jax.lax.top_k(shares, experts.active)[1]
    weights = shares * jax.nn.one_hot(active, shares.shape[1], dtype=x.dtype).sum(axis=1)
    if experts.normalized:
        weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
    bend = activation(experts.activation)

    def add(total: Array, expert: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        inner, gate, outer, weight = expert
        return total + weight[:, None] * ((bend(x @ gate) * (x @ inner)) @ outer), None

    by_expert = experts.inner, experts.gate, experts.outer, weights.T
    total, _ = jax.lax.scan(add, jnp.zeros_like(x), by_expert)
    if experts.shared is None:
        return total
    shared = feed(experts.shared, x)
    if experts.shared_gate is not None:
        shared = jax.nn.sigmoid(experts.shared_gate(x)) * shared
    return total + shared


def attention_input(layer: Layer, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    """What the layer's attention reads of the hidden states."""
    return x if layer.norm_placement == "post-norm" else _normed(layer.attention_norm, x)


def _normed(norm: Norm | None, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    return x if norm is None else norm(x)


def complete_layer(
    layer: Layer, x: Float[Array, "T d"], attended: Float[Array, "T d"]
) -> Float[Array, "T d"]:
    """Hidden states after the layer, given what its attention adds (b_O included)."""
    attended = _normed(layer.attention_out_norm, attended)

    def fed(rows: Array) -> Array:
        return _normed(layer.feedforward_out_norm, feed(layer.feedforward, rows))

    if layer.norm_placement == "post-norm":
        middle = _normed(layer.attention_norm, x + attended)
        return _normed(layer.feedforward_norm, middle + fed(middle))
    if layer.norm_placement == "parallel":
        return x + attended + fed(_normed(layer.feedforward_norm, x))
    middle = x + attended
    return middle + fed(_normed(layer.feedforward_norm, middle))


@eqx.filter_jit
def apply_layer(
    layer: Layer, x: Float[Array, "T d"], present: Bool[Array, " T"] | None = None
) -> tuple[Float[Array, "T d"], Float[Array, "H T T"]]:
    """One layer on one sequence: the hidden states that leave, and the attention maps.

    Args:
        present: False for padding; no padding when None.
    """
    read = attention_input(layer, x)
    weights = attention_weights(layer.attention, read, present)
    return complete_layer(layer, x, attended(layer.attention, weights, read)), weights


@eqx.filter_jit
def read_out(readout: Readout, x: Float[Array, "T d"]) -> Float[Array, "..."]:
    """Logits of the last hidden states.

    Args:
        readout: a readout with an LM head or a classifier.
        x: hidden states that leave the last layer.

    Returns:
        One row of logits per token, or one vector where only the first token is read.
    """
    if readout.first_only:
        x = x[:1]
    if readout.norm is not None:
        x = readout.norm(x)
    if readout.transform is not None:
        x = activation(readout.activation)(readout.transform(x))
    if readout.transform_norm is not None:
        x = readout.transform_norm(x)
    assert readout.lm_head is not None
    logits = _soft_cap(readout.lm_head(x), readout.softcap)
    return logits[0] if readout.first_only else logits
