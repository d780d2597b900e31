r"""Minibatch training of an ensemble of classifiers, with the epoch selected on a validation split.

This is the protocol of section 1.6 of julistiono2024optimizing (loss summed over the batch, stop at
a training accuracy) with one exception: the paper reports the best epoch *on the test set*. Here
the epoch is selected on the validation split, and the paper's number is also reported. The
experiments of liu2021analyzing use the mean loss, an l1 penalty, and ten classes for images.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from attlas.core.errors import UserError, refuse_misfits
from attlas.data.token_sequences import TokenSequences
from attlas.losses.logistic import logistic
from attlas.training.course import ClosedForm
from attlas.training.epochs import epoch_orders, fit_epochs
from attlas.training.trajectory import Trajectory


class Sets(NamedTuple):
    """Training, validation and test sequences."""

    train: TokenSequences
    validation: TokenSequences
    test: TokenSequences


class _Loss(NamedTuple):
    penalty: Callable[[Any], Array] | None
    mean: bool
    at_once: int | None

    def __call__(
        self, model: Any, sets: Sets, batch: tuple[Array, PRNGKeyArray]
    ) -> tuple[Array, Array]:
        """Loss of a batch, and the number of its correctly classified sequences."""
        rows, key = batch
        total, right = _summed_loss(model, sets.train, rows, _each_key(rows, key))
        total = total / rows.shape[0] if self.mean else total
        return total if self.penalty is None else total + self.penalty(model), right

    def objective(self) -> Any:
        """The loss for `fit_epochs`."""
        return self if self.at_once is None else ClosedForm(self.by_parts)

    def by_parts(
        self, model: Any, sets: Sets, batch: tuple[Array, PRNGKeyArray]
    ) -> tuple[tuple[Array, Array], Any]:
        """The same with the gradient, computed from few sequences at a time to save memory."""
        rows, key = batch
        measured = eqx.filter_value_and_grad(_summed_loss, has_aux=True)

        def add(sums: Any, part: tuple[Array, Array]) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, sums, measured(model, sets.train, *part)), None

        inputs = rows, _each_key(rows, key)
        # A key that is made by `jax.random.PRNGKey` has an axis of its own.
        pieces = jax.tree.map(lambda a: a.reshape(-1, self.at_once, *a.shape[1:]), inputs)
        like = eqx.filter_eval_shape(measured, model, sets.train, *inputs)
        none = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like)
        ((total, right), slope), _ = jax.lax.scan(add, none, pieces)
        if self.mean:
            total, slope = jax.tree.map(lambda a: a / rows.shape[0], (total, slope))
        if self.penalty is not None:
            more = eqx.filter_value_and_grad(self.penalty)(model)
            total, slope = jax.tree.map(jnp.add, (total, slope), more)
        return (total, right), slope


def _each_key(rows: Array, key: PRNGKeyArray) -> Array:
    return jax.random.split(key, rows.shape[0])


def _summed_loss(model: Any, data: TokenSequences, rows: Array, keys: Array) -> tuple[Array, Array]:
    """Sum of the losses of some sequences, and the number of correctly classified ones."""
    part = jax.tree.map(lambda a: a[rows], data)
    labels = jnp.asarray(part.labels)
    logits = jax.vmap(model)(part.tokens, part.mask, keys)
    if logits.ndim == 2:
        classes = labels.astype(jnp.int32)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, classes)
    else:
        losses = logistic(logits * (2 * labels - 1))
    return jnp.sum(losses), jnp.sum(_is_right(logits, labels))


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
    at_once: int | None = None,
) -> Trajectory:
    r"""Train e classifiers by minibatches, evaluated after each epoch.

    The loss is logistic for one logit, the cross-entropy for several, summed over the batch.

    Args:
        models: stacked models (leading axis e on every array); called as model(tokens, mask, key).
        optimizer: optax transformation on all parameters.
        sets: training, validation and test sequences.
        keys: e random keys, for the order of the batches and for dropout.
        stop_accuracy: training accuracy at which a member stops; above 1 none does.
        chunk: sequences evaluated at once.
        quick_compile: compile with few optimisations, if compiling costs more than training.
        penalty: function of a model, added to the loss of each batch, such as `l1_penalty`.
        mean: take the mean over the batch instead of the sum.
        width: members run at once, a divisor of e; all when None. 1 suits convolutions.
        at_once: sequences differentiated at once, a divisor of `batch`; all when None.

    Returns:
        The epochs of `fit_epochs`, with test accuracies. Invalid settings raise a `UserError`.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> tokens = np.tile(np.array([[0, 1], [2, 1]]), (8, 1))
        >>> data = TokenSequences(tokens, np.ones((16, 2), bool), np.tile([0.0, 1.0], 8))
        >>> make = lambda key: make_encoder(key, 3, 2, width=8, blocks=1, heads=1, hidden=4)
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> found = train_classifiers(jax.vmap(make)(keys), optax.sgd(0.1),
        ...                           Sets(data, data, data), keys, batch=4, epochs=20)
        >>> held_out_accuracies(found).selected.tolist()
        [1.0, 1.0]
    """
    _refuse_unusable(sets, batch, epochs, at_once)
    trained = fit_epochs(
        _Loss(penalty, mean, at_once).objective(), optimizer, models, sets,
        _batches(keys, sets.train.labels.shape[0], batch, epochs), batch=batch,
        evaluate=partial(_held_out, chunk), stop_accuracy=stop_accuracy,
        width=int(keys.shape[0]) if width is None else width, quick_compile=quick_compile,
    )  # fmt: skip
    return trained if mean else eqx.tree_at(lambda path: path.loss, trained, trained.loss / batch)


def _batches(keys: Array, size: int, batch: int, epochs: int) -> Iterator[tuple[np.ndarray, Array]]:
    """For each epoch the order of the sequences and the keys of dropout."""
    for number, order in enumerate(islice(epoch_orders(keys, size, batch), epochs)):
        yield order, _dropout_keys(keys, np.uint32(number), order.shape[1])


@partial(jax.jit, static_argnums=2)
def _dropout_keys(keys: Array, number: np.uint32 | Array, steps: int) -> Array:
    return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, number), steps))(keys)


class HeldOut(NamedTuple):
    """Test accuracies of the members of an ensemble.

    Attributes:
        selected: at the epoch of best validation accuracy, an unbiased choice.
        last: after the last epoch.
        best: best over all epochs, the paper's optimistic selection rule.
    """

    selected: Float[np.ndarray, " e"]
    last: Float[np.ndarray, " e"]
    best: Float[np.ndarray, " e"]


def held_out_accuracies(path: Trajectory) -> HeldOut:
    """Test accuracies of each member at the selected, the last and the best epoch.

    Examples:
        >>> path = Trajectory(np.array([5, 10]), None, None, selected_at=np.array([0]),
        ...                   observed={"test": np.array([[0.5, 0.25]])})
        >>> [a.tolist() for a in held_out_accuracies(path)]
        [[0.5], [0.25], [0.5]]
    """
    test, members = path.observed["test"], np.arange(len(path.selected_at))
    last = np.sum(np.isfinite(test), axis=1) - 1
    return HeldOut(test[members, path.selected_at], test[members, last], np.nanmax(test, axis=1))


@refuse_misfits
def accuracy(
    model: Callable[..., Array], data: TokenSequences, chunk: int = 500
) -> Float[Array, ""]:
    """Share of correctly classified sequences, without dropout.

    A single logit decides by its sign, several by the largest. A NaN logit counts as wrong.

    Args:
        model: called as model(tokens, mask).

    Examples:
        >>> data = TokenSequences(jnp.zeros((2, 1, 1)), jnp.ones((2, 1), bool), jnp.array([0.0, 1]))
        >>> float(accuracy(lambda tokens, mask: jnp.sum(tokens) + 1, data))
        0.5
    """
    return jnp.mean(_right(model, data, chunk))


def _right(model: Callable[..., Array], data: TokenSequences, chunk: int) -> Float[Array, " n"]:
    """1 for a correct class, else 0; one copy of the model is compiled."""
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


def _held_out(chunk: int, model: Any, sets: Sets) -> dict[str, Array]:
    """Accuracy on the validation and the test set, evaluated together."""
    joined = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), sets.validation, sets.test)
    right = _right(model, joined, chunk)
    size = sets.validation.labels.shape[0]
    return {"validation": jnp.mean(right[:size]), "test": jnp.mean(right[size:])}


def _refuse_unusable(sets: Sets, batch: int, epochs: int, at_once: int | None) -> None:
    for name, data in sets._asdict().items():
        if data.labels.shape[0] == 0:
            raise UserError(f"the {name} set is empty: give at least one sequence")
    size = sets.train.labels.shape[0]
    if not 1 <= batch <= size:
        raise UserError(f"batch = {batch} does not fit {size} sequences: choose 1 to {size}")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} must be at least 1: raise it")
    if epochs > sys.maxsize:
        raise UserError("epochs are more than a process can count: lower them")
    if at_once is not None and (at_once < 1 or batch % at_once):
        raise UserError(f"at_once = {at_once} does not divide batch = {batch}: choose a divisor")
