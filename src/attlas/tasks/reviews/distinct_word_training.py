r"""Ensembles of word classifiers as one program, with the epoch chosen on a validation set.

The protocol of the IMDB experiments of liu2021analyzing: mean binary cross-entropy, an l1 penalty
where asked. Each batch is computed from its distinct words (`distinct_word_logits`); members run
through one compiled program, on a CPU one member a core, elsewhere all at once.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION, available_cores
from attlas.core.solution import Result
from attlas.data.distinct_words import DistinctWords
from attlas.losses.logistic import logistic
from attlas.models.distinct_word_logits import distinct_word_logits
from attlas.training.epochs import epoch_orders

_ROUND = 64
"""Rows of a table of distinct words are a multiple of this."""


class WordHistory(NamedTuple):
    """What was measured after each epoch.

    Attributes:
        loss: mean training loss with its penalty over the epoch's batches, each before its step.
        train: training accuracy over the same batches.
        validation: validation accuracy.
    """

    loss: Float[np.ndarray, "e s"]
    train: Float[np.ndarray, "e s"]
    validation: Float[np.ndarray, "e s"]


class TrainedWords(NamedTuple):
    """A trained ensemble of e members.

    Attributes:
        selected: models at the epoch of best validation accuracy, stacked.
        last: models after the last epoch, stacked.
        history: measurements of s epochs.
        epoch: the selected epoch of each member, from 0.
        result: codes of `Result`: all epochs done, or not finite.
    """

    selected: Any
    last: Any
    history: WordHistory
    epoch: Int[np.ndarray, " e"]
    result: Int[np.ndarray, " e"]


class _State(NamedTuple):
    model: Any
    optimizer: Any
    selected: Any
    best: Array


def train_word_classifiers(
    models: Any,
    optimizer: optax.GradientTransformation,
    train: DistinctWords,
    validation: DistinctWords,
    keys: Key[Array, " e"],
    batch: int,
    epochs: int,
    penalty: Callable[[Any], Array] | None = None,
    width: int | None = None,
    chunk: int = 250,
    quick_compile: bool = False,
) -> TrainedWords:
    r"""Train e word classifiers on the mean logistic loss; each trains as it would alone.

    Args:
        models: stacked `WordClassifier`s of a `TwoLayer` or a `SelfAttentionMLP`.
        optimizer: optax transformation on all parameters.
        train: training texts.
        validation: validation texts.
        keys: e random keys, for the order of the batches.
        batch: texts a batch.
        epochs: number of epochs.
        penalty: of a model, added to the loss; `l1_penalty` for one.
        width: members a program runs at once, a divisor of e; 1 on a CPU and e elsewhere if None.
        chunk: validation texts evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        Models and history. Unusable settings raise a `UserError`.

    Examples:
        >>> from attlas.data.distinct_words import DistinctWords
        >>> from attlas.models.two_layer import make_two_layer
        >>> from attlas.models.word_classifier import make_word_classifier
        >>> data = DistinctWords(np.tile([[1], [2]], (8, 1)), np.ones((16, 1)),
        ...                      np.zeros((16, 1), int), np.tile([0.0, 1.0], 8))
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> make = lambda key: make_word_classifier(key, 3, 3, make_two_layer(key, 3, 8, True))
        >>> found = train_word_classifiers(jax.vmap(make)(keys), optax.sgd(0.5), data, data, keys,
        ...                                batch=4, epochs=20)
        >>> found.history.validation[:, -1].tolist()
        [1.0, 1.0]
    """
    count = int(keys.shape[0])
    width = _width(width, count)
    _refuse_unusable(train, validation, batch, epochs, count, width)
    words = np.asarray(train.words)
    parameters, static = eqx.partition(models, eqx.is_inexact_array)
    size = int(parameters.embedding.shape[1])
    orders = list(islice(epoch_orders(keys, words.shape[0], batch), epochs))
    rows = _most_words(words, orders, size)
    states = _fresh_states(parameters, optimizer, count, width)
    epoch = partial(_epoch, static, optimizer, penalty, chunk)
    options = CHEAP_COMPILATION if quick_compile else None
    run: Any = jax.jit(_side_by_side(epoch, width), compiler_options=options)
    given = (_batches(words, order, rows, size, width) for order in orders)
    return _judged(*_run_epochs(run, states, given, (train, validation)), static)


def word_accuracies(
    models: Any, data: DistinctWords, chunk: int = 250, width: int | None = None
) -> Float[np.ndarray, " e"]:
    """Share of texts whose logit has the sign of their class, for each member.

    Args:
        models: stacked `WordClassifier`s.
        data: texts and labels.
        chunk: texts evaluated at once.
        width: members evaluated at once; 1 on a CPU and all elsewhere when None.

    Returns:
        Accuracies in [0, 1]; a logit that is not a number counts as wrong.

    Examples:
        >>> from attlas.data.distinct_words import distinct_words
        >>> from attlas.data.token_sequences import TokenSequences
        >>> from attlas.models.two_layer import TwoLayer
        >>> from attlas.models.word_classifier import WordClassifier
        >>> one = WordClassifier(jnp.ones((2, 1)), TwoLayer(jnp.ones((1, 1)), jnp.ones(1)))
        >>> data = TokenSequences(np.ones((2, 1), int), np.ones((2, 1), bool), np.array([0.0, 1]))
        >>> stacked = jax.tree.map(lambda a: a[None], one)
        >>> word_accuracies(stacked, distinct_words(data, float)).tolist()
        [0.5]
    """
    parameters, static = eqx.partition(models, eqx.is_inexact_array)
    count = int(parameters.embedding.shape[0])
    at_once = _width(width, count)
    data = jax.tree.map(jnp.asarray, data)
    evaluate = jax.jit(
        jax.vmap(
            lambda own, data: jnp.mean(_right(eqx.combine(own, static), data, chunk)),
            in_axes=(0, None),
        )
    )
    parts = [
        jax.tree.map(lambda a, i=first: a[i : i + at_once], parameters)
        for first in range(0, count, at_once)
    ]
    return np.concatenate([np.asarray(evaluate(part, data)) for part in parts])


def _batches(
    words: np.ndarray, order: np.ndarray, rows: int, size: int, width: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each part of the members the order of an epoch and the words of its batches."""
    parts = [order[first : first + width] for first in range(0, order.shape[0], width)]
    return [(part, _tables(words, part, rows, size)) for part in parts]


