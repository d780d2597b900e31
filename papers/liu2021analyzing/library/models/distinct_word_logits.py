r"""Logits of a batch of texts, each distinct word once: the same function as `WordClassifier`.

Word vectors have no position before the flattening, so three sums are shorter than they look:
projections are computed once for each distinct word of the *batch* (1,200 of the 4,160 words of
32 reviews), attention between the distinct words of each *text* (at most 106 of 130), with how
often they stand there as weights, and W_Q, W_K act as the one matrix W_K' W_Q.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.core.errors import UserError
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.models.word_classifier import WordClassifier

PADDING = 0
"""Number of the padding: its vector is zero."""


def distinct_word_logits(
    model: WordClassifier,
    table: Int[Array, " W"],
    words: Int[Array, "B U"],
    counts: Float[Array, "B U"],
    places: Int[Array, "B p"],
) -> Float[Array, " B"]:
    """The logits of class 1.

    Args:
        model: its network is a `TwoLayer` or a `SelfAttentionMLP`.
        table: the distinct words of the batch, in any order; what is left over holds padding.
        words: number of the word in each slot of each text, see `DistinctWords`.
        counts: multiplicity of the slot's word in its text.

    Returns:
        One logit per text. A word that the table lacks is read as another: give all.

    Examples:
        >>> model = WordClassifier(jnp.array([[9.0], [1.0], [2.0]]), TwoLayer(jnp.ones((2, 1)),
        ...                        jnp.ones(1)))
        >>> distinct_word_logits(model, jnp.array([0, 2]), jnp.array([[0, 2]]), jnp.ones((1, 2)),
        ...                      jnp.array([[1, 0]])).tolist()
        [2.0]
    """
    network = model.network
    if not isinstance(network, TwoLayer | SelfAttentionMLP):
        raise UserError(f"{type(network).__name__} sees the order of words: call the model itself")
    vectors = jnp.where((table != PADDING)[:, None], model.embedding[table], 0)
    size = model.embedding.shape[0]
    row = jnp.zeros(size, jnp.int32).at[table].set(jnp.arange(table.shape[0], dtype=jnp.int32))
    slots = row[words]
    attends = isinstance(network, SelfAttentionMLP)
    values = _attended(network, vectors, slots, counts) if attends else vectors[slots]
    flat = jnp.take_along_axis(values, places[:, :, None], axis=1).reshape(words.shape[0], -1)
    z = flat @ network.W1
    hidden = rectify(z if network.b1 is None else z + network.b1[None, :], network.sharpness)
    y = hidden @ network.w2
    return y if network.b2 is None else y + network.b2


def _attended(
    network: SelfAttentionMLP,
    vectors: Float[Array, "W t"],
    slots: Int[Array, "B U"],
    counts: Float[Array, "B U"],
) -> Float[Array, "B U v"]:
    """Attended values of the distinct words of each text."""
    values = vectors @ network.W_V.T
    if network.equal_weights:
        mean = jnp.einsum("bu,buv->bv", counts, values[slots]) / jnp.sum(counts, 1, keepdims=True)
        return jnp.broadcast_to(mean[:, None, :], (*slots.shape, mean.shape[1]))
    t = vectors.shape[1]
    scale = 1 / (network.temperature * math.sqrt(network.W_Q.shape[0]))
    queries = vectors @ (scale * (network.W_Q.T @ network.W_K))
    # One gather, and one scatter of its gradient, for all three.
    picked = jnp.concatenate([queries, vectors, values], axis=1)[slots]
    logits = jnp.einsum("bzt,bjt->bzj", picked[..., :t], picked[..., t : 2 * t])
    # A slot that is not used gets -inf: its logit 0 must not count as the highest.
    logits = logits + jnp.log(counts)[:, None, :]
    weights = jnp.exp(logits - jax.lax.stop_gradient(jnp.max(logits, axis=2, keepdims=True)))
    # Divided after the product: t columns in place of U.
    mixed = jnp.einsum("bzj,bjv->bzv", weights, picked[..., 2 * t :])
    return mixed / jnp.sum(weights, axis=2, keepdims=True)
