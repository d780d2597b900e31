"""A program of JAX, operation by operation, with numbers of so many digits.

Floats are exact on the way in: a float64 is a rational number. Integers, truth values and random
keys are computed by JAX, which does not round them.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.errors import in_short
from attlas.verify.digits import (
    elementwise,
    fourier,
    integers,
    linear_algebra,
    movement,
    reductions,
)
from attlas.verify.digits.omissions import OMISSIONS
from attlas.verify.digits.precision import Precision, Unconfirmed, in_digits

RULES = {**elementwise.RULES, **reductions.RULES, **linear_algebra.RULES, **fourier.RULES}
"""Operations with a rule, by the name of the primitive."""


def evaluate(
    precision: Precision, program: Any, inputs: list[Any], wanted: tuple[bool, ...] | None = None
) -> list[Any]:
    """The outputs of a program of `jax.make_jaxpr`; what none of them needs is not computed.

    Args:
        program: a closed program, or an open one without constants.
        inputs: arrays of floats, or of numbers of mpmath, and others.
        wanted: which outputs are to be computed; None for all.

    Returns:
        Arrays of numbers of mpmath for floats; other arrays as they are; None for an output that is
        not wanted.

    Raises:
        Unconfirmed: names the operation that has no rule, or says that there are too many.

    Examples:
        >>> program = jax.make_jaxpr(lambda x: jnp.log1p(x) / x)(1.0)
        >>> str(evaluate(Precision(40), program, [2.0**-100])[0][()])[:36]
        '0.9999999999999999999999999999996055'
    """
    consts = getattr(program, "consts", ())
    body = getattr(program, "jaxpr", program)
    values: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        if hasattr(variable, "val"):
            return _entered(precision, variable.val)
        return values[variable]

    values |= zip(body.constvars, (_entered(precision, c) for c in consts), strict=True)
    values |= zip(body.invars, (_entered(precision, value) for value in inputs), strict=True)
    wanted = (True,) * len(body.outvars) if wanted is None else wanted
    for equation, needed in _needed(body, wanted):
        precision.spend(3)
        outputs = _applied(precision, equation, [read(v) for v in equation.invars], needed)
        values |= zip(equation.outvars, outputs, strict=True)
    return [read(v) if want else None for v, want in zip(body.outvars, wanted, strict=True)]


@lru_cache(maxsize=256)
def _needed(body: Any, wanted: tuple[bool, ...]) -> list[tuple[Any, tuple[bool, ...]]]:
    """The equations of which a wanted output needs a result, each with which results it needs.

    A step of a loop often measures ten things of which the statement reads one.
    """
    variables = {v for v, want in zip(body.outvars, wanted, strict=True)
                 if want and not hasattr(v, "val")}  # fmt: skip
    needed = []
    for equation in reversed(body.eqns):
        results = tuple(variable in variables for variable in equation.outvars)
        if any(results):
            needed.append((equation, results))
            variables |= {v for v in equation.invars if not hasattr(v, "val")}
    return needed[::-1]


def uncovered(program: Any) -> set[str]:
    """Names of the operations of a program that have no rule in digits.

    Examples:
        >>> uncovered(jax.make_jaxpr(lambda x: jnp.nextafter(x, jnp.sin(x)))(1.0))
        {'nextafter'}
    """
    missing = set()
    for equation in getattr(program, "jaxpr", program).eqns:
        name = equation.primitive.name
        inner = [p for value in equation.params.values() for p in _programs(value)]
        for part in inner:
            missing |= uncovered(part)
        variables = (*equation.invars, *equation.outvars)
        kinds = [v.aval.dtype for v in variables if hasattr(v.aval, "dtype")]
        rounded = any(jnp.issubdtype(kind, jnp.inexact) for kind in kinds)
        ruled = RULES.keys() | _LOOPS.keys() | movement.MOVES | movement.UNCHANGED
        ruled |= reductions.SCATTERS.keys() | {"select_n", "iota", "bitcast_convert_type"}
        if rounded and not inner and name not in ruled:
            missing.add(name)
    return missing


def _programs(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [program for part in value for program in _programs(part)]
    return [value] if hasattr(value, "eqns") or hasattr(value, "jaxpr") else []


def _entered(precision: Precision, value: Any) -> Any:
    """Floats as numbers of mpmath, other values unchanged; random keys stay keys of JAX."""
    dtype = getattr(value, "dtype", None)
    if in_digits(value) or (dtype is not None and jnp.issubdtype(dtype, jax.dtypes.extended)):
        return value
    array = np.asarray(value)
    return precision.exact(array) if jnp.issubdtype(array.dtype, jnp.inexact) else array


def _applied(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    name, details = equation.primitive.name, equation.params
    if name in _LOOPS:
        return _LOOPS[name](precision, equation, inputs, needed)
    # Other rules than those of digits, such as exact ones, know no exponential of a matrix.
    if precision.rules is None and _is_matrix_exponential(equation):
        return linear_algebra.exponential_of_matrix(precision, details, *inputs)
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if details.get("name") == "signbit" and in_digits(inputs[0]):  # it looks at bits
        return [precision.each(lambda x: x < 0, inputs[0]).astype(bool)]
    if inner is not None:
        return evaluate(precision, inner, inputs, needed)
    for variable in (*equation.invars, *equation.outvars):
        dtype = getattr(variable.aval, "dtype", np.float64)
        if jnp.issubdtype(dtype, jnp.inexact) and dtype != np.float64:
            if dtype == np.complex128 and (name in _OF_COMPLEX or name in movement.MOVES):
                continue
            raise Unconfirmed(f"numbers of {dtype}")
    if name in movement.UNCHANGED:
        return inputs
    if not any(map(in_digits, inputs)):
        if name in integers.RULES:
            value = np.asarray(integers.RULES[name](details, *map(np.asarray, inputs)))
            return [_entered(precision, value.astype(equation.outvars[0].aval.dtype))]
        value = equation.primitive.bind(*map(jnp.asarray, inputs), **details)
        outputs = value if equation.primitive.multiple_results else [value]
        return [_entered(precision, value) for value in outputs]
    if name in reductions.SCATTERS:
        return [reductions.SCATTERS[name](precision, equation, *inputs)]
    if name == "select_n":
        return [_selected(precision, *inputs)]
    if name in movement.MOVES:
        return movement.moved(precision, equation, inputs)
    rules = RULES if precision.rules is None else precision.rules
    if name not in rules:
        why = f": {OMISSIONS[name]}" if name in OMISSIONS else ""
        raise Unconfirmed(f"the operation '{name}' has no rule in digits{why}")
    try:
        value = rules[name](precision, details, *inputs)
    except (ArithmeticError, ValueError, precision.ctx.NoConvergence) as error:
        raise Unconfirmed(f"the operation '{name}' fails in digits: {in_short(error)}") from error
    return value if isinstance(value, list) else [value]


def _is_matrix_exponential(equation: Any) -> bool:
    """Whether this is JAX's `expm`, whose rational approximation is good to 16 digits at best."""
    if equation.params.get("name") != "expm" or len(equation.invars) != 1:
        return False
    inner = equation.params["jaxpr"].eqns
    if not any(each.params.get("name") == "_calc_P_Q" for each in inner):
        return False
    if equation.invars[0].aval.ndim != 2:
        raise Unconfirmed("the exponentials of several matrices at once")
    return True


