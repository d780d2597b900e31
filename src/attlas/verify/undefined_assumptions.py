"""Assumptions that refuse an instance because a number in them is NaN.

A comparison with NaN is false: it would leave out the very instances on which the statement may
fail. All numbers on the way to the comparison are looked at, in one program for all instances.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Assumption, Claim
from attlas.verify.evidence import Batch

_KEEPS_NAN = frozenset({
    *("abs", "add", "broadcast_in_dim", "cbrt", "concatenate", "convert_element_type"),
    *("copy", "cos", "div", "dot_general", "exp", "exp2", "expm1", "log", "log1p", "logistic"),
    *("mul", "neg", "reduce_sum", "reshape", "rsqrt", "sin", "sqrt", "square", "squeeze", "sub"),
    *("tanh", "transpose"),
})  # fmt: skip
"""Operations on floats of which a result is NaN where one of the operands is: no choice, no
comparison, no part of an array, no power (the power zero of NaN is one)."""


def undefined_assumptions(claim: Claim, batch: Batch, holds: Array | np.ndarray) -> tuple[str, ...]:
    """A sentence on each assumption that is NaN on an instance that it refuses.

    Args:
        holds: truth of each assumption on each instance, shape (count, assumptions).
    """
    faults = []
    plain = claim.backend == "numpy"
    for k, assumption in enumerate(claim.assumptions):
        refused = np.flatnonzero(~np.asarray(holds)[:, k])
        if not len(refused):
            continue
        # Repeated to the size of the batch: each number of instances would be another program.
        repeated = np.resize(refused, len(holds))
        rows = {name: on_device(np.asarray(value)[repeated]) for name, value in batch.items()}
        if plain and k >= len(claim.domains):
            is_nan = _is_nan_on_the_host(assumption, rows, len(refused))
        else:
            is_nan = meets_nan(jax.vmap(assumption.holds), rows)
        if is_nan:
            faults.append(
                f"the assumption '{assumption.text}' is NaN on an instance that it refuses"
            )
    return tuple(faults)


def _is_nan_on_the_host(assumption: Assumption, rows: Mapping[str, Any], count: int) -> bool:
    from attlas.verify.host_program import host_instance

    try:
        with np.errstate(invalid="raise"):
            for place in range(count):
                assumption.holds(host_instance(rows, place))
    except FloatingPointError:
        return True
    return False


def _watched(jaxpr: Any) -> list[Any]:
    """The results of which one is NaN where any result of a program is.

    Most results go on into a sum or a product, which is NaN with them. Only the others are looked
    at: a look at each doubles and trebles what is to be compiled.
    """
    carried_on: set[Any] = set()
    watched = []
    for equation in reversed(jaxpr.eqns):
        results = [a for a in equation.outvars if jnp.issubdtype(a.aval.dtype, jnp.inexact)]
        watched += [a for a in results if a not in carried_on]
        if equation.primitive.name in _KEEPS_NAN and results and results[0].aval.size:
            carried_on |= {a for a in equation.invars if not hasattr(a, "val")}
    return watched


def meets_nan(function: Callable[[Any], Any], arguments: Any) -> bool:
    """Whether an operation of a function gives NaN on arrays, also where its result does not.

    Examples:
        >>> inside = lambda x: jnp.sqrt(x) < 2
        >>> meets_nan(inside, jnp.array([1.0, 9.0])), meets_nan(inside, jnp.array([1.0, -9.0]))
        (False, True)
    """
    # Constants that are NaN without any argument raise when they are traced.
    try:
        with jax.debug_nans(True):
            program = jax.make_jaxpr(function)(arguments)
    except FloatingPointError:
        return True

    watched = _watched(program.jaxpr)

    def any_nan(*inputs: Any) -> Array:
        values: dict[Any, Any] = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
        values |= zip(program.jaxpr.invars, inputs, strict=True)
        for equation in program.jaxpr.eqns:
            operands = [a.val if hasattr(a, "val") else values[a] for a in equation.invars]
            settings = equation.primitive.get_bind_params(equation.params)
            results = equation.primitive.bind(*operands, **settings)
            results = results if equation.primitive.multiple_results else [results]
            values |= zip(equation.outvars, results, strict=True)
        is_nan = jnp.zeros((), dtype=bool)
        for variable in watched:
            is_nan |= jnp.any(jnp.isnan(values[variable]))
        return is_nan

    compiled = jax.jit(any_nan, compiler_options=CHEAP_COMPILATION)
    return bool(compiled(*jax.tree.leaves(arguments)))
