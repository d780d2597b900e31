"""Enclosures of a program at one instance with ends of three hundred digits.

Decimal intervals of `attlas.verify.intervals` have 16 digits and rules for the common operations.
Here the evaluator of `attlas.verify.digits` runs on `FineNumber`, so that loops, choices, sorted
arrays and systems of equations have the rules that they have there, and every comparison on the way
is certain or refused.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.verdict import Witness
from attlas.verify import intervals as iv
from attlas.verify import spectra
from attlas.verify.certify import conditions_and_sides
from attlas.verify.digits import linear_algebra, reductions
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, Unconfirmed
from attlas.verify.intervals import Interval, Undecided
from attlas.verify.proofs import fine_numbers as fine
from attlas.verify.proofs.fine_numbers import FineNumber

_OPERATIONS = 2**19
"""Operations of one evaluation: some ten seconds."""
Rule = Callable[..., Any]


class _Never(Exception):
    """No rule of intervals iterates."""


class _Context:
    """What the rules of `attlas.verify.digits` ask of a context of mpmath."""

    mpf = FineNumber
    mpc = ()
    NoConvergence = _Never
    sqrt = staticmethod(fine.root)

    def __init__(self) -> None:
        self.zero, self.one = FineNumber.of(0), FineNumber.of(1)
        self.inf, self.ninf = FineNumber.of(math.inf), FineNumber.of(-math.inf)
        self.nan = FineNumber.of(math.nan)

    def isnan(self, value: Any) -> bool:
        """Never: what has no value has no bounds."""
        del value
        return False

    def isfinite(self, value: FineNumber) -> bool:
        """Whether it is a number, where that is certain."""
        if value.is_bounded or value.is_point:
            return value.is_bounded
        raise Undecided("a number may be infinite or undefined")

    def fsum(self, values: Iterable[FineNumber]) -> FineNumber:
        """The sum of numbers."""
        return sum(values, start=self.zero)


class FineIntervals(Precision):
    """Arrays of numbers between two ends in the place of numbers of so many digits.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> with jax.enable_x64(True):
        ...     program = jax.make_jaxpr(lambda a: jnp.linalg.solve(a, a[0]))(jnp.eye(2))
        ...     (x,) = evaluate(FineIntervals(), program, [np.diag([2.0, 3.0])])
        >>> [number.floats() for number in x]
        [(1.0, 1.0), (0.0, 0.0)]
    """

    def __init__(self) -> None:  # the numbers of mpmath are not made
        self.digits, self.left = 300, _OPERATIONS
        self.ctx: Any = _Context()
        self.rules = RULES

    def real(self, value: Any) -> FineNumber:
        """A number of Python or NumPy, exactly."""
        if isinstance(value, FineNumber):
            return value
        return FineNumber.of(value.item() if isinstance(value, np.generic) else value)


def finely_enclosed_gap(claim: Claim, instance: Witness) -> tuple[Interval, Interval]:
    """Enclosures of left - right of one instance, of an identity |left - right|, and of the error.

    Raises:
        Undecided: if an assumption may fail, a comparison is not certain, or an operation has no
            interval rule.

    Examples:
        >>> import jax
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("gu2024exploring/fact-a-3")
        >>> with jax.enable_x64(True):
        ...     drawn = claim.draw(0, 1)
        ...     gap, _ = finely_enclosed_gap(claim, {k: np.asarray(v[0]) for k, v in drawn.items()})
        >>> bool(gap.low.min() >= 0), bool(gap.high.max() < 1e-12)
        (True, True)
    """
    program, inputs = conditions_and_sides(claim, instance)
    try:
        *holds, left, right, error = evaluate(FineIntervals(), program, inputs)
    except Unconfirmed as reason:
        text = str(reason).replace("no rule in digits", "no interval rule")
        raise Undecided(text) from reason
    for assumption, held in zip(claim.assumptions, holds, strict=True):
        if not np.all(held):
            raise Undecided(f"the assumption '{assumption.text}' fails")
    gap = _rounded(np.asarray(left - right))
    return iv.absolute(gap) if claim.kind.rule.equality else gap, _rounded(np.asarray(error))


def _rounded(numbers: np.ndarray) -> Interval:
    """Floats that enclose numbers."""
    numbers = np.asarray(numbers, dtype=object)
    ends = np.array([number.floats() for number in numbers.ravel()]).reshape(*numbers.shape, 2)
    return Interval(ends[..., 0], ends[..., 1])


def _of(function: Callable[..., Any], cost: int = 1) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], *operands: Any) -> np.ndarray:
        del details
        return precision.each(function, *map(precision.exact, operands), cost=cost)

    return rule


def _truth(function: Callable[..., bool]) -> Rule:
    rule = _of(function)
    return lambda precision, details, *operands: rule(precision, details, *operands).astype(bool)


def _smaller(a: FineNumber, b: FineNumber) -> FineNumber:
    return -fine.larger(-a, -b)


def _clamped(low: FineNumber, a: FineNumber, high: FineNumber) -> FineNumber:
    return _smaller(fine.larger(a, low), high)


def _sign(a: FineNumber) -> FineNumber:
    return FineNumber.of(int(a > 0) - int(a < 0))


def _integer_power(precision: Precision, details: Mapping[str, Any], a: Any) -> np.ndarray:
    exponent = FineNumber.of(int(details["y"]))
    return precision.each(lambda x: fine.power(x, exponent), a, cost=4)


def _logistic(a: FineNumber) -> FineNumber:
    return 1 / (fine.exponential(-a) + 1)


def _tanh(a: FineNumber) -> FineNumber:
    """The hyperbolic tangent of a point, of an exponential that is at most 1."""
    positive = a > 0
    grown = fine.exponential((-a if positive else a) * 2)
    share = (1 - grown) / (1 + grown)
    return share if positive else -share


def _cube_root(a: FineNumber) -> FineNumber:
    """The cube root of a point."""
    third = FineNumber.of(1) / 3
    return fine.power(a, third) if a >= 0 else -fine.power(-a, third)


def _rounding(operate: Callable[[int, bool], int]) -> Callable[[FineNumber], FineNumber]:
    """A function of the whole part of a number and whether the number is larger than it."""

    def rule(a: FineNumber) -> FineNumber:
        part = int(a)
        if a < part:
            part -= 1
        return FineNumber.of(operate(part, bool(a > part)))

    return rule


def _reduced(combine: Callable[..., Any], start: str) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
        axes = tuple(int(axis) for axis in details["axes"])
        free = [k for k in range(a.ndim) if k not in axes]
        shape = tuple(a.shape[k] for k in free)
        precision.spend(a.size)
        rows = np.transpose(a, (*free, *axes)).reshape(math.prod(shape), -1)
        result = np.empty(len(rows), dtype=object)
        for k, row in enumerate(rows):
            result[k] = reduce(combine, row, getattr(precision.ctx, start))
        return result.reshape(shape)

    return rule


def _spectrum(name: str) -> Rule:
    """The values of a decomposition, from intervals of floats; its vectors are any numbers."""

    def rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
        if details.get("subset_by_index") is not None or not details.get("sort_eigenvalues", True):
            raise Undecided(f"a part of '{name}', or one without an order")
        values = _SPECTRA[name](_rounded(a))
        ends = np.stack([values.low, values.high], axis=-1).reshape(-1, 2)
        numbers = np.empty(len(ends), dtype=object)
        numbers[:] = [FineNumber.between(*pair) for pair in ends.tolist()]
        numbers = numbers.reshape(values.low.shape)
        lead, (m, n) = a.shape[:-2], a.shape[-2:]
        if name == "eigh":
            return [_unknown(precision, a.shape), numbers]
        if not details["compute_uv"]:
            return [numbers]
        k, full = min(m, n), details["full_matrices"]
        left, right = (*lead, m, m if full else k), (*lead, n if full else k, n)
        return [numbers, _unknown(precision, left), _unknown(precision, right)]

    return rule


def _unknown(precision: Precision, shape: tuple[int, ...]) -> np.ndarray:
    return precision.exact(np.full(shape, np.nan))


_SPECTRA = {"eigh": spectra.eigenvalues, "svd": spectra.singular_values}
RULES: dict[str, Rule] = {
    "add": _of(operator.add),
    "add_any": _of(operator.add),
    "sub": _of(operator.sub),
    "mul": _of(operator.mul),
    "div": _of(operator.truediv, 2),
    "neg": _of(operator.neg),
    "abs": _of(abs),
    "square": _of(lambda a: fine.power(a, FineNumber.of(2))),
    "integer_pow": _integer_power,
    "pow": _of(fine.power, 20),
    "sqrt": _of(fine.root, 4),
    "rsqrt": _of(lambda a: 1 / fine.root(a), 4),
    "cbrt": _of(partial(fine.rising, _cube_root), 40),
    "exp": _of(fine.exponential, 10),
    "exp2": _of(lambda a: fine.power(FineNumber.of(2), a), 20),
    "expm1": _of(lambda a: fine.exponential(a) - 1, 10),
    "log": _of(fine.logarithm, 10),
    "log1p": _of(lambda a: fine.logarithm(a + 1), 10),
    "logistic": _of(partial(fine.rising, _logistic), 20),
    "tanh": _of(partial(fine.rising, _tanh), 20),
    "cos": _of(lambda a: fine.wave(a)[0], 20),
    "sin": _of(lambda a: fine.wave(a)[1], 20),
    "max": _of(fine.larger),
    "min": _of(_smaller),
    "clamp": lambda precision, details, low, a, high: precision.each(
        _clamped, *(np.broadcast_to(precision.exact(x), np.shape(a)) for x in (low, a, high))
    ),
    "sign": _of(_sign),
    "floor": _of(_rounding(lambda part, larger: part)),
    "ceil": _of(_rounding(lambda part, larger: part + larger)),
    "is_finite": _truth(_Context().isfinite),
    "eq": _truth(operator.eq),
    "ne": _truth(operator.ne),
    "lt": _truth(operator.lt),
    "le": _truth(operator.le),
    "gt": _truth(operator.gt),
    "ge": _truth(operator.ge),
    "reduce_max": _reduced(fine.larger, "ninf"),
    "reduce_min": _reduced(_smaller, "inf"),
    **{
        name: reductions.RULES[name]
        for name in (
            *("reduce_sum", "reduce_prod", "cumsum", "cumprod", "dot_general"),
            *("sort", "argmax", "argmin", "top_k", "convert_element_type"),
        )
    },
    **{name: _spectrum(name) for name in _SPECTRA},
    **{name: linear_algebra.RULES[name] for name in ("cholesky", "triangular_solve", "lu")},
}
"""Operations with a rule, by the name of the primitive."""
