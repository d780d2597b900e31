from itertools import islice

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.models.networks.translator import make_translator
from attlas.training.epochs import epoch_orders
from liu2021analyzing.library.data.packed_pairs import pack_batches
from liu2021analyzing.library.data.translation_pairs import SentencePairs, load_translation_pairs
from liu2021analyzing.library.training.translation import (
    _evaluated,
    _value_and_gradient,
    train_translator,
    translation_scores,
    warm_up_rate,
)


@pytest.fixture(scope="module")
def data():
    return load_translation_pairs(sizes=(12, 5), vocabulary=90, length=20, stand_in=True)


def _model(data):
    return make_translator(jax.random.key(0), data.vocabularies, 4, 1, 2, 6)


def _mean_loss(model, pairs, rows):
    """Sentence by sentence, without padding after the target; loss and accuracy."""
    total, right, pieces = 0.0, 0, 0
    logits = jax.jit(jax.vmap(lambda *a: model(*a)))(
        *(jnp.asarray(a[rows]) for a in (pairs.source, pairs.mask, pairs.target))
    )
    for row, out in zip(rows, np.asarray(logits), strict=True):
        end = int(pairs.target_mask[row].sum())
        for place in range(end - 1):
            asked = pairs.target[row, place + 1]
            share = np.exp(out[place]) / np.exp(out[place]).sum()
            total -= np.log(share[asked])
            right += int(np.argmax(out[place]) == asked)
            pieces += 1
    return total / pieces, right / pieces


@pytest.mark.thorough
def test_one_full_batch_step_descends_and_is_measured(data):
    model, rows = _model(data), np.arange(12)
    found = train_translator(
        model, optax.sgd(0.1), data.train, data.validation, jax.random.key(1), 12, 2, chunk=3
    )
    # About 150 logarithms of softmaxes over 90 logits of size one, summed in another order.
    room = 1e4 * np.finfo(float).eps
    assert abs(found.loss[0] - _mean_loss(model, data.train, rows)[0]) < room
    assert found.loss[1] < found.loss[0]
    held = _mean_loss(found.last, data.validation, np.arange(5))
    assert abs(found.validation[1] - held[0]) < room
    assert np.isclose(found.accuracy[1], held[1], rtol=1e-14)
    assert int(found.result) == Result.MAX_STEPS


