import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from liu2021analyzing.library.reviews.ensemble import make_review_ensemble
from liu2021analyzing.library.reviews.variants import ReviewSizes, make_review_model, train_reviews

SIZES = ReviewSizes(vocabulary=6, length=4, t=3, hidden=5, state=2, steps=2, readers=(3,))
KEYS = jax.random.split(jax.random.key(3), 2)


def test_variants_start_alike_and_replications_do_not():
    models, every = make_review_ensemble(KEYS, "attention", SIZES, [(0.0, 1.0), (1e-4, 0.2)])
    assert np.array_equal(models.network.W_Q[:2], models.network.W_Q[2:])
    assert not np.array_equal(models.network.W_Q[0], models.network.W_Q[1])
    assert np.array_equal(jax.random.key_data(every)[:2], jax.random.key_data(KEYS))
    alone = make_review_model(KEYS[1], "attention", SIZES, *jnp.float32([1e-4, 0.2]))
    assert np.array_equal(models.embedding[3], alone.embedding)
    assert models.network.temperature.tolist() == [1.0, 1.0, np.float32(0.2), np.float32(0.2)]


@pytest.mark.thorough
def test_the_penalty_raises_the_loss_of_the_same_batch():
    models, keys = make_review_ensemble(KEYS, "mlp", SIZES, [(0.0, 1.0), (1e-2, 1.0)])
    tokens = np.random.default_rng(1).integers(2, 6, (8, 4)).astype(np.int32)
    data = TokenSequences(tokens, tokens > 0, (tokens[:, 0] > 3).astype(float))
    loss = train_reviews(models, 0.01, data, data, data, keys, 8, 1)[0].loss[:, 0]
    norms = [
        sum(float(abs(w[e]).sum()) for w in (models.network.W1, models.network.w2)) for e in (2, 3)
    ]
    # The epoch is one batch at the common start; a dozen roundings of single precision.
    assert np.allclose(loss[2:] - loss[:2], 1e-2 * np.array(norms), rtol=1e-5)


def test_no_variant_is_refused_in_one_line():
    with pytest.raises(UserError, match="no variant of the review model"):
        make_review_ensemble(KEYS, "mlp", SIZES, [])
