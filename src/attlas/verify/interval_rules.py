r"""Operations of JAX on intervals: programs are evaluated one operation at a time.

Only ordinary operations have a rule; a decomposition gives its values and not its vectors.
"""

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.verify import intervals as iv
from attlas.verify import spectra
from attlas.verify.intervals import Interval, Truth, Undecided

LARGEST = 2**20
"""Entries of an array up to which a witness is evaluated."""


def enclosed(value: Any) -> Any:
    """Floats as intervals, other values unchanged; random keys stay keys of JAX.

    Examples:
        >>> enclosed(np.array(2)).dtype.kind, type(enclosed(np.array(2.0))).__name__
        ('i', 'Interval')
    """
    if jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return value
    array = np.asarray(value)
    return iv.exact(array) if array.dtype.kind == "f" else array


def as_interval(value: Any) -> Interval:
    """Numbers and truth values as intervals.

    Examples:
        >>> float(as_interval(np.array(2)).high)
        2.0
    """
    if isinstance(value, Truth):
        return Interval(value.must.astype(float), value.may.astype(float))
    return value if isinstance(value, Interval) else iv.exact(np.asarray(value, dtype=float))


def as_truth(value: Any) -> Truth:
    """Truth values as what is certain and what is possible.

    Examples:
        >>> bool(as_truth(np.array(True)).must)
        True
    """
    if isinstance(value, Truth):
        return value
    return Truth(np.asarray(value, dtype=bool), np.asarray(value, dtype=bool))


def evaluated(
    program: Any, consts: Any, inputs: list[Any], apply: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """All outputs of a program of JAX, operation by operation.

    Args:
        program: the program without its constants.
        consts: values of its constants.
        inputs: values of its arguments.
        apply: gives the outputs of an operation, as `applied` does.

    Raises:
        Undecided: if an operation has no interval rule.

    Examples:
        >>> program = jax.make_jaxpr(lambda x: x + 1)(1.0)
        >>> (total,) = evaluated(program.jaxpr, (), [iv.exact(2.0)], applied)
        >>> round(float(total.low), 4)
        3.0
    """
    values: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return enclosed(np.asarray(variable.val)) if hasattr(variable, "val") else values[variable]

    values |= dict(zip(program.constvars, (enclosed(np.asarray(c)) for c in consts), strict=True))
    values |= dict(zip(program.invars, inputs, strict=True))
    for equation in program.eqns:
        operands = [read(variable) for variable in equation.invars]
        outputs = apply(equation, operands)
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in program.outvars]


def inner_program(equation: Any) -> tuple[Any, Any] | None:
    """The program that an operation calls once, and its constants; None if it calls none.

    Examples:
        >>> (equation,) = jax.make_jaxpr(jax.jit(jnp.sin))(1.0).eqns
        >>> [inner.primitive.name for inner in inner_program(equation)[0].eqns]
        ['sin']
    """
    details = equation.params
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if inner is None or equation.primitive.name in ("while", "scan", "cond"):
        return None
    return getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())


def applied(equation: Any, inputs: list[Any]) -> list[Any]:
    """The outputs of an operation of a program of JAX.

    Raises:
        Undecided: if it has no interval rule.

    Examples:
        >>> (equation,) = jax.make_jaxpr(jnp.add)(1.0, 2.0).eqns
        >>> applied(equation, [np.array(1), np.array(2)])[0].tolist()
        3
    """
    name, details = equation.primitive.name, equation.params
    if (inner := inner_program(equation)) is not None:
        return evaluated(*inner, inputs, applied)
    if not any(isinstance(value, Interval | Truth) for value in inputs):
        value = equation.primitive.bind(*map(jnp.asarray, inputs), **details)
        outputs = value if equation.primitive.multiple_results else [value]
        return [enclosed(value) for value in outputs]
    for value in equation.outvars:
        if value.aval.size > LARGEST:
            raise Undecided(f"an array of {value.aval.size} entries")
        if value.aval.dtype.kind == "f" and value.aval.dtype != np.float64:
            raise Undecided(f"numbers of {value.aval.dtype}")
    if name in ("svd", "eigh"):
        return spectrum(name, details, as_interval(inputs[0]), equation.outvars)
    if name in _MONOTONE:
        return _both_ends(equation, inputs)
    if name in RULES:
        return [RULES[name](details, *inputs)]
    raise Undecided(f"the operation '{name}' has no interval rule")


