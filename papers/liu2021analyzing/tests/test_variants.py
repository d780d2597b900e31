import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from attlas.training.trajectory import Trajectory
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.reviews import variants
from liu2021analyzing.library.reviews.variants import (
    ReviewModel,
    ReviewSizes,
    make_review_ensemble,
    make_review_model,
    train_reviews,
)

SIZES = ReviewSizes(vocabulary=6, length=4, t=3, hidden=5, state=2, steps=2, readers=(3,))


def _numbers(*values):
    return [jnp.asarray(value, jnp.float32) for value in values]


def test_a_tempered_model_is_the_one_with_that_temperature():
    key = jax.random.key(3)
    model = make_review_model(key, "attention", SIZES, *_numbers(0, 0.2))
    second = jax.random.split(key)[1]
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
    plain = make_self_attention_mlp(
        second, 4, 3, 3, 3, 5, temperature=0.2, biases=True, dtype=np.dtype("f4")
    )
    # float32(0.2) is 0.2 to half a unit; a dozen roundings follow.
    assert np.allclose(model.network(x), plain(x), rtol=32 * np.finfo("f4").eps, atol=1e-7)


@pytest.mark.thorough
def test_variants_keep_their_numbers_while_all_else_is_learnt():
    keys = jnp.tile(jax.random.split(jax.random.key(0), 1), 2)
    numbers = np.array([[0.0, 1.0], [1e-3, 0.2]], np.float32)
    models = jax.vmap(lambda k, n: make_review_model(k, "attention", SIZES, n[0], n[1]))(
        keys, numbers
    )
    tokens = np.random.default_rng(1).integers(2, 6, (12, 4)).astype(np.int32)
    data = TokenSequences(tokens, tokens > 0, (tokens[:, 0] > 3).astype(float))
    found, right = train_reviews(models, 0.01, data, data, data, keys, 4, 2)
    assert np.array_equal(found.last.strength, numbers[:, 0])
    assert np.array_equal(found.last.network.temperature, numbers[:, 1])
    assert not np.array_equal(found.last.network.W_Q, models.network.W_Q)
    assert right.shape == (2,)


def test_an_unknown_kind_is_refused_in_one_line():
    with pytest.raises(UserError, match="no review model 'gru'"):
        make_review_model(jax.random.key(0), "gru", SIZES, *_numbers(0, 1))


KEYS = jax.random.split(jax.random.key(3), 2)


def test_variants_start_alike_and_replications_do_not():
    models, every = make_review_ensemble(KEYS, "attention", SIZES, [(0.0, 1.0), (1e-4, 0.2)])
    assert np.array_equal(models.network.W_Q[:2], models.network.W_Q[2:])
    assert not np.array_equal(models.network.W_Q[0], models.network.W_Q[1])
    assert np.array_equal(jax.random.key_data(every)[:2], jax.random.key_data(KEYS))
    alone = make_review_model(KEYS[1], "attention", SIZES, *jnp.float32([1e-4, 0.2]))
    assert np.array_equal(models.embedding[3], alone.embedding)
    assert models.network.temperature.tolist() == [1.0, 1.0, np.float32(0.2), np.float32(0.2)]
    assert models.strength.tolist() == [0.0, 0.0, np.float32(1e-4), np.float32(1e-4)]


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


class _Sums(eqx.Module):
    """Any network that sees the order of words."""

    W1: jax.Array
    w2: jax.Array
    b: jax.Array
    temperature: jax.Array

    def __call__(self, x, mask):
        return jnp.sum(jnp.where(mask, self.w2 @ jnp.tanh(self.W1 @ x), 0)) + self.b


def test_training_has_the_stated_penalty_step_and_scores(monkeypatch):
    """Nothing is trained: what the training gets is looked at, and scores are those of its end."""
    recorded = []

    def train_classifiers(models, optimizer, sets, *args, **settings):
        recorded.append((optimizer, sets, args, settings))
        return Trajectory(np.arange(1), None, models, selected=models)

    monkeypatch.setattr(variants, "train_classifiers", train_classifiers)
    rng = np.random.default_rng(0)
    shapes = ((6, 2), (4, 2), (4,), ())
    arrays = [rng.standard_normal((3, *shape)) for shape in shapes]
    models = jax.vmap(lambda e, W1, w2, b, s: ReviewModel(e, _Sums(W1, w2, b, s), s))(
        *map(jnp.asarray, (*arrays, np.array([0.5, 0.0, 2.0])))
    )
    tokens = rng.integers(0, 6, (7, 4)).astype(np.int32)
    data = TokenSequences(tokens, tokens > 0, rng.integers(0, 2, 7).astype(float))
    keys = jax.random.split(jax.random.key(0), 3)
    _, right = train_reviews(models, 0.03, data, data, data, keys, 5, 9)
    ((optimizer, sets, args, settings),) = recorded
    assert (args[1:3], settings["mean"]) == ((5, 9), True)
    assert sets.train.labels.dtype == np.float32
    one = jax.tree.map(lambda a: a[0], models)
    norms = [abs(W1).sum() + abs(w2).sum() for W1, w2 in zip(*arrays[1:3], strict=True)]
    with jax.numpy_dtype_promotion("standard"):
        penalties = jax.jit(jax.vmap(settings["penalty"]))(models)
        step = jax.jit(lambda g: optimizer.update(g, optimizer.init(g))[0])(one)
    np.testing.assert_allclose(penalties, models.strength * np.array(norms), rtol=1e-13)
    # Adam's first step is as long as its rate; numbers of the variant are not learnt.
    assert float(step.strength) == float(step.network.temperature) == 0.0
    for name in ("W1", "w2", "b"):
        signs = np.sign(getattr(one.network, name))
        np.testing.assert_allclose(getattr(step.network, name), -0.03 * signs, rtol=1e-5)
    for k, (embedding, W1, w2, b) in enumerate(zip(*arrays, strict=True)):
        logits = [
            b + sum(w2 @ np.tanh(W1 @ embedding[word]) for word in text if word) for text in tokens
        ]
        np.testing.assert_allclose(right[k], np.mean((np.array(logits) > 0) == data.labels))


def test_the_plain_network_reads_all_entries_of_all_words():
    models = jax.eval_shape(
        lambda key: make_review_model(key, "mlp", SIZES, *_numbers(0, 1)), jax.random.key(0)
    )
    assert models.network.W1.shape == (4 * 3, 5)
    assert models.embedding.shape == (6, 3)


def test_no_variant_is_refused_in_one_line():
    with pytest.raises(UserError, match="no variant of the review model"):
        make_review_ensemble(KEYS, "mlp", SIZES, [])
