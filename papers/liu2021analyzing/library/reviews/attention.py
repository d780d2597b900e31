"""Where review classifiers look: their attention rows, and how concentrated those are."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from attlas.measures.attention.concentration import concentration
from liu2021analyzing.library.models.luong_reader import LuongReader
from liu2021analyzing.library.models.recurrent_attention import RecurrentAttention
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP

STATISTICS = ("top norm", "relative top norm", "top share", "effective support", "padding")
"""Of a row: l2 norm of the floor(sqrt(p)) largest weights, the same over the row's, their sum;
exp(entropy); the weight on padding."""


class ReviewAttention(NamedTuple):
    """Attention rows of stacked models on the same reviews.

    Attributes:
        rows: the rows of each model.
        lengths: entries p of each row that may have weight.
        padding: which entries stand for padding.
    """

    rows: Float[np.ndarray, "e rows p"]
    lengths: Int[np.ndarray, " rows"]
    padding: Bool[np.ndarray, "rows p"]


class ReviewConcentration(NamedTuple):
    """Means of `STATISTICS` over attention rows.

    Attributes:
        models: of each model; NaN where it has no attention, or one that is not finite.
        uniform: of equal weights on the same rows.
    """

    models: Float[np.ndarray, "e statistics"]
    uniform: Float[np.ndarray, " statistics"]


def _has_attention(models: Any) -> bool:
    """Whether review models attend to words: all but the MLP and the LSTMs."""
    return isinstance(models.network, SelfAttentionMLP | RecurrentAttention | LuongReader)


def review_attention(models: Any, reviews: TokenSequences) -> ReviewAttention:
    """Attention rows: one per word of self-attention, that of the last step of the recurrent one.

    Self-attention gives weight to padding, as liu2021analyzing prints it; the others do not.

    Args:
        models: stacked `ReviewModel`s of one kind.
    """
    if not _has_attention(models):
        raise UserError(f"{type(models.network).__name__} has no attention rows: give an attention")
    tokens, mask = np.asarray(reviews.tokens), np.asarray(reviews.mask)
    rows = np.asarray(_rows(models, jnp.asarray(tokens), jnp.asarray(mask)))
    words = mask.sum(axis=1)
    if not isinstance(models.network, SelfAttentionMLP):
        return ReviewAttention(rows, words, ~mask)
    lengths = np.full(words.sum(), mask.shape[1])
    return ReviewAttention(rows[:, mask], lengths, np.repeat(~mask, words, axis=0))


def review_concentration(models: Any, reviews: TokenSequences) -> ReviewConcentration:
    """How concentrated attention is on some reviews, beside that of equal weights.

    Args:
        models: stacked `ReviewModel`s of one kind.

    Returns:
        Means over the rows of `review_attention`.

    Examples:
        >>> from liu2021analyzing.library.reviews.variants import make_review_ensemble
        >>> from liu2021analyzing.library.reviews.variants import ReviewSizes
        >>> keys, sizes = jax.random.split(jax.random.key(0), 1), ReviewSizes(5, 4, 2, 4, 2, 2, ())
        >>> models, _ = make_review_ensemble(keys, "attention", sizes, [(0.0, 1e9)])
        >>> tokens = np.array([[2, 3, 0, 0]])
        >>> reviews = TokenSequences(tokens, tokens > 0, np.ones(1))
        >>> found = review_concentration(models, reviews)
        >>> found.uniform[STATISTICS.index("top share")].item()  # two of four equal weights
        0.5
        >>> np.allclose(found.models, found.uniform)
        True
    """
    count = models.embedding.shape[0]
    if not _has_attention(models):
        none = np.full((count + 1, len(STATISTICS)), np.nan)
        return ReviewConcentration(none[1:], none[0])
    attention = review_attention(models, reviews)
    places = np.arange(attention.rows.shape[-1])
    equal = (places < attention.lengths[:, None]) / attention.lengths[:, None]
    means = np.array([_means(rows, attention) for rows in (*attention.rows, equal)])
    return ReviewConcentration(means[:-1], means[-1])


def _means(rows: np.ndarray, attention: ReviewAttention) -> np.ndarray:
    if not np.isfinite(rows).all():
        return np.full(len(STATISTICS), np.nan)
    c = concentration(rows, attention.lengths)
    padding = np.sum(rows, axis=1, where=attention.padding)
    columns = (c.top_norm, c.relative_top_norm, c.top_share, c.effective_support, padding)
    return np.array([column.mean() for column in columns])


@eqx.filter_jit
def _rows(models: Any, tokens: Array, mask: Array) -> Array:
    """Attention rows: of each word, or of the last step."""

    def rows_of(model: Any, tokens: Array, mask: Array) -> Array:
        x = jnp.where(mask[None, :], model.embedding[tokens].T, 0)
        if isinstance(model.network, SelfAttentionMLP):
            return model.network.attention(x).T
        return model.network.attention(x, mask)[-1]

    texts = jax.vmap(rows_of, in_axes=(None, 0, 0))
    return eqx.filter_vmap(texts, in_axes=(eqx.if_array(0), None, None))(models, tokens, mask)
