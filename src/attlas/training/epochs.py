r"""Training by epochs, after each of which members are evaluated, selected and perhaps stopped.

Unlike `fit`, which is one program, this runs epoch by epoch: the batches of an epoch are prepared
on the host, and all members may stop long before the last epoch.
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

from attlas._jax.compilation import CHEAP_COMPILATION, loop_options
from attlas._jax.device_arrays import on_device
from attlas._jax.processes import available_cores
from attlas.core.checkpoint import Stage, named_leaves, new_stage, with_leaves
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.ranges import whole_number
from attlas.core.solution import Result
from attlas.training import ensemble
from attlas.training._epoch_arguments import epoch_of, member_count
from attlas.training.course import ClosedForm, value_and_gradient
from attlas.training.trajectory import Trajectory


class _Task(NamedTuple):
    """The functions and settings of an epoch."""

    loss: Callable[..., tuple[Array, Array]] | ClosedForm
    optimizer: optax.GradientTransformation
    evaluate: Callable[[Any, Any], dict[str, Array]]
    batch: int
    stop_accuracy: float | None


class _Member(NamedTuple):
    """The state of a member, its best point so far, and the sums of the running epoch."""

    params: Any
    optimizer: Any
    selected: Any
    best: Array
    stopped: Array
    loss: Array
    hits: Array


def epoch_orders(keys: Key[Array, " e"], size: int, batch: int) -> Iterator[np.ndarray]:
    """For each epoch a fresh permutation per member, split into batches.

    Examples that do not fill a batch are left out of that epoch. The permutations are drawn on the
    host, as sorting random bits would take a third of a compilation.

    Args:
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
        permutations = [g.permutation(size)[: steps * batch] for g in generators]
        # An explicit dtype: threads do not see a precision set by a context manager.
        yield np.array(permutations, np.int32).reshape(len(seeds), steps, batch)