_MONOTONE = frozenset({
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "slice", "rev"),
    *("concatenate", "stack", "gather", "dynamic_slice", "pad", "copy", "copy_p", "split"),
    "stop_gradient",
    *("reduce_max", "reduce_min", "max", "min", "clamp", "sort", "cummax", "cummin", "sign"),
    *("floor", "ceil"),
})  # fmt: skip
"""Operations that do not round and rise with each of their float inputs."""


def _both_ends(equation: Any, inputs: list[Any]) -> list[Any]:
    if equation.primitive.name == "sort" and len(inputs) > 1:
        raise Undecided("a sort of several arrays")
    kind = Truth if any(isinstance(value, Truth) for value in inputs) else Interval
    ends = ("must", "may") if kind is Truth else ("low", "high")
    results = []
    for end in ends:
        operands = [jnp.asarray(getattr(v, end) if isinstance(v, kind) else v) for v in inputs]
        outputs = equation.primitive.bind(*operands, **equation.params)
        results.append(outputs if equation.primitive.multiple_results else [outputs])
    return [kind(*map(np.asarray, pair)) for pair in zip(*results, strict=True)]


def spectrum(name: str, details: Mapping[str, Any], a: Interval, variables: Any) -> list[Any]:
    """The values of a decomposition in intervals; its vectors are any numbers.

    Args:
        name: "svd" or "eigh".
        details: parameters of the operation.
        a: matrices, shape (..., m, n).
        variables: outputs of the operation, for their shapes.

    Raises:
        Undecided: if it asks for a part, or a matrix has an entry without bounds.

    Examples:
        >>> program = jax.make_jaxpr(jnp.linalg.eigvalsh)(jnp.eye(2))
        >>> matrix = iv.exact(np.diag([1.0, 2.0]))
        >>> values = spectrum("eigh", {}, matrix, program.jaxpr.outvars[:1] * 2)[1]
        >>> values.low.round(6).tolist()
        [1.0, 2.0]
    """
    if details.get("subset_by_index") is not None:
        raise Undecided(f"a part of '{name}'")
    values = spectra.singular_values(a) if name == "svd" else spectra.eigenvalues(a)
    if name == "eigh" and not details.get("sort_eigenvalues", True):
        raise Undecided("eigenvalues without an order")
    unknown = [np.full(v.aval.shape, np.inf) for v in variables]
    results: list[Any] = [Interval(-u, u) for u in unknown]
    results[1 if name == "eigh" else 0] = values
    return results


def _compare(certain: Callable, possible: Callable) -> Callable[..., Truth]:
    def rule(details: Mapping[str, Any], a: Any, b: Any) -> Truth:
        del details
        a, b = as_interval(a), as_interval(b)
        return Truth(certain(a, b), possible(a, b))

    return rule


def _logic(operate: Callable) -> Callable[..., Truth]:
    def rule(details: Mapping[str, Any], a: Any, b: Any) -> Truth:
        del details
        a, b = as_truth(a), as_truth(b)
        return Truth(operate(a.must, b.must), operate(a.may, b.may))

    return rule


def _reduce_truth(operate: Callable) -> Callable[..., Truth]:
    def rule(details: Mapping[str, Any], a: Any) -> Truth:
        a, axes = as_truth(a), tuple(details["axes"])
        return Truth(operate(a.must, axis=axes), operate(a.may, axis=axes))

    return rule


def unary(operate: Callable[[Interval], Interval]) -> Callable[..., Interval]:
    """The rule of an operation by that of intervals.

    Examples:
        >>> float(unary(iv.negate)({}, np.array(2)).low)
        -2.0
    """
    return lambda details, a: operate(as_interval(a))


