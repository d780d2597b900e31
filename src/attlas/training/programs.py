r"""The compiled programs of a training: whole, or in pieces between which its state can be kept.

In pieces the steps are those of the whole loop: a piece is as many of them as time allows, and its
length is an argument of the one program that makes steps. Where it is cut changes no number.
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

    They are given the arguments that members have of their own, those that they share, what is
    not trained, and the task; then what they need of a training.

    Attributes:
        whole: from the lengths of the steps between records to the end of a training.
        begin: the point before the first step.
        advance: the point after some steps.
        look: the record of a point.
        end: from the last point, all records and the lengths to the end of a training.
    """

    whole: Callable[..., tuple[Any, ...]]
    begin: Callable[..., Point]
    advance: Callable[..., Point]
    look: Callable[..., tuple[Any, ...]]
    end: Callable[..., tuple[Any, ...]]


def _each(program: Callable[..., Any], own: dict, shared: dict, *moving: Any) -> Any:
    """One training, or one for each member, with arrays of its own."""
    if not own:
        return program(shared, *moving)
    return jax.vmap(lambda part, *rest: program(eqx.combine(part, shared), *rest))(own, *moving)


def _whole(own: dict, shared: dict, rest: Any, task: Task, lengths: Array) -> tuple[Any, ...]:
    def train(given: dict[str, Any]) -> tuple[Any, ...]:
        course = course_of(given, rest, task)
        found = record_along(course.advance, course.look, course.begin(), lengths, course.renew)
        return course.end(*found, lengths)

    return _each(train, own, shared)


def _begin(own: dict, shared: dict, rest: Any, task: Task) -> Point:
    return _each(lambda given: course_of(given, rest, task).begin(), own, shared)


def _advance(own: dict, shared: dict, rest: Any, task: Task, point: Point, count: Array) -> Point:
    def steps(given: dict[str, Any], point: Point) -> Point:
        advance = course_of(given, rest, task).advance
        return jax.lax.fori_loop(0, count, lambda _, now: advance(now), point)

    return _each(steps, own, shared, point)


def _look(own: dict, shared: dict, rest: Any, task: Task, point: Point) -> tuple[Any, ...]:
    return _each(lambda given, now: course_of(given, rest, task).look(now), own, shared, point)


def _end(
    own: dict, shared: dict, rest: Any, task: Task, point: Point, records: Any, lengths: Array
) -> tuple[Any, ...]:
    def end(given: dict[str, Any], point: Point, records: Any) -> tuple[Any, ...]:
        return course_of(given, rest, task).end(point, records, lengths)

    return _each(end, own, shared, point, records)


_PARTS: Any = (_whole, _begin, _advance, _look, _end)
_quickly: Any = {"compiler_options": CHEAP_COMPILATION}
COMPILED = Programs(*(loop_jit(part, jit=eqx.filter_jit) for part in _PARTS))
COMPILED_QUICKLY = Programs(*(eqx.filter_jit(part, **_quickly) for part in _PARTS))


class Applied(NamedTuple):
    """How programs are applied to a training that is given.

    Attributes:
        run: from a program, arrays with an axis of members, and further ones to the result.
        shapes: of what that would be.
        members: whether arrays have a leading axis of members.
    """

    run: Callable[..., Any]
    shapes: Callable[..., Any]
    members: bool


def train_in_pieces(
    stage: Stage, programs: Programs, applied: Applied, lengths: np.ndarray, renews: bool
) -> tuple[Any, ...]:
    """One training whose state is kept by the clock, from where it was kept if it was.

    Args:
        stage: of this training.
        programs: to run.
        applied: how.
        lengths: steps before each record, since the one before.
        renews: whether the sum of losses begins anew after each record.

    Returns:
        What the whole program returns.
    """
    point = _strong(applied.run(programs.begin, ()))
    shapes = applied.shapes(programs.look, (point,))
    records = jax.tree.map(lambda a: np.zeros((len(lengths), *a.shape), a.dtype), shapes)
    done, seen = np.zeros((), int), np.zeros((), int)
    kept = stage.restored()
    if kept is not None:
        point, records, (done, seen) = (
            with_leaves(name, tree, kept) for name, tree in _named(point, records, done, seen)
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
    """Arrays of their own type, as kept ones are, and not of that of what they meet."""
    return jax.tree.map(lambda a: jnp.asarray(a, a.dtype) if eqx.is_inexact_array(a) else a, tree)