def _run_epochs(
    run: Any,
    states: list[_State],
    batches: Iterable[list[tuple[np.ndarray, np.ndarray]]],
    data: Any,
) -> tuple[list[_State], WordHistory]:
    """Epoch by epoch, parts of the members side by side."""
    rows: list[np.ndarray] = []
    data = jax.tree.map(jnp.asarray, data)
    with ThreadPoolExecutor(available_cores()) as pool:
        for inputs in batches:
            if not rows:
                # Compiled here: settings made by a context manager hold for one thread alone.
                run = run.lower(states[0], *inputs[0], data).compile()
            begun = [
                pool.submit(_finished, run, state, *given, data)
                for state, given in zip(states, inputs, strict=True)
            ]
            found = [each.result() for each in begun]
            states = [state for state, _ in found]
            rows.append(np.concatenate([np.asarray(row) for _, row in found]))
    return states, WordHistory(*np.transpose(np.array(rows), (2, 1, 0)))


def _side_by_side(epoch: Callable[..., Any], width: int) -> Callable[..., Any]:
    """An epoch of one member as an epoch of several."""
    if width > 1:
        return jax.vmap(epoch, in_axes=(0, 0, 0, None))

    # A batch axis of one costs an eighth of the time on a CPU: gathers get longer indices.
    def alone(*inputs: Any) -> Any:
        *own, data = inputs
        found = epoch(*jax.tree.map(lambda a: a[0], own), data)
        return jax.tree.map(lambda a: a[None], found)

    return alone


def _width(asked: int | None, count: int) -> int:
    alone = 1 if jax.default_backend() == "cpu" else count
    return alone if asked is None else asked


def _finished(run: Any, *inputs: Any) -> Any:
    return jax.block_until_ready(run(*inputs))