@refuse_misfits
def fit_epochs(
    loss: Callable[[Any, Any, Any], tuple[Array, Array]] | ClosedForm,
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
    r"""Train classifiers epoch by epoch, and select for each the epoch of best validation accuracy.

    With a `stop_accuracy` a member stops when its accuracy over an epoch reaches it, or when a
    parameter is not finite; training ends when all members have stopped.

    Args:
        loss: loss(model, data, entry of the batches) returns the loss and the number of correct
            classes; or a `ClosedForm` that returns this pair and the gradient of the loss.
        optimizer: optax transformation on all parameters.
        models: stacked models, with a leading axis of members on every array.
        evaluate: evaluate(model, data) returns named accuracies; "validation" selects the epoch.
        width: members per program, a divisor of their number; fewer on several devices.
        stop_accuracy: training accuracy at which a member stops; no member does when None.
        quick_compile: compile with few optimisations, if compiling costs more than training.
        squeeze: run a width of 1 without an axis of members, 1.14 times faster on a CPU.

    Returns:
        The epochs, NaN after a member has stopped: `loss`, the mean over the batches, each before
        its step; `train`, the accuracy on the same batches; and the results of `evaluate`. The
        result is CONVERGED if the stopping accuracy was reached.

    Raises:
        UserError: if nothing is to be trained, the width does not divide the members, or there is
            no epoch.

    Examples:
        >>> path = fit_epochs(lambda w, _, x: (w * x, jnp.sum(x > 0)), optax.sgd(1.0),
        ...                   jnp.zeros(2), None, [np.ones((2, 3)), -np.ones((2, 3))], batch=1,
        ...                   width=2, evaluate=lambda w, _: {"validation": jnp.abs(w)})
        >>> path.validation.tolist(), path.selected.tolist(), path.train[0].tolist()
        ([[3.0, 0.0], [3.0, 0.0]], [-3.0, -3.0], [1.0, 0.0])
    """
    count = member_count(models)
    whole_number(batch, "batch", 1, 2**31 - 1)
    params, frozen = eqx.partition(models, eqx.is_inexact_array)
    devices = ensemble.member_devices()
    width = _shared_width(count, width, len(devices))
    task = _Task(loss, optimizer, evaluate, batch, stop_accuracy)
    programs = _programs(task, frozen, squeeze and width == 1, quick_compile)
    cuts = [slice(first, first + width) for first in range(0, count, width)]
    groups = _started(params, optimizer, cuts)
    places = _Places(programs, devices, len(cuts), data)
    ends, seen, steps = _run_epochs(places, groups, batches, cuts)
    return _judged(*ends, seen, frozen, stop_accuracy, steps)


def _shared_width(count: int, width: int, devices: int) -> int:
    """The largest divisor of the members' number that gives every device a group, if possible.

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
    """The devices of the groups of members, with the data and the programs there."""

    def __init__(self, programs: list[Any], devices: list[jax.Device], count: int, data: Any):
        self.homes = [devices[k % len(devices)] for k in range(count)]
        on_host, by_home = jax.tree.map(on_device, data), dict.fromkeys(self.homes)
        self._several = len(by_home) > 1
        self.data = {home: self._put(on_host, home) for home in by_home}
        self._programs, self._compiled = programs, {}

    def _put(self, tree: Any, home: jax.Device) -> Any:
        return jax.device_put(tree, home) if self._several else tree

    def placed(self, trees: Iterable[Any]) -> list[Any]:
        """One tree per group, on its device."""
        return [self._put(tree, home) for tree, home in zip(trees, self.homes, strict=True)]

    def compiled(self, groups: list[_Member], batches: list[Any]) -> None:
        """Compile in this thread, as settings by a context manager hold in one thread only."""
        train, evaluate = self._programs
        for group, group_batches, home in zip(groups, batches, self.homes, strict=True):
            if home not in self._compiled:
                data, number = self.data[home], np.int32(0)
                self._compiled[home] = (
                    train.lower(group, group_batches, data, number, number).compile(),
                    evaluate.lower(group, data, number).compile(),
                )

    def trained(self, part: _Member, batches: Any, home: jax.Device, first: int, end: int) -> Any:
        """A group after the steps `first` to `end - 1`."""
        train, _ = self._compiled[home]
        result = train(part, batches, self.data[home], np.int32(first), np.int32(end))
        return jax.block_until_ready(result)

    def evaluated(self, part: _Member, home: jax.Device, steps: int) -> Any:
        """A group at the end of an epoch, and its evaluation."""
        _, evaluate = self._compiled[home]
        return jax.block_until_ready(evaluate(part, self.data[home], np.int32(steps)))


def _run_epochs(
    places: _Places, groups: list[_Member], batches: Iterable[Any], cuts: list[slice]
) -> tuple[tuple[Any, Any], dict[str, np.ndarray], int]:
    """Run epoch by epoch, groups of members in parallel: models, rows, steps per epoch."""
    stage = new_stage(groups, places.data[places.homes[0]])
    now = _Progress.resumed(stage, groups)
    now.groups = places.placed(now.groups)
    done, steps = len(now.rows), 0
    with ThreadPoolExecutor(max(available_cores(), len(places.data))) as pool:
        for number, batches_read in enumerate(batches):
            epoch_batches, steps = epoch_of(batches_read, cuts[-1].stop)
            # Batches of finished epochs are drawn too, so that the next ones are the same.
            if number < done:
                continue
            if now.is_over():
                break
            group_batches = places.placed(_cut(epoch_batches, cut) for cut in cuts)
            places.compiled(now.groups, group_batches)
            while now.step < steps:
                size = steps if stage is None else stage.size
                first, end = now.step, min(steps, now.step + size)
                run = partial(places.trained, first=first, end=end)
                now.groups, now.step = (
                    list(pool.map(run, now.groups, group_batches, places.homes)),
                    end,
                )
                if stage is not None:
                    stage.offer(end - first, now.leaves)
            seen = pool.map(partial(places.evaluated, steps=steps), now.groups, places.homes)
            now.end_epoch(seen)
            if stage is not None:
                stage.offer(0, now.leaves)
    if stage is not None and now.rows:
        stage.offer(0, now.leaves, is_last=True)
    if not now.rows:
        raise UserError("batches has no epoch: give at least one")
    ends = [(part.params, part.selected) for part in now.groups]
    return _joined(ends), jax.tree.map(lambda *rows: np.stack(rows, axis=1), *now.rows), steps


_Row = dict[str, np.ndarray]


@dataclass
class _Progress:
    """The state of the members, the rows of past epochs, and the steps of the running one."""

    groups: list[_Member]
    rows: list[_Row]
    step: int

    @classmethod
    def resumed(cls, stage: Stage | None, groups: list[_Member]) -> "_Progress":
        """The saved progress, or that of a new training."""
        stored = None if stage is None else stage.restored()
        if stored is None:
            return cls(groups, [], 0)
        columns = {name[4:]: column for name, column in stored.items() if name.startswith("row.")}
        count = len(next(iter(columns.values()), ()))
        rows = [{name: column[k] for name, column in columns.items()} for k in range(count)]
        return cls(with_leaves("member", groups, stored), rows, int(stored["step"]))

    def is_over(self) -> bool:
        """Whether all members have stopped."""
        return all(np.all(part.stopped) for part in self.groups)

    def end_epoch(self, evaluated: Iterable[tuple[_Member, dict[str, Array]]]) -> None:
        """Record the groups at the end of the running epoch, and their evaluation."""
        groups, seen = zip(*evaluated, strict=True)
        row = jax.tree.map(lambda *some: np.concatenate(some), *jax.device_get(seen))
        self.groups, self.step = list(groups), 0
        self.rows.append(row)

    def leaves(self) -> dict[str, np.ndarray]:
        """All arrays by name, for a checkpoint."""
        names = self.rows[0] if self.rows else ()
        columns = {f"row.{name}": np.stack([row[name] for row in self.rows]) for name in names}
        return {**named_leaves("member", self.groups), **columns, "step": np.array(self.step)}


def _programs(task: _Task, frozen: Any, alone: bool, quick_compile: bool) -> list[Any]:
    """The programs for the steps of an epoch and for its end."""
    train = _of_members(partial(_trained, task, frozen), 2, alone)
    evaluate = _of_members(partial(_evaluated, task, frozen), 1, alone)
    flags = CHEAP_COMPILATION if quick_compile else loop_options()
    return [jax.jit(function, compiler_options=flags) for function in (train, evaluate)]


def _of_members(of_one: Callable[..., Any], count: int, alone: bool) -> Callable[..., Any]:
    """A function of one member, whose first arguments are its own, for several members or one."""

    def several(*arguments: Any) -> Any:
        return jax.vmap(lambda *own_arguments: of_one(*own_arguments, *arguments[count:]))(
            *arguments[:count]
        )

    def single(*arguments: Any) -> Any:
        first = jax.tree.map(lambda a: a[0], arguments[:count])
        return jax.tree.map(lambda a: a[None], of_one(*first, *arguments[count:]))

    return single if alone else several


def _joined(groups: list[Any]) -> Any:
    if len(groups) == 1:
        return groups[0]
    # Through NumPy, as they may be on several devices.
    return jax.tree.map(lambda *a: on_device(np.concatenate(jax.device_get(a))), *groups)


def _cut(tree: Any, cut: slice) -> Any:
    return jax.tree.map(lambda a: a if len(a) == cut.stop - cut.start else a[cut], tree)


def _started(
    params: Any, optimizer: optax.GradientTransformation, cuts: list[slice]
) -> list[_Member]:
    begin, dtype = jax.jit(jax.vmap(optimizer.init)), jax.tree.leaves(params)[0].dtype
    groups = []
    for cut in cuts:
        start_params, width = _cut(params, cut), cut.stop - cut.start
        none = np.full(width, -1.0, dtype), np.zeros(width, bool)
        sums = np.zeros(width, dtype), np.zeros(width, np.int32)
        groups.append(
            _Member(
                start_params, begin(start_params), start_params, *jax.device_put((*none, *sums))
            )
        )
    return groups


def _trained(
    task: _Task, frozen: Any, member: _Member, batches: Any, data: Any, first: Array, end: Array
) -> _Member:
    """A member after the steps `first` to `end - 1` of an epoch."""
    measured = value_and_gradient(task.loss, frozen, has_aux=True)

    def step(number: Array, now: tuple[Any, Any, Array, Array]) -> tuple[Any, Any, Array, Array]:
        params, state, loss, right = now
        batch = jax.tree.map(lambda a: a[number], batches)
        (value, hits), slope = measured(params, data, batch)
        updates, state = task.optimizer.update(slope, state, params)
        params = optax.apply_updates(params, updates)
        return params, state, loss + value.astype(loss.dtype), right + hits.astype(right.dtype)

    start = member.params, member.optimizer, member.loss, member.hits
    params, state, loss, hits = jax.lax.fori_loop(first, end, step, start)
    if task.stop_accuracy is not None:
        params, state = _unless(member.stopped, (params, state), start[:2])
    return member._replace(params=params, optimizer=state, loss=loss, hits=hits)


def _evaluated(
    task: _Task, frozen: Any, member: _Member, data: Any, steps: Array
) -> tuple[_Member, dict[str, Array]]:
    """A member at the end of an epoch, and its evaluation."""
    params, goal = member.params, task.stop_accuracy
    held = task.evaluate(eqx.combine(params, frozen), data)
    count = steps.astype(member.loss.dtype)
    train = member.hits.astype(count.dtype) / (count * task.batch)
    seen = {"loss": member.loss / count, "train": train, **held}
    better = held["validation"].astype(member.best.dtype) > member.best
    stopped = member.stopped
    if goal is not None:
        seen = {name: jnp.where(stopped, jnp.nan, a) for name, a in seen.items()}
        better = ~stopped & better
        stopped = stopped | (train >= goal) | ~_is_finite(params)
    selected = _unless(~better, params, member.selected)
    best = jnp.where(better, held["validation"].astype(member.best.dtype), member.best)
    none = jnp.zeros_like(member.loss), jnp.zeros_like(member.hits)
    return _Member(params, member.optimizer, selected, best, stopped, *none), seen


def _unless(stays: Bool[Array, ""], new: Any, old: Any) -> Any:
    return jax.tree.map(lambda new, old: jnp.where(stays, old, new), new, old)


def _is_finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def _judged(
    last: Any, selected: Any, seen: dict, frozen: Any, stop_accuracy: float | None, steps: int
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
        eqx.combine(last, frozen),
        loss,
        observed=seen,
        result=np.where(finite, code, Result.NOT_FINITE.value),
        stopped_at=steps * np.sum(np.isfinite(seen["validation"]), axis=1),
        selected=eqx.combine(selected, frozen),
        # A training whose every validation is NaN selects its first record.
        selected_at=np.argmax(np.nan_to_num(seen["validation"], nan=-np.inf), axis=1),
    )