def binary(operate: Callable[[Interval, Interval], Interval]) -> Callable[..., Interval]:
    """The rule of an operation of two operands by that of intervals.

    Examples:
        >>> round(float(binary(iv.add)({}, np.array(2), np.array(3)).low), 6)
        5.0
    """
    return lambda details, a, b: operate(as_interval(a), as_interval(b))


def _select(details: Mapping[str, Any], which: Any, *cases: Any) -> Any:
    """The selected case, and the hull of both where the choice is undecided."""
    del details
    if not isinstance(which, Truth) and np.asarray(which).dtype != bool:
        raise Undecided("a choice among several cases")
    choice, (no, yes) = as_truth(which), cases
    must, may = choice.must, choice.may
    if isinstance(no, Truth) or isinstance(yes, Truth) or _interval_free(no, yes):
        no, yes = as_truth(no), as_truth(yes)
        low = np.where(must, yes.must, np.where(may, no.must & yes.must, no.must))
        return Truth(low, np.where(must, yes.may, np.where(may, no.may | yes.may, no.may)))
    no, yes = as_interval(no), as_interval(yes)
    low = np.where(must, yes.low, np.where(may, np.minimum(no.low, yes.low), no.low))
    high = np.where(must, yes.high, np.where(may, np.maximum(no.high, yes.high), no.high))
    return Interval(low, high)


def _interval_free(*values: Any) -> bool:
    return not any(isinstance(v, Interval) for v in values) and np.asarray(values[0]).dtype == bool


def _convert(details: Mapping[str, Any], a: Any) -> Any:
    kind = np.dtype(details["new_dtype"]).kind
    if isinstance(a, Truth) and kind == "f":
        return as_interval(a)
    if kind == "b" and isinstance(a, Interval):
        zero = (a.low <= 0) & (a.high >= 0)
        return Truth(~zero, ~((a.low == 0) & (a.high == 0)))
    if kind != "f" or not isinstance(a, Interval):
        raise Undecided(f"a conversion to {details['new_dtype']}")
    return a


def contraction(
    details: Mapping[str, Any],
    a: Any,
    b: Any,
    add: Callable[[Interval, Interval], Interval] = iv.add,
    multiply: Callable[[Interval, Interval], Interval] = iv.multiply,
) -> Interval:
    """A contraction as products and sums: batch axes, then rows, columns.

    Examples:
        >>> numbers = {"dimension_numbers": (((0,), (0,)), ((), ()))}
        >>> round(float(contraction(numbers, np.ones(3), np.ones(3)).low), 6)
        3.0
    """
    a, b = as_interval(a), as_interval(b)
    (over_a, over_b), (batch_a, batch_b) = details["dimension_numbers"]

    def ordered(x: Interval, over: Any, batch: Any) -> tuple[Interval, tuple, tuple]:
        free = [k for k in range(x.low.ndim) if k not in (*over, *batch)]
        order, shape = (*batch, *free, *over), x.low.shape
        sizes = [int(np.prod([shape[k] for k in ks])) for ks in (batch, free, over)]
        low, high = (np.transpose(end, order).reshape(sizes) for end in (x.low, x.high))
        sizes_left = tuple(shape[k] for k in batch), tuple(shape[k] for k in free)
        return Interval(low, high), *sizes_left

    (p, batches, rows), (q, _, columns) = ordered(a, over_a, batch_a), ordered(b, over_b, batch_b)
    sums = iv.exact(np.zeros((p.low.shape[0], p.low.shape[1], q.low.shape[1])))
    for k in range(p.low.shape[2]):
        x = Interval(p.low[:, :, k, None], p.high[:, :, k, None])
        y = Interval(q.low[:, None, :, k], q.high[:, None, :, k])
        sums = add(sums, multiply(x, y))
    shape = (*batches, *rows, *columns)
    return Interval(sums.low.reshape(shape), sums.high.reshape(shape))


