r"""Training a translator by teacher forcing: each target word from the right ones before it."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.data.translation_pairs import SentencePairs
from attlas.models.translator import Translator
from attlas.training.epochs import epoch_orders


class TrainedTranslator(NamedTuple):
    """A translator and what was measured after each of s epochs.

    Attributes:
        model: the model after its last epoch.
        train: mean cross-entropy of a target piece over the epoch's batches, in nats.
        validation: mean cross-entropy of a validation piece, in nats.
        accuracy: share of validation pieces that have the largest logit.
        result: all epochs done, or not finite.
    """

    model: Translator
    train: Float[np.ndarray, " s"]
    validation: Float[np.ndarray, " s"]
    accuracy: Float[np.ndarray, " s"]
    result: Result


def warm_up_rate(width: int, warm_up: int, factor: float = 1.0) -> optax.Schedule:
    r"""The learning rate factor d^{-1/2} min(step^{-1/2}, step w^{-3/2}) of Vaswani et al. (2017).

    Args:
        width: d of the model.
        warm_up: steps w of linear growth.
        factor: of the rate.

    Returns:
        Rate by step, the first step being 1.

    Raises:
        UserError: if a number is not positive.

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
) -> TrainedTranslator:
    """Train by minibatches of the mean cross-entropy of a target piece, one scan an epoch.

    Args:
        model: where to start.
        optimizer: Adam with a constant rate or `warm_up_rate`, or any other.
        train: training pairs.
        validation: validation pairs.
        key: of the order of the batches.
        batch: pairs a batch.
        epochs: number of epochs.
        chunk: validation pairs evaluated at once.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        The trained translator.

    Raises:
        UserError: if a set is empty, a batch does not fit, or there is no epoch.

    Examples:
        >>> from attlas.models.translator import make_translator
        >>> ones = np.ones((8, 2), int)
        >>> pairs = SentencePairs(ones, ones > 0, 2 * ones, ones > 0)
        >>> found = train_translator(make_translator(jax.random.key(0), (3, 4), 2, 1, 1, 2),
        ...                          optax.sgd(0.5), pairs, pairs, jax.random.key(1), 4, 5)
        >>> found.accuracy[-1].tolist(), found.result.name
        (1.0, 'MAX_STEPS')
    """
    count, held = train.source.shape[0], validation.source.shape[0]
    if not 1 <= batch <= count or held < 1:
        raise UserError(f"batch = {batch} of {count} pairs, {held} validation pairs: none may lack")
    if epochs < 1:
        raise UserError(f"epochs = {epochs} trains nothing: choose at least 1")
    parameters, static = eqx.partition(model, eqx.is_inexact_array)
    options = CHEAP_COMPILATION if quick_compile else None
    step = jax.jit(partial(_epoch, static, optimizer, min(chunk, held)), compiler_options=options)
    data = jax.tree.map(jnp.asarray, (train, validation))
    state, rows = (parameters, jax.jit(optimizer.init)(parameters)), []
    orders = epoch_orders(key[None], count, batch)
    for _ in range(epochs):
        state, row = step(state, next(orders)[0], data)
        rows.append(np.asarray(row))
    finite = all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state[0]))
    code = Result.MAX_STEPS if finite else Result.NOT_FINITE
    train_loss, held_loss, accuracy = np.array(rows).T
    return TrainedTranslator(eqx.combine(state[0], static), train_loss, held_loss, accuracy, code)


def piece_losses(
    model: Translator, pairs: SentencePairs
) -> tuple[Float[Array, "n T"], Float[Array, "n T"]]:
    """Cross-entropy of each next target piece, and whether its logit is the largest.

    Args:
        model: the translator.
        pairs: sentence pairs; the first target piece is given, not asked for.

    Returns:
        Losses in nats and ones for right pieces; zero at padding.

    Examples:
        >>> from attlas.models.translator import make_translator
        >>> ones = jnp.ones((1, 3), int)
        >>> pairs = SentencePairs(ones, ones > 0, ones, jnp.array([[True, True, False]]))
        >>> losses, _ = piece_losses(make_translator(jax.random.key(0), (3, 4), 2, 1, 1, 2), pairs)
        >>> (losses > 0).tolist()
        [[True, False]]
    """
    source, mask, target, counts = (jnp.asarray(each) for each in pairs)
    logits = jax.vmap(model)(source, mask, target[:, :-1])
    asked, counts = target[:, 1:], counts[:, 1:]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, asked)
    right = jnp.argmax(logits, axis=2).astype(asked.dtype) == asked
    return jnp.where(counts, losses, 0), (right & counts).astype(losses.dtype)


def _epoch(
    static: Any,
    optimizer: optax.GradientTransformation,
    chunk: int,
    state: tuple[Any, Any],
    order: Int[Array, "steps batch"],
    data: tuple[SentencePairs, SentencePairs],
) -> tuple[tuple[Any, Any], Float[Array, " measured"]]:
    train, validation = data

    def loss(parameters: Any, part: SentencePairs) -> Array:
        losses, _ = piece_losses(eqx.combine(parameters, static), part)
        return jnp.sum(losses) / jnp.sum(part.target_mask[:, 1:]).astype(losses.dtype)

    def step(carry: tuple[Any, Any], rows: Array) -> tuple[tuple[Any, Any], Array]:
        parameters, optimizer_state = carry
        part = jax.tree.map(lambda a: a[rows], train)
        value, slope = jax.value_and_grad(loss)(parameters, part)
        updates, optimizer_state = optimizer.update(slope, optimizer_state, parameters)
        return (optax.apply_updates(parameters, updates), optimizer_state), value

    state, losses = jax.lax.scan(step, state, order)
    held, right = _evaluated(eqx.combine(state[0], static), validation, chunk)
    return state, jnp.stack([jnp.mean(losses), held, right])


def _evaluated(model: Any, pairs: SentencePairs, chunk: int) -> tuple[Array, Array]:
    """Mean cross-entropy and accuracy over the pieces, chunk by chunk."""
    fill = -pairs.source.shape[0] % chunk

    def chunked(array: Any) -> Array:
        padded = jnp.concatenate([array, jnp.repeat(array[:1], fill, axis=0)])
        return padded.reshape(-1, chunk, *array.shape[1:])

    # Pairs that only fill a chunk up count nothing.
    counts = jnp.arange(pairs.source.shape[0] + fill) < pairs.source.shape[0]
    parts = jax.tree.map(chunked, pairs)
    parts = parts._replace(target_mask=parts.target_mask & counts.reshape(-1, chunk)[:, :, None])
    losses, right = jax.lax.map(lambda part: piece_losses(model, part), parts)
    total = jnp.sum(parts.target_mask[..., 1:]).astype(losses.dtype)
    return jnp.sum(losses) / total, jnp.sum(right) / total
