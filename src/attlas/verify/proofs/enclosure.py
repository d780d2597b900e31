r"""Programs of JAX on many boxes at once: enclosures of what they compute, and where they may jump.

A batched program is evaluated with `attlas.verify.proofs.sharp_intervals`. The axis of boxes has a
length that no other axis has, so that an undecided choice is traced to the boxes in which it lies.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from attlas.verify import interval_rules
from attlas.verify import intervals as iv
from attlas.verify.interval_rules import as_interval, binary, unary
from attlas.verify.intervals import Interval, Truth, Undecided
from attlas.verify.proofs import sharp_intervals as sharp

BOXES = 67
"""Boxes that are evaluated at once: a length that no axis of a small instance has."""
_STEPS = frozenset({"sign", "floor", "ceil"})


class Enclosure:
    """One evaluation of a program on `BOXES` boxes.

    Attributes:
        jumps: boxes in which a step or a choice is undecided, so that a side may be discontinuous.
    """

    def __init__(self, *, slopes: bool = False):
        """Start without jumps.

        Args:
            slopes: whether the program gives derivatives of a function that is continuous in the
                boxes, for which a choice counts as decided where it is decided in their interiors.
        """
        self.jumps = np.zeros(BOXES, dtype=bool)
        self._slopes = slopes

    def outputs(self, program: Any, low: np.ndarray, high: np.ndarray) -> list[Any]:
        """The outputs of a closed program of one argument, shape (BOXES, n).

        Raises:
            Undecided: if an operation has no interval rule.
        """
        return self.values(program, [Interval(low, high)])

    def values(self, program: Any, inputs: list[Any]) -> list[Any]:
        """The outputs of a closed program; floats become intervals, whole numbers stay themselves.

        Raises:
            Undecided: if an operation has no interval rule.
        """
        inputs = [v if isinstance(v, Interval) else interval_rules.enclosed(v) for v in inputs]
        return interval_rules.evaluated(program.jaxpr, program.consts, inputs, self._applied)

    def _applied(self, equation: Any, inputs: list[Any]) -> list[Any]:
        name, details = equation.primitive.name, equation.params
        if (inner := interval_rules.inner_program(equation)) is not None:
            return interval_rules.evaluated(*inner, inputs, self._applied)
        inputs = [_decided(value) for value in inputs]
        if name == "convert_element_type" and isinstance(inputs[0], Interval):
            inputs = [_as_whole(inputs[0], np.dtype(details["new_dtype"]))]
        if not any(isinstance(value, Interval | Truth) for value in inputs):
            return interval_rules.applied(equation, inputs)
        for variable in equation.outvars:
            if variable.aval.dtype.kind == "f" and variable.aval.dtype != np.float64:
                raise Undecided(f"numbers of {variable.aval.dtype}")
        if name in _MOVES:
            return [self._moved(name, details, inputs)]
        if name in ("select_n", "convert_element_type"):
            self._mark_choice(inputs[0], details)
        if self._slopes and name in ("ge", "gt", "le", "lt"):
            a, b = map(as_interval, inputs)
            return [_inside(a, b) if name in ("ge", "gt") else _inside(b, a)]
        if name in _RULES:
            return [_RULES[name](details, *inputs)]
        return interval_rules.applied(equation, inputs)

    def _moved(self, name: str, details: Any, inputs: list[Any]) -> Any:
        """An operation that does not round and rises with each argument, at both ends."""
        kind = Truth if any(isinstance(value, Truth) for value in inputs) else Interval
        ends = [
            _MOVES[name](
                details, *(np.asarray(getattr(v, e) if isinstance(v, kind) else v) for v in inputs)
            )
            for e in (("must", "may") if kind is Truth else ("low", "high"))
        ]
        if name in _STEPS:
            self._mark(ends[0] != ends[1])
        return kind(*ends)

    def _mark_choice(self, choice: Any, details: Any) -> None:
        if isinstance(choice, Truth):
            self._mark(choice.must != choice.may)
        elif isinstance(choice, Interval) and np.dtype(details["new_dtype"]).kind == "b":
            zero = (choice.low == 0) & (choice.high == 0)
            self._mark((choice.low <= 0) & (choice.high >= 0) & ~zero)

    def _mark(self, undecided: np.ndarray) -> None:
        if not undecided.any():
            return
        axes = [k for k, size in enumerate(undecided.shape) if size == BOXES]
        if len(axes) != 1:
            self.jumps[:] = True
            return
        apart = tuple(k for k in range(undecided.ndim) if k != axes[0])
        self.jumps |= undecided.any(axis=apart)


def _decided(value: Any) -> Any:
    """Truth values that are all certain as such."""
    certain = isinstance(value, Truth) and np.array_equal(value.must, value.may)
    return np.asarray(value.must) if certain else value


def _as_whole(a: Interval, kind: np.dtype[Any]) -> Any:
    """What is converted to whole numbers or truth values, as numbers where no entry is rounded."""
    points = np.array_equal(a.low, a.high) and np.isfinite(a.low).all()
    if not points or kind.kind not in "biu" or (np.abs(a.low) >= 2**31).any():
        return a
    if kind.kind == "u" and (a.low < 0).any():
        return a
    return a.low != 0 if kind.kind == "b" else np.trunc(a.low).astype(np.int64)


def _inside(a: Interval, b: Interval) -> Truth:
    """Whether a >= b, decided where a and b meet at ends alone: derivatives need no more."""
    must = np.asarray(a.low >= b.high)
    return Truth(must, must | (a.high > b.low))


def _broadcast(details: Any, x: np.ndarray) -> np.ndarray:
    shape = [1] * len(details["shape"])
    for axis, size in zip(details["broadcast_dimensions"], x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), details["shape"])


def _slice(details: Any, x: np.ndarray) -> np.ndarray:
    strides = details["strides"] or (1,) * x.ndim
    limits = zip(details["start_indices"], details["limit_indices"], strides, strict=True)
    return x[tuple(slice(*limit) for limit in limits)]


def _axes(details: Any) -> tuple[int, ...]:
    return tuple(map(int, details["axes"]))


_MOVES: dict[str, Callable[..., np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda details, x: x.reshape(details["new_sizes"]),
    "transpose": lambda details, x: np.transpose(x, details["permutation"]),
    "squeeze": lambda details, x: np.squeeze(x, tuple(map(int, details["dimensions"]))),
    "slice": _slice,
    "rev": lambda details, x: np.flip(x, tuple(map(int, details["dimensions"]))),
    "concatenate": lambda details, *x: np.concatenate(x, details["dimension"]),
    "max": lambda details, a, b: np.maximum(a, b),
    "min": lambda details, a, b: np.minimum(a, b),
    "reduce_max": lambda details, x: x.max(axis=_axes(details)),
    "reduce_min": lambda details, x: x.min(axis=_axes(details)),
    "clamp": lambda details, least, x, most: np.minimum(np.maximum(x, least), most),
    "copy": lambda details, x: x,
    "sign": lambda details, x: np.sign(x),
    "floor": lambda details, x: np.floor(x),
    "ceil": lambda details, x: np.ceil(x),
}
"""Operations that do not round and rise with each argument."""


def _total(operate: Callable[..., Interval]) -> Callable[..., Interval]:
    return lambda details, a: iv.total(as_interval(a), _axes(details), operate)


def _one_over(a: Interval) -> Interval:
    return sharp.divide(iv.exact(np.ones_like(a.low)), a)


def _logistic(a: Interval) -> Interval:
    grown = sharp.exponential(iv.negate(a))
    return _one_over(sharp.add(iv.exact(np.ones_like(a.low)), grown))


_RULES: dict[str, Callable[..., Any]] = interval_rules.RULES | {
    "add": binary(sharp.add),
    "add_any": binary(sharp.add),
    "sub": binary(sharp.subtract),
    "mul": binary(sharp.multiply),
    "div": binary(sharp.divide),
    "pow": binary(sharp.power),
    "sqrt": unary(sharp.root),
    "rsqrt": unary(lambda a: _one_over(sharp.root(a))),
    "square": unary(lambda a: sharp.whole_power(a, 2)),
    "exp": unary(sharp.exponential),
    "expm1": unary(sharp.exponential_m1),
    "log": unary(sharp.logarithm),
    "log1p": unary(sharp.logarithm_1p),
    "tanh": unary(sharp.hyperbolic_tangent),
    "logistic": unary(_logistic),
    "integer_pow": lambda details, a: sharp.whole_power(as_interval(a), details["y"]),
    "reduce_sum": _total(sharp.add),
    "reduce_prod": _total(sharp.multiply),
    "cumsum": lambda details, a: interval_rules.cumulative(details, a, sharp.add),
    "cumprod": lambda details, a: interval_rules.cumulative(details, a, sharp.multiply),
    "dot_general": lambda details, a, b: interval_rules.contraction(
        details, a, b, sharp.add, sharp.multiply
    ),
}
