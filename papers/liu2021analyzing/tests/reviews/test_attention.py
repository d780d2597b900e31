import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
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
    assert np.isnan(review_concentration(_models("lstm"), REVIEWS).models).all()
    with pytest.raises(UserError, match="has no attention rows"):
        review_attention(_models("mlp"), REVIEWS)
