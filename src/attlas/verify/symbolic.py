r"""A proof of an identity by computer algebra: the program of its sides on symbols.

The program of left - right is evaluated once more with a real symbol for each entry of the arrays,
and exact rational numbers for its constants. Where every entry expands to zero, the identity holds
for all real numbers on which both sides are defined, at the shapes of the check. Needs sympy
(`pip install 'attlas[exact]'`). Only ordinary operations on small arrays have a rule; a maximum
counts as an unknown real number. A claim that this does not prove may still be true.
"""

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.sampling import Instance
from attlas.claims.verdict import Outcome, Verdict
from attlas.verify.evidence import Batch

SYMBOLS = 24
"""Entries of all arrays together, up to which a proof is tried."""
ENTRIES = 256
"""Entries of one array of the program."""
OPERATIONS = 400
"""Operations of one entry of left - right before it is expanded."""


class _NotProvedError(Exception):
    """The text says what prevents a proof."""


def with_proof(claim: Claim, verdict: Verdict, batch: Batch) -> Verdict:
    """The verdict of an identity whose `reason` ends in its proof, or why there is none.

    A violation stays one, and `reason` says that it is rounding where the identity is proved. Other
    kinds and outcomes are unchanged, and so are all without sympy.
    """
    decided = verdict.outcome in (Outcome.SUPPORTED, Outcome.VIOLATED)
    tried = claim.kind.rule.equality and decided
    if not tried or importlib.util.find_spec("sympy") is None:
        return verdict
    proof = prove(claim, batch)
    if verdict.outcome is Outcome.VIOLATED:
        if not proof.startswith("proved"):
            return verdict
        proof = f"yet {proof}: what differs is rounding"
    return replace(verdict, reason=f"{verdict.reason}; {proof}")


def prove(claim: Claim, batch: Batch) -> str:
    """Prove an identity symbolically, where its sides are ordinary operations on small arrays.

    Returns:
        "proved symbolically for ..." or "not proved symbolically: ..." with the reason. A proof
        that would prove a control too does not count.

    Raises:
        ModuleNotFoundError: if sympy is not installed.
    """
    if claim.backend == "numpy":
        return "not proved symbolically: its function is plain NumPy"
    algebra = importlib.import_module("sympy")
    shapes = {k: jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for k, v in batch.items()}
    try:
        with jax.enable_x64(True):
            if not _vanishes(_Symbols(algebra), claim, shapes, {}):
                return "not proved symbolically: left - right does not expand to zero"
            for control in claim.controls:
                if control.changes and _vanishes(_Symbols(algebra), claim, shapes, control.changes):
                    why = f"the control '{control.description}' would be proved too"
                    return f"not proved symbolically: {why}"
    except _NotProvedError as reason:
        return f"not proved symbolically: {reason}"
    sizes = ", ".join(f"{k} of shape {v.shape}" for k, v in sorted(shapes.items()) if v.shape)
    where = f" for {sizes}" if sizes else ""
    return f"proved symbolically{where}, where both sides are defined (sympy {algebra.__version__})"


@dataclass(eq=False)
class _Symbols:
    """The algebra, and the real numbers that stand for maxima."""

    algebra: Any
    opaque: dict[Any, Any] = field(default_factory=dict)

    def extreme(self, name: str, values: tuple[Any, ...]) -> Any:
        """A real number for the largest or smallest of some; the same for the same ones."""
        end = -self.algebra.oo if name.endswith("max") else self.algebra.oo
        operands = frozenset(value for value in values if value != end)
        if len(operands) == 1:
            return next(iter(operands))
        key = (name.removeprefix("reduce_"), operands)
        return self.opaque.setdefault(key, self.algebra.Dummy(real=True))

    def exact(self, value: Any) -> np.ndarray:
        """Numbers as exact rationals, symbols as they are."""
        if isinstance(value, np.ndarray) and value.dtype == object:
            return value
        array = np.asarray(value, dtype=float)
        flat = [self._number(float(number)) for number in array.ravel()]
        return _objects(flat, array.shape)

    def _number(self, value: float) -> Any:
        if math.isinf(value):
            return self.algebra.oo if value > 0 else -self.algebra.oo
        if math.isnan(value):
            raise _NotProvedError("a constant is NaN")
        return self.algebra.Rational(value)


