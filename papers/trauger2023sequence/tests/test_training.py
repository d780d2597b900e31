import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.checkpoint import checkpointed
from attlas.core.errors import UserError
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
from attlas.training.fit import fit
from trauger2023sequence.library.models.majority_attention import (
    make_majority_attention,
    total_absolute_weight,
)
from trauger2023sequence.library.sparse_majority.loss import MajorityLoss
from trauger2023sequence.library.sparse_majority.training import (
    RELEASED,
    epoch_order,
    train_majority,
)

EPS = float(np.finfo(float).eps)
D, T, N, EPOCHS = 4, 3, 5, 6
KEYS = jax.random.split(jax.random.key(5), 2)
DESIGN = MajorityDesign(train=N, validation=7, indices=1, dimension=D)
DATA = make_sparse_majorities(KEYS, T, DESIGN, "float64")
MODELS = jax.tree.map(
    lambda *parts: jnp.stack(parts),
    *[make_majority_attention(key, D, 1, 2, "float64") for key in KEYS],
)
SETTINGS = RELEASED._replace(batch=2, rate=0.3, decay=0.8, floor=0.2, evaluation=3)


@jax.jit
def slope_of(model, X, signs):
    """Risk, hits and gradient of the plain model on a batch, by the released loss."""

    def risk(model):
        logits = jax.vmap(model)(X)
        hits = jnp.argmax(logits, axis=1) == jnp.argmax(signs, axis=1)
        return jnp.mean(jax.nn.softplus(-signs * logits)), hits

    return jax.value_and_grad(risk, has_aux=True)(model)


def plain_training(member):
    """Keras' loop in NumPy over the plain model: rows of history, and the epoch of least loss."""
    data, key = jax.tree.map(lambda a: a[member], DATA), KEYS[member]
    model = jax.tree.map(lambda a: a[member], MODELS)
    speed, rate, rows, models = jax.tree.map(jnp.zeros_like, model), SETTINGS.rate, [], []
    sets = [(data.bits, data.labels), (data.validation_bits, data.validation_labels)]
    X, X2 = (jax.vmap(data.embedding)(bits) for bits, _ in sets)
    signs, signs2 = (2.0 * np.eye(2)[np.asarray(labels)] - 1 for _, labels in sets)
    for epoch in range(EPOCHS):
        rate = max(SETTINGS.floor, SETTINGS.decay * rate)
        order = np.asarray(epoch_order(jax.random.fold_in(key, epoch), N))
        total = hits = 0.0
        for first in range(0, N, 2):
            pick = order[first : first + 2]
            (risk, right), slope = slope_of(model, X[pick], jnp.asarray(signs[pick]))
            total, hits = total + float(risk) * len(pick), hits + int(np.sum(right))
            speed = jax.tree.map(lambda v, g, rate=rate: 0.9 * v - rate * g, speed, slope)
            model = jax.tree.map(jnp.add, model, speed)
        (held, right), _ = slope_of(model, X2, jnp.asarray(signs2))
        weight = sum(float(np.abs(a).sum()) for a in jax.tree.leaves(model))
        rows.append([total / N, hits / N, float(held), float(np.asarray(right).mean()), weight])
        models.append(model)
        if hits == N:
            break
    return np.array(rows), models


@pytest.mark.thorough
def test_the_kernel_is_fit_with_momentum_where_the_rate_stays():
    still = SETTINGS._replace(batch=N, decay=1.0, floor=0.0, rate=0.1, stop_accuracy=2.0)
    found = train_majority(MODELS, DATA, KEYS, EPOCHS, still, chunk=EPOCHS)
    for member in range(2):
        model, data = (jax.tree.map(lambda a, i=member: a[i], tree) for tree in (MODELS, DATA))
        tokens = jax.vmap(data.embedding)(data.bits)
        signs = 2 * jax.nn.one_hot(data.labels, 2, dtype=tokens.dtype) - 1
        folds = [jax.random.fold_in(KEYS[member], epoch) for epoch in range(EPOCHS)]
        plain = fit(
            lambda model, given, rows: slope_of(model, given[0][rows], given[1][rows])[0][0],
            optax.sgd(0.1, momentum=0.9),
            model,
            (tokens, signs),
            record_at=range(1, EPOCHS + 1),
            batches=jnp.stack([epoch_order(key, N) for key in folds]),
        )
        # Per step a few hundred roundings; momentum of 0.9 adds up ten steps.
        room = EPOCHS * 10 * 500 * EPS
        assert np.allclose(found.history[member, :, 0], plain.loss, rtol=0, atol=room)
        own = jax.tree.map(lambda a, i=member: a[i], found.state.model)
        for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(plain.last), strict=True):
            assert np.allclose(a, b, rtol=0, atol=room)


@pytest.fixture(scope="module")
def trained():
    return train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=EPOCHS)


