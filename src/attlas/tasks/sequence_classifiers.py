r"""Minibatch training of an ensemble of classifiers, with the epoch chosen on a validation split.

The protocol of section 1.6 of julistiono2024optimizing (loss summed over the batch, stop at a
training accuracy), but for one thing: the paper reports the best epoch *on the test set*.
Here the epoch is selected on the validation split; the paper's number is kept beside it. The
experiments of liu2021analyzing take the mean loss, an l1 penalty, and ten classes for images.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION, available_cores
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.losses.logistic import logistic
from attlas.training.epochs import epoch_orders


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


class _Loss(NamedTuple):
    penalty: Callable[[Any], Array] | None
    mean: bool

    def __call__(
        self, parameters: Any, static: Any, part: TokenSequences, key: PRNGKeyArray
    ) -> tuple[Array, Array]:
        """Loss of a batch, and how many of its sequences are put in their class."""
        model = eqx.combine(parameters, static)
        labels = jnp.asarray(part.labels)
        keys = jax.random.split(key, labels.shape[0])
        logits = jax.vmap(model)(part.tokens, part.mask, keys)
        if logits.ndim == 2:
            classes = labels.astype(jnp.int32)
            each = optax.softmax_cross_entropy_with_integer_labels(logits, classes)
        else:
            each = logistic(logits * (2 * labels - 1))
        total = jnp.mean(each) if self.mean else jnp.sum(each)
        total = total if self.penalty is None else total + self.penalty(model)
        return total, jnp.sum(_is_right(logits, labels))


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
    penalty: Callable[[Any], Array] | None = None,
    mean: bool = False,
    width: int | None = None,
) -> Trained:
    r"""Train e classifiers by minibatches, one scan an epoch.

    The loss of a logit is logistic, that of several their cross-entropy, summed over the batch.
    A member stops when its accuracy over an epoch reaches `stop_accuracy`.

    Args:
        models: stacked models (leading axis e on every array); called as model(tokens, mask, key).
        optimizer: optax transformation on all parameters.
        sets: training, validation and test sequences.
        keys: e random keys, for the order of the batches and for dropout.
        batch: sequences a batch.
        epochs: most epochs.
        stop_accuracy: training accuracy at which a member stops; above 1 none does.
        chunk: sequences evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.
        penalty: of a model, added to the loss of each batch; `l1_penalty` for one.
        mean: take the mean over the batch in place of the sum.
        width: members a program runs at once, a divisor of e; all when None. Convolutions want 1.

    Returns:
        Models, history and the two ways of selecting. Unusable settings raise a `UserError`.

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
    count = int(keys.shape[0])
    width = count if width is None else width
    _refuse_unusable(sets, batch, epochs, count, width)
    parameters, static = eqx.partition(models, eqx.is_inexact_array)
    epoch = partial(_epoch, static, optimizer, _Loss(penalty, mean), chunk, stop_accuracy)
    options = CHEAP_COMPILATION if quick_compile else None
    run = jax.jit(jax.vmap(epoch, in_axes=(0, 0, 0, None, None)), compiler_options=options)
    state = _fresh_state(parameters, optimizer, count, sets)
    return _judged(
        *_run_epochs(run, state, keys, sets, batch, epochs, width), static, stop_accuracy
    )


def _run_epochs(
    run: Any, state: _State, keys: Array, sets: Sets, batch: int, epochs: int, width: int
) -> tuple[_State, History]:
    """Epoch by epoch, parts of the members side by side."""
    count = keys.shape[0]
    cuts = [slice(first, first + width) for first in range(0, count, width)]
    parts = [(jax.tree.map(lambda a, c=cut: a[c], state), keys[cut]) for cut in cuts]
    rows, orders = [], epoch_orders(keys, sets.train.labels.shape[0], batch)
    sets = jax.tree.map(jnp.asarray, sets)
    with ThreadPoolExecutor(available_cores()) as pool:
        for number in range(epochs):
            order, now = next(orders), np.uint32(number)
            if not rows and len(cuts) > 1:
                # Compiled here: settings made by a context manager hold for one thread alone.
                run = run.lower(*_inputs(parts[0], order[cuts[0]], now), sets).compile()
            if len(cuts) == 1:
                found = [run(*_inputs(parts[0], order, now), sets)]
            else:
                given = [_inputs(p, order[c], now) for p, c in zip(parts, cuts, strict=True)]
                found = list(pool.map(partial(_finished, run, sets), given))
            parts = [(new, own) for (new, _), (_, own) in zip(found, parts, strict=True)]
            rows.append(np.concatenate([jax.device_get(row) for _, row in found]))
            if all(np.all(part.stopped) for part, _ in parts):
                break
    state = jax.tree.map(lambda *own: jnp.concatenate(own), *(part for part, _ in parts))
    return state, History(*np.transpose(np.array(rows), (2, 1, 0)))


