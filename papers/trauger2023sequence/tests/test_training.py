from contextlib import nullcontext
from functools import partial

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
from trauger2023sequence.library.sparse_majority import training
from trauger2023sequence.library.sparse_majority.loss import MajorityLoss
from trauger2023sequence.library.sparse_majority.table import majority_table
from trauger2023sequence.library.sparse_majority.training import (
    RELEASED,
    _batches,
    _evaluate,
    _moved,
    _start_majority,
    epoch_order,
    train_majority,
)

EPS = float(np.finfo(float).eps)
D, T, N, EPOCHS, CHUNK = 4, 3, 5, 6, 4
KEYS = jax.random.split(jax.random.key(5), 2)
DESIGN = MajorityDesign(train=N, validation=7, indices=1, dimension=D)
DATA = make_sparse_majorities(KEYS, T, DESIGN, "float64")
MODELS = jax.tree.map(
    lambda *parts: jnp.stack(parts),
    *[make_majority_attention(key, D, 1, 2, "float64") for key in KEYS],
)
SETTINGS = RELEASED._replace(batch=2, rate=0.3, decay=0.8, floor=0.2, evaluation=3)


ADAM = SETTINGS._replace(
    optimizer="adam",
    loss=MajorityLoss.SOFTMAX,
    rate=0.05,
    floor=0.01,
    stop_accuracy=2.0,
    validate_every=2,
)


@partial(jax.jit, static_argnames="softmax")
def slope_of(model, X, signs, softmax=False):
    """Risk, hits and gradient of the plain model on a batch."""

    def risk(model):
        logits = jax.vmap(model)(X)
        hits = jnp.argmax(logits, axis=1) == jnp.argmax(signs, axis=1)
        if softmax:
            return -jnp.mean(jnp.sum((signs + 1) / 2 * jax.nn.log_softmax(logits), axis=1)), hits
        return jnp.mean(jax.nn.softplus(-signs * logits)), hits

    return jax.value_and_grad(risk, has_aux=True)(model)


def keras_step(model, moments, slope, rate, step, settings):
    """The formulas of Keras' SGD and Adam, leaf by leaf in NumPy."""
    for k, g in enumerate(slope):
        if settings.optimizer == "sgd":
            moments[k] = [0.9 * moments[k][0] - rate * g]
            model[k] = model[k] + moments[k][0]
            continue
        m, v = moments[k]
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        moments[k] = [m, v]
        corrected = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        model[k] = model[k] - corrected * m / (np.sqrt(v) + 1e-7)


def plain_training(member, settings, epochs):
    """Keras' loop over the plain model: rows of history, and the numbers at the least loss."""
    data, key = jax.tree.map(lambda a: a[member], DATA), KEYS[member]
    leaves, form = jax.tree.flatten(jax.tree.map(lambda a: np.asarray(a[member]), MODELS))
    moments = [[np.zeros_like(a)] * 2 for a in leaves]
    softmax = settings.loss == MajorityLoss.SOFTMAX
    sets = [(data.bits, data.labels), (data.validation_bits, data.validation_labels)]
    X, X2 = (np.asarray(jax.vmap(data.embedding)(bits)) for bits, _ in sets)
    signs, signs2 = (2.0 * np.eye(2)[np.asarray(labels)] - 1 for _, labels in sets)

    def measured(X, signs):
        (risk, right), slope = slope_of(jax.tree.unflatten(form, leaves), X, signs, softmax)
        return (
            float(risk),
            float(np.asarray(right).mean()),
            [np.asarray(a) for a in jax.tree.leaves(slope)],
        )

    rate, rows, best, step = settings.rate, [], (np.inf, 0, None, None), 0
    for epoch in range(epochs):
        rate = max(settings.floor, settings.decay * rate)
        order = np.asarray(epoch_order(jax.random.fold_in(key, epoch), N))
        total = hits = 0.0
        for first in range(0, N, settings.batch):
            pick, step = order[first : first + settings.batch], step + 1
            risk, right, slope = measured(X[pick], signs[pick])
            total, hits = total + risk * len(pick) / N, hits + right * len(pick) / N
            keras_step(leaves, moments, slope, rate, step, settings)
        stops = hits >= settings.stop_accuracy - 1e-9
        due = stops or epoch % settings.validate_every == 0
        held = measured(X2, signs2)[:2] if due else (np.nan, np.nan)
        rows.append([total, hits, *held, sum(float(np.abs(a).sum()) for a in leaves)])
        if held[0] < best[0]:
            selected = [*measured(X, signs)[:2], *rows[-1][2:]]
            best = held[0], epoch + 1, list(leaves), selected
        if stops:
            break
    return np.array(rows), best, leaves, (rate, step)


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
    return train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=CHUNK)


