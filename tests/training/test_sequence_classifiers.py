import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.optim.mirror_descent import mirror_descent
from attlas.training.sequence_classifiers import (
    Sets,
    accuracy,
    held_out_accuracies,
    train_classifiers,
)
from attlas.training.trajectory import Trajectory


class Linear(eqx.Module):
    """Logit w' x of a single continuous token; no randomness, so that steps can be checked."""

    w: jax.Array

    def __call__(self, tokens, mask, key=None):
        return tokens[0] @ self.w


def _data(count, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(count, 1, 3))
    labels = (tokens[:, 0, 0] + 0.3 * rng.normal(size=count) > 0).astype(float)
    return TokenSequences(tokens, np.ones((count, 1), bool), labels)


SETS = Sets(_data(32, 0), _data(20, 1), _data(24, 2))
KEYS = jax.random.split(jax.random.key(0), 2)


def _start():
    return Linear(jnp.array([[0.1, -0.2, 0.3], [-0.3, 0.2, 0.1]]))


def test_full_batch_training_is_mirror_descent():
    found = train_classifiers(_start(), mirror_descent(0.01, 3.0), SETS, KEYS, 32, 5)
    X, y = SETS.train.tokens[:, 0], 2 * SETS.train.labels - 1
    for member in range(2):
        w = np.asarray(_start().w[member])
        for epoch in range(5):
            loss = np.mean(np.log1p(np.exp(-y * (X @ w))))
            assert np.isclose(found.loss[member, epoch], loss, rtol=1e-12)
            assert found.train[member, epoch] == np.mean(y * (X @ w) > 0)
            gradient = -(y / (1 + np.exp(y * (X @ w)))) @ X
            u = np.sign(w) * w**2 - 0.01 * gradient
            w = np.sign(u) * np.sqrt(np.abs(u))
        # The order of the 32 summands differs; the root magnifies rounding of u near zero.
        assert np.allclose(found.last.w[member], w, rtol=1e-9)
        right = np.mean((SETS.test.tokens[:, 0] @ w > 0) == (SETS.test.labels > 0))
        assert np.isclose(held_out_accuracies(found).last[member], right)


def test_epoch_is_selected_on_validation_alone():
    found = train_classifiers(_start(), optax.sgd(0.02), SETS, KEYS, 8, 12, stop_accuracy=2.0)
    tested = held_out_accuracies(found)
    assert found.test.shape == (2, 12)
    for member in range(2):
        first_best = int(np.argmax(found.validation[member]))
        assert found.selected_at[member] == first_best
        assert tested.selected[member] == found.test[member, first_best]
        w = np.asarray(found.selected.w[member])
        right = np.mean((SETS.validation.tokens[:, 0] @ w > 0) == (SETS.validation.labels > 0))
        assert np.isclose(right, found.validation[member].max())
    assert np.all(tested.best >= tested.selected)
    assert set(found.result) == {Result.MAX_STEPS.value}


def test_members_stop_on_their_own():
    start = Linear(jnp.stack([jnp.array([5.0, 0, 0]), jnp.array([-5.0, 0, 0])]))
    found = train_classifiers(start, optax.sgd(0.001), SETS, KEYS, 8, 4, stop_accuracy=0.8)
    assert found.stopped_at.tolist() == [4, 16]
    assert found.result.tolist() == [Result.CONVERGED.value, Result.MAX_STEPS.value]
    assert np.isnan(found.test[0, 1:]).all()
    again = train_classifiers(start, optax.sgd(0.001), SETS, KEYS, 8, 1, stop_accuracy=0.8)
    assert np.array_equal(again.last.w[0], found.last.w[0])


def test_divergence_is_a_result_code():
    found = train_classifiers(_start(), optax.sgd(jnp.inf), SETS, KEYS, 8, 3)
    assert set(found.result) == {Result.NOT_FINITE.value}
    assert found.stopped_at.tolist() == [4, 4]


def test_unusable_input_is_refused():
    empty = TokenSequences(np.zeros((0, 1, 3)), np.zeros((0, 1), bool), np.zeros(0))
    with pytest.raises(UserError, match="validation set is empty"):
        train_classifiers(_start(), optax.sgd(1.0), SETS._replace(validation=empty), KEYS, 8, 3)
    with pytest.raises(UserError, match="batch = 33 does not fit 32"):
        train_classifiers(_start(), optax.sgd(1.0), SETS, KEYS, 33, 3)
    with pytest.raises(UserError, match="epochs = 0"):
        train_classifiers(_start(), optax.sgd(1.0), SETS, KEYS, 8, 0)


class Classes(eqx.Module):
    """Three logits W x of a single continuous token."""

    W: jax.Array

    def __call__(self, tokens, mask, key=None):
        return tokens[0] @ self.W