def cumulative(details: Mapping[str, Any], a: Any, operate: Callable = iv.add) -> Interval:
    """Running sums, or with another operation running products.

    Examples:
        >>> sums = cumulative({"axis": 0, "reverse": False}, np.ones(3))
        >>> sums.low.round(6).tolist()
        [1.0, 2.0, 3.0]
    """
    a, axis = as_interval(a), details["axis"]
    low, high = (np.moveaxis(end, axis, 0) for end in (a.low, a.high))
    if details["reverse"]:
        low, high = low[::-1], high[::-1]
    running = [Interval(low[0], high[0])]
    for x, y in zip(low[1:], high[1:], strict=True):
        running.append(operate(running[-1], Interval(x, y)))
    ends = [np.stack(part) for part in ([r.low for r in running], [r.high for r in running])]
    if details["reverse"]:
        ends = [end[::-1] for end in ends]
    return Interval(*(np.moveaxis(end, 0, axis) for end in ends))


def _one_over(a: Interval) -> Interval:
    return iv.divide(iv.exact(np.ones_like(a.low)), a)


def _logistic(a: Interval) -> Interval:
    grown = iv.exponential(iv.negate(a))
    return _one_over(iv.add(iv.exact(np.ones_like(a.low)), grown))


def _special(name: str, details: Mapping[str, Any], *operands: Any) -> Interval:
    from attlas.verify.special_intervals import FUNCTIONS  # few programs have them

    del details
    return FUNCTIONS[name](*map(as_interval, operands))


_SPECIAL = ("erf", "erfc", "erf_inv", "lgamma", "digamma", "polygamma", "sin", "cos")


RULES: dict[str, Callable[..., Any]] = {
    "add": binary(iv.add),
    "add_any": binary(iv.add),
    "sub": binary(iv.subtract),
    "mul": binary(iv.multiply),
    "div": binary(iv.divide),
    "pow": binary(iv.power),
    "neg": unary(iv.negate),
    "abs": unary(iv.absolute),
    "sqrt": unary(iv.root),
    "rsqrt": unary(lambda a: _one_over(iv.root(a))),
    "square": unary(lambda a: iv.whole_power(a, 2)),
    "exp": unary(iv.exponential),
    "expm1": unary(iv.exponential_m1),
    "log": unary(iv.logarithm),
    "log1p": unary(iv.logarithm_1p),
    "tanh": unary(iv.hyperbolic_tangent),
    "logistic": unary(_logistic),
    **{name: partial(_special, name) for name in _SPECIAL},
    "integer_pow": lambda details, a: iv.whole_power(as_interval(a), details["y"]),
    "reduce_sum": lambda details, a: iv.total(as_interval(a), tuple(map(int, details["axes"]))),
    "reduce_prod": lambda details, a: iv.total(
        as_interval(a), tuple(map(int, details["axes"])), iv.multiply
    ),
    "cumsum": cumulative,
    "cumprod": lambda details, a: cumulative(details, a, iv.multiply),
    "dot_general": contraction,
    "select_n": _select,
    "convert_element_type": _convert,
    "lt": _compare(lambda a, b: a.high < b.low, lambda a, b: a.low < b.high),
    "le": _compare(lambda a, b: a.high <= b.low, lambda a, b: a.low <= b.high),
    "gt": _compare(lambda a, b: a.low > b.high, lambda a, b: a.high > b.low),
    "ge": _compare(lambda a, b: a.low >= b.high, lambda a, b: a.high >= b.low),
    "eq": _compare(
        lambda a, b: (a.low == b.high) & (a.high == b.low),
        lambda a, b: (a.low <= b.high) & (a.high >= b.low),
    ),
    "ne": _compare(
        lambda a, b: (a.low > b.high) | (a.high < b.low),
        lambda a, b: ~((a.low == b.high) & (a.high == b.low)),
    ),
    "is_finite": lambda details, a: Truth(
        np.isfinite(a.low) & np.isfinite(a.high), np.ones_like(a.low, dtype=bool)
    ),
    "and": _logic(operator.and_),
    "or": _logic(operator.or_),
    "not": lambda details, a: Truth(~as_truth(a).may, ~as_truth(a).must),
    "reduce_and": _reduce_truth(np.all),
    "reduce_or": _reduce_truth(np.any),
}
"""Operations with a rule, by the name of the primitive."""