def assert_is_plain_training(found, settings, epochs):
    # at most 18 steps at a rate of 0.3 or less on sums of a few dozen terms
    close = {"rtol": 1e4 * EPS, "atol": 1e4 * EPS}
    for member in range(2):
        rows, (least, epoch, kept, selected), last, (rate, steps) = plain_training(
            member, settings, epochs
        )
        np.testing.assert_allclose(found.history[member, : len(rows)], rows, **close)
        assert np.all(np.isnan(found.history[member, len(rows) :]))
        state = jax.tree.map(lambda a, m=member: np.asarray(a)[m], found.state)
        assert (state.epoch, state.steps, state.selected_epoch) == (len(rows), steps, epoch)
        np.testing.assert_allclose([state.least, state.rate], [least, rate], **close)
        for mine, theirs in zip(jax.tree.leaves(state.selected), kept, strict=True):
            np.testing.assert_allclose(mine, theirs, **close)
        for mine, theirs in zip(jax.tree.leaves(state.model), last, strict=True):
            np.testing.assert_allclose(mine, theirs, **close)
        np.testing.assert_allclose(found.selected[member], selected, **close)
        assert bool(state.stopped) == (rows[-1, 1] > settings.stop_accuracy - 1e-9)


@pytest.mark.thorough
def test_history_and_checkpoint_are_those_of_the_released_loop_on_the_plain_model(trained):
    assert_is_plain_training(trained, SETTINGS, EPOCHS)


@pytest.mark.thorough
def test_adam_on_the_softmax_loss_validated_every_second_epoch_is_the_plain_loop():
    found = train_majority(MODELS, DATA, KEYS, 3, ADAM, chunk=2)
    assert found.history.shape == (2, 3, 5)
    assert_is_plain_training(found, ADAM, 3)


def test_a_member_whose_loss_is_not_finite_stops_alone(trained):
    start = _start_majority(MODELS, SETTINGS)
    assert start.rate.tolist() == [SETTINGS.rate] * 2
    diverging = start._replace(rate=start.rate.at[1].set(jnp.inf))
    found = train_majority(diverging, DATA, KEYS, EPOCHS, SETTINGS, chunk=CHUNK)
    assert int(found.state.epoch[1]) == 1
    assert bool(found.state.stopped[1])
    assert np.isfinite(found.history[1, 0, 1])  # an accuracy is a number whatever the logits are
    assert np.all(np.isnan(found.history[1, 1:]))
    np.testing.assert_array_equal(found.history[0], trained.history[0])
    assert int(trained.state.epoch[0]) > CHUNK
    stopped = start._replace(stopped=jnp.ones(2, bool))
    assert train_majority(stopped, DATA, KEYS, 3, SETTINGS).history.shape == (2, 0, 5)


def test_an_epoch_as_good_as_the_best_one_is_not_selected(trained):
    start = _start_majority(MODELS, SETTINGS)
    tied = start._replace(least=jnp.asarray(trained.history[:, 0, 2]))
    found = train_majority(tied, DATA, KEYS, 1, SETTINGS, chunk=CHUNK).state
    assert found.selected_epoch.tolist() == [0, 0]
    np.testing.assert_array_equal(found.least, tied.least)


@pytest.mark.parametrize(("on_cpu", "width"), [(True, 1), (False, 2)])
def test_members_run_together_but_for_a_cpu(on_cpu, width, monkeypatch):
    asked = []

    def in_chunks(part, batch, members):
        asked.append((members, batch[3].tolist()))
        return batch[0]._replace(stopped=jnp.ones(2, bool)), np.zeros((2, CHUNK, 5))

    monkeypatch.setattr(training, "on_cpu", lambda: on_cpu)
    monkeypatch.setattr(training, "in_chunks", in_chunks)
    monkeypatch.setattr(training, "_measure", lambda *given: np.zeros((2, 5)))
    assert train_majority(MODELS, DATA, KEYS, 3, SETTINGS, chunk=CHUNK).history.shape == (2, 3, 5)
    assert asked == [(width, [3, 3])]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_of_the_optimiser_is_that_of_keras(optimizer):
    draw, settings = np.random.default_rng(1), SETTINGS._replace(optimizer=optimizer)
    model, slopes = [draw.normal(size=(2, 3))], draw.normal(size=(3, 2, 3))
    slopes[:, 0, 0] = 1e-5  # the 1e-7 beside a root of 3e-7
    moments = [[np.zeros((2, 3))] * 2]
    mine = jnp.asarray(model[0])
    mine_moments = (jnp.zeros((2, 3)),) * (1 if optimizer == "sgd" else 2)
    for step, slope in enumerate(slopes, 1):
        rate = 0.3 / step
        mine, mine_moments = _moved(
            mine, mine_moments, jnp.asarray(slope), jnp.asarray(rate), jnp.asarray(step), settings
        )
        keras_step(model, moments, [slope], rate, step, settings)
        np.testing.assert_allclose(mine, model[0], rtol=1e-13)


