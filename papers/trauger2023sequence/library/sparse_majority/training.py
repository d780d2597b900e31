r"""Training of section 6 of trauger2023sequence: an ensemble, epochs inside the compiled loop.

What the released program does, with Keras' conventions: an epoch visits a fresh permutation of
the training set in batches, the last one smaller; the rate of epoch e is max(floor, decay times
that of epoch e - 1), the first one decay * rate; momentum keeps steps (v = mu v - rate g) and not
slopes; training accuracy and loss of an epoch are means over its batches, each before its step,
and training stops after the first epoch with accuracy 1; the epoch of least validation loss is
kept. Every member of the ensemble stops for itself; the loop ends with the last one.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from attlas._jax.loop_jit import loop_jit
from attlas.core.checkpoint import named_leaves, new_stage, with_leaves, without_checkpoints
from attlas.core.errors import UserError
from attlas.data.sparse_majority import SparseMajority
from attlas.training.ensemble import in_chunks, on_cpu
from trauger2023sequence.library.models.majority_attention import (
    MajorityAttention,
    total_absolute_weight,
)
from trauger2023sequence.library.sparse_majority.loss import MajorityLoss, majority_loss
from trauger2023sequence.library.sparse_majority.table import majority_table, table_logits

MEASURED = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "weight")


class MajoritySettings(NamedTuple):
    """How a member is trained; the defaults are those released.

    Attributes:
        batch: sequences per step.
        rate: learning rate before the first epoch.
        decay: factor of the rate at each epoch.
        floor: least rate.
        momentum: mu of SGD.
        optimizer: SGD with momentum, or Adam (0.9, 0.999, 1e-7) with the same rates.
        loss: mean of two binary cross-entropies as released, or the softmax cross-entropy.
        stop_accuracy: training accuracy of an epoch that ends training; above 1, never.
        evaluation: sequences evaluated at once on a CPU.
        validate_every: epochs from one validation to the next; the first epoch is validated, and
            the one at whose end training stops.
    """

    batch: int = 128
    rate: float = 0.01
    decay: float = 0.999
    floor: float = 0.001
    momentum: float = 0.9
    optimizer: Literal["sgd", "adam"] = "sgd"
    loss: MajorityLoss = MajorityLoss.BINARY
    stop_accuracy: float = 1.0
    evaluation: int = 500
    validate_every: int = 1


RELEASED = MajoritySettings()


class MajorityState(NamedTuple):
    """Where the members stand; training resumes from it exactly.

    Attributes:
        model: parameters after the last epoch.
        moments: velocity of SGD, or the two moments of Adam.
        selected: parameters at the epoch of least validation loss.
        least: least validation loss.
        selected_epoch: epoch of least validation loss, counted from 1; 0 before the first.
        rate: learning rate of the last epoch.
        stopped: whether the stopping accuracy was reached, or a loss was not finite.
    """

    model: MajorityAttention
    moments: tuple[Any, ...]
    selected: MajorityAttention
    least: Float[Array, "*e"]
    selected_epoch: Int[Array, "*e"]
    epoch: Int[Array, "*e"]
    steps: Int[Array, "*e"]
    rate: Float[Array, "*e"]
    stopped: Bool[Array, "*e"]


class MajorityTraining(NamedTuple):
    """A trained ensemble.

    Attributes:
        state: state from which `train_majority` resumes.
        history: the quantities in `MEASURED` after each epoch; NaN after a member has stopped,
            and where an epoch was not validated. The training columns are means over the epoch's
            batches, each before its step.
        selected: the quantities in `MEASURED` at the selected parameters on the full sets.
    """

    state: MajorityState
    history: Float[np.ndarray, "e s 5"]
    selected: Float[np.ndarray, "e 5"]

    def loss_gap(self) -> Float[np.ndarray, " e"]:
        """Validation minus training loss at the selected epoch: Figure 2 (there negative)."""
        return self.selected[:, 2] - self.selected[:, 0]

    def accuracy_gap(self) -> Float[np.ndarray, " e"]:
        """Training minus validation accuracy at the selected epoch."""
        return self.selected[:, 1] - self.selected[:, 3]


def _start_majority(models: MajorityAttention, settings: MajoritySettings) -> MajorityState:
    """The state before the first epoch."""
    bias = models.readout[1]
    count = (bias.shape[0],)
    still = jax.tree.map(jnp.zeros_like, models)
    moments = (still,) if settings.optimizer == "sgd" else (still, still)
    none = jnp.zeros(count, jnp.int32)
    return MajorityState(
        models,
        moments,
        models,
        jnp.full(count, jnp.inf, bias.dtype),
        none,
        none,
        none,
        jnp.full(count, settings.rate, bias.dtype),
        jnp.zeros(count, bool),
    )


def train_majority(
    models: MajorityAttention | MajorityState,
    data: SparseMajority,
    keys: Key[Array, " e"],
    epochs: int,
    settings: MajoritySettings = RELEASED,
    chunk: int = 500,
) -> MajorityTraining:
    r"""Train e members on data of their own, `chunk` epochs per call of one compiled program.

    Args:
        models: stacked starts, or the state that an earlier call returned, to resume.
        data: sequences and labels from `make_sparse_majorities`.
        keys: e random keys for the order of the batches; epoch n uses fold_in(key, n), so that
            a resumed training is the one that was not interrupted.
        epochs: largest number of epochs of this call.
        chunk: epochs between two checks that all members have stopped.

    Returns:
        State, history of this call, and the numbers at the selected epoch.

    Examples:
        >>> from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> design = MajorityDesign(train=8, validation=20, indices=1, dimension=4)
        >>> data = make_sparse_majorities(keys, 2, design)
        >>> starts = [make_majority_attention(key, 4, 1, 2) for key in keys]
        >>> models = jax.tree.map(lambda *parts: jnp.stack(parts), *starts)
        >>> result = train_majority(models, data, keys, 3, chunk=3)
        >>> result.history.shape
        (2, 3, 5)
    """
    state = models if isinstance(models, MajorityState) else _start_majority(models, settings)
    _require_usable(state, data, keys, epochs, chunk, settings)
    stage = new_stage((state, jax.random.key_data(keys)), data)
    checkpoint = None if stage is None else stage.restored()
    rows, done = [], 0
    if checkpoint is not None:
        state, rows = with_leaves("state", state, checkpoint), [checkpoint["history"]]
        done = rows[0].shape[1]
    while done < epochs and not np.all(state.stopped):
        span = min(chunk, epochs - done) if stage is None else min(chunk, epochs - done, stage.size)
        part = partial(_chunk, length=chunk, settings=settings)
        batch = (state, data, jax.random.key_data(keys), np.full(keys.shape[0], span, np.int32))
        # On a CPU a member is a chunk: it stops without waiting, and each core takes the next.
        with without_checkpoints():  # the stage keeps their states
            state, row = in_chunks(part, batch, 1 if on_cpu() else keys.shape[0])
        rows.append(np.asarray(row)[:, :span])
        done += span
        if stage is not None:
            stage.offer(span, partial(_leaves, state, rows))
    if stage is not None and rows:
        stage.offer(0, partial(_leaves, state, rows), is_last=True)
    history = np.concatenate(rows, axis=1) if rows else np.zeros((keys.shape[0], 0, 5))
    return MajorityTraining(state, history, np.asarray(_measure(state.selected, data, settings)))


def _leaves(state: MajorityState, rows: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {**named_leaves("state", state), "history": np.concatenate(rows, axis=1)}


@loop_jit(static_argnames=("settings",))
def _measure(models: MajorityAttention, data: SparseMajority, settings: MajoritySettings) -> Array:
    def numbers_of_member(member: tuple[MajorityAttention, SparseMajority]) -> Array:
        model, sets = member
        table = majority_table(model, sets.embedding)
        splits = ((sets.bits, sets.labels), (sets.validation_bits, sets.validation_labels))
        numbers = [_evaluate(table, *part, settings) for part in splits]
        return jnp.stack([*numbers[0], *numbers[1], total_absolute_weight(model)])

    return jax.lax.map(numbers_of_member, (models, data))


def _evaluate(table: Any, bits: Array, labels: Array, settings: MajoritySettings) -> Array:
    """Loss and accuracy over a set, on a CPU in parts that stay in the cache."""
    count = labels.shape[0]
    width = min(settings.evaluation, count) if on_cpu() else count
    pieces = -(-count // width)
    fill = pieces * width - count
    present = (jnp.arange(pieces * width) < count).astype(table.bias.dtype).reshape(pieces, width)
    sequences = jnp.pad(bits, ((0, fill), (0, 0))).reshape(pieces, width, -1)
    classes = jnp.pad(labels, (0, fill)).reshape(pieces, width)

    def part(total: Array, now: tuple[Array, Array, Array]) -> tuple[Array, None]:
        loss, right = majority_loss(table_logits(table, now[0]), now[1], settings.loss)
        return total + jnp.stack([jnp.sum(now[2] * loss), jnp.sum(now[2] * right)]), None

    total = jax.lax.scan(part, jnp.zeros(2, present.dtype), (sequences, classes, present))[0]
    return total / count


@loop_jit(static_argnames=("length", "settings"))
def _chunk(batch: tuple, length: int, settings: MajoritySettings) -> tuple[MajorityState, Array]:
    """Up to as many epochs as the batch says, and `length` rows of history."""

    def member(inputs: tuple[MajorityState, SparseMajority, Array, Array]) -> tuple:
        start, sets, words, span = inputs
        key = jax.random.wrap_key_data(words)

        def running(carry: tuple[MajorityState, Array]) -> Array:
            return ~carry[0].stopped & (carry[0].epoch < start.epoch + span)

        def advance(carry: tuple[MajorityState, Array]) -> tuple[MajorityState, Array]:
            now, rows = carry
            after, row = _epoch(now, sets, key, settings)
            return after, rows.at[now.epoch - start.epoch].set(row)

        rows = jnp.full((length, 5), jnp.nan, start.least.dtype)
        return jax.lax.while_loop(running, advance, (start, rows))

    return jax.lax.map(member, batch) if on_cpu() else jax.vmap(member)(batch)


def _epoch(
    state: MajorityState, data: SparseMajority, key: PRNGKeyArray, settings: MajoritySettings
) -> tuple[MajorityState, Float[Array, " 5"]]:
    dtype = state.least.dtype
    rate = jnp.maximum(settings.decay * state.rate, settings.floor)
    order, present = _batches(jax.random.fold_in(key, state.epoch), data, settings.batch, dtype)

    def step(carry: tuple[Any, ...], now: tuple[Array, Array]) -> tuple[tuple[Any, ...], Array]:
        model, moments, steps = carry
        rows, share = now

        def risk(model: MajorityAttention) -> tuple[Array, Array]:
            logits = table_logits(majority_table(model, data.embedding), data.bits[rows])
            loss, right = majority_loss(logits, data.labels[rows], settings.loss)
            sums = jnp.stack([jnp.sum(share * loss), jnp.sum(share * right)])
            return sums[0] / jnp.sum(share), sums

        slope, sums = jax.grad(risk, has_aux=True)(model)
        model, moments = _moved(model, moments, slope, rate, steps + 1, settings)
        return (model, moments, steps + 1), sums

    carry = (state.model, state.moments, state.steps)
    (model, moments, steps), sums = jax.lax.scan(step, carry, (order, present))
    train = jnp.sum(sums, axis=0) / data.labels.shape[0]
    reached = train[1] >= settings.stop_accuracy
    due = reached | (state.epoch % settings.validate_every == 0)

    def validation() -> Array:
        table = majority_table(model, data.embedding)
        return _evaluate(table, data.validation_bits, data.validation_labels, settings)

    held = jax.lax.cond(due, validation, lambda: jnp.full(2, jnp.nan, dtype))
    row = jnp.stack([*train, *held, total_absolute_weight(model)])
    better = held[0] < state.least  # never where the epoch was not validated
    epoch = state.epoch + 1
    selected = jax.tree.map(lambda a, b: jnp.where(better, a, b), model, state.selected)
    measured = jnp.array([True, True, False, False, True]) | due
    stopped = reached | ~jnp.all(jnp.isfinite(row) | ~measured)
    return MajorityState(
        model,
        moments,
        selected,
        jnp.where(better, held[0], state.least),
        jnp.where(better, epoch, state.selected_epoch),
        epoch,
        steps,
        rate,
        stopped,
    ), row


def _batches(
    key: PRNGKeyArray, data: SparseMajority, batch: int, dtype: Any
) -> tuple[Int[Array, "s b"], Float[Array, "s b"]]:
    """A permutation of the training set in batches, and 0 where the last one is not filled."""
    count = data.labels.shape[0]
    batch = min(batch, count)
    steps = -(-count // batch)
    fill = steps * batch - count
    order = epoch_order(key, count)
    present = jnp.arange(steps * batch) < count
    return (
        jnp.pad(order, (0, fill)).reshape(steps, batch),
        present.astype(dtype).reshape(steps, batch),
    )


def epoch_order(key: PRNGKeyArray, count: int) -> Int[Array, " n"]:
    """The permutation of an epoch: the order of random words, which a peer can repeat.

    Args:
        key: fold_in(key of the member, epochs before).

    Returns:
        Numbers of the sequences in the order of their visit.

    Examples:
        >>> sorted(epoch_order(jax.random.key(0), 4).tolist())
        [0, 1, 2, 3]
    """
    return jnp.argsort(jax.random.bits(key, (count,))).astype(jnp.int32)


def _moved(
    model: Any, moments: tuple[Any, ...], slope: Any, rate: Array, step: Array, settings: Any
) -> tuple[Any, tuple[Any, ...]]:
    """One step of the optimiser, in Keras' form."""
    if settings.optimizer == "sgd":
        mu = settings.momentum
        speed = jax.tree.map(lambda v, g: mu * v - rate * g, moments[0], slope)
        return jax.tree.map(jnp.add, model, speed), (speed,)
    first = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments[0], slope)
    second = jax.tree.map(lambda v, g: v + 0.001 * (g**2 - v), moments[1], slope)
    power = step.astype(rate.dtype)
    scale = rate * jnp.sqrt(1 - 0.999**power) / (1 - 0.9**power)
    move = jax.tree.map(lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-7), model, first, second)
    return move, (first, second)


def _require_usable(
    state: MajorityState,
    data: SparseMajority,
    keys: Array,
    epochs: int,
    chunk: int,
    settings: MajoritySettings,
) -> None:
    counts = (state.least.shape[0], data.bits.shape[0], keys.shape[0])
    if data.bits.ndim != 3 or len(set(counts)) != 1 or counts[0] < 1:
        raise UserError(
            f"{counts[0]} models, {counts[1]} data sets and {counts[2]} keys: give one of each per "
            "member, along a leading axis"
        )
    sizes = {"epochs": epochs, "chunk": chunk, "batch": settings.batch}
    sizes |= {"evaluation": settings.evaluation, "validate_every": settings.validate_every}
    if min(sizes.values()) < 1:
        numbers = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        raise UserError(f"{numbers}: each must be at least 1")
    if not (settings.rate > 0 and 0 < settings.decay <= 1 and settings.floor >= 0):
        raise UserError(
            f"rate = {settings.rate}, decay = {settings.decay}, floor = {settings.floor}: give a "
            "positive rate, a decay of at most 1 and a floor that is not negative"
        )
