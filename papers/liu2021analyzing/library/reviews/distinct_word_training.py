r"""Ensembles of word classifiers as one program, with the epoch chosen on a validation set.

The protocol of the IMDB experiments of liu2021analyzing: mean binary cross-entropy, an l1 penalty
where asked. Each batch is computed from its distinct words (`distinct_word_logits`); members run
through one compiled program, on a CPU one member a core, elsewhere all at once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from attlas.core.errors import UserError
from attlas.losses.logistic import logistic
from attlas.training.ensemble import in_chunks, on_cpu
from attlas.training.epochs import epoch_orders, fit_epochs
from attlas.training.trajectory import Trajectory
from liu2021analyzing.library.data.distinct_words import DistinctWords
from liu2021analyzing.library.models.distinct_word_logits import distinct_word_logits

_ROUND = 64
"""Rows of a table of distinct words are a multiple of this."""


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
) -> Trajectory:
    r"""Train e word classifiers on the mean logistic loss; each trains as it would alone.

    Args:
        models: stacked `WordClassifier`s of a `TwoLayer` or a `SelfAttentionMLP`.
        optimizer: optax transformation on all parameters.
        keys: e random keys, for the order of the batches.
        penalty: added to the loss of a model; `l1_penalty` for example.
        width: members a program runs at once, a divisor of e; 1 on a CPU and e elsewhere if None.
        chunk: validation texts evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        The epochs, as `fit_epochs` returns them. Unusable settings raise a `UserError`.

    Examples:
        >>> from liu2021analyzing.library.data.distinct_words import DistinctWords
        >>> from liu2021analyzing.library.models.two_layer import make_two_layer
        >>> from liu2021analyzing.library.models.word_classifier import make_word_classifier
        >>> data = DistinctWords(np.tile([[1], [2]], (8, 1)), np.ones((16, 1)),
        ...                      np.zeros((16, 1), int), np.tile([0.0, 1.0], 8))
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> make = lambda key: make_word_classifier(key, 3, 3, make_two_layer(key, 3, 8, True))
        >>> found = train_word_classifiers(jax.vmap(make)(keys), optax.sgd(0.5), data, data, keys,
        ...                                batch=4, epochs=20)
        >>> found.validation[:, -1].tolist()
        [1.0, 1.0]
    """
    width = _width(width, int(keys.shape[0]))
    _refuse_unusable(train, validation, batch, epochs)
    words, size = np.asarray(train.words), int(models.embedding.shape[1])
    orders = list(islice(epoch_orders(keys, words.shape[0], batch), epochs))
    return fit_epochs(
        _Loss(penalty),
        optimizer,
        models,
        (train, validation),
        _batches(words, orders, size),
        evaluate=partial(_held_out, chunk),
        batch=batch,
        width=width,
        quick_compile=quick_compile,
        squeeze=True,
    )


def _batches(
    words: np.ndarray, orders: list[np.ndarray], size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each epoch the order of the texts, and the distinct words of each batch."""
    rows = _most_words(words, orders, size)
    return ((order, _tables(words, order, rows, size)) for order in orders)


class _Loss(NamedTuple):
    penalty: Callable[[Any], Array] | None

    def __call__(
        self, model: Any, data: tuple[DistinctWords, DistinctWords], batch: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Loss of a batch from its distinct words, and how many logits have the right sign."""
        rows, table = batch
        part = jax.tree.map(lambda a: a[rows], data[0])
        logits = distinct_word_logits(model, table, part.words, part.counts, part.places)
        margins = logits * (2 * part.labels - 1)
        mean = jnp.mean(logistic(margins))
        total = mean if self.penalty is None else mean + self.penalty(model)
        return total, jnp.sum(margins > 0)


def _held_out(
    chunk: int, model: Any, data: tuple[DistinctWords, DistinctWords]
) -> dict[str, Array]:
    return {"validation": jnp.mean(_right(model, data[1], chunk))}


def word_accuracies(
    models: Any, data: DistinctWords, chunk: int = 250, width: int | None = None
) -> Float[np.ndarray, " e"]:
    """Share of texts whose logit has the sign of their class, for each member.

    Args:
        chunk: texts evaluated at once.
        width: members evaluated at once; 1 on a CPU and all elsewhere when None.

    Returns:
        Accuracies in [0, 1]; a logit that is not a number counts as wrong.

    Examples:
        >>> from liu2021analyzing.library.data.distinct_words import distinct_words
        >>> from attlas.data.token_sequences import TokenSequences
        >>> from liu2021analyzing.library.models.two_layer import TwoLayer
        >>> from liu2021analyzing.library.models.word_classifier import WordClassifier
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
            lambda member, data: jnp.mean(_right(eqx.combine(member, static), data, chunk)),
            in_axes=(0, None),
        )
    )
    return np.asarray(in_chunks(lambda part: evaluate(part, data), parameters, at_once))


def _width(width: int | None, count: int) -> int:
    alone = 1 if on_cpu() else count
    return alone if width is None else width


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
    values = jax.lax.map(logits, arrays).reshape(-1)[:count]
    right = jnp.where(data.labels > 0.5, values > 0, values < 0)
    return right.astype(values.dtype)


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
        numbers = _distinct(words, order[place], size)
        tables[place][: numbers.size] = numbers
    return tables


def _refuse_unusable(
    train: DistinctWords, validation: DistinctWords, batch: int, epochs: int
) -> None:
    for name, data in {"training": train, "validation": validation}.items():
        if not data.labels.shape[0]:
            raise UserError(f"the {name} set is empty: give at least one text")
    if not 1 <= batch <= train.labels.shape[0]:
        size = train.labels.shape[0]
        raise UserError(f"batch = {batch} does not fit {size} texts: choose 1 to {size}")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} must be at least 1: raise it")