def _finished(run: Any, sets: Sets, inputs: tuple[Any, ...]) -> Any:
    return jax.block_until_ready(run(*inputs, sets))


def _inputs(part: tuple[_State, Array], order: np.ndarray, number: np.uint32) -> tuple[Any, ...]:
    state, keys = part
    return state, order, keys, number


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


def _judged(state: _State, history: History, static: Any, stop_accuracy: float) -> Trained:
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
    """Share of sequences that are put in their class, without dropout.

    A single logit decides by its sign, several by the largest of them.

    Args:
        model: called as model(tokens, mask).
        data: sequences and labels.
        chunk: sequences evaluated at once.

    Returns:
        Accuracy in [0, 1]; a single logit that is not a number counts as wrong.

    Examples:
        >>> data = TokenSequences(jnp.zeros((2, 1, 1)), jnp.ones((2, 1), bool), jnp.array([0.0, 1]))
        >>> float(accuracy(lambda tokens, mask: jnp.sum(tokens) + 1, data))
        0.5
    """
    return jnp.mean(_right(model, data, chunk))


def _right(model: Callable[..., Array], data: TokenSequences, chunk: int) -> Float[Array, " n"]:
    """One where the class is right, else zero; one copy of the model is compiled."""
    count = data.labels.shape[0]
    width = min(chunk, count)
    fill = -count % width

    def chunked(array: Array | np.ndarray) -> Array:
        padded = jnp.concatenate([array, jnp.repeat(array[:1], fill, axis=0)])
        return padded.reshape(-1, width, *array.shape[1:])

    arrays = (chunked(data.tokens), chunked(data.mask))
    logits = jax.lax.map(lambda part: jax.vmap(model)(*part), arrays)
    logits = logits.reshape(-1, *logits.shape[2:])[:count]
    return _is_right(logits, jnp.asarray(data.labels)).astype(logits.dtype)


def _is_right(logits: Array, labels: Array) -> Bool[Array, " n"]:
    if logits.ndim == 2:
        return jnp.argmax(logits, axis=1).astype(labels.dtype) == labels
    return jnp.where(labels > 0.5, logits > 0, logits < 0)


def _epoch(
    static: Any,
    optimizer: optax.GradientTransformation,
    batch_loss: _Loss,
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
        (loss, hits), slope = jax.value_and_grad(batch_loss, has_aux=True)(
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
    shown = jnp.mean(losses) if batch_loss.mean else jnp.sum(losses) / (steps * batch)
    row = jnp.stack([shown, trained, held, tested])
    row = jnp.where(state.stopped, jnp.nan, row)
    better = ~state.stopped & (held > state.best.astype(held.dtype))
    selected = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved[0], state.selected)
    best = jnp.where(better, held.astype(state.best.dtype), state.best)
    stopped = state.stopped | (trained >= stop_accuracy) | ~_is_finite(moved[0])
    return _State(moved[0], moved[1], selected, best, stopped), row


def _is_finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


_all_finite = jax.jit(jax.vmap(_is_finite))


def _refuse_unusable(sets: Sets, batch: int, epochs: int, count: int, width: int) -> None:
    for name, data in sets._asdict().items():
        if data.labels.shape[0] == 0:
            raise UserError(f"the {name} set is empty: give at least one sequence")
    size = sets.train.labels.shape[0]
    if not 1 <= batch <= size:
        raise UserError(f"batch = {batch} does not fit {size} sequences: choose 1 to {size}")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} trains nothing: choose at least 1")
    if width < 1 or count % width:
        raise UserError(f"width = {width} does not divide {count} members: choose a divisor")