@pytest.mark.thorough
def test_history_and_checkpoint_are_those_of_the_released_loop_on_the_plain_model(trained):
    for member in range(2):
        rows, models = plain_training(member)
        # 18 steps at a rate of 0.3 or less on sums of a few dozen terms.
        close = {"rtol": 1e4 * EPS, "atol": 1e4 * EPS}
        np.testing.assert_allclose(trained.history[member, : len(rows)], rows, **close)
        assert np.all(np.isnan(trained.history[member, len(rows) :]))
        assert int(trained.state.epoch[member]) == len(rows)
        assert int(trained.state.steps[member]) == 3 * len(rows)
        best = int(np.argmin(rows[:, 2]))
        assert int(trained.state.selected_epoch[member]) == best + 1
        kept = jax.tree.map(lambda a, m=member: a[m], trained.state.selected)
        for mine, theirs in zip(jax.tree.leaves(kept), jax.tree.leaves(models[best]), strict=True):
            np.testing.assert_allclose(mine, theirs, **close)
        np.testing.assert_allclose(trained.selected[member, 2:], rows[best, 2:], **close)


@pytest.mark.thorough
def test_training_resumes_where_it_was_cut(trained):
    first = train_majority(MODELS, DATA, KEYS, 2, SETTINGS, chunk=EPOCHS)
    rest = train_majority(first.state, DATA, KEYS, EPOCHS - 2, SETTINGS, chunk=EPOCHS)
    both = np.concatenate([first.history, rest.history], axis=1)
    np.testing.assert_array_equal(both, trained.history[:, : both.shape[1]])
    for mine, theirs in zip(
        jax.tree.leaves(rest.state), jax.tree.leaves(trained.state), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.thorough
def test_what_is_not_validated_trains_alike_and_is_not_selected(trained):
    """The first epoch, every second one after it, and the one at whose end a member stops."""
    found = train_majority(
        MODELS, DATA, KEYS, EPOCHS, SETTINGS._replace(validate_every=2), chunk=EPOCHS
    )
    np.testing.assert_array_equal(found.state.epoch, trained.state.epoch)
    for member, epochs in enumerate(np.asarray(trained.state.epoch)):
        due = np.arange(epochs) % 2 == 0
        due[-1] |= bool(trained.state.stopped[member])
        every, some = (run.history[member, :epochs] for run in (trained, found))
        np.testing.assert_array_equal(some[:, [0, 1, 4]], every[:, [0, 1, 4]])
        np.testing.assert_array_equal(some[due], every[due])
        assert np.all(np.isnan(some[~due, 2:4]))
        least = int(np.argmin(np.where(due, every[:, 2], np.inf)))
        assert int(found.state.selected_epoch[member]) == least + 1


@pytest.mark.thorough
def test_members_stop_at_the_accuracy_each_for_itself():
    settings = SETTINGS._replace(stop_accuracy=0.6)
    found = train_majority(MODELS, DATA, KEYS, EPOCHS, settings, chunk=EPOCHS)
    for member in range(2):
        epochs = int(found.state.epoch[member])
        accuracy = found.history[member, :epochs, 1]
        assert np.all(accuracy[:-1] < 0.6)
        assert bool(found.state.stopped[member]) == (accuracy[-1] >= 0.6)


@pytest.mark.thorough
def test_adam_and_softmax_learn_the_bit():
    settings = SETTINGS._replace(optimizer="adam", loss=MajorityLoss.SOFTMAX, rate=0.1, floor=0.0)
    found = train_majority(MODELS, DATA, KEYS, 3, settings, chunk=EPOCHS)
    model = jax.tree.map(lambda a: a[0], found.state.selected)
    np.testing.assert_allclose(found.selected[0, 4], total_absolute_weight(model), rtol=1e3 * EPS)
    data = jax.tree.map(lambda a: a[0], DATA)
    logits = jax.vmap(model)(jax.vmap(data.embedding)(data.bits))
    chosen = jax.nn.log_softmax(logits)[np.arange(N), data.labels]
    np.testing.assert_allclose(found.selected[0, 0], -jnp.mean(chosen), rtol=1e4 * EPS)
    np.testing.assert_allclose(found.loss_gap(), found.selected[:, 2] - found.selected[:, 0])
    np.testing.assert_allclose(found.accuracy_gap(), found.selected[:, 1] - found.selected[:, 3])


@pytest.mark.parametrize(
    ("keys", "epochs", "change", "said"),
    [
        (KEYS[:1], 1, {}, "2 models, 2 data sets and 1 keys"),
        (KEYS, 0, {}, "at least 1"),
        (KEYS, 1, {"decay": 1.5}, "decay of at most 1"),
    ],
)
def test_bad_settings_are_refused(keys, epochs, change, said):
    with pytest.raises(UserError, match=said):
        train_majority(MODELS, DATA, keys, epochs, SETTINGS._replace(**change))


class Kept(dict):
    """States by stage, as a keeper of checkpoints."""

    def read(self, stage):
        return self.get(stage)

    def write(self, stage, arrays):
        self[stage] = dict(arrays)
        if int(arrays["made"]) == 3:
            raise KeyboardInterrupt


def test_a_training_stopped_after_three_epochs_goes_on_to_the_same_bits():
    expected = train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=EPOCHS)
    kept = Kept()
    with pytest.raises(KeyboardInterrupt), checkpointed(kept, 0.0):
        train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=EPOCHS)
    with checkpointed(kept, 0.0) as second:
        found = train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=EPOCHS)
    assert (second.resumed, second.made) == (3, EPOCHS - 3)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