def _selected(precision: Precision, which: Any, *cases: Any) -> Any:
    precision.spend(np.size(cases[0]) // 4)
    result = np.array(np.broadcast_to(cases[0], cases[0].shape))
    for k, case in enumerate(cases[1:], 1):
        result = np.where(np.asarray(which, dtype=int) == k, case, result)
    return np.asarray(result, dtype=cases[0].dtype)


def _conditional(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    branches = equation.params["branches"]
    index = int(np.clip(int(inputs[0]), 0, len(branches) - 1))
    return evaluate(precision, branches[index], inputs[1:], needed)


def _while(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    del needed  # the condition may read each part of the state
    details = equation.params
    first, second = details["cond_nconsts"], details["body_nconsts"]
    condition, body = inputs[:first], inputs[first : first + second]
    state = inputs[first + second :]
    while True:
        # Under vmap a loop has one truth value for each instance, and those that ended wait.
        (runs,) = evaluate(precision, details["cond_jaxpr"], [*condition, *state])
        runs = np.asarray(runs, dtype=bool)
        if not runs.any():
            return state
        outputs = evaluate(precision, details["body_jaxpr"], [*body, *state])
        if not runs.all():
            masks = (runs.reshape(runs.shape + (1,) * (np.ndim(x) - runs.ndim)) for x in outputs)
            pairs = zip(masks, outputs, state, strict=True)
            outputs = [np.where(mask, after, before) for mask, after, before in pairs]
        state = outputs


def _scan(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    details = equation.params
    n, m = details["num_consts"], details["num_carry"]
    measured = (True,) * m + needed[m:]
    consts, state, sequences = inputs[:n], inputs[n : n + m], inputs[n + m :]
    steps = range(details["length"])
    rows = []
    for k in reversed(steps) if details["reverse"] else steps:
        step = [*consts, *state, *(sequence[k] for sequence in sequences)]
        outputs = evaluate(precision, details["jaxpr"], step, measured)
        state = outputs[:m]
        rows.append(outputs[m:])
    if details["reverse"]:
        rows.reverse()
    shapes = [(v.aval.shape, v.aval.dtype) for v in equation.outvars[m:]]

    def stacked(j: int, shape: tuple[int, ...], dtype: Any) -> Any:
        if not needed[m + j]:
            return None
        return np.stack([np.asarray(row[j]) for row in rows]) if rows else np.zeros(shape, dtype)

    return [*state, *(stacked(j, *each) for j, each in enumerate(shapes))]


def _linear_solve(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    """By the solver that the program gives, on its constants and the right sides."""
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    begin = lengths.matvec + lengths.vecmat
    consts = inputs[begin : begin + lengths.solve]
    return evaluate(precision, programs.solve, [*consts, *inputs[sum(lengths) :]], needed)


def _platform(
    precision: Precision, equation: Any, inputs: list[Any], needed: tuple[bool, ...]
) -> list[Any]:
    """The branch of a processor without accelerator."""
    del precision, inputs, needed
    platforms = equation.params["platforms"]
    fits = [k for k, names in enumerate(platforms) if names is None or "cpu" in names]
    return [np.asarray(fits[0], dtype=np.int32)]


_OF_COMPLEX = frozenset({
    *("eig", "real", "imag", "abs", "conj", "complex", "neg", "add", "add_any", "sub", "mul"),
    *("div", "square", "integer_pow", "exp", "eq", "ne", "reduce_sum", "cumsum", "dot_general"),
    *("fft", "convert_element_type", "conv_general_dilated", "select_n", "scatter-add"),
    *movement.UNCHANGED,
})  # fmt: skip
"""Operations whose rules hold for complex numbers: those of eigenvalues and of transforms."""
_LOOPS: dict[str, Callable[..., list[Any]]] = {
    "cond": _conditional,
    "while": _while,
    "scan": _scan,
    "custom_linear_solve": _linear_solve,
    "platform_index": _platform,
}
