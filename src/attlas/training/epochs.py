r"""Training by epochs: after each one members are evaluated, selected and perhaps stopped.

What `fit` does in one program is done here epoch by epoch, where the batches of an epoch are
prepared on the host, or where all members may have stopped long before the last epoch.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Key

from attlas.core.checkpoint import Stage, named_leaves, new_stage, with_leaves
from attlas.core.compilation import CHEAP_COMPILATION, loop_options
from attlas.core.device_arrays import on_device
from attlas.core.errors import UserError
from attlas.core.processes import available_cores
from attlas.core.solution import Result
from attlas.training import ensemble
from attlas.training.trajectory import Trajectory


class _Task(NamedTuple):
    """What is done in an epoch."""

    loss: Callable[..., tuple[Array, Array]]
    optimizer: optax.GradientTransformation
    evaluate: Callable[[Any, Any], dict[str, Array]]
    batch: int
    stop_accuracy: float | None


class _Member(NamedTuple):
    """Where a member stands, and its best point so far."""

    params: Any
    optimizer: Any
    selected: Any
    best: Array
    stopped: Array


def epoch_orders(keys: Key[Array, " e"], size: int, batch: int) -> Iterator[np.ndarray]:
    """For each epoch fresh permutations, cut in batches.

    What does not fill a batch waits for another epoch. Drawn on the host: sorting random bits
    would take a third of a compilation.

    Args:
        keys: one random key per member.
        size: examples of the training set.
        batch: examples per batch, at most `size`.

    Yields:
        Example numbers [e, steps, batch], without end.

    Examples:
        >>> first = next(epoch_orders(jax.random.split(jax.random.key(0), 2), size=7, batch=3))
        >>> first.shape, int(np.unique(first[0]).size)
        ((2, 2, 3), 6)
    """
    seeds = np.asarray(jax.random.key_data(keys)).tolist()
    generators = [np.random.default_rng(seed) for seed in seeds]
    steps = size // batch
    while True:
        drawn = [g.permutation(size)[: steps * batch] for g in generators]
        # Of a fixed width: threads do not see a precision that a context manager sets.
        yield np.array(drawn, np.int32).reshape(len(seeds), steps, batch)


def fit_epochs(
    loss: Callable[[Any, Any, Any], tuple[Array, Array]],
    optimizer: optax.GradientTransformation,
    models: Any,
    data: Any,
    batches: Iterable[Any],
    *,
    evaluate: Callable[[Any, Any], dict[str, Array]],
    batch: int,
    width: int,
    stop_accuracy: float | None = None,
    quick_compile: bool = False,
    squeeze: bool = False,
) -> Trajectory:
    r"""Train classifiers epoch by epoch, and select for each the epoch of best validation.

    With a `stop_accuracy` a member stops when its accuracy over an epoch reaches it, or when a
    parameter is not finite; training ends with the last member.

    Args:
        loss: from (model, data, entry of the batches) to its loss and its number of right classes.
        optimizer: optax transformation on all parameters.
        models: stacked models, with a leading axis of members on every array.
        data: what loss and evaluation are given.
        batches: for each epoch arrays [members, steps, ...].
        evaluate: from (model, data) to named accuracies; that of "validation" selects.
        batch: samples per batch.
        width: members that a program runs at once, a divisor of their number; fewer on devices.
        stop_accuracy: training accuracy at which a member stops; no member does when None.
        quick_compile: let XLA optimise little, where compiling costs more than training.
        squeeze: run a width of 1 without an axis of members, on a CPU an eighth faster.

    Returns:
        The epochs, NaN after a member has stopped: `loss`, the mean over the batches, each before
        its step; `train`, the accuracy over the same batches; and what is evaluated. The result
        is CONVERGED where the stopping accuracy was reached.

    Raises:
        UserError: if the width does not divide the members, or there is no epoch.

    Examples:
        >>> path = fit_epochs(lambda w, _, x: (w * x, jnp.sum(x > 0)), optax.sgd(1.0),
        ...                   jnp.zeros(2), None, [np.ones((2, 3)), -np.ones((2, 3))], batch=1,
        ...                   width=2, evaluate=lambda w, _: {"validation": jnp.abs(w)})
        >>> path.validation.tolist(), path.selected.tolist(), path.train[0].tolist()
        ([[3.0, 0.0], [3.0, 0.0]], [-3.0, -3.0], [1.0, 0.0])
    """  # noqa: DOC502 (raised one call below)
    params, rest = eqx.partition(models, eqx.is_inexact_array)
    count = jax.tree.leaves(params)[0].shape[0]
    devices = ensemble.member_devices()
    width = _shared_width(count, width, len(devices))
    task = _Task(loss, optimizer, evaluate, batch, stop_accuracy)
    epoch = partial(_epoch, task, rest)
    joined = _alone(epoch) if squeeze and width == 1 else jax.vmap(epoch, (0, 0, None))
    run = jax.jit(joined, compiler_options=CHEAP_COMPILATION if quick_compile else loop_options())
    cuts = [slice(first, first + width) for first in range(0, count, width)]
    parts = _started(params, optimizer, cuts)
    ends, seen, steps = _run_epochs(_Places(run, devices, len(cuts), data), parts, batches, cuts)
    return _judged(*ends, seen, rest, stop_accuracy, steps)


def _shared_width(count: int, width: int, devices: int) -> int:
    """The largest divisor of the members' number that gives every device a part, if there is one.

    Args:
        count: members.
        width: of a part at most.
        devices: among which parts are shared out.

    Returns:
        Members per part.

    Raises:
        UserError: if the width does not divide the members.

    Examples:
        >>> _shared_width(12, 12, 1), _shared_width(12, 12, 8), _shared_width(12, 2, 3)
        (12, 1, 2)
    """
    if width < 1 or count % width:
        raise UserError(f"width = {width} does not divide {count} members: choose a divisor")
    most = min(width, max(1, count // devices))
    return next(part for part in range(most, 0, -1) if count % part == 0)


class _Places:
    """Where the parts are trained: each on one device, with the data and a program there."""

    def __init__(self, run: Any, devices: list[jax.Device], count: int, data: Any):
        self.homes = [devices[k % len(devices)] for k in range(count)]
        whole, own = jax.tree.map(on_device, data), dict.fromkeys(self.homes)
        self._several = len(own) > 1
        self.data = {home: self._put(whole, home) for home in own}
        self._run, self._programs = run, {}

    def _put(self, tree: Any, home: jax.Device) -> Any:
        return jax.device_put(tree, home) if self._several else tree

    def placed(self, trees: Iterable[Any]) -> list[Any]:
        """One tree per part, on its device."""
        return [self._put(tree, home) for tree, home in zip(trees, self.homes, strict=True)]

    def compiled(self, parts: list[_Member], batches: list[Any]) -> None:
        """Compile here: settings made by a context manager hold for one thread alone."""
        for part, given, home in zip(parts, batches, self.homes, strict=True):
            if home not in self._programs:
                lowered = self._run.lower(part, given, self.data[home])
                self._programs[home] = lowered.compile()

    def epoch(self, part: _Member, batches: Any, home: jax.Device) -> Any:
        """One epoch of a part."""
        return jax.block_until_ready(self._programs[home](part, batches, self.data[home]))


def _run_epochs(
    places: _Places, parts: list[_Member], batches: Iterable[Any], cuts: list[slice]
) -> tuple[tuple[Any, Any], dict[str, np.ndarray], int]:
    """Epoch by epoch, parts of the members side by side: models, rows, steps per epoch."""
    stage = new_stage(parts, places.data[places.homes[0]])
    now = _Progress.kept(stage, parts)
    now.parts = places.placed(now.parts)
    done, steps = len(now.rows), 0
    with ThreadPoolExecutor(max(available_cores(), len(places.data))) as pool:
        for number, given in enumerate(batches):
            steps = jax.tree.leaves(given)[0].shape[1]
            # What is drawn for epochs that are kept is drawn, so that the next ones are the same.
            if number < done:
                continue
            if now.is_over():
                break
            own = places.placed(_cut(given, cut) for cut in cuts)
            places.compiled(now.parts, own)
            left = now.left()
            run = [[each[k] for k in left] for each in (now.parts, own, places.homes)]
            for k, found in zip(left, pool.map(places.epoch, *run), strict=True):
                before = now.share(steps)
                now.take(k, *found)
                if stage is not None:
                    after = now.share(steps) if now.ended else steps
                    stage.offer(after - before, now.leaves)
    if stage is not None and now.rows:
        stage.offer(0, now.leaves, is_last=True)
    if not now.rows:
        raise UserError("no epoch of batches: give at least one")
    ends = [(part.params, part.selected) for part in now.parts]
    return _joined(ends), jax.tree.map(lambda *each: np.stack(each, axis=1), *now.rows), steps


_Row = dict[str, np.ndarray]


@dataclass
class _Progress:
    """Where the members stand: between two epochs, or within one that some parts have ended."""

    parts: list[_Member]
    rows: list[_Row]
    ended: dict[int, _Row]

    @classmethod
    def kept(cls, stage: Stage | None, parts: list[_Member]) -> "_Progress":
        """From where to go on."""
        found = None if stage is None else stage.kept()
        if found is None:
            return cls(parts, [], {})
        columns = {name[4:]: column for name, column in found.items() if name.startswith("row.")}
        count = len(next(iter(columns.values()), ()))
        rows = [{name: column[k] for name, column in columns.items()} for k in range(count)]
        ended: dict[int, _Row] = {}
        for name in found:
            if name.startswith("now."):
                _, k, of = name.split(".", 2)
                ended.setdefault(int(k), {})[of] = found[name]
        return cls(with_leaves("member", parts, found), rows, ended)

    def left(self) -> list[int]:
        """The parts that have not ended the epoch that runs."""
        return [k for k in range(len(self.parts)) if k not in self.ended]

    def share(self, steps: int) -> int:
        """How many of the steps of the epoch that runs its ended parts count for."""
        return steps * len(self.ended) // len(self.parts)

    def is_over(self) -> bool:
        """Whether all members have stopped."""
        between = bool(self.rows) and not self.ended
        return between and all(np.all(part.stopped) for part in self.parts)

    def take(self, k: int, part: _Member, row: dict[str, Array]) -> None:
        """What a part has after its epoch."""
        self.parts[k], self.ended[k] = part, jax.device_get(row)
        if not self.left():
            each = [self.ended[k] for k in range(len(self.parts))]
            self.rows.append(jax.tree.map(lambda *some: np.concatenate(some), *each))
            self.ended = {}

    def leaves(self) -> dict[str, np.ndarray]:
        """All of it by name, for a keeper."""
        names = self.rows[0] if self.rows else ()
        columns = {f"row.{name}": np.stack([row[name] for row in self.rows]) for name in names}
        now = {f"now.{k}.{of}": a for k, row in self.ended.items() for of, a in row.items()}
        return {**named_leaves("member", self.parts), **columns, **now}


def _alone(epoch: Callable[..., Any]) -> Callable[..., Any]:
    def one(member: Any, batches: Any, data: Any) -> Any:
        found = epoch(*jax.tree.map(lambda a: a[0], (member, batches)), data)
        return jax.tree.map(lambda a: a[None], found)

    return one


def _joined(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    # Through NumPy: they may be on several devices.
    return jax.tree.map(lambda *a: on_device(np.concatenate(jax.device_get(a))), *parts)


def _cut(tree: Any, cut: slice) -> Any:
    return jax.tree.map(lambda a: a if len(a) == cut.stop - cut.start else a[cut], tree)


def _started(
    params: Any, optimizer: optax.GradientTransformation, cuts: list[slice]
) -> list[_Member]:
    begin, dtype = jax.jit(jax.vmap(optimizer.init)), jax.tree.leaves(params)[0].dtype
    parts = []
    for cut in cuts:
        own, width = _cut(params, cut), cut.stop - cut.start
        best, stopped = jax.device_put((np.full(width, -1.0, dtype), np.zeros(width, bool)))
        parts.append(_Member(own, begin(own), own, best, stopped))
    return parts


def _epoch(
    task: _Task, rest: Any, member: _Member, batches: Any, data: Any
) -> tuple[_Member, dict[str, Array]]:
    def objective(params: Any, chosen: Any) -> tuple[Array, Array]:
        return task.loss(eqx.combine(params, rest), data, chosen)

    def step(carry: tuple[Any, Any], chosen: Any) -> tuple[Any, tuple[Array, Array]]:
        params, state = carry
        (value, hits), slope = jax.value_and_grad(objective, has_aux=True)(params, chosen)
        updates, state = task.optimizer.update(slope, state, params)
        return (optax.apply_updates(params, updates), state), (value, hits)

    start = member.params, member.optimizer
    (params, state), (losses, hits) = jax.lax.scan(step, start, batches)
    goal = task.stop_accuracy
    if goal is not None:
        params, state = _unless(member.stopped, (params, state), start)
    held = task.evaluate(eqx.combine(params, rest), data)
    train = jnp.sum(hits).astype(losses.dtype) / (losses.size * task.batch)
    seen = {"loss": jnp.mean(losses), "train": train, **held}
    better = held["validation"].astype(member.best.dtype) > member.best
    stopped = member.stopped
    if goal is not None:
        seen = {name: jnp.where(stopped, jnp.nan, a) for name, a in seen.items()}
        better = ~stopped & better
        stopped = stopped | (train >= goal) | ~_is_finite(params)
    selected = _unless(~better, params, member.selected)
    best = jnp.where(better, held["validation"].astype(member.best.dtype), member.best)
    return _Member(params, state, selected, best, stopped), seen


def _unless(stays: Bool[Array, ""], new: Any, old: Any) -> Any:
    return jax.tree.map(lambda new, old: jnp.where(stays, old, new), new, old)


def _is_finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def _judged(
    last: Any, selected: Any, seen: dict, rest: Any, stop_accuracy: float | None, steps: int
) -> Trajectory:
    loss = seen.pop("loss")
    flat = [np.asarray(leaf).reshape(len(loss), -1) for leaf in jax.tree.leaves(last)]
    finite = np.all([np.isfinite(leaf).all(axis=1) for leaf in flat], axis=0)
    goal = np.inf if stop_accuracy is None else stop_accuracy
    reached = np.nanmax(seen["train"], axis=1) >= goal
    code = np.where(reached, Result.CONVERGED.value, Result.MAX_STEPS.value)
    return Trajectory(
        steps * np.arange(1, loss.shape[1] + 1),
        None,
        eqx.combine(last, rest),
        loss,
        observed=seen,
        result=np.where(finite, code, Result.NOT_FINITE.value),
        stopped_at=steps * np.sum(np.isfinite(seen["validation"]), axis=1),
        selected=eqx.combine(selected, rest),
        selected_at=np.nanargmax(seen["validation"], axis=1),
    )
