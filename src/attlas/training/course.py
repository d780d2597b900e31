r"""The course of one training: where it begins, its step, what is recorded of it, and its end.

A record is the state before the last of some steps: an outer scan over the records holds an inner
loop over steps, with one gradient in it. Recording each step thus costs no second gradient, any
schedule of as many records runs the same program, and observations are made at records only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from attlas.core.solution import Result

State = TypeVar("State")
Seen = TypeVar("Seen")


class ClosedForm(eqx.Module):
    """A loss that brings its gradient along, in place of automatic differentiation.

    Attributes:
        value_and_gradient: from what a loss is given to its value and its gradient.
    """

    value_and_gradient: Callable[..., tuple[Any, Any]]


class Task(eqx.Module):
    """What is done at a step and at a record.

    Attributes:
        project: of parameters, or None.
        observe: of parameters and data, or None.
        keep: whether the parameters of records are kept.
    """

    loss: Any
    project: Any
    observe: Any
    keep: bool


class Point(NamedTuple):
    """Where a training stands, and what the next record needs of the steps before it.

    Attributes:
        seen: of a whole batch the parameters before the last step, with loss and norm there; of
            batches the sum of their losses since the last record.
    """

    params: Any
    optimizer: Any
    step: Array
    seen: Any


class Course(NamedTuple):
    """The parts of one training.

    Attributes:
        begin: the point before the first step.
        renew: what is done to a point before the steps to each record, or None.
        look: parameters or None, loss, norm or None, and observations of a point.
        end: from the last point, the records and their lengths to what `fit` returns: records of
            parameters, the last ones, losses, norms, observations, code.
    """

    begin: Callable[[], Point]
    advance: Callable[[Point], Point]
    renew: Callable[[Point], Point] | None
    look: Callable[[Point], tuple[Any, ...]]
    end: Callable[[Point, tuple[Any, ...], Array], tuple[Any, ...]]


def record_along(
    advance: Callable[[State], State],
    observe: Callable[[State], Seen],
    start: State,
    lengths: Int[Array, " s"],
    begin: Callable[[State], State] | None = None,
) -> tuple[State, Seen]:
    """Steps in a loop, observing the state after chosen numbers of them.

    Args:
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


def course_of(given: dict[str, Any], rest: Any, task: Task) -> Course:
    """The course of one training.

    Args:
        given: params, data, batches and optimizer of `attlas.training.fit.fit`; of the parameters
            what is trained.
        rest: all else of the parameters.
    """
    data, batches, optimizer = (given[name] for name in ("data", "batches", "optimizer"))
    made: Any = optimizer() if callable(optimizer) else optimizer
    rule = optax.with_extra_args_support(made)
    objective, whole = value_and_gradient(task.loss, rest), batches is None

    def projected(params: Any) -> Any:
        if task.project is None:
            return params
        return eqx.filter(task.project(eqx.combine(params, rest)), eqx.is_inexact_array)

    def slope_at(params: Any, step: Array) -> tuple[Array, Any]:
        chosen = () if whole else (jax.tree.map(lambda a: a[step], batches),)
        return objective(params, data, *chosen)

    def begin() -> Point:
        start, first = projected(given["params"]), jnp.zeros((), jnp.int32)
        zero = jnp.zeros((), jax.eval_shape(slope_at, start, first)[0].dtype)
        return Point(start, rule.init(start), first, (start, zero, zero) if whole else zero)

    def advance(now: Point) -> Point:
        value, slope = slope_at(now.params, now.step)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts its steps in integers
            change, state = rule.update(slope, now.optimizer, now.params, value=value, grad=slope)
        seen = (now.params, value, _norm(slope, value)) if whole else now.seen + value
        params = projected(optax.apply_updates(now.params, change))
        return Point(params, state, now.step + 1, seen)

    def look(now: Point) -> tuple[Any, ...]:
        params, value, norm = now.seen if whole else (now.params, now.seen, None)
        seen = task.observe(eqx.combine(params, rest), data) if task.observe else {}
        return (params if task.keep else None), value, norm, dict(seen)

    # The sum of the losses of batches begins anew after each record.
    return Course(begin, advance, None if whole else _renewed, look, _ended(whole))


def _renewed(now: Point) -> Point:
    return now._replace(seen=jnp.zeros_like(now.seen))


def _ended(whole: bool) -> Callable[[Point, tuple[Any, ...], Array], tuple[Any, ...]]:
    def end(point: Point, records: tuple[Any, ...], lengths: Array) -> tuple[Any, ...]:
        path, value, norm, seen = records
        if not whole:
            # No batch comes before step 0: its mean is 0 / 0.
            value = value / lengths.astype(value.dtype)
        last = point.seen[0] if whole else point.params
        numbers = (last if path is None else path, norm, jnp.where(lengths > 0, value, 0))
        finite = jnp.stack([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(numbers)])
        code = jnp.where(jnp.all(finite), Result.MAX_STEPS.value, Result.NOT_FINITE.value)
        return path, last, value, norm, seen, code.astype(jnp.int32)

    return end


def value_and_gradient(
    loss: Any, rest: Any, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Value and gradient of a loss in the arrays that are trained.

    Args:
        loss: of a model and data, or a `ClosedForm` of them.
        has_aux: whether the value is a pair of a loss and something else.

    Returns:
        From the arrays that are trained and data to the value and the gradient.

    Examples:
        >>> square = lambda w, x: jnp.sum(w * x) ** 2
        >>> brought = ClosedForm(lambda w, x: (jnp.sum(w * x) ** 2, 2 * jnp.sum(w * x) * x))
        >>> w, x = jnp.array([1.0, 2.0]), jnp.array([3.0, 1.0])
        >>> [value_and_gradient(each, None)(w, x)[1].tolist() for each in (square, brought)]
        [[30.0, 10.0], [30.0, 10.0]]
    """
    if isinstance(loss, ClosedForm):

        def given(params: Any, *data: Any) -> tuple[Any, Any]:
            value, slope = loss.value_and_gradient(eqx.combine(params, rest), *data)
            return value, eqx.filter(slope, eqx.is_inexact_array)

        return given

    def whole(params: Any, *data: Any) -> Any:
        return loss(eqx.combine(params, rest), *data)

    return jax.value_and_grad(whole, has_aux=has_aux)


def _norm(slope: Any, value: Array) -> Array:
    """Euclidean norm of a gradient, in the type of the loss."""
    return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slope))).astype(value.dtype)