def _epoch(
    static: Any,
    optimizer: optax.GradientTransformation,
    penalty: Callable[[Any], Array] | None,
    chunk: int,
    state: _State,
    order: Int[Array, "steps batch"],
    tables: Int[Array, "steps W"],
    data: tuple[DistinctWords, DistinctWords],
) -> tuple[_State, Float[Array, " measured"]]:
    train, validation = data

    def loss(parameters: Any, part: Any, table: Array) -> tuple[Array, Array]:
        model = eqx.combine(parameters, static)
        logits = distinct_word_logits(model, table, part.words, part.counts, part.places)
        margins = logits * (2 * part.labels - 1)
        mean = jnp.mean(logistic(margins))
        return mean if penalty is None else mean + penalty(model), jnp.sum(margins > 0)

    def step(carry: tuple[Any, Any], now: tuple[Array, Array]) -> tuple[Any, tuple[Array, Array]]:
        parameters, optimizer_state = carry
        rows, table = now
        part = jax.tree.map(lambda a: a[rows], train)
        (value, hits), slope = jax.value_and_grad(loss, has_aux=True)(parameters, part, table)
        updates, optimizer_state = optimizer.update(slope, optimizer_state, parameters)
        return (optax.apply_updates(parameters, updates), optimizer_state), (value, hits)

    start = (state.model, state.optimizer)
    (model, optimizer_state), (losses, hits) = jax.lax.scan(step, start, (order, tables))
    trained = jnp.sum(hits).astype(losses.dtype) / order.size
    held = jnp.mean(_right(eqx.combine(model, static), validation, chunk)).astype(losses.dtype)
    better = held > state.best
    selected = jax.tree.map(lambda new, old: jnp.where(better, new, old), model, state.selected)
    best = jnp.where(better, held, state.best)
    return _State(model, optimizer_state, selected, best), jnp.stack(
        [jnp.mean(losses), trained, held]
    )


def _right(model: Any, data: Any, chunk: int) -> Float[Array, " n"]:
    """One where the logit has the sign of its class, else zero."""
    count = data.labels.shape[0]
    width = min(chunk, count)
    fill = -count % width
    everything = jnp.arange(model.embedding.shape[0])

    def chunked(array: Array) -> Array:
        padded = jnp.concatenate([array, jnp.repeat(array[:1], fill, axis=0)])
        return padded.reshape(-1, width, *array.shape[1:])

    def logits(part: tuple[Array, Array, Array]) -> Array:
        return distinct_word_logits(model, everything, *part)

    arrays = tuple(map(chunked, (data.words, data.counts, data.places)))
    found = jax.lax.map(logits, arrays).reshape(-1)[:count]
    right = jnp.where(data.labels > 0.5, found > 0, found < 0)
    return right.astype(found.dtype)


def _fresh_states(
    parameters: Any, optimizer: optax.GradientTransformation, count: int, width: int
) -> list[_State]:
    begin = jax.jit(jax.vmap(optimizer.init))
    states = []
    for first in range(0, count, width):
        own = jax.tree.map(lambda a, i=first: a[i : i + width], parameters)
        best = jnp.full(width, -1.0, own.embedding.dtype)
        states.append(_State(own, begin(own), own, best))
    return states


def _judged(states: list[_State], history: WordHistory, static: Any) -> TrainedWords:
    def joined(trees: list[Any]) -> Any:
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *trees)

    last = joined([state.model for state in states])
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(last)]
    flat = [leaf.reshape(leaf.shape[0], -1) for leaf in leaves]
    finite = np.all([np.isfinite(leaf).all(axis=1) for leaf in flat], axis=0)
    return TrainedWords(
        eqx.combine(joined([state.selected for state in states]), static),
        eqx.combine(last, static),
        history,
        np.argmax(history.validation, axis=1),
        np.where(finite, Result.MAX_STEPS.value, Result.NOT_FINITE.value),
    )


def _distinct(words: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Numbers of the words that stand in some of the texts."""
    seen = np.zeros(size, bool)
    seen[words[rows]] = True
    return np.flatnonzero(seen)


def _most_words(words: np.ndarray, orders: list[np.ndarray], size: int) -> int:
    """The most distinct words of any batch to come, rounded up."""
    most = 0
    for order in orders:
        batches = order.reshape(-1, order.shape[2])
        most = max(most, *(_distinct(words, rows, size).size for rows in batches))
    return -(-most // _ROUND) * _ROUND


def _tables(words: np.ndarray, order: np.ndarray, rows: int, size: int) -> np.ndarray:
    """The distinct words of each batch, filled up with padding, [members, steps, rows]."""
    tables = np.zeros((*order.shape[:2], rows), np.int32)
    for place in np.ndindex(*order.shape[:2]):
        found = _distinct(words, order[place], size)
        tables[place][: found.size] = found
    return tables


def _refuse_unusable(
    train: DistinctWords,
    validation: DistinctWords,
    batch: int,
    epochs: int,
    count: int,
    width: int,
) -> None:
    for name, data in {"training": train, "validation": validation}.items():
        if not data.labels.shape[0]:
            raise UserError(f"the {name} set is empty: give at least one text")
    if not 1 <= batch <= train.labels.shape[0]:
        size = train.labels.shape[0]
        raise UserError(f"batch = {batch} does not fit {size} texts: choose 1 to {size}")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} trains nothing: choose at least 1")
    if width < 1 or count % width:
        raise UserError(f"width = {width} does not divide {count} members: choose a divisor")
