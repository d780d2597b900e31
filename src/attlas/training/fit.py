r"""The training loop: any loss, any optax optimiser, one model or an ensemble, one program.

`attlas.training.course` describes the loop. With checkpoints (`attlas.core.checkpoint`) it runs in
pieces (`programs`), and a stopped training resumes from its last checkpoint.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Int

from attlas._jax.device_arrays import is_traced
from attlas.core.checkpoint import new_stage, without_checkpoints
from attlas.core.errors import UserError
from attlas.core.trees import as_tree, require_real_tree
from attlas.training.course import ClosedForm, Task
from attlas.training.ensemble import in_chunks
from attlas.training.programs import (
    COMPILED,
    COMPILED_QUICKLY,
    Applied,
    Programs,
    train_in_pieces,
)
from attlas.training.trajectory import Trajectory, recording_schedule


class Ensemble(NamedTuple):
    """Which arguments of `fit` have a leading axis of members, and how many run together.

    A field is True, or a tree of booleans if only some arrays of an argument have the axis.
    Restarts are stacked starts; samples are left out by weights in the data.

    Attributes:
        chunk: members per program; all when None. Chunks run in parallel, one on each core.

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

    It is one compiled program, also under `jax.jit` and `jax.vmap`. Arrays are its arguments and
    functions are part of it: if defined once, outside of loops, they compile once.

    Args:
        loss: loss(params, data), or loss(params, data, batch) with batches; or a `ClosedForm`.
        optimizer: optax transformation; or `jax.tree_util.Partial(optax.sgd, rate)`, whose arrays
            are then arguments of the program, and may differ between members.
        params: the start, any tree or module; its floating arrays are trained. A list of numbers
            is one array.
        data: any tree of arrays for the loss.
        steps: number of steps; the last of `record_at` when None.
        record_at: increasing step numbers, log-spaced when None; training ends at the last.
        batches: arrays with a leading axis of steps; the loss gets its step's entry (indices of
            samples, fresh samples, keys). The whole data when None.
        observe: observe(params, data) returns named arrays, evaluated at the records.
        project: maps parameters to parameters, after the start and after each step.
        keep: record the parameters.
        ensemble: trains many at once, which differ in the arguments that it names.
        quick_compile: compile with few optimisations, if compiling costs more than training.

    Returns:
        The recorded steps, members along the leading axis. An invalid schedule, batches or
        ensemble raise a `UserError`.

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
    task = Task(loss, project, observe, keep)
    arguments = {"params": params, "data": data, "batches": batches, "optimizer": optimizer}
    return _fit(
        task, arguments, schedule, ensemble, COMPILED_QUICKLY if quick_compile else COMPILED
    )


def _fit(
    task: Task,
    arguments: dict[str, Any],
    schedule: Any,
    ensemble: Ensemble | None,
    programs: Programs,
) -> Trajectory:
    moving, frozen = eqx.partition(arguments["params"], eqx.is_inexact_array)
    if not jax.tree.leaves(moving):
        raise UserError("params has no floating array: give the numbers to train as arrays")
    arguments = {**arguments, "params": jax.tree.map(jnp.asarray, moving)}
    applied = _applied(arguments, frozen, task, ensemble)
    # A full batch ends with the gradient at its record, whose step is not recorded.
    first = jnp.full(1, -1 if arguments["batches"] is None else 0, jnp.int32)
    lengths = jnp.diff(jnp.asarray(schedule, jnp.int32), prepend=first)
    stage = new_stage((arguments["params"], lengths), arguments)
    if stage is None:
        results = applied.run(programs.train, (), lengths)
    else:
        renews = arguments["batches"] is not None
        with without_checkpoints():  # chunks of members write no checkpoints of their own
            results = train_in_pieces(stage, programs, applied, np.asarray(lengths), renews)
    path, last, value, norm, seen, code = results
    return Trajectory(
        jnp.asarray(schedule, jnp.int32),
        eqx.combine(path, frozen) if task.keep else None,
        eqx.combine(last, frozen),
        value,
        norm,
        seen,
        code,
    )


def _applied(
    arguments: dict[str, Any], frozen: Any, task: Task, ensemble: Ensemble | None
) -> Applied:
    """How programs run on the arguments: at once, or on chunks of members."""
    per_member, shared, count = (
        ({}, arguments, 0) if ensemble is None else _split(arguments, ensemble)
    )
    width = count if ensemble is None or ensemble.chunk is None else ensemble.chunk

    def run(program: Any, moving: tuple[Any, ...], *fixed: Any) -> Any:
        if ensemble is None:
            return program({}, shared, frozen, task, *moving, *fixed)
        return in_chunks(
            lambda part: program(part[0], shared, frozen, task, *part[1:], *fixed),
            (per_member, *moving),
            width,
        )

    def shapes(program: Any, moving: tuple[Any, ...]) -> Any:
        return eqx.filter_eval_shape(program, per_member, shared, frozen, task, *moving)

    return Applied(run, shapes, ensemble is not None)


def _schedule(steps: int | None, record_at: Any) -> Any:
    is_known = not any(map(is_traced, jax.tree.leaves(record_at)))
    return recording_schedule(steps, record_at) if is_known else record_at


def _split(arguments: dict[str, Any], ensemble: Ensemble) -> tuple[dict, dict, int]:
    """Arrays with an axis of members, all other arguments, and the number of members."""
    named = {name: getattr(ensemble, name) for name in arguments}
    per_member, shared = eqx.partition(arguments, named)
    per_member, fixed = eqx.partition(per_member, eqx.is_array)
    counts = {a.shape[0] if a.ndim else 0 for a in jax.tree.leaves(per_member)}
    if len(counts) != 1 or counts == {0}:
        names = ", ".join(name for name, which in named.items() if which is not False)
        raise UserError(
            f"leading axes of {sorted(counts)} members in {names or 'no argument'}: give one "
            "entry per member everywhere"
        )
    return per_member, eqx.combine(shared, fixed), counts.pop()


def _require_batches(batches: Any, schedule: Any, ensemble: Ensemble | None) -> None:
    if not isinstance(schedule, np.ndarray):
        return
    axis = 1 if ensemble is not None and ensemble.batches is True else 0
    for array in jax.tree.leaves(batches):
        if array.ndim <= axis or array.shape[axis] < schedule[-1]:
            raise UserError(
                f"batches of shape {array.shape} for {schedule[-1]} steps: give one entry per step"
            )