@pytest.mark.parametrize("at_once", [None, 4])
def test_several_logits_mean_loss_and_penalty_one_member_at_a_time(at_once):
    rng = np.random.default_rng(5)
    X, start = rng.normal(size=(24, 1, 3)), rng.normal(size=(2, 3, 3))
    data = TokenSequences(X, np.ones((24, 1), bool), np.argmax(X[:, 0], axis=1).astype(float))
    found = train_classifiers(
        Classes(jnp.asarray(start)),
        optax.sgd(0.5),
        Sets(data, data, data),
        KEYS,
        24,
        3,
        stop_accuracy=2.0,
        penalty=lambda model: 0.01 * jnp.sum(jnp.abs(model.W)),
        mean=True,
        width=1,
        at_once=at_once,
    )
    for member in range(2):
        W = start[member]
        for epoch in range(3):
            logits = X[:, 0] @ W
            share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            pick = np.arange(24), data.labels.astype(int)
            loss = -np.mean(np.log(share[pick])) + 0.01 * np.abs(W).sum()
            # Sums of 24 numbers of size one in another order, three times.
            assert np.isclose(found.loss[member, epoch], loss, rtol=1e-13)
            share[pick] -= 1
            W = W - 0.5 * (X[:, 0].T @ share / 24 + 0.01 * np.sign(W))
            right = np.mean(np.argmax(X[:, 0] @ W, axis=1) == data.labels)
            assert np.isclose(found.test[member, epoch], right, rtol=1e-15)
        assert np.allclose(found.last.W[member], W, rtol=1e-13)


class Dropped(eqx.Module):
    """A linear readout of inputs with noise."""

    w: jax.Array

    def __call__(self, tokens, mask, key=None):
        noise = 0.0 if key is None else jax.random.normal(key, tokens[0].shape)
        return (tokens[0] + noise) @ self.w


def test_parts_of_a_batch_have_the_random_keys_of_the_whole():
    losses = [
        train_classifiers(
            Dropped(_start().w), optax.sgd(0.1), SETS, KEYS, 8, 2, stop_accuracy=2.0, at_once=size
        ).loss
        for size in (None, 2)
    ]
    # Eight numbers summed in another order.
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-13)


def test_a_width_that_does_not_divide_is_refused():
    with pytest.raises(UserError, match="at_once = 3 does not divide batch = 8"):
        train_classifiers(_start(), optax.sgd(0.1), SETS, KEYS, 8, 1, at_once=3)
    with pytest.raises(UserError, match="width = 3 does not divide 2 members"):
        train_classifiers(_start(), optax.sgd(0.1), SETS, KEYS, 8, 1, width=3)


@pytest.mark.parametrize("at_once", [None, 2])
def test_a_summed_loss_has_its_penalty_once_and_is_reported_per_sequence(at_once):
    found = train_classifiers(
        _start(), optax.sgd(0.01), SETS, KEYS, 32, 2, stop_accuracy=2.0, at_once=at_once,
        penalty=lambda model: 0.7 * jnp.sum(model.w**2),
    )  # fmt: skip
    X, y = SETS.train.tokens[:, 0], 2 * SETS.train.labels - 1
    for member in range(2):
        w = np.asarray(_start().w[member])
        for epoch in range(2):
            loss = np.sum(np.log1p(np.exp(-y * (X @ w)))) + 0.7 * np.sum(w**2)
            assert np.isclose(found.loss[member, epoch], loss / 32, rtol=1e-12)
            w = w - 0.01 * (-(y / (1 + np.exp(y * (X @ w)))) @ X + 1.4 * w)
        assert np.allclose(found.last.w[member], w, rtol=1e-12)


def test_accuracies_at_the_selected_the_last_and_the_best_epoch():
    test = np.array([[0.2, 0.9, np.nan], [0.5, 0.1, 0.3]])
    path = Trajectory(
        np.array([4, 8, 12]), None, None, selected_at=np.array([0, 1]), observed={"test": test}
    )
    found = held_out_accuracies(path)
    assert [a.tolist() for a in found] == [[0.2, 0.1], [0.9, 0.3], [0.9, 0.5]]


def test_a_logit_of_zero_or_no_number_is_wrong_whatever_the_label_in_chunks_too():
    logits = np.array([0.0, 0.0, np.nan, 2.0, -2.0, 0.1, -0.1])
    labels = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    data = TokenSequences(logits[:, None, None], np.ones((7, 1), bool), labels)
    for chunk in (3, 7, 500):
        found = accuracy(lambda tokens, mask: jnp.sum(tokens), data, chunk)
        assert np.isclose(found, 2 / 7, rtol=1e-15)
