from functools import partial
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.training.epochs import epoch_orders
from attlas.training.fit import fit
from liu2021analyzing.library.data.distinct_words import DistinctWords, distinct_words
from liu2021analyzing.library.losses import l1_penalty
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier
from liu2021analyzing.library.reviews import distinct_word_training
from liu2021analyzing.library.reviews.distinct_word_training import (
    _batches,
    _held_out,
    _Loss,
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


DATA = DistinctWords(
    np.array([[0, 2, 3], [1, 3, 0], [4, 1, 2], [0, 2, 2], [3, 1, 4]], np.int32),
    np.array([[2.0, 1, 1], [1, 3, 0], [1, 1, 2], [3, 1, 0], [2, 1, 1]]),
    np.array([[1, 0, 0, 2], [1, 1, 0, 1], [2, 0, 1, 2], [0, 1, 0, 0], [0, 2, 0, 1]], np.int32),
    np.array([1.0, 0, 1, 1, 0]),
)


def _words(seed):
    network = make_two_layer(jax.random.key(seed), 4 * 2, 3, biases=True)
    return make_word_classifier(jax.random.key(seed + 1), 5, 2, network)


def _by_hand(model):
    """Logits text by text: the words at their places, and padding is zero."""
    embedding = np.asarray(model.embedding) * (np.arange(len(model.embedding)) > 0)[:, None]
    network = jax.tree.map(np.asarray, model.network)
    tokens = np.take_along_axis(DATA.words, DATA.places, axis=1)
    flat = embedding[tokens].reshape(len(tokens), -1)
    return np.maximum(flat @ network.W1 + network.b1, 0) @ network.w2 + network.b2


@pytest.mark.thorough
def test_a_batch_has_the_mean_logistic_loss_and_a_number_of_right_signs():
    model, rows, table = _words(2), jnp.array([3, 0, 4]), jnp.array([0, 1, 2, 3, 4, 0])
    signs = np.where(DATA.labels > 0, 1, -1)[[3, 0, 4]]
    margins = signs * _by_hand(model)[[3, 0, 4]]
    expected = np.mean(np.log1p(np.exp(-margins)))
    data = jax.tree.map(jnp.asarray, DATA)
    other = jax.tree.map(lambda a: a[::-1], data)  # validation is another set
    for penalty, more in ((None, 0.0), (lambda model: 0.3 * jnp.sum(model.network.W1**2), 0.3)):
        loss, right = _Loss(penalty)(model, (data, other), (rows, table))
        total = expected + more * np.sum(np.asarray(model.network.W1) ** 2)
        assert float(loss) == pytest.approx(total, rel=1e-12)
        assert int(right) == np.sum(margins > 0)


def test_accuracies_count_texts_once_whatever_the_chunk():
    models = [_words(seed) for seed in (2, 5, 9)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *models)
    expected = [np.mean((_by_hand(model) > 0) == (DATA.labels > 0)) for model in models]
    assert len(set(expected)) > 1
    for chunk, width in ((2, 3), (3, 1), (250, None)):
        found = word_accuracies(stacked, DATA, chunk=chunk, width=width)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(("cpu", "at_once"), [(True, 1), (False, 7)])
def test_members_run_alone_on_a_cpu_and_together_elsewhere(monkeypatch, cpu, at_once):
    monkeypatch.setattr(distinct_word_training, "on_cpu", lambda: cpu)
    assert distinct_word_training._width(None, 7) == at_once
    assert distinct_word_training._width(3, 7) == 3


def test_logits_of_zero_count_as_wrong():
    zero = jax.tree.map(jnp.zeros_like, _words(2))
    assert word_accuracies(jax.tree.map(lambda a: a[None], zero), DATA).tolist() == [0.0]
    data, batch = jax.tree.map(jnp.asarray, DATA), (jnp.arange(3), jnp.arange(5))
    assert int(_Loss(None)(zero, (data, data), batch)[1]) == 0


def test_validation_is_a_share_of_the_second_set():
    model, held = _words(5), jax.tree.map(jnp.asarray, DATA)
    found = _held_out(2, model, (held, held))["validation"]
    assert float(found) == pytest.approx(np.mean((_by_hand(model) > 0) == (DATA.labels > 0)))


def test_tables_hold_the_distinct_words_of_each_batch():
    """Two members, two epochs of two batches; 64 rows, or 128 once 65 words meet in a batch."""
    rng = np.random.default_rng(0)
    for size, rows in ((60, 64), (200, 128)):
        words = rng.integers(0, size, (7, 30))
        words[:3].ravel()[:65] = np.arange(65) % size
        orders = [np.array([[[0, 1, 2], [3, 4, 6]], [[5, 1, 3], [2, 0, 6]]]),
                  np.array([[[6, 1, 2], [0, 4, 5]], [[3, 1, 5], [2, 4, 6]]])]  # fmt: skip
        most = max(
            len(set(words[batch].ravel())) for order in orders for batch in order.reshape(-1, 3)
        )
        assert most <= rows
        assert most > rows - 64
        batches = list(_batches(words, orders, size))
        assert len(batches) == 2
        for order, (own, tables) in zip(orders, batches, strict=True):
            np.testing.assert_array_equal(own, order)
            assert tables.shape == (2, 2, rows)
            for place in np.ndindex(2, 2):
                distinct = sorted(set(words[order[place]].ravel()))
                expected = distinct + [0] * (rows - len(distinct))
                assert tables[place].tolist() == expected


def test_one_step_is_a_gradient_step_on_the_batch_of_each_member():
    models = jax.tree.map(lambda *a: jnp.stack(a), _words(2), _words(5))
    keys = jax.random.split(jax.random.key(4), 2)
    found = train_word_classifiers(
        models, optax.sgd(0.3), DATA, DATA, keys, 4, 1, quick_compile=True
    )
    (order,) = islice(epoch_orders(keys, 5, 4), 1)
    data = (jax.tree.map(jnp.asarray, DATA),) * 2
    for k, seed in enumerate((2, 5)):

        def plain(model, rows):
            return _Loss(None)(model, data, (rows, jnp.arange(5)))[0]

        loss, slope = jax.jit(jax.value_and_grad(plain))(_words(seed), jnp.asarray(order[k, 0]))
        assert found.loss[k].tolist() == pytest.approx([float(loss)], rel=1e-10)
        model = jax.tree.map(lambda a, g: a - 0.3 * g, _words(seed), slope)
        right = np.mean((_by_hand(model) > 0) == (DATA.labels > 0))
        assert float(found.validation[k, 0]) == pytest.approx(right)
        mine = np.asarray(found.last.network.W1)[k]
        np.testing.assert_allclose(mine, model.network.W1, rtol=1e-9, atol=1e-13)
