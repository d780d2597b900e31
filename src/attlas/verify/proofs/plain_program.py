r"""A program of JAX rewritten in fewer operations: the same real function, and true derivatives.

Custom derivatives and stopped gradients are undone, loops are unrolled, maxima of several numbers
become maxima of pairs, a product of a number with itself a square, and log(e^a + e^b) is written
as such. Shifts by a maximum, which softmax and logsumexp take off against overflow, are left out:
these functions do not depend on them.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from attlas.verify.intervals import Undecided

LONGEST = 64
"""Steps of a loop that is unrolled."""
_MOST_COMPARED, _MOST_SORTED = 16, 6
_SHIFTED = frozenset({"_softmax", "softmax", "log_softmax", "logsumexp"})
"""Functions of JAX whose stopped gradient is a shift on which they do not depend."""


def plain(program: Any, *inputs: Any) -> list[Any]:
    """The outputs of a closed program, as a function that can be traced and differentiated.

    Raises:
        Undecided: if it has a loop of unknown or large length.

    Examples:
        >>> program = jax.make_jaxpr(lambda x: jnp.max(x) + jax.nn.softplus(x[0]))(jnp.ones(2))
        >>> round(float(plain(program, jnp.array([0.0, 2.0]))[0]), 4)
        2.6931
    """
    return _run(program, inputs, shifted=False)


def _run(program: Any, inputs: Iterable[Any], *, shifted: bool) -> list[Any]:
    body = getattr(program, "jaxpr", program)
    values = dict(zip(body.constvars, getattr(program, "consts", ()), strict=True))
    values |= dict(zip(body.invars, inputs, strict=True))

    def read(variable: Any) -> Any:
        return variable.val if hasattr(variable, "val") else values[variable]

    for equation in body.eqns:
        outputs = _step(equation, [read(v) for v in equation.invars], shifted)
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(v) for v in body.outvars]


def _step(equation: Any, inputs: list[Any], shifted: bool) -> list[Any]:
    name, details = equation.primitive.name, equation.params
    if name == "stop_gradient":
        return [jnp.zeros_like(inputs[0]) if shifted else inputs[0]]
    if name == "scan":
        return _unrolled(equation, inputs, shifted)
    if name in ("while", "cond"):
        raise Undecided(f"the operation '{name}'")
    if "_logaddexp_jvp" in str(getattr(details.get("jvp_jaxpr_fun"), "f", "")):
        a, b = jnp.broadcast_arrays(*inputs)
        return [jnp.log(jnp.exp(a) + jnp.exp(b))]
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if inner is not None:
        return _run(inner, inputs, shifted=shifted or details.get("name") in _SHIFTED)
    first = equation.invars[0] if equation.invars else None
    if len(equation.invars) == 2 and first is equation.invars[1] and not hasattr(first, "val"):
        same = _of_the_same(name, inputs[0])
        if same is not None:
            return [same]
    if equation.outvars[0].aval.dtype.kind == "f":
        if name in _PAIRS:
            return [_PAIRS[name](*jnp.broadcast_arrays(*inputs))]
        if name in _EXTREMES:
            return [_extreme(_EXTREMES[name], inputs[0], map(int, details["axes"]))]
        if name == "sort" and len(inputs) == 1:
            return [_sorted(inputs[0], details["dimension"])]
    outputs = equation.primitive.bind(*inputs, **details)
    return outputs if equation.primitive.multiple_results else [outputs]


def _of_the_same(name: str, value: Any) -> Any:
    """An operation of a number with itself; NaN is no number."""
    if name == "mul":
        return lax.square(value)
    if name == "sub":
        return jnp.zeros_like(value)
    if name in ("ne", "lt", "gt"):
        return jnp.zeros(jnp.shape(value), dtype=bool)
    return jnp.ones(jnp.shape(value), dtype=bool) if name in ("eq", "le", "ge") else None


def _unrolled(equation: Any, inputs: list[Any], shifted: bool) -> list[Any]:
    details = equation.params
    if details["length"] > LONGEST:
        raise Undecided(f"a loop of {details['length']} steps")
    n, m = details["num_consts"], details["num_carry"]
    consts, state, sequences = inputs[:n], inputs[n : n + m], inputs[n + m :]
    rows, steps = [], range(details["length"])
    for k in reversed(steps) if details["reverse"] else steps:
        step = [*consts, *state, *(sequence[k] for sequence in sequences)]
        outputs = _run(details["jaxpr"], step, shifted=shifted)
        state = outputs[:m]
        rows.append(outputs[m:])
    if details["reverse"]:
        rows.reverse()
    return [*state, *(jnp.stack(column) for column in zip(*rows, strict=True))]


def _pair(operate: Callable[..., Any], picks: Callable[..., Any]) -> Callable[..., Any]:
    """A maximum or minimum whose derivative is that of the argument that it picks."""

    @jax.custom_jvp
    def pair(a: Any, b: Any) -> Any:
        return operate(a, b)

    @pair.defjvp
    def derivative(values: Any, tangents: Any) -> Any:
        return operate(*values), jnp.where(picks(*values), *tangents)

    del derivative
    return pair


_PAIRS = {"max": _pair(lax.max, lax.ge), "min": _pair(lax.min, lax.le)}
_EXTREMES = {"reduce_max": _PAIRS["max"], "reduce_min": _PAIRS["min"]}


def _extreme(pair: Callable[..., Any], value: Any, axes: Iterable[int]) -> Any:
    for axis in sorted(axes, reverse=True):
        size = value.shape[axis]
        if size > _MOST_COMPARED:
            raise Undecided(f"an extreme of {size} numbers")
        entries = [lax.index_in_dim(value, k, axis, keepdims=False) for k in range(size)]
        value = functools.reduce(pair, entries)
    return value


def _sorted(value: Any, axis: int) -> Any:
    """Sorted entries by exchanges of neighbours."""
    size = value.shape[axis]
    if size > _MOST_SORTED:
        raise Undecided(f"a sort of {size} numbers")
    entries = [lax.index_in_dim(value, k, axis, keepdims=False) for k in range(size)]
    for last in range(size - 1, 0, -1):
        for j in range(last):
            a, b = entries[j], entries[j + 1]
            entries[j], entries[j + 1] = _PAIRS["min"](a, b), _PAIRS["max"](a, b)
    return jnp.stack(entries, axis)
