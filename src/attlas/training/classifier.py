r"""Minibatch training of an ensemble of classifiers, with the epoch chosen on a validation split.

The protocol of section 1.6 of julistiono2024optimizing (loss summed over the batch, stop at a
training accuracy), but for one thing: the paper reports the best epoch *on the test set*.
Here the epoch is selected on the validation split; the paper's number is kept beside it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.losses.logistic import logistic


class Sets(NamedTuple):
    """Training, validation and test sequences."""

    train: TokenSequences
    validation: TokenSequences
    test: TokenSequences


class History(NamedTuple):
    """What was measured after each epoch, NaN after a member has stopped.

    Attributes:
        loss: mean training loss over the epoch's batches, each before its step.
        train: training accuracy over the same batches.
        validation: validation accuracy.
        test: test accuracy.
    """

    loss: Float[np.ndarray, "e s"]
    train: Float[np.ndarray, "e s"]
    validation: Float[np.ndarray, "e s"]
    test: Float[np.ndarray, "e s"]


class Trained(NamedTuple):
    """A trained ensemble of e members.

    Attributes:
        selected: models at the epoch of best validation accuracy, stacked.
        last: models after their last epoch, stacked.
        history: measurements of s epochs.
        epoch: the selected epoch of each member, from 0.
        epochs: epochs each member was trained.
        result: codes of `Result`: converged when the stopping accuracy was reached.
    """

    selected: Any
    last: Any
    history: History
    epoch: Int[np.ndarray, " e"]
    epochs: Int[np.ndarray, " e"]
    result: Int[np.ndarray, " e"]

    def test_at_selected(self) -> Float[np.ndarray, " e"]:
        """Test accuracy at the epoch of best validation accuracy: the honest number."""
        return self.history.test[np.arange(self.epoch.size), self.epoch]

    def test_at_last(self) -> Float[np.ndarray, " e"]:
        """Test accuracy after the last epoch."""
        return self.history.test[np.arange(self.epoch.size), self.epochs - 1]

    def test_at_best_test(self) -> Float[np.ndarray, " e"]:
        """Best test accuracy of any epoch: the paper's selection rule, optimistic."""
        return np.nanmax(self.history.test, axis=1)


class _State(NamedTuple):
    model: Any
    optimizer: Any
    selected: Any
    best: Array
    stopped: Array


def train_classifiers(
    models: Any,
    optimizer: optax.GradientTransformation,
    sets: Sets,
    keys: Key[Array, " e"],
    batch: int,
    epochs: int,
    stop_accuracy: float = 0.995,
    chunk: int = 500,
    quick_compile: bool = False,
) -> Trained:
    r"""Train e classifiers by minibatches of the summed logistic loss, one scan an epoch.

    An epoch visits a fresh permutation of the training set; what does not fill a batch waits for
    another epoch. A member stops when its accuracy over an epoch reaches `stop_accuracy`.

    Args:
        models: stacked models (leading axis e on every array); called as model(tokens, mask, key).
        optimizer: optax transformation on all parameters.
        sets: training, validation and test sequences.
        keys: e random keys, for the order of the batches and for dropout.
        batch: sequences a batch.
        epochs: most epochs.
        stop_accuracy: training accuracy at which a member stops.
        chunk: sequences evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        Models, history and the two ways of selecting. An empty set, a batch larger than the
        training set, or no epoch raises a `UserError`.

    Examples:
        >>> from attlas.models.encoder import make_encoder
        >>> tokens = np.tile(np.array([[0, 1], [2, 1]]), (8, 1))
        >>> data = TokenSequences(tokens, np.ones((16, 2), bool), np.tile([0.0, 1.0], 8))
        >>> make = lambda key: make_encoder(key, 3, 2, width=8, blocks=1, heads=1, hidden=4)
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> found = train_classifiers(jax.vmap(make)(keys), optax.sgd(0.1),
        ...                           Sets(data, data, data), keys, batch=4, epochs=20)
        >>> found.test_at_selected().tolist()
        [1.0, 1.0]
    """
    _refuse_unusable(sets, batch, epochs)
    parameters, static = eqx.partition(models, eqx.is_inexact_array)
    state = _fresh_state(parameters, optimizer, keys.shape[0], sets)
    epoch = partial(_epoch, static, optimizer, chunk, stop_accuracy)
    options = CHEAP_COMPILATION if quick_compile else None
    run = jax.jit(jax.vmap(epoch, in_axes=(0, 0, 0, None, None)), compiler_options=options)
    rows, orders = [], _orders(keys, sets.train.labels.shape[0], batch)
    sets = jax.tree.map(jnp.asarray, sets)
    for number in range(epochs):
        state, row = run(state, next(orders), keys, np.uint32(number), sets)
        rows.append(jax.device_get(row))
        if np.all(state.stopped):
            break
    history = History(*np.transpose(np.array(rows), (2, 1, 0)))
    return _judged(state, static, history, stop_accuracy)


def _fresh_state(
    parameters: Any, optimizer: optax.GradientTransformation, count: int, sets: Sets
) -> _State:
    return _State(
        parameters,
        jax.jit(jax.vmap(optimizer.init))(parameters),
        parameters,
        jnp.full(count, -1.0, sets.train.labels.dtype),
        jnp.zeros(count, bool),
    )


