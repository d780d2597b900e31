r"""A proof that a witness violates a claim: the sides in interval arithmetic.

The program of the sides is evaluated once more, operation by operation, with outward rounding
(`attlas.verify.intervals`). Where the lower end of left - right - error is positive and every
assumption certainly holds, the statement is false on the stored numbers, whatever was rounded. Only
ordinary operations have a rule; a decomposition, a loop or a special function is "not certified".
The arrays of the witness count as exact: the output of a solver is a number like any other, with
the certificate that the claim itself adds as `error`.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import DecimalException
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.sampling import Instance
from attlas.claims.verdict import ChallengeReport, Witness
from attlas.verify import intervals as iv
from attlas.verify import spectra
from attlas.verify.intervals import Interval, Truth, Undecided

TOO_CLOSE = "the sides are too close to tell apart"
LARGEST = 2**20
"""Entries of an array up to which a witness is evaluated."""


def certify(claim: Claim, witness: Witness) -> str:
    """Prove that an instance violates a claim, where interval arithmetic can.

    Returns:
        "proved by interval arithmetic: ..." or "not certified: ..." with the reason.
    """
    if not isinstance(claim.kind.rule, Entrywise):
        return f"not certified: {claim.kind.rule.noun} is decided by many instances"
    if claim.backend == "numpy":
        return "not certified: a function in plain NumPy has no intervals"
    try:
        with jax.enable_x64(True), np.errstate(all="ignore"):
            return _certified(claim, witness)
    except Undecided as reason:
        return f"not certified: {reason}"
    except DecimalException:
        return "not certified: a number beyond what 60 digits hold"


def proved(claim: Claim, report: ChallengeReport) -> ChallengeReport:
    """A report whose violation is certified, with the reason if it is not; else unchanged."""
    witness = report.verdict.witness
    if not report.violated or witness is None or report.certified:
        return report
    return replace(report, certified=certify(claim, witness))


def _certified(claim: Claim, witness: Witness) -> str:
    gap, error = enclosed_gap(claim, witness)
    excess = iv.subtract(gap, error).low
    if not excess.size or not excess.max() > 0:
        raise Undecided(TOO_CLOSE)
    sign = "|left - right|" if claim.kind.rule.equality else "left - right"
    return f"proved by interval arithmetic: {sign} exceeds what is allowed by {excess.max():.3g}"


def enclosed_gap(claim: Claim, instance: Witness) -> tuple[Interval, Interval]:
    """Enclosures of left - right of one instance, of an identity |left - right|, and of the error.

    Args:
        claim: of a kind whose sides are compared entry by entry, with a function in JAX; 64-bit
            numbers of JAX are enabled.

    Raises:
        Undecided: if an assumption may fail, or an operation has no interval rule.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("gu2024exploring/fact-a-3")
        >>> with jax.enable_x64(True):
        ...     drawn = claim.draw(0, 1)
        ...     gap, _ = enclosed_gap(claim, {k: np.asarray(v[0]) for k, v in drawn.items()})
        >>> bool(gap.low.min() >= 0), bool(gap.high.max() < 1e-12)
        (True, True)
    """
    arrays = {name: jnp.asarray(value) for name, value in instance.items()}

    def conditions_and_sides(instance: Instance) -> tuple[list[Array], tuple[Array, Array, Array]]:
        sides = claim.sides(instance)
        left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
        return holds, (left, right, jnp.asarray(sides.error, dtype=float))

    program = jax.make_jaxpr(conditions_and_sides)(arrays)
    inputs = [_enclosed(np.asarray(v)) for v in jax.tree.leaves(arrays)]
    *holds, left, right, error = _evaluate(program.jaxpr, program.consts, inputs)
    for assumption, held in zip(claim.assumptions, holds, strict=True):
        if not _truth(held).must.all():
            raise Undecided(f"the assumption '{assumption.text}' is too close to decide")
    gap = iv.subtract(_interval(left), _interval(right))
    if claim.kind.rule.equality:
        gap = iv.absolute(gap)
    return gap, _interval(error)


def _enclosed(value: Any) -> Any:
    """Floats as intervals, other values unchanged; random keys stay keys of JAX."""
    if jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return value
    array = np.asarray(value)
    return iv.exact(array) if array.dtype.kind == "f" else array


def _interval(value: Any) -> Interval:
    if isinstance(value, Truth):
        return Interval(value.must.astype(float), value.may.astype(float))
    return value if isinstance(value, Interval) else iv.exact(np.asarray(value, dtype=float))


def _truth(value: Any) -> Truth:
    if isinstance(value, Truth):
        return value
    return Truth(np.asarray(value, dtype=bool), np.asarray(value, dtype=bool))


def _evaluate(program: Any, consts: Any, inputs: list[Any]) -> list[Any]:
    """All outputs of a program of JAX, operation by operation."""
    values: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return _enclosed(np.asarray(variable.val)) if hasattr(variable, "val") else values[variable]

    values |= dict(zip(program.constvars, (_enclosed(np.asarray(c)) for c in consts), strict=True))
    values |= dict(zip(program.invars, inputs, strict=True))
    for equation in program.eqns:
        operands = [read(variable) for variable in equation.invars]
        outputs = _apply(equation, operands)
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in program.outvars]


def _apply(equation: Any, inputs: list[Any]) -> list[Any]:
    name, details = equation.primitive.name, equation.params
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if inner is not None and name not in ("while", "scan", "cond"):
        closed = hasattr(inner, "consts")
        return _evaluate(inner.jaxpr if closed else inner, inner.consts if closed else (), inputs)
    if not any(isinstance(value, Interval | Truth) for value in inputs):
        value = equation.primitive.bind(*map(jnp.asarray, inputs), **details)
        outputs = value if equation.primitive.multiple_results else [value]
        return [_enclosed(value) for value in outputs]
    for value in equation.outvars:
        if value.aval.size > LARGEST:
            raise Undecided(f"an array of {value.aval.size} entries")
        if value.aval.dtype.kind == "f" and value.aval.dtype != np.float64:
            raise Undecided(f"numbers of {value.aval.dtype}")
    if name in ("svd", "eigh"):
        return _spectrum(name, details, _interval(inputs[0]), equation.outvars)
    if name in _MONOTONE:
        return _both_ends(equation, inputs)
    if name in _RULES:
        return [_RULES[name](details, *inputs)]
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


def _spectrum(name: str, details: Mapping[str, Any], a: Interval, variables: Any) -> list[Any]:
    """The values of a decomposition in intervals; its vectors are any numbers."""
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
        a, b = _interval(a), _interval(b)
        return Truth(certain(a, b), possible(a, b))

    return rule


def _logic(operate: Callable) -> Callable[..., Truth]:
    def rule(details: Mapping[str, Any], a: Any, b: Any) -> Truth:
        del details
        a, b = _truth(a), _truth(b)
        return Truth(operate(a.must, b.must), operate(a.may, b.may))

    return rule


def _reduce_truth(operate: Callable) -> Callable[..., Truth]:
    def rule(details: Mapping[str, Any], a: Any) -> Truth:
        a, axes = _truth(a), tuple(details["axes"])
        return Truth(operate(a.must, axis=axes), operate(a.may, axis=axes))

    return rule


def _unary(operate: Callable[[Interval], Interval]) -> Callable[..., Interval]:
    return lambda details, a: operate(_interval(a))


def _binary(operate: Callable[[Interval, Interval], Interval]) -> Callable[..., Interval]:
    return lambda details, a, b: operate(_interval(a), _interval(b))


def _select(details: Mapping[str, Any], which: Any, *cases: Any) -> Any:
    """The selected case, and the hull of both where the choice is undecided."""
    del details
    if not isinstance(which, Truth) and np.asarray(which).dtype != bool:
        raise Undecided("a choice among several cases")
    choice, (no, yes) = _truth(which), cases
    must, may = choice.must, choice.may
    if isinstance(no, Truth) or isinstance(yes, Truth) or _interval_free(no, yes):
        no, yes = _truth(no), _truth(yes)
        low = np.where(must, yes.must, np.where(may, no.must & yes.must, no.must))
        return Truth(low, np.where(must, yes.may, np.where(may, no.may | yes.may, no.may)))
    no, yes = _interval(no), _interval(yes)
    low = np.where(must, yes.low, np.where(may, np.minimum(no.low, yes.low), no.low))
    high = np.where(must, yes.high, np.where(may, np.maximum(no.high, yes.high), no.high))
    return Interval(low, high)


def _interval_free(*values: Any) -> bool:
    return not any(isinstance(v, Interval) for v in values) and np.asarray(values[0]).dtype == bool


def _convert(details: Mapping[str, Any], a: Any) -> Any:
    kind = np.dtype(details["new_dtype"]).kind
    if isinstance(a, Truth) and kind == "f":
        return _interval(a)
    if kind == "b" and isinstance(a, Interval):
        zero = (a.low <= 0) & (a.high >= 0)
        return Truth(~zero, ~((a.low == 0) & (a.high == 0)))
    if kind != "f" or not isinstance(a, Interval):
        raise Undecided(f"a conversion to {details['new_dtype']}")
    return a


def _dot(details: Mapping[str, Any], a: Any, b: Any) -> Interval:
    """A contraction as products and sums: batch axes, then rows, columns."""
    a, b = _interval(a), _interval(b)
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
        sums = iv.add(sums, iv.multiply(x, y))
    shape = (*batches, *rows, *columns)
    return Interval(sums.low.reshape(shape), sums.high.reshape(shape))


def _cumulative(details: Mapping[str, Any], a: Any, operate: Callable = iv.add) -> Interval:
    a, axis = _interval(a), details["axis"]
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


def _not(details: Mapping[str, Any], a: Any) -> Truth:
    del details
    return Truth(~_truth(a).may, ~_truth(a).must)


_RULES: dict[str, Callable[..., Any]] = {
    "add": _binary(iv.add),
    "add_any": _binary(iv.add),
    "sub": _binary(iv.subtract),
    "mul": _binary(iv.multiply),
    "div": _binary(iv.divide),
    "pow": _binary(iv.power),
    "neg": _unary(iv.negate),
    "abs": _unary(iv.absolute),
    "sqrt": _unary(iv.root),
    "rsqrt": _unary(lambda a: _one_over(iv.root(a))),
    "square": _unary(lambda a: iv.whole_power(a, 2)),
    "exp": _unary(iv.exponential),
    "expm1": _unary(iv.exponential_m1),
    "log": _unary(iv.logarithm),
    "log1p": _unary(iv.logarithm_1p),
    "tanh": _unary(iv.hyperbolic_tangent),
    "logistic": _unary(_logistic),
    "integer_pow": lambda details, a: iv.whole_power(_interval(a), details["y"]),
    "reduce_sum": lambda details, a: iv.total(_interval(a), tuple(map(int, details["axes"]))),
    "reduce_prod": lambda details, a: iv.total(
        _interval(a), tuple(map(int, details["axes"])), iv.multiply
    ),
    "cumsum": _cumulative,
    "cumprod": lambda details, a: _cumulative(details, a, iv.multiply),
    "dot_general": _dot,
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
    "not": _not,
    "reduce_and": _reduce_truth(np.all),
    "reduce_or": _reduce_truth(np.any),
}
