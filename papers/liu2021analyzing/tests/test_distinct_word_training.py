from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.training.epochs import epoch_orders
from attlas.training.fit import fit
from liu2021analyzing.library.data.distinct_words import distinct_words
from liu2021analyzing.library.losses import l1_penalty
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier
from liu2021analyzing.library.reviews.distinct_word_training import (
    train_word_classifiers,
    word_accuracies,
)
from liu2021analyzing.library.reviews.review_words import load_review_words

P, V = 12, 30
PENALTY = partial(l1_penalty, names=("W1", "w2"), strength=1e-3)


def _reviews(sizes):
    return load_review_words(sizes=sizes, vocabulary=V, length=P, stand_in=True)


def _make(key):
    network = make_self_attention_mlp(key, P, 4, d_q=4, d_v=4, d=5, biases=True)
    return make_word_classifier(key, V, 4, network)


@pytest.mark.thorough
def test_two_epochs_are_what_fit_does_with_the_plain_model():
    data, keys = _reviews((16, 8, 8)), jax.random.split(jax.random.key(0), 2)
    train, held = distinct_words(data.train, np.float64), distinct_words(data.validation, float)
    optimizer = optax.sgd(0.5)
    models = jax.vmap(_make)(keys)
    found = train_word_classifiers(models, optimizer, train, held, keys, 4, 2, PENALTY)

    tokens, mask, labels = (jnp.asarray(a) for a in jax.tree.leaves(data.train))

    def loss(model, rows):
        logits = jax.vmap(model)(tokens[rows], mask[rows])
        sign = 2 * labels[rows] - 1
        return jnp.mean(jnp.log1p(jnp.exp(-sign * logits))) + PENALTY(model)

    orders = epoch_orders(keys, 16, 4)
    rows = np.concatenate([next(orders)[1] for _ in range(2)])
    plain = fit(
        lambda model, _, chosen: loss(model, chosen), optimizer, _make(keys[1]),
        record_at=(4, 8), batches=jnp.asarray(rows),
    )  # fmt: skip
    model = plain.last
    # Eight steps, each a few hundred roundings of numbers of size one.
    room = 8 * 500 * np.finfo(float).eps
    assert np.allclose(found.loss[1], plain.loss, atol=room)
    for mine, theirs in zip(jax.tree.leaves(found.last), jax.tree.leaves(model), strict=True):
        assert np.max(np.abs(np.asarray(mine)[1] - np.asarray(theirs))) < room
    assert found.result.tolist() == [Result.MAX_STEPS.value] * 2
    test = distinct_words(data.test, np.float64)
    logits = jax.vmap(model)(jnp.asarray(data.test.tokens), jnp.asarray(data.test.mask))
    right = np.mean((np.asarray(logits) > 0) == (data.test.labels > 0.5))
    assert word_accuracies(found.last, test, chunk=3)[1] == right


@pytest.mark.thorough
def test_members_at_once_or_one_by_one_and_the_selected_epoch():
    data, keys = _reviews((40, 16, 8)), jax.random.split(jax.random.key(1), 2)
    train, held = (distinct_words(d, np.float64) for d in (data.train, data.validation))

    def make(key):
        return make_word_classifier(key, V, 4, make_two_layer(key, P * 4, 5))

    run = partial(train_word_classifiers, jax.vmap(make)(keys), optax.sgd(2.0), train, held, keys)
    alone, together = run(8, 6, width=1), run(8, 6, width=2)
    # 30 steps of a few hundred roundings each.
    room = 30 * 500 * np.finfo(float).eps
    for name in ("loss", "train", "validation"):
        assert np.allclose(getattr(alone, name), getattr(together, name), atol=room)
    best = np.max(alone.validation, axis=1)
    assert np.array_equal(word_accuracies(alone.selected, held, width=2), best)
    assert np.array_equal(alone.validation[np.arange(2), alone.selected_at], best)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 9}, "batch = 9 does not fit 8 texts"),
        ({"epochs": 0}, "epochs = 0"),
        ({"width": 2}, "width = 2 does not divide 3 members"),
    ],
)
def test_unusable_settings_are_refused(change, said):
    data = distinct_words(_reviews((8, 1, 1)).train, np.float64)
    keys = jax.random.split(jax.random.key(1), 3)
    settings = {"batch": 4, "epochs": 1, "width": 1} | change
    with pytest.raises(UserError, match=said):
        train_word_classifiers(jax.vmap(_make)(keys), optax.sgd(1.0), data, data, keys, **settings)
