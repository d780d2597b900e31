r"""Whether a program of JAX depends on the order along an axis of its arguments.

A program that acts entry by entry along an axis, and otherwise sums over it or takes products and
extremes, has the same value for all orders of that axis, applied to all arguments at once. So the
program is followed with the place of that axis in each of its arrays; an operation without a rule
gives no answer. Sums in floats depend on the order; what is meant is the real function.
"""

from collections.abc import Sequence
from typing import Any

Place = int | None
"""The axis along which an array is ordered as the arguments are; None for an array without it."""
_UNIFORM = -1
"""The place of an array all of whose entries are equal."""

_REDUCTIONS = frozenset({
    *("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or"),
})  # fmt: skip
_ENTRYWISE = frozenset({
    *("add", "add_any", "sub", "mul", "div", "neg", "abs", "sign", "max", "min", "pow", "rem"),
    *("integer_pow", "square", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log1p", "tanh"),
    *("logistic", "floor", "ceil", "round", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"),
    *("xor", "select_n", "convert_element_type", "is_finite", "clamp", "copy", "stop_gradient"),
})  # fmt: skip


class OrderError(Exception):
    """The program may depend on the order."""


def is_symmetric(program: Any, places: Sequence[Place]) -> bool:
    """Whether a closed program has the same outputs for all orders along an axis.

    Args:
        places: that axis of each argument, None for an argument without it.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> product = jax.make_jaxpr(lambda x, y: jnp.sum(x * y))(jnp.ones(3), jnp.ones(3))
        >>> is_symmetric(product, (0, 0)), is_symmetric(product, (0, None))
        (True, False)
        >>> weighted = jax.make_jaxpr(lambda x: jnp.sum(x * jnp.arange(3.0)))(jnp.ones(3))
        >>> is_symmetric(weighted, (0,))
        False
    """
    try:
        return all(place in (None, _UNIFORM) for place in _followed(program, places))
    except OrderError:
        return False


def _followed(program: Any, places: Sequence[Place]) -> list[Place]:
    body = getattr(program, "jaxpr", program)
    axes: dict[Any, Place] = dict.fromkeys(body.constvars)
    axes |= dict(zip(body.invars, places, strict=True))

    def read(variable: Any) -> Place:
        return None if hasattr(variable, "val") else axes[variable]

    for equation in body.eqns:
        operands = [read(variable) for variable in equation.invars]
        if all(place in (None, _UNIFORM) for place in operands):
            outputs: list[Place] = [_constant(equation, operands)] * len(equation.outvars)
        else:
            outputs = _step(equation, operands)
        axes |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in body.outvars]


def _constant(equation: Any, places: list[Place]) -> Place:
    """Whether what does not depend on the order has equal entries."""
    name, shapes = equation.primitive.name, [v.aval.shape for v in equation.invars]
    equal = all(p == _UNIFORM or shape == () for p, shape in zip(places, shapes, strict=True))
    return _UNIFORM if equal and (name in _ENTRYWISE or name == "broadcast_in_dim") else None


def _step(equation: Any, places: list[Place]) -> list[Place]:
    name, details = equation.primitive.name, equation.params
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if inner is not None and name not in ("while", "scan", "cond"):
        return _followed(inner, places)
    shapes = [variable.aval.shape for variable in equation.invars]
    if name in _ENTRYWISE:
        return [_common(places, shapes)]
    place = places[0]
    if len(places) == 1 and place is not None:
        if name in _REDUCTIONS:
            return [_after(place, details["axes"])]
        if name == "broadcast_in_dim":
            return [_broadcast(details["broadcast_dimensions"][place], equation, place)]
        if name == "squeeze":
            return [_after(place, details["dimensions"])]
        if name == "transpose":
            return [list(details["permutation"]).index(place)]
    if name == "dot_general":
        return [_contracted(places, details["dimension_numbers"])]
    raise OrderError(name)


def _common(places: list[Place], shapes: list[tuple[int, ...]]) -> Place:
    """The one axis of operands of equal shapes, where a number without axes has any."""
    ordered = {place for place in places if place not in (None, _UNIFORM)}
    apart = any(place is None and shape != () for place, shape in zip(places, shapes, strict=True))
    if len(ordered) != 1 or apart:
        raise OrderError("operands of different orders")
    return ordered.pop()


def _after(place: int, axes: Sequence[int]) -> Place:
    """Where an axis is after others are gone; None if it is among them."""
    return None if place in axes else place - sum(axis < place for axis in axes)


def _broadcast(place: int, equation: Any, before: int) -> int:
    if equation.outvars[0].aval.shape[place] != equation.invars[0].aval.shape[before]:
        raise OrderError("an axis of one entry is repeated")
    return place


def _contracted(places: list[Place], numbers: Any) -> Place:
    """A product of two arrays that is summed over the axis of both."""
    (left, right), _ = numbers
    pairs = list(zip(map(int, left), map(int, right), strict=True))
    if tuple(places) not in pairs:
        raise OrderError("a product that is not summed over the axis")
    return None