@pytest.mark.parametrize(("evaluation", "on_cpu"), [(3, True), (4, True), (40, True), (3, False)])
def test_a_set_is_evaluated_in_parts_or_at_once(evaluation, on_cpu, monkeypatch):
    monkeypatch.setattr(training, "on_cpu", lambda: on_cpu)
    draw, data = np.random.default_rng(2), jax.tree.map(lambda a: a[0], DATA)
    bits = jnp.asarray(draw.integers(0, 2, (7, T)), jnp.int8)
    labels = jnp.asarray([1, 0, 0, 1, 1, 0, 1], data.labels.dtype)
    model = jax.tree.map(lambda a: 3 * a[0], MODELS)
    X = jax.vmap(data.embedding)(bits)
    risk, right = slope_of(model, X, jnp.asarray(2.0 * np.eye(2)[np.asarray(labels)] - 1))[0]
    table = majority_table(model, data.embedding)
    settings = SETTINGS._replace(evaluation=evaluation)
    found = _evaluate(table, bits, labels, settings)
    np.testing.assert_allclose(found, [risk, np.asarray(right).mean()], rtol=1e3 * EPS)


@pytest.mark.parametrize(("batch", "sizes"), [(2, [2, 2, 1]), (3, [3, 2]), (9, [5])])
def test_batches_are_the_order_of_the_epoch_and_the_last_is_smaller(batch, sizes):
    key, data = KEYS[1], jax.tree.map(lambda a: a[0], DATA)
    order, present = _batches(key, data, batch, jnp.float64)
    assert order.shape == present.shape == (len(sizes), sizes[0])
    assert np.sum(present, axis=1).tolist() == sizes
    np.testing.assert_array_equal(np.asarray(order)[present == 1], epoch_order(key, N))


def test_gaps_are_validation_loss_less_training_loss_and_the_reverse_for_accuracy(trained):
    found = trained._replace(selected=np.array([[1.0, 10.0, 100.0, 1e3, 1e4]] * 2))
    np.testing.assert_array_equal(found.loss_gap(), [99.0, 99.0])
    np.testing.assert_array_equal(found.accuracy_gap(), [-990.0, -990.0])


@pytest.mark.thorough
def test_training_resumes_where_it_was_cut(trained):
    first = train_majority(MODELS, DATA, KEYS, 2, SETTINGS, chunk=CHUNK)
    rest = train_majority(first.state, DATA, KEYS, EPOCHS - 2, SETTINGS, chunk=CHUNK)
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
    expected = train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=CHUNK)
    kept = Kept()
    with pytest.raises(KeyboardInterrupt), checkpointed(kept, 0.0):
        train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=CHUNK)
    with checkpointed(kept, 0.0) as second:
        found = train_majority(MODELS, DATA, KEYS, EPOCHS, SETTINGS, chunk=CHUNK)
    assert (second.resumed, second.made) == (3, EPOCHS - 3)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


@pytest.mark.parametrize(("growing", "spans"), [(True, [1, 2, 4, 4, 1]), (False, [4, 4, 4])])
def test_pieces_end_at_the_chunk_at_the_checkpoint_and_at_the_last_epoch(
    growing, spans, monkeypatch
):
    asked = []

    def in_chunks(part, batch, members):
        asked.append(batch[3].tolist())
        assert min(asked[-1]) > 0
        return batch[0], np.full((2, CHUNK, 5), float(len(asked)))

    monkeypatch.setattr(training, "in_chunks", in_chunks)
    monkeypatch.setattr(training, "_measure", lambda *given: np.zeros((2, 5)))
    with checkpointed(Kept(), 1e6) if growing else nullcontext():
        found = train_majority(MODELS, DATA, KEYS, 12, SETTINGS, chunk=CHUNK)
    assert asked == [[span, span] for span in spans]
    numbers = np.repeat(np.arange(1.0, len(spans) + 1), spans)
    np.testing.assert_array_equal(found.history, np.tile(numbers[None, :, None], (2, 1, 5)))