def _objects(flat: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """An array of symbols; NumPy would look into them otherwise."""
    objects = np.empty(len(flat), dtype=object)
    for place, value in enumerate(flat):
        objects[place] = value
    return objects.reshape(shape)


def _vanishes(
    symbols: _Symbols, claim: Claim, shapes: Mapping[str, Any], changes: Mapping[str, Any]
) -> bool:
    """Whether every entry of left - right expands to zero."""

    def gap(instance: Instance) -> Array:
        sides = claim.sides(instance, changes)
        return jnp.asarray(sides.left, dtype=float) - jnp.asarray(sides.right, dtype=float)

    if sum(math.prod(shape.shape) for shape in shapes.values()) > SYMBOLS:
        raise _NotProvedError(f"the arrays have more than {SYMBOLS} entries")
    for name, shape in shapes.items():
        if np.dtype(shape.dtype).kind != "f":
            raise _NotProvedError(f"'{name}' is an array of {shape.dtype}")
    program = jax.make_jaxpr(gap)(dict(shapes))
    real = symbols.algebra.Dummy
    symbols_of_arrays = [
        _objects([real(real=True) for _ in range(math.prod(v.shape))], v.shape)
        for v in jax.tree.leaves(dict(shapes))
    ]
    (difference,) = _evaluate(symbols, program.jaxpr, program.consts, symbols_of_arrays)
    return all(_is_zero(symbols.algebra, entry) for entry in symbols.exact(difference).ravel())


def _is_zero(algebra: Any, entry: Any) -> bool:
    if entry.has(algebra.oo, algebra.zoo, algebra.nan):
        raise _NotProvedError("a side is not finite")
    if algebra.count_ops(entry) > OPERATIONS:
        raise _NotProvedError(f"an entry has more than {OPERATIONS} operations")
    numerator, _ = algebra.fraction(algebra.together(algebra.expand(entry)))
    return algebra.expand(numerator) == 0


def _evaluate(symbols: _Symbols, program: Any, consts: Any, inputs: list[Any]) -> list[Any]:
    """All outputs of a program of JAX, operation by operation."""
    values: dict[Any, Any] = dict(zip(program.invars, inputs, strict=True))
    values |= dict(zip(program.constvars, map(np.asarray, consts), strict=True))

    def read(variable: Any) -> Any:
        return np.asarray(variable.val) if hasattr(variable, "val") else values[variable]

    for equation in program.eqns:
        outputs = _apply(symbols, equation, [read(variable) for variable in equation.invars])
        values |= dict(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in program.outvars]


def _apply(symbols: _Symbols, equation: Any, inputs: list[Any]) -> list[Any]:
    name, details = equation.primitive.name, equation.params
    inner = next((details[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in details), None)
    if inner is not None and name not in ("while", "scan", "cond"):
        closed = hasattr(inner, "consts")
        consts = inner.consts if closed else ()
        return _evaluate(symbols, inner.jaxpr if closed else inner, consts, inputs)
    if not any(value.dtype == object for value in inputs):
        value = equation.primitive.bind(*map(jnp.asarray, inputs), **details)
        return [*map(np.asarray, value if equation.primitive.multiple_results else [value])]
    if any(math.prod(value.aval.shape) > ENTRIES for value in equation.outvars):
        raise _NotProvedError(f"an array of the program has more than {ENTRIES} entries")
    if name in _MOVING:
        return _moved(symbols, equation, inputs)
    exact = [symbols.exact(value) for value in inputs]
    if name in _ENTRYWISE:
        return [_entrywise(_ENTRYWISE[name], symbols, details, exact)]
    if name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        return [_reduced(symbols, name, details, exact[0])]
    if name == "dot_general":
        return [_contracted(details, *exact)]
    raise _NotProvedError(f"the operation '{name}' has no rule")


_MOVING = frozenset({
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "slice", "rev"),
    *("concatenate", "stack", "copy", "copy_p", "split", "stop_gradient"),
})  # fmt: skip
"""Operations that only place entries."""


def _moved(symbols: _Symbols, equation: Any, inputs: list[Any]) -> list[Any]:
    """The operation itself, on the places of the entries."""
    exact = [symbols.exact(value) for value in inputs]
    starts = np.cumsum([0, *(value.size for value in exact)])
    places = [
        jnp.asarray(start + np.arange(value.size).reshape(value.shape))
        for start, value in zip(starts, exact, strict=False)
    ]
    flat = np.concatenate([value.ravel() for value in exact])
    positions = equation.primitive.bind(*places, **equation.params)
    outputs = positions if equation.primitive.multiple_results else [positions]
    return [_objects([flat[k] for k in np.ravel(out)], np.shape(out)) for out in outputs]


def _entrywise(
    rule: Callable[..., Any], symbols: _Symbols, details: Mapping[str, Any], inputs: list[Any]
) -> np.ndarray:
    operands = np.broadcast_arrays(*inputs)
    flat = zip(*(value.ravel() for value in operands), strict=True)
    return _objects([rule(symbols, details, *entries) for entries in flat], operands[0].shape)


def _reduced(symbols: _Symbols, name: str, details: Mapping[str, Any], array: Any) -> np.ndarray:
    axes = tuple(details["axes"])
    free = tuple(k for k in range(array.ndim) if k not in axes)
    shape = tuple(array.shape[k] for k in free)
    rows = np.transpose(array, (*free, *axes)).reshape(math.prod(shape), -1)
    operate = {"reduce_sum": symbols.algebra.Add, "reduce_prod": symbols.algebra.Mul}.get(name)
    if operate is not None:
        return _objects([operate(*row) for row in rows], shape)
    return _objects([symbols.extreme(name, tuple(row)) for row in rows], shape)


def _contracted(details: Mapping[str, Any], a: Any, b: Any) -> np.ndarray:
    (over_a, over_b), (batch_a, batch_b) = details["dimension_numbers"]
    if batch_a or batch_b:
        raise _NotProvedError("a product over a batch has no rule")
    return np.asarray(np.tensordot(a, b, axes=(over_a, over_b)), dtype=object)


def _function(name: str) -> Callable[..., Any]:
    return lambda symbols, details, a: getattr(symbols.algebra, name)(a)


def _converted(symbols: _Symbols, details: Mapping[str, Any], a: Any) -> Any:
    if np.dtype(details["new_dtype"]).kind != "f":
        raise _NotProvedError(f"a conversion to {details['new_dtype']}")
    return a


_ENTRYWISE: dict[str, Callable[..., Any]] = {
    "add": lambda symbols, details, a, b: a + b,
    "add_any": lambda symbols, details, a, b: a + b,
    "sub": lambda symbols, details, a, b: a - b,
    "mul": lambda symbols, details, a, b: a * b,
    "div": lambda symbols, details, a, b: a / b,
    "pow": lambda symbols, details, a, b: a**b,
    "neg": lambda symbols, details, a: -a,
    "square": lambda symbols, details, a: a**2,
    "integer_pow": lambda symbols, details, a: a ** details["y"],
    "rsqrt": lambda symbols, details, a: 1 / symbols.algebra.sqrt(a),
    "log1p": lambda symbols, details, a: symbols.algebra.log(1 + a),
    "expm1": lambda symbols, details, a: symbols.algebra.exp(a) - 1,
    "logistic": lambda symbols, details, a: 1 / (1 + symbols.algebra.exp(-a)),
    "tanh": lambda symbols, details, a: symbols.algebra.tanh(a).rewrite(symbols.algebra.exp),
    "max": lambda symbols, details, a, b: symbols.extreme("max", (a, b)),
    "min": lambda symbols, details, a, b: symbols.extreme("min", (a, b)),
    "convert_element_type": _converted,
    **{name: _function(name) for name in ("sqrt", "exp", "log", "sin", "cos")},
    "abs": _function("Abs"),
}
