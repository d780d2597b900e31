r"""Training a translator by teacher forcing: each target word from the correct ones before it."""

from itertools import islice
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.errors import UserError
from attlas.models.networks.translator import Translator
from attlas.training.course import ClosedForm
from attlas.training.epochs import epoch_orders
from attlas.training.fit import fit
from attlas.training.trajectory import Trajectory
from liu2021analyzing.library.data.packed_pairs import PackedPairs, pack_batches, packed_pairs
from liu2021analyzing.library.data.translation_pairs import SentencePairs


def warm_up_rate(width: int, warm_up: int, factor: float = 1.0) -> optax.Schedule:
    r"""The learning rate factor d^{-1/2} min(step^{-1/2}, step w^{-3/2}) of Vaswani et al. (2017).

    Args:
        width: d of the model.
        warm_up: steps w of linear growth.
        factor: the rate is multiplied by it.

    Returns:
        Rate by step, the first step being 1.

    Examples:
        >>> rate = warm_up_rate(width=4, warm_up=100)
        >>> round(float(rate(jnp.array(99.0))), 6)
        0.05
    """
    if width < 1 or warm_up < 1 or not factor > 0:
        raise UserError(f"width = {width}, warm_up = {warm_up}, factor = {factor}: all positive")

    def rate(count: Any) -> Array:
        step = jnp.asarray(count, float) + 1
        return factor * width**-0.5 * jnp.minimum(step**-0.5, step * warm_up**-1.5)

    return rate


