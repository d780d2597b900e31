r"""The training loop: any loss, any optax optimiser, one model or an ensemble, one program.

A record is the state before the last of some steps: an outer scan over the records holds an inner
loop over steps, with one gradient in it. Recording each step thus costs no second gradient, any
schedule of as many records runs the same program, and observations are made at records only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Int

from attlas.core.errors import UserError
from attlas.core.processes import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.core.trees import as_tree, require_real_tree
from attlas.training.ensemble import in_chunks
from attlas.training.trajectory import Trajectory, recording_schedule

State = TypeVar("State")
Seen = TypeVar("Seen")


class ClosedForm(eqx.Module):
    """A loss that brings its gradient along, in place of automatic differentiation.

    Attributes:
        value_and_gradient: from what a loss is given to its value and its gradient.
    """

    value_and_gradient: Callable[..., tuple[Array, Any]]


class Ensemble(NamedTuple):
    """Which arguments of `fit` have a leading axis of members, and how many run together.

    True, or a tree of booleans where some arrays of an argument have the axis. Restarts are
    stacked starts; samples left out are weights in the data.

    Attributes:
        params: the starts.
        data: what the loss is given.
        batches: the members' own batches.
        optimizer: arrays of the optimiser.
        chunk: members in a program; all when None. Chunks run at once, one on each core.

    Examples:
        Mirror descent on g w moves sign(w) |w|^{p-1} by -eta g; three starts at once:

        >>> from attlas.optim.mirror_descent import mirror_descent
        >>> path = fit(lambda w, g: g * w, mirror_descent(0.5, 3.0), jnp.array([1.0, 2.0, 4.0]),
        ...            jnp.array(-6.0), steps=1, ensemble=Ensemble(params=True))
        >>> [round(u, 9) for u in (path.last**2).tolist()]
        [4.0, 7.0, 19.0]
    """

    params: Any = False
    data: Any = False
    batches: Any = False
    optimizer: Any = False
    chunk: int | None = None


class _Task(eqx.Module):
    """What is done at a step and at a record."""

    loss: Any
    project: Any
    observe: Any
    keep: bool


class _Point(NamedTuple):
    """Where a training stands, and what the next record needs of the steps before it."""

    params: Any
    optimizer: Any
    step: Array
    seen: Any


def record_along(
    advance: Callable[[State], State],
    observe: Callable[[State], Seen],
    start: State,
    lengths: Int[Array, " s"],
    begin: Callable[[State], State] | None = None,
) -> tuple[State, Seen]:
    """Steps in a loop, observing the state after chosen numbers of them.

    Args:
        advance: one step.
        observe: what is recorded of a state.
        start: the state before the first step.
        lengths: steps before each record, since the one before.
        begin: what is done to a state before the steps to each record.

    Returns:
        The last state, and the records along a leading axis.

    Examples:
        >>> lengths = jnp.array([0, 1, 3])
        >>> last, seen = record_along(lambda n: n + 1, lambda n: 10 * n, jnp.array(0), lengths)
        >>> int(last), seen.tolist()
        (4, [0, 10, 40])
    """

    def segment(state: State, length: Array) -> tuple[State, Seen]:
        state = state if begin is None else begin(state)
        state = jax.lax.fori_loop(0, length, lambda _, now: advance(now), state)
        return state, observe(state)

    return jax.lax.scan(segment, start, lengths)


def fit(
    loss: Callable[..., Array] | ClosedForm,
    optimizer: optax.GradientTransformation | Callable[[], optax.GradientTransformation],
    params: Any,
    data: Any = None,
    *,
    steps: int | None = None,
    record_at: Sequence[int] | Int[Array, " s"] | None = None,
    batches: Any = None,
    observe: Callable[[Any, Any], Mapping[str, Any]] | None = None,
    project: Callable[[Any], Any] | None = None,
    keep: bool = True,
    ensemble: Ensemble | None = None,
    quick_compile: bool = False,
) -> Trajectory:
    r"""Train: theta_{k+1} = project(theta_k + update_k), the update from an optax optimiser.

    It is one compiled program, also under `jax.jit` and `jax.vmap`. Arrays are its arguments,
    functions a part of it: defined once, outside of loops, they compile once.

    Args:
        loss: loss(params, data), or loss(params, data, batch) with batches; or a `ClosedForm`.
        optimizer: optax transformation; or `jax.tree_util.Partial(optax.sgd, rate)`, whose arrays
            are then arguments of the program, and may differ between members.
        params: the start, any tree or module; its floating arrays are trained. A list of numbers
            is one array.
        data: what the loss is given, any tree of arrays.
        steps: number of steps; the last of `record_at` when None.
        record_at: increasing step numbers, log-spaced when None; training ends at the last.
        batches: arrays with a leading axis of steps, of which the loss is given the entry of its
            step: numbers of samples, fresh samples, keys; the whole data when None.
        observe: from (params, data) to named arrays, evaluated at the records.
        project: from parameters to parameters, applied to the start and after each step.
        keep: keep the parameters of the records.
        ensemble: train many at once, which differ in the arguments it names.
        quick_compile: let XLA optimise little, where compiling costs more than training.

    Returns:
        The recorded steps, members along the leading axis. A schedule, batches or an ensemble
        that cannot be used raise a `UserError`.

    Examples:
        Gradient descent on w^2 / 2 halves w at each step of size 1/2; for mirror descent and for
        many starts see `Ensemble`:

        >>> path = fit(lambda w, _: w**2 / 2, optax.sgd(0.5), jnp.array(8.0), record_at=range(4))
        >>> path.params.tolist(), path.loss.tolist()
        ([8.0, 4.0, 2.0, 1.0], [32.0, 8.0, 2.0, 0.5])
    """
    params = as_tree(params, "params")
    require_real_tree(params, "params")
    schedule = _schedule(steps, record_at)
    _require_batches(batches, schedule, ensemble)
    task = _Task(loss, project, observe, keep)
    given = {"params": params, "data": data, "batches": batches, "optimizer": optimizer}
    return _fit(task, given, schedule, ensemble, _run_quickly if quick_compile else _run)


def _fit(
    task: _Task, given: dict[str, Any], schedule: Any, ensemble: Ensemble | None, run: Any
) -> Trajectory:
    moving, rest = eqx.partition(given["params"], eqx.is_inexact_array)
    if not jax.tree.leaves(moving):
        raise UserError("no floating array in params: give the numbers to train as arrays")
    given = {**given, "params": jax.tree.map(jnp.asarray, moving)}
    # A whole batch ends with the gradient at its record, of which the step is not recorded.
    first = jnp.full(1, -1 if given["batches"] is None else 0, jnp.int32)
    lengths = jnp.diff(jnp.asarray(schedule, jnp.int32), prepend=first)
    if ensemble is None:
        found = run({}, given, rest, task, lengths)
    else:
        own, shared, count = _split(given, ensemble)
        width = count if ensemble.chunk is None else ensemble.chunk
        found = in_chunks(lambda part: run(part, shared, rest, task, lengths), own, width)
    path, last, value, norm, seen, code = found
    return Trajectory(
        jnp.asarray(schedule, jnp.int32),
        eqx.combine(path, rest) if task.keep else None,
        eqx.combine(last, rest),
        value,
        norm,
        seen,
        code,
    )


def _train(given: dict[str, Any], rest: Any, task: _Task, lengths: Array) -> tuple[Any, ...]:
    """One training: records of parameters, the last ones, losses, norms, observations, code."""
    data, batches, optimizer = (given[name] for name in ("data", "batches", "optimizer"))
    made: Any = optimizer() if callable(optimizer) else optimizer
    rule = optax.with_extra_args_support(made)
    objective, whole = _objective(task.loss, rest), batches is None

    def projected(params: Any) -> Any:
        if task.project is None:
            return params
        return eqx.filter(task.project(eqx.combine(params, rest)), eqx.is_inexact_array)

    def slope_at(params: Any, step: Array) -> tuple[Array, Any]:
        chosen = () if whole else (jax.tree.map(lambda a: a[step], batches),)
        return objective(params, data, *chosen)

    def advance(now: _Point) -> _Point:
        value, slope = slope_at(now.params, now.step)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts its steps in integers
            change, state = rule.update(slope, now.optimizer, now.params, value=value, grad=slope)
        seen = (now.params, value, _norm(slope, value)) if whole else now.seen + value
        params = projected(optax.apply_updates(now.params, change))
        return _Point(params, state, now.step + 1, seen)

    def look(now: _Point) -> tuple[Any, ...]:
        params, value, norm = now.seen if whole else (now.params, now.seen, None)
        seen = task.observe(eqx.combine(params, rest), data) if task.observe else {}
        return (params if task.keep else None), value, norm, dict(seen)

    start, first = projected(given["params"]), jnp.zeros((), jnp.int32)
    zero = jnp.zeros((), jax.eval_shape(slope_at, start, first)[0].dtype)
    point = _Point(start, rule.init(start), first, (start, zero, zero) if whole else zero)
    # The sum of the losses of batches begins anew after each record.
    begin = None if whole else lambda now: now._replace(seen=zero)
    end, (path, value, norm, seen) = record_along(advance, look, point, lengths, begin)
    if not whole:
        # No batch comes before step 0: its mean is 0 / 0.
        value = value / lengths.astype(value.dtype)
    last = end.seen[0] if whole else end.params
    numbers = (last if path is None else path, norm, jnp.where(lengths > 0, value, 0))
    finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(numbers)])
    code = jnp.where(jnp.all(finite), Result.MAX_STEPS.value, Result.NOT_FINITE.value)
    return path, last, value, norm, seen, code.astype(jnp.int32)


def _schedule(steps: int | None, record_at: Any) -> Any:
    try:
        return recording_schedule(steps, record_at)
    except jax.errors.TracerArrayConversionError:
        return record_at


def _objective(loss: Any, rest: Any) -> Callable[..., tuple[Array, Any]]:
    """Value and gradient in the arrays that are trained."""
    if isinstance(loss, ClosedForm):

        def given(params: Any, *data: Any) -> tuple[Array, Any]:
            value, slope = loss.value_and_gradient(eqx.combine(params, rest), *data)
            return value, eqx.filter(slope, eqx.is_inexact_array)

        return given
    return jax.value_and_grad(lambda params, *data: loss(eqx.combine(params, rest), *data))


def _norm(slope: Any, value: Array) -> Array:
    """Euclidean norm of a gradient, in the type of the loss."""
    return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slope))).astype(value.dtype)


def _members(own: dict, shared: dict, rest: Any, task: _Task, lengths: Array) -> tuple[Any, ...]:
    if not own:
        return _train(shared, rest, task, lengths)
    return jax.vmap(lambda part: _train(eqx.combine(part, shared), rest, task, lengths))(own)


_run = eqx.filter_jit(_members)
_quickly: Any = {"compiler_options": CHEAP_COMPILATION}
_run_quickly = eqx.filter_jit(_members, **_quickly)


def _split(given: dict[str, Any], ensemble: Ensemble) -> tuple[dict, dict, int]:
    """Arrays with an axis of members, all else, and the number of members."""
    named = {name: getattr(ensemble, name) for name in given}
    own, shared = eqx.partition(given, named)
    own, fixed = eqx.partition(own, eqx.is_array)
    counts = {a.shape[0] if a.ndim else 0 for a in jax.tree.leaves(own)}
    if len(counts) != 1 or counts == {0}:
        names = ", ".join(name for name, which in named.items() if which is not False)
        raise UserError(
            f"leading axes of {sorted(counts)} members in {names or 'no argument'}: give one "
            "entry per member everywhere"
        )
    return own, eqx.combine(shared, fixed), counts.pop()


def _require_batches(batches: Any, schedule: Any, ensemble: Ensemble | None) -> None:
    if not isinstance(schedule, np.ndarray):
        return
    axis = 1 if ensemble is not None and ensemble.batches is True else 0
    for array in jax.tree.leaves(batches):
        if array.ndim <= axis or array.shape[axis] < schedule[-1]:
            raise UserError(
                f"batches of shape {array.shape} for {schedule[-1]} steps: give one entry per step"
            )