def _orders(keys: Key[Array, " e"], size: int, batch: int) -> Iterator[np.ndarray]:
    """For each epoch the members' batches of sequence numbers, [e, steps, batch]."""
    # Drawn on the host: sorting random bits would take a third of the compilation.
    seeds = np.asarray(jax.random.key_data(keys)).tolist()
    generators = [np.random.default_rng(seed) for seed in seeds]
    steps = size // batch
    while True:
        drawn = [g.permutation(size)[: steps * batch] for g in generators]
        yield np.array(drawn).reshape(len(seeds), steps, batch)


def _judged(state: _State, static: Any, history: History, stop_accuracy: float) -> Trained:
    finite = np.array(jax.device_get(_all_finite(state.model)))
    reached = np.nanmax(history.train, axis=1) >= stop_accuracy
    code = np.where(reached, Result.CONVERGED.value, Result.MAX_STEPS.value)
    return Trained(
        eqx.combine(state.selected, static),
        eqx.combine(state.model, static),
        history,
        np.nanargmax(history.validation, axis=1),
        np.sum(np.isfinite(history.test), axis=1),
        np.where(finite, code, Result.NOT_FINITE.value),
    )


def accuracy(
    model: Callable[..., Array], data: TokenSequences, chunk: int = 500
) -> Float[Array, ""]:
    """Share of sequences whose logit has the sign of their class, without dropout.

    Args:
        model: called as model(tokens, mask).
        data: sequences and labels.
        chunk: sequences evaluated at once.

    Returns:
        Accuracy in [0, 1]; a logit that is not a number counts as wrong.

    Examples:
        >>> data = TokenSequences(jnp.zeros((2, 1, 1)), jnp.ones((2, 1), bool), jnp.array([0.0, 1]))
        >>> float(accuracy(lambda tokens, mask: jnp.sum(tokens) + 1, data))
        0.5
    """
    return jnp.mean(_right(model, data, chunk))


def _right(model: Callable[..., Array], data: TokenSequences, chunk: int) -> Float[Array, " n"]:
    """One where the logit has the sign of its class, else zero; one copy of the model compiled."""
    count = data.labels.shape[0]
    width = min(chunk, count)
    fill = -count % width

    def chunked(array: Array | np.ndarray) -> Array:
        padded = jnp.concatenate([array, jnp.repeat(array[:1], fill, axis=0)])
        return padded.reshape(-1, width, *array.shape[1:])

    arrays = (chunked(data.tokens), chunked(data.mask))
    logits = jax.lax.map(lambda part: jax.vmap(model)(*part), arrays).reshape(-1)[:count]
    right = jnp.where(data.labels > 0.5, logits > 0, logits < 0)
    return right.astype(logits.dtype)


def _epoch(
    static: Any,
    optimizer: optax.GradientTransformation,
    chunk: int,
    stop_accuracy: float,
    state: _State,
    order: Int[Array, "steps batch"],
    key: PRNGKeyArray,
    number: Array | np.uint32,
    sets: Sets,
) -> tuple[_State, Float[Array, " measured"]]:
    dropout_key = jax.random.fold_in(key, number)
    steps, batch = order.shape

    def step(carry: tuple[Any, Any], now: tuple[Array, Array]) -> tuple[Any, tuple[Array, Array]]:
        parameters, optimizer_state = carry
        rows, step_key = now
        part = jax.tree.map(lambda a: a[rows], sets.train)
        (loss, hits), slope = jax.value_and_grad(_batch_loss, has_aux=True)(
            parameters, static, part, step_key
        )
        updates, optimizer_state = optimizer.update(slope, optimizer_state, parameters)
        return (optax.apply_updates(parameters, updates), optimizer_state), (loss, hits)

    (parameters, optimizer_state), (losses, hits) = jax.lax.scan(
        step, (state.model, state.optimizer), (order, jax.random.split(dropout_key, steps))
    )
    moved = jax.tree.map(
        lambda new, old: jnp.where(state.stopped, old, new),
        (parameters, optimizer_state),
        (state.model, state.optimizer),
    )
    model = eqx.combine(moved[0], static)
    trained = jnp.sum(hits).astype(losses.dtype) / (steps * batch)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), sets.validation, sets.test)
    right = _right(model, both, chunk)
    size = sets.validation.labels.shape[0]
    held, tested = jnp.mean(right[:size]), jnp.mean(right[size:])
    row = jnp.stack([jnp.sum(losses) / (steps * batch), trained, held, tested])
    row = jnp.where(state.stopped, jnp.nan, row)
    better = ~state.stopped & (held > state.best.astype(held.dtype))
    selected = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved[0], state.selected)
    best = jnp.where(better, held.astype(state.best.dtype), state.best)
    stopped = state.stopped | (trained >= stop_accuracy) | ~_is_finite(moved[0])
    return _State(moved[0], moved[1], selected, best, stopped), row


def _batch_loss(
    parameters: Any, static: Any, part: TokenSequences, key: PRNGKeyArray
) -> tuple[Array, Array]:
    model = eqx.combine(parameters, static)
    keys = jax.random.split(key, part.labels.shape[0])
    logits = jax.vmap(model)(part.tokens, part.mask, keys)
    margins = logits * (2 * part.labels - 1)
    return jnp.sum(logistic(margins)), jnp.sum(margins > 0)


def _is_finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


_all_finite = jax.jit(jax.vmap(_is_finite))


def _refuse_unusable(sets: Sets, batch: int, epochs: int) -> None:
    for name, data in sets._asdict().items():
        if data.labels.shape[0] == 0:
            raise UserError(f"the {name} set is empty: give at least one sequence")
    count = sets.train.labels.shape[0]
    if not 1 <= batch <= count:
        raise UserError(f"batch = {batch} does not fit {count} sequences: choose 1 to {count}")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} trains nothing: choose at least 1")
