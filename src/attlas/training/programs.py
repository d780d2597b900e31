r"""The compiled programs of a training: complete, or in pieces between which its state is saved.

The pieces make the same steps as the complete loop. A piece has as many steps as time allows; its
length is an argument of one program. Where the loop is split changes no number.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.loop_jit import loop_jit
from attlas.core.checkpoint import Named, Stage, named_leaves, with_leaves
from attlas.training.course import Point, Task, course_of, record_along


class Programs(NamedTuple):
    """The programs, each for the members of an ensemble or for one training.

    Their first arguments are those per member, the shared ones, the frozen parameters and the task.

    Attributes:
        train: maps the numbers of steps between records to the result of a training.
        begin: the point before the first step.
        advance: the point after some steps.
        look: the record of a point.
        end: maps the last point, all records and the numbers of steps to the result of a training.
    """

    train: Callable[..., tuple[Any, ...]]
    begin: Callable[..., Point]
    advance: Callable[..., Point]
    look: Callable[..., tuple[Any, ...]]
    end: Callable[..., tuple[Any, ...]]


def _for_members(program: Callable[..., Any], per_member: dict, shared: dict, *moving: Any) -> Any:
    """One training, or one for each member with its own arrays."""
    if not per_member:
        return program(shared, *moving)
    return jax.vmap(lambda part, *moving_part: program(eqx.combine(part, shared), *moving_part))(
        per_member, *moving
    )


def _train(
    per_member: dict, shared: dict, frozen: Any, task: Task, lengths: Array
) -> tuple[Any, ...]:
    def train(arguments: dict[str, Any]) -> tuple[Any, ...]:
        course = course_of(arguments, frozen, task)
        outcome = record_along(course.advance, course.look, course.begin(), lengths, course.renew)
        return course.end(*outcome, lengths)

    return _for_members(train, per_member, shared)


def _begin(per_member: dict, shared: dict, frozen: Any, task: Task) -> Point:
    return _for_members(
        lambda arguments: course_of(arguments, frozen, task).begin(), per_member, shared
    )


def _advance(
    per_member: dict, shared: dict, frozen: Any, task: Task, point: Point, count: Array
) -> Point:
    def steps(arguments: dict[str, Any], point: Point) -> Point:
        advance = course_of(arguments, frozen, task).advance
        return jax.lax.fori_loop(0, count, lambda _, now: advance(now), point)

    return _for_members(steps, per_member, shared, point)


def _look(per_member: dict, shared: dict, frozen: Any, task: Task, point: Point) -> tuple[Any, ...]:
    return _for_members(
        lambda arguments, now: course_of(arguments, frozen, task).look(now),
        per_member,
        shared,
        point,
    )


def _end(
    per_member: dict,
    shared: dict,
    frozen: Any,
    task: Task,
    point: Point,
    records: Any,
    lengths: Array,
) -> tuple[Any, ...]:
    def end(arguments: dict[str, Any], point: Point, records: Any) -> tuple[Any, ...]:
        return course_of(arguments, frozen, task).end(point, records, lengths)

    return _for_members(end, per_member, shared, point, records)


_PARTS: Any = (_train, _begin, _advance, _look, _end)
_quickly: Any = {"compiler_options": CHEAP_COMPILATION}
COMPILED = Programs(*(loop_jit(part, jit=eqx.filter_jit) for part in _PARTS))
COMPILED_QUICKLY = Programs(*(eqx.filter_jit(part, **_quickly) for part in _PARTS))


class Applied(NamedTuple):
    """How programs are applied to one training or ensemble.

    Attributes:
        run: runs a program on arrays with an axis of members and on further arguments.
        members: whether arrays have a leading axis of members.
    """

    run: Callable[..., Any]
    shapes: Callable[..., Any]
    members: bool


def train_in_pieces(
    stage: Stage, programs: Programs, applied: Applied, lengths: np.ndarray, renews: bool
) -> tuple[Any, ...]:
    """Run a training with checkpoints at time intervals, resuming from an existing one.

    Args:
        lengths: steps before each record, since the previous record, [records].
        renews: whether the sum of losses restarts after each record.
    """
    point = _strong(applied.run(programs.begin, ()))
    shapes = applied.shapes(programs.look, (point,))
    records = jax.tree.map(lambda a: np.zeros((len(lengths), *a.shape), a.dtype), shapes)
    done, seen = np.zeros((), int), np.zeros((), int)
    stored = stage.restored()
    if stored is not None:
        point, records, (done, seen) = (
            with_leaves(name, tree, stored) for name, tree in _named(point, records, done, seen)
        )
    ends = np.cumsum(lengths)
    while seen < len(lengths):
        if renews and done == ends[seen] - lengths[seen]:
            point = point._replace(seen=jax.tree.map(jnp.zeros_like, point.seen))
        count = min(stage.size, int(ends[seen] - done))
        if count:
            steps = jnp.asarray(count, jnp.int32)
            point = jax.block_until_ready(applied.run(programs.advance, (point,), steps))
            done = done + count
        if done == ends[seen]:
            for rows, row in _pairs(records, applied.run(programs.look, (point,))):
                rows[int(seen)] = row
            seen = seen + 1
        is_last = bool(seen == len(lengths))
        state = _named(point, records, done, seen)
        stage.offer(count, lambda state=state: _leaves(state), is_last)
    if applied.members:
        records = jax.tree.map(lambda a: np.swapaxes(a, 0, 1), records)
    return applied.run(programs.end, (point, records), jnp.asarray(lengths, jnp.int32))


def _named(point: Point, records: Any, done: Any, seen: Any) -> tuple[tuple[str, Any], ...]:
    return ("point", point), ("record", records), ("position", (done, seen))


def _leaves(state: tuple[tuple[str, Any], ...]) -> Named:
    return {name: leaf for part in state for name, leaf in named_leaves(*part).items()}


def _pairs(records: Any, row: Any) -> Any:
    return zip(jax.tree.leaves(records), jax.tree.leaves(row), strict=True)


def _strong(tree: Any) -> Any:
    """The tree without weak types, as after a checkpoint."""
    return jax.tree.map(lambda a: jnp.asarray(a, a.dtype) if eqx.is_inexact_array(a) else a, tree)