@pytest.mark.thorough
def test_two_programs_for_full_and_less_full_batches_train_as_one(data):
    """Compiled quickly, all batches have the rows of the fullest."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(1, 8, (2, 60, 1)), rng.integers(1, 90, (60, 10))
    mask, there = np.arange(9) < source[0], np.arange(10) < source[1] + 1
    pairs = SentencePairs(np.where(mask, target[:, :9], 0), mask, np.where(there, target, 0), there)
    orders = np.concatenate([own[0] for own in islice(epoch_orders(KEY[None], 60, 12), 2)])
    rows = pack_batches(pairs, orders)
    full = rows[:, -(-4 * rows.shape[1] // 5), 0] >= 0
    assert full.any()
    assert not full.all()
    with jax.numpy_dtype_promotion("standard"):
        found = [
            train_translator(
                _model(data), optax.adam(0.01), pairs, pairs, KEY, 12, 2, quick_compile=quick
            )
            for quick in (False, True)
        ]
    room = 1e5 * np.finfo(float).eps  # ten steps of Adam
    assert np.allclose(found[0].loss, found[1].loss, rtol=0, atol=room)
    assert np.allclose(found[0].validation, found[1].validation, rtol=0, atol=room)


def test_warm_up_grows_linearly_and_then_falls_with_the_root():
    rate = warm_up_rate(16, 10, 2.0)
    rates = [float(rate(jnp.array(float(step)))) for step in (0, 4, 9, 39)]
    assert np.allclose(rates, [0.5 * 10**-1.5, 2.5 * 10**-1.5, 0.5 / 10**0.5, 0.5 / 40**0.5])


def test_unusable_settings_are_refused(data):
    for batch, epochs, said in ((13, 1, "batch = 13 of 12 pairs"), (4, 0, "epochs = 0")):
        with pytest.raises(UserError, match=said):
            train_translator(
                _model(data), optax.sgd(1.0), data.train, data.train, KEY, batch, epochs
            )
    none = SentencePairs(*(array[:0] for array in data.validation))
    with pytest.raises(UserError, match="0 to validate"):
        train_translator(_model(data), optax.sgd(1.0), data.train, none, KEY, 4, 1)
    with pytest.raises(UserError, match="warm_up = 0"):
        warm_up_rate(4, 0)


KEY = jax.random.key(2)


MODEL = make_translator(jax.random.key(0), (5, 6), 4, 1, 2, 6)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    lengths, ends = rng.integers(1, 5, 6), rng.integers(2, 5, 6)
    mask, target_mask = (np.arange(4) < each[:, None] for each in (lengths, ends))
    source, target = rng.integers(1, 5, (6, 4)), rng.integers(1, 6, (6, 4))
    return SentencePairs(source * mask, mask, target * target_mask, target_mask)


_logits = jax.jit(lambda *arrays: MODEL(*arrays))


def by_hand(pairs):
    """Piece by piece, from the logits alone."""
    losses, right = [], []
    for row, mask, target, counts in zip(*pairs, strict=True):
        logits = np.asarray(_logits(*map(jnp.asarray, (row, mask, target[:-1]))))
        for place in range(int(counts.sum()) - 1):
            asked = target[place + 1]
            losses.append(np.log(np.exp(logits[place]).sum()) - logits[place, asked])
            right.append(np.argmax(logits[place]) == asked)
    return np.mean(losses), np.mean(right)


def test_scores_are_means_over_the_pieces_that_count(pairs):
    loss, accuracy = translation_scores(MODEL, pairs)
    expected = by_hand(pairs)
    assert loss == pytest.approx(expected[0], rel=1e-12)
    assert accuracy == pytest.approx(expected[1], rel=1e-14)


def test_neither_chunks_nor_the_way_of_compiling_matter(pairs):
    whole = translation_scores(MODEL, pairs)
    assert translation_scores(MODEL, pairs, chunk=4) == pytest.approx(whole, rel=1e-14)
    assert translation_scores(MODEL, pairs, quick_compile=True) == pytest.approx(whole, rel=1e-12)


@pytest.mark.thorough
def test_pairs_that_fill_up_the_last_chunk_count_nothing(data):
    model = _model(data)
    found = _evaluated(3, model, (data.train, jax.tree.map(jnp.asarray, data.validation)))
    loss, accuracy = _mean_loss(model, data.validation, np.arange(5))
    np.testing.assert_allclose(found["validation"], loss, rtol=1e-11)
    np.testing.assert_allclose(found["accuracy"], accuracy, rtol=1e-13)


@pytest.mark.thorough
def test_a_batch_counts_every_piece_of_its_pairs(pairs):
    """Four of the six pairs, two in one row; the last row holds the pair of number zero alone."""
    chosen = [jnp.asarray(array[[3, 1, 5, 0]]) for array in pairs]
    expected, gradient = STEP(MODEL, *chosen)
    wide = SentencePairs(*(jnp.asarray(np.pad(array, ((0, 0), (0, 4)))) for array in pairs))
    program = eqx.filter_jit(_value_and_gradient)
    rows = [[3, -1], [1, -1], [5, -1], [-1, -1], [0, -1]]
    for numbers in (rows, [*rows[:2], [5, 0], [-1, -1], [-1, -1]]):
        value, slope = program(MODEL, (wide, wide), jnp.array(numbers))
        assert float(value) == pytest.approx(float(expected), rel=1e-12)
        for mine, theirs in zip(jax.tree.leaves(slope), jax.tree.leaves(gradient), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-13)


@pytest.mark.thorough
def test_epochs_are_the_stated_orders_and_steps(pairs):
    """Two epochs of three batches against gradient steps on padded pairs, one by one."""
    train = SentencePairs(*(np.concatenate([array, array[:1]]) for array in pairs))
    with jax.numpy_dtype_promotion("standard"):
        found = train_translator(
            MODEL, optax.sgd(0.2), train, pairs, KEY, 2, 2, chunk=4, quick_compile=True
        )
    model, losses, generator = MODEL, [], epoch_orders(KEY[None], 7, 2)
    for _ in range(2):
        own = []
        for rows in next(generator)[0]:
            value, slope = STEP(model, *(jnp.asarray(array[rows]) for array in train))
            model = jax.tree.map(lambda a, g: a - 0.2 * g, model, slope)
            own.append(float(value))
        losses.append(np.mean(own))
    np.testing.assert_allclose(found.loss, losses, rtol=1e-9)
    for mine, theirs in zip(jax.tree.leaves(found.last), jax.tree.leaves(model), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-11)
    scores = translation_scores(model, pairs)
    measured = [float(found.validation[-1]), float(found.accuracy[-1])]
    assert measured == pytest.approx(scores, rel=1e-9)


def _padded_loss(model, source, mask, target, there):
    logits = jax.vmap(lambda *arrays: model(*arrays))(source, mask, target[:, :-1])
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), target[:, 1:, None], axis=2)[..., 0]
    return -jnp.sum(jnp.where(there[:, 1:], chosen, 0)) / jnp.sum(there[:, 1:]).astype(float)


STEP = jax.jit(jax.value_and_grad(_padded_loss))
