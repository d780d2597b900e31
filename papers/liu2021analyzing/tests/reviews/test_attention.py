import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from liu2021analyzing.library.models.recurrent_attention import DotScore, RecurrentAttention
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.models.word_classifier import WordClassifier
from liu2021analyzing.library.reviews.attention import (
    STATISTICS,
    review_attention,
    review_concentration,
)
from liu2021analyzing.library.reviews.variants import ReviewSizes, make_review_ensemble

SIZES = ReviewSizes(vocabulary=6, length=9, t=3, hidden=5, state=2, steps=2, readers=(3,))
KEYS = jax.random.split(jax.random.key(1), 2)
TOKENS = np.array([[2, 3, 4, 5, 2, 3, 0, 0, 0], [5, 4, 3, 2, 0, 0, 0, 0, 0]], np.int32)
REVIEWS = TokenSequences(TOKENS, TOKENS > 0, np.array([0.0, 1.0]))


def _models(kind, *variants):
    return make_review_ensemble(KEYS, kind, SIZES, variants or [(0.0, 1.0)])[0]


def _share(found):
    return found.models[:, STATISTICS.index("top share")]


def test_equal_weights_are_as_spread_as_can_be_and_tempered_ones_less():
    found = review_concentration(_models("attention", (0.0, 1.0), (0.0, 0.2), (0.0, 1e9)), REVIEWS)
    plain, tempered, equal = np.split(_share(found), 3)
    # floor(sqrt(9)) of nine weights; the temperature leaves logits of a few units of 1e-9.
    assert np.allclose(equal, 3 / 9, rtol=1e-6)
    assert np.all(tempered > plain)
    assert np.all(plain >= equal)
    assert np.isclose(found.uniform[STATISTICS.index("effective support")], 9)


class _LastOfTwo(RecurrentAttention):
    """Attention of two steps: of a step with weight 9, and by the sum of a word's entries."""

    def attention(self, x, mask=None):
        scores = jnp.where(mask, self.b[0] * jnp.sum(x, axis=0), -jnp.inf)
        return jnp.stack([jnp.full(x.shape[1], 9.0), jax.nn.softmax(scores)])


def _statistics_by_hand(row, length, padding):
    """Of one row of weights, in the order of `STATISTICS`."""
    largest = np.sort(row[:length])[::-1][: int(length**0.5)]
    norm = sum(largest**2) ** 0.5
    entropy = -sum(w * np.log(w) for w in row if w > 0)
    return [norm, norm / sum(row**2) ** 0.5, sum(largest), np.exp(entropy), sum(row[padding])]


def test_statistics_are_means_over_rows_by_hand():
    """Three members, reviews of 6 and 4 words among 9, single weights from their definitions."""
    rng = np.random.default_rng(6)
    embedding = rng.standard_normal((3, 6, 2))
    W_Q, W_K, factors = (rng.standard_normal(n) for n in ((3, 4, 2), (3, 4, 2), 3))
    words = np.where(TOKENS[..., None] > 0, embedding[:, TOKENS], 0.0)  # member, review, word, t
    one = TwoLayer(jnp.ones((2, 1)), jnp.ones(1))

    def attention(embedding, W_Q, W_K, _):
        network = SelfAttentionMLP(W_Q, W_K, one.W1.T, jnp.ones((9, 1)), one.w2)
        return WordClassifier(embedding, network)

    def recurrent(embedding, W_Q, W_K, factor):
        network = _LastOfTwo(one.W1 @ one.W1.T, W_K[:2], factor * jnp.ones(2), DotScore(), one, 2)
        return WordClassifier(embedding, network)

    lengths = {"self": [9] * 10, "last": [6, 4]}
    for kind, make in {"self": attention, "last": recurrent}.items():
        models = jax.vmap(make)(*map(jnp.asarray, (embedding, W_Q, W_K, factors)))
        rows, padding = [[], [], []], []
        for e in range(3):
            for r, shown in enumerate(TOKENS > 0):
                x = words[e, r]
                if kind == "self":
                    logits = (x @ W_Q[e].T) @ (x @ W_K[e].T).T / 2
                    exponentials = np.exp(logits[shown])
                else:
                    exponentials = np.exp(factors[e] * x.sum(axis=1))[None] * shown
                rows[e] += list(exponentials / exponentials.sum(axis=1, keepdims=True))
                padding += [~shown] * len(exponentials) if e == 0 else []
        found = review_attention(models, REVIEWS)
        np.testing.assert_allclose(found.rows, rows, rtol=1e-11)
        assert found.lengths.tolist() == lengths[kind]
        np.testing.assert_array_equal(found.padding, padding)
        equal = [(np.arange(9) < n) / n for n in lengths[kind]]
        expected = [
            np.mean(
                [
                    _statistics_by_hand(*row)
                    for row in zip(some, lengths[kind], padding, strict=True)
                ],
                axis=0,
            )
            for some in (*rows, equal)
        ]
        measured = review_concentration(models, REVIEWS)
        np.testing.assert_allclose(measured.models, expected[:3], rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(measured.uniform, expected[3], rtol=1e-12)


@pytest.mark.thorough
def test_self_attention_looks_at_padding_and_the_recurrent_one_does_not():
    rows = review_attention(_models("attention"), REVIEWS)
    assert rows.rows.shape == (2, 10, 9)  # one row per word
    assert rows.padding.sum(axis=1).tolist() == [3] * 6 + [5] * 4
    last = review_attention(_models("recurrent"), REVIEWS)
    assert last.lengths.tolist() == [6, 4]
    assert np.all(last.rows[:, last.padding] == 0)
    padding = STATISTICS.index("padding")
    assert np.all(review_concentration(_models("attention"), REVIEWS).models[:, padding] > 0.2)
    found = review_concentration(_models("recurrent"), REVIEWS)
    assert np.all(found.models[:, padding] == 0)
    # floor(sqrt(6)) and floor(sqrt(4)) of equal weights
    assert np.isclose(found.uniform[STATISTICS.index("top share")], (2 / 6 + 2 / 4) / 2)


def test_models_that_diverged_or_have_no_attention_have_no_concentration():
    models = _models("attention")
    found = review_concentration(models, REVIEWS).models
    lost = eqx.tree_at(lambda m: m.embedding, models, models.embedding.at[0].set(jnp.nan))
    assert np.isnan(review_concentration(lost, REVIEWS).models[0]).all()
    assert np.array_equal(review_concentration(lost, REVIEWS).models[1], found[1])
    tokens = np.where([[False], [True]], np.where(TOKENS == 5, 1, TOKENS), TOKENS)
    second = TokenSequences(tokens, tokens > 0, REVIEWS.labels)
    lost = eqx.tree_at(lambda m: m.embedding, models, models.embedding.at[0, 1].set(jnp.nan))
    partly = review_concentration(lost, second).models
    assert np.isnan(partly[0]).all()
    assert np.isfinite(partly[1]).all()
    unread = review_concentration(_models("lstm"), REVIEWS)
    assert (unread.models.shape, unread.uniform.shape) == ((2, 5), (5,))
    assert np.isnan(unread.models).all()
    assert np.isnan(unread.uniform).all()
    with pytest.raises(UserError, match="has no attention rows"):
        review_attention(_models("mlp"), REVIEWS)