def train_translator(
    model: Translator,
    optimizer: optax.GradientTransformation,
    train: SentencePairs,
    validation: SentencePairs,
    key: PRNGKeyArray,
    batch: int,
    epochs: int,
    chunk: int = 100,
    quick_compile: bool = False,
) -> Trajectory:
    """Train by minibatches of the mean cross-entropy of a target piece, recorded after each epoch.

    Args:
        optimizer: Adam with a constant rate or `warm_up_rate`, or any other.
        chunk: validation pairs evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        The epochs, and the translator after the last one. The loss is the mean cross-entropy of
        a target piece over the epoch's batches, in nats; observed are that of a validation
        piece, and accuracy, the share of validation pieces that have the largest logit.

    Raises:
        UserError: if a set is empty, a batch does not fit, or there is no epoch.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> ones = np.ones((8, 2), int)
        >>> pairs = SentencePairs(ones, ones > 0, 2 * ones, ones > 0)
        >>> found = train_translator(make_translator(jax.random.key(0), (3, 4), 2, 1, 1, 2),
        ...                          optax.sgd(0.5), pairs, pairs, jax.random.key(1), 4, 5)
        >>> found.accuracy[-1].tolist(), int(found.result)
        (1.0, 2)
    """
    count, held = train.source.shape[0], validation.source.shape[0]
    if not 1 <= batch <= count or held < 1:
        raise UserError(f"batch = {batch} of {count} pairs, {held} to validate: give at least one")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} must be at least 1: raise it")
    orders = islice(epoch_orders(key[None], count, batch), epochs)
    rows = pack_batches(train, np.concatenate([order[0] for order in orders]))
    return fit(
        _batch_loss if quick_compile else ClosedForm(Partial(_value_and_gradient)),
        optimizer,
        model,
        jax.tree.map(jnp.asarray, (train, validation)),
        record_at=[(n + 1) * (count // batch) for n in range(epochs)],
        batches=jnp.asarray(rows),
        observe=Partial(_evaluated, min(chunk, held)),
        keep=False,
        quick_compile=quick_compile,
    )


def _piece_losses(
    model: Translator, pairs: SentencePairs
) -> tuple[Float[Array, "n T"], Float[Array, "n T"]]:
    """Cross-entropy of each next target piece, and if its logit is the largest; 0 at padding."""
    source, mask, target, there = (jnp.asarray(array, jnp.int32) for array in pairs)
    # A row holds one pair: the masks number it.
    return _row_losses(
        model, PackedPairs(source, mask, target[:, :-1], there[:, 1:], target[:, 1:])
    )


def _row_losses(
    model: Translator, rows: PackedPairs
) -> tuple[Float[Array, "r T"], Float[Array, "r T"]]:
    logits = model(rows.source, rows.source_pair, rows.target, rows.target_pair)
    # Flat, as the readout's product is: three axes would cost a scatter into a transposed copy.
    logits, labels = logits.reshape(-1, logits.shape[2]), rows.labels.ravel()
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    right = (jnp.argmax(logits, axis=1).astype(labels.dtype) == labels).astype(losses.dtype)
    there = rows.target_pair > 0
    return (
        jnp.where(there, losses.reshape(there.shape), 0),
        jnp.where(there, right.reshape(there.shape), 0),
    )


def _batch_loss(
    model: Translator, data: tuple[SentencePairs, SentencePairs], rows: Int[Array, "r k"]
) -> Float[Array, ""]:
    """Mean cross-entropy of a piece of some training pairs."""
    packed = packed_pairs(data[0], rows)
    losses, _ = _row_losses(model, packed)
    return jnp.sum(losses) / jnp.sum(packed.target_pair > 0).astype(losses.dtype)


def _value_and_gradient(
    model: Translator, data: tuple[SentencePairs, SentencePairs], rows: Int[Array, "r k"]
) -> tuple[Float[Array, ""], Translator]:
    """Value and gradient by a program of fewer rows for all but the fullest batches."""
    few = -(-4 * rows.shape[0] // 5)
    measured = eqx.filter_value_and_grad(_batch_loss)
    if few == rows.shape[0]:
        return measured(model, data, rows)
    return jax.lax.cond(
        rows[few, 0] < 0,  # rows without a pair come last
        lambda: measured(model, data, rows[:few]),
        lambda: measured(model, data, rows),
    )


def _evaluated(
    chunk: int, model: Translator, data: tuple[SentencePairs, SentencePairs]
) -> dict[str, Array]:
    """Mean cross-entropy and accuracy over the validation pieces, chunk by chunk."""
    pairs = data[1]
    fill = -pairs.source.shape[0] % chunk

    def chunked(array: Any) -> Array:
        padded = jnp.concatenate([array, jnp.repeat(array[:1], fill, axis=0)])
        return padded.reshape(-1, chunk, *array.shape[1:])

    # Pairs that only fill a chunk up count nothing.
    counts = jnp.arange(pairs.source.shape[0] + fill) < pairs.source.shape[0]
    chunks = jax.tree.map(chunked, pairs)
    chunks = chunks._replace(target_mask=chunks.target_mask & counts.reshape(-1, chunk)[:, :, None])
    losses, right = jax.lax.map(lambda part: _piece_losses(model, part), chunks)
    total = jnp.sum(chunks.target_mask[..., 1:]).astype(losses.dtype)
    return {"validation": jnp.sum(losses) / total, "accuracy": jnp.sum(right) / total}


_losses = jax.jit(_piece_losses)
_losses_compiled_quickly = jax.jit(_piece_losses, compiler_options=CHEAP_COMPILATION)


def translation_scores(
    model: Translator, pairs: SentencePairs, quick_compile: bool = False, chunk: int = 100
) -> tuple[float, float]:
    """Mean cross-entropy of a next target piece, and share of pieces with the largest logit.

    Args:
        pairs: padded sentence pairs, at least one.
        quick_compile: compile for a short run.
        chunk: pairs evaluated at once.

    Returns:
        Loss in nats, and accuracy.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> ones = np.ones((1, 3), int)
        >>> pairs = SentencePairs(ones, ones > 0, ones, ones > 0)
        >>> model = make_translator(jax.random.key(0), (3, 4), 2, 1, 1, 2)
        >>> loss, accuracy = translation_scores(model, pairs, quick_compile=True)
        >>> loss > 0, accuracy in (0.0, 0.5, 1.0)
        (True, True)
    """
    losses: Any = _losses_compiled_quickly if quick_compile else _losses
    sums = np.zeros(2)
    for start in range(0, pairs.source.shape[0], chunk):
        part = SentencePairs(*(array[start : start + chunk] for array in pairs))
        sums += [np.asarray(array).sum(dtype=float) for array in losses(model, part)]
    loss, accuracy = sums / pairs.target_mask[:, 1:].sum()
    return float(loss), float(accuracy)
