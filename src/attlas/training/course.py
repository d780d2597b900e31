r"""The course of one training: its start, its step, its records and its end.

A record is the state before the last of some steps: an outer scan over records contains an inner
loop over steps, with one gradient. So recording every step costs no second gradient, all schedules
with equally many records share a program, and observations are made at records only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from attlas._jax.device_arrays import is_traced
from attlas.core.arrays import read_array, read_indices
from attlas.core.axes import require_axes
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.solution import Result

State = TypeVar("State")
Seen = TypeVar("Seen")


class ClosedForm(eqx.Module):
    """A loss with its own gradient instead of automatic differentiation.

    `value_and_gradient` takes the arguments of a loss and returns its value and gradient.
    """

    value_and_gradient: Callable[..., tuple[Any, Any]]


class Task(eqx.Module):
    """The functions of `fit`: loss, `project(params)` or None, `observe(params, data)` or None.

    `keep` says whether the parameters are recorded.
    """

    loss: Any
    project: Any
    observe: Any
    keep: bool


class Point(NamedTuple):
    """The state of a training, and what the next record needs from the steps before it.

    Attributes:
        seen: for full batches the parameters before the last step, with loss and norm there; for
            batches the sum of their losses since the last record.
    """

    params: Any
    optimizer: Any
    step: Array
    seen: Any


class Course(NamedTuple):
    """The functions of one training.

    Attributes:
        begin: the point before the first step.
        renew: changes a point before the steps to each record, or None.
        look: returns parameters or None, loss, norm or None, and observations at a point.
        end: maps the last point, the records and the numbers of steps to the results of `fit`:
            recorded parameters, last parameters, losses, norms, observations, code.
    """

    begin: Callable[[], Point]
    advance: Callable[[Point], Point]
    renew: Callable[[Point], Point] | None
    look: Callable[[Point], tuple[Any, ...]]
    end: Callable[[Point, tuple[Any, ...], Array], tuple[Any, ...]]


@refuse_misfits
def record_along(
    advance: Callable[[State], State],
    observe: Callable[[State], Seen],
    start: State,
    lengths: Int[Array, " s"],
    begin: Callable[[State], State] | None = None,
) -> tuple[State, Seen]:
    """Run steps in a loop and observe the state after some of them.

    Args:
        start: the state before the first step.
        lengths: steps before each record, since the previous record.
        begin: changes the state before the steps to each record.

    Returns:
        The last state, and the records along a leading axis.

    Examples:
        >>> lengths = jnp.array([0, 1, 3])
        >>> last, seen = record_along(lambda n: n + 1, lambda n: 10 * n, jnp.array(0), lengths)
        >>> int(last), seen.tolist()
        (4, [0, 10, 40])
    """
    lengths = _step_counts(lengths)

    def segment(state: State, length: Array) -> tuple[State, Seen]:
        state = state if begin is None else begin(state)
        state = jax.lax.fori_loop(0, length, lambda _, now: advance(now), state)
        return state, observe(state)

    return jax.lax.scan(segment, start, lengths)


def _step_counts(lengths: Any) -> Array:
    """Numbers of steps as an array of JAX; what is traced is known to be one."""
    if is_traced(lengths):
        return lengths
    counts = read_array(lengths, "lengths")
    require_axes("s", {"lengths": counts.shape})
    return jnp.asarray(read_indices(counts, "lengths", counts.shape, 2**31))


@refuse_misfits
def course_of(arguments: dict[str, Any], frozen: Any, task: Task) -> Course:
    """The course of one training.

    Args:
        arguments: trained params, data, batches and optimizer of `attlas.training.fit.fit`.
        frozen: all parameters that are not trained.

    Examples:
        >>> task = Task(lambda x, data: (x - data) ** 2 / 2, None, None, keep=True)
        >>> start = {"params": jnp.array(0.0), "data": jnp.array(4.0), "batches": None}
        >>> course = course_of({**start, "optimizer": optax.sgd(0.5)}, None, task)
        >>> float(course.advance(course.begin()).params)
        2.0
    """
    data, batches, optimizer = (arguments[name] for name in ("data", "batches", "optimizer"))
    created: Any = optimizer() if callable(optimizer) else optimizer
    rule = optax.with_extra_args_support(created)
    objective, is_full_batch = value_and_gradient(task.loss, frozen), batches is None

    def projected(params: Any) -> Any:
        if task.project is None:
            return params
        return eqx.filter(task.project(eqx.combine(params, frozen)), eqx.is_inexact_array)

    def slope_at(params: Any, step: Array) -> tuple[Array, Any]:
        batch = () if is_full_batch else (jax.tree.map(lambda a: a[step], batches),)
        return objective(params, data, *batch)

    def begin() -> Point:
        start, first = projected(arguments["params"]), jnp.zeros((), jnp.int32)
        zero = jnp.zeros((), jax.eval_shape(slope_at, start, first)[0].dtype)
        return Point(start, rule.init(start), first, (start, zero, zero) if is_full_batch else zero)

    def advance(now: Point) -> Point:
        value, slope = slope_at(now.params, now.step)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts its steps in integers
            change, state = rule.update(slope, now.optimizer, now.params, value=value, grad=slope)
        seen = (now.params, value, _norm(slope, value)) if is_full_batch else now.seen + value
        params = projected(optax.apply_updates(now.params, change))
        return Point(params, state, now.step + 1, seen)

    def look(now: Point) -> tuple[Any, ...]:
        params, value, norm = now.seen if is_full_batch else (now.params, now.seen, None)
        seen = task.observe(eqx.combine(params, frozen), data) if task.observe else {}
        return (params if task.keep else None), value, norm, dict(seen)

    # The sum of the losses of batches restarts after each record.
    return Course(begin, advance, None if is_full_batch else _renewed, look, _ended(is_full_batch))


def _renewed(now: Point) -> Point:
    return now._replace(seen=jnp.zeros_like(now.seen))


def _ended(is_full_batch: bool) -> Callable[[Point, tuple[Any, ...], Array], tuple[Any, ...]]:
    def end(point: Point, records: tuple[Any, ...], lengths: Array) -> tuple[Any, ...]:
        path, value, norm, seen = records
        if not is_full_batch:
            # There is no batch before step 0: its mean is 0 / 0.
            value = value / lengths.astype(value.dtype)
        last = point.seen[0] if is_full_batch else point.params
        numbers = (last if path is None else path, norm, jnp.where(lengths > 0, value, 0))
        finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(numbers)])
        code = jnp.where(jnp.all(finite), Result.MAX_STEPS.value, Result.NOT_FINITE.value)
        return path, last, value, norm, seen, code.astype(jnp.int32)

    return end


def value_and_gradient(
    loss: Any, frozen: Any, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Value and gradient of a loss with respect to the trained arrays, as a function of these.

    Args:
        loss: loss(model, data), or a `ClosedForm`.
        has_aux: whether the value is a pair of a loss and auxiliary output.

    Raises:
        UserError: while the function is traced, if the loss is no single number.

    Examples:
        >>> square = lambda w, x: jnp.sum(w * x) ** 2
        >>> brought = ClosedForm(lambda w, x: (jnp.sum(w * x) ** 2, 2 * jnp.sum(w * x) * x))
        >>> w, x = jnp.array([1.0, 2.0]), jnp.array([3.0, 1.0])
        >>> [value_and_gradient(each, None)(w, x)[1].tolist() for each in (square, brought)]
        [[30.0, 10.0], [30.0, 10.0]]
    """
    if isinstance(loss, ClosedForm):

        def with_closed_form(params: Any, *data: Any) -> tuple[Any, Any]:
            value, slope = loss.value_and_gradient(eqx.combine(params, frozen), *data)
            return value, eqx.filter(slope, eqx.is_inexact_array)

        return with_closed_form

    def combined_loss(params: Any, *data: Any) -> Any:
        value = loss(eqx.combine(params, frozen), *data)
        objective = value[0] if has_aux else value
        if shape := jnp.shape(objective):
            raise UserError(f"the loss has shape {shape}: give one number, such as the mean")
        return value

    return jax.value_and_grad(combined_loss, has_aux=has_aux)


def _norm(slope: Any, value: Array) -> Array:
    """Euclidean norm of a gradient, in the type of the loss."""
    return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slope))).astype(value.dtype)
