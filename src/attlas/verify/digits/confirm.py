r"""Whether an instance violates a claim, in 60 digits and again in 90.

The sides, their allowance and the assumptions are computed by the program that the check runs. The
allowance is the one of the claim's kind in floats, since constants of a formula and arrays
of an instance were rounded before anybody evaluated anything. Both precisions must agree on the
excess to ten digits. Where the excess is so small that rounding of the inputs could make it, or an
assumption holds in floats alone, the violation must survive perturbations of the inputs too. Inputs
on a sphere or simplex are there up to a rounding, of which a root makes the square root: the angle
of two unit vectors is wrong by 1e-8, a fourth root by 1e-4.

A program of too many operations, such as a loop of thousands of steps, is not evaluated in digits:
then the excess in floats must be a thousand times larger than its change under those perturbations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import CANCELLED, Entrywise
from attlas.claims.sampling import Instance
from attlas.claims.sides import Evidence, Sides, complete
from attlas.claims.verdict import Confirmation
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, TooLongError, Unconfirmed
from attlas.verify.evidence import compile_program

DIGITS = (60, 90)
AGREED = 10
"""Digits of the excess to which both precisions must agree."""
OPERATIONS = 2**22
"""Operations of one evaluation in 60 digits: some five seconds."""
ULPS = 16
"""Perturbations of each input, in units of its last place."""
PERTURBED = 8
ROOT_OF_ROUNDING = float(np.finfo(float).eps ** 0.25)
"""Share of the largest number up to which rounding of the inputs could make an excess."""
TIMES = 1000
"""How much larger than its change an excess must be, where floats alone decide."""
Arrays = Mapping[str, np.ndarray | Array]


@dataclass(frozen=True)
class Examination:
    """A confirmation with the sides behind it.

    Attributes:
        sides: as floats, where the instance complies.
        operations: that it took.
    """

    confirmation: Confirmation
    sides: Sides | None
    operations: int


def confirmed(claim: Claim, instance: Arrays) -> Confirmation:
    """Evaluate an instance again in digits.

    Args:
        claim: of a kind whose sides are compared entry by entry.
        instance: arrays by name, without an axis of instances.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("liu2021analyzing/erratum-2")
        >>> confirmed(claim, claim.witness()).violates
        True
    """
    return examined(claim, instance).confirmation


def examined(claim: Claim, instance: Arrays, operations: int = OPERATIONS) -> Examination:
    """A confirmation with the sides in digits.

    Args:
        operations: budget of the evaluation in 60 digits.

    Raises:
        ValueError: if one instance of this kind decides nothing.
    """
    if not isinstance(claim.kind.rule, Entrywise):
        raise ValueError(f"{claim.kind.rule.noun} is decided by many instances")
    with jax.enable_x64(True), np.errstate(all="ignore"):
        search = _Instance(claim, instance, operations)
        try:
            return search.examined()
        except TooLongError as error:
            return Examination(_in_floats(claim, instance, str(error)), None, operations)
        except Unconfirmed as error:
            undecided = Confirmation(None, 0, "", "", f"not confirmed in digits: {error}")
            return Examination(undecided, None, search.spent)


@dataclass(frozen=True)
class _Values:
    """Sides and allowance of one instance in one precision, flat."""

    holds: tuple[bool, ...]
    left: np.ndarray
    right: np.ndarray
    magnitude: np.ndarray
    error: np.ndarray
    allowed: np.ndarray
    excess: np.ndarray


class _Instance:
    """One instance of a claim with its program."""

    def __init__(self, claim: Claim, instance: Arrays, operations: int):
        arrays = {name: on_device(value) for name, value in instance.items()}
        self.claim, self.operations, self.spent = claim, operations, 0
        self.inputs, self.tree = jax.tree.flatten(arrays)
        if claim.backend == "numpy":
            from attlas.verify.digits.host_claim import evaluated, shape_of_sides

            self.shape = shape_of_sides(claim, arrays)
            self._outputs = partial(evaluated, claim, sorted(arrays))
            return
        program, shapes = jax.make_jaxpr(self._evaluated, return_shape=True)(arrays)
        self.shape = shapes[1].left.shape
        self._outputs = partial(_interpreted, program)

    def _evaluated(self, instance: Instance) -> tuple[list[Array], Sides]:
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in self.claim.assumptions]
        sides = complete(self.claim.sides(instance))
        return holds, Sides(sides.left, sides.right, sides.magnitude, sides.error)

    def values(self, digits: int, inputs: list[Any], allowed: np.ndarray | None = None) -> _Values:
        budget = self.operations * digits // DIGITS[0]
        precision = Precision(digits, budget)
        outputs = self._outputs(precision, inputs)
        self.spent += budget - precision.left
        *holds, left, right, magnitude, error = outputs
        sides = [precision.exact(side).ravel() for side in (left, right, magnitude, error)]
        left, right, magnitude, error = sides
        if not all(precision.ctx.isfinite(value) for side in sides for value in side):
            raise Unconfirmed(f"a side is not finite in {digits} digits")
        rule = self.claim.kind.rule
        floats = (side.astype(float)[None] for side in sides)
        evidence = Evidence(*floats, applicable=np.ones(1, dtype=bool))
        own = rule.tolerance(evidence, self.claim.roundings)[0]
        limits = own if allowed is None else allowed
        gap = abs(left - right) if rule.equality else left - right
        excess = gap - precision.exact(limits)
        held = tuple(map(bool, holds))
        return _Values(held, left, right, magnitude, error, limits, excess)

    def examined(self) -> Examination:
        low = self.values(DIGITS[0], self.inputs)
        if not low.excess.size:
            raise Unconfirmed("its sides have no entries")
        high = self.values(DIGITS[1], self.inputs, low.allowed)
        agreed = np.array([_agreed(*pair) for pair in zip(low.excess, high.excess, strict=True)])
        over = np.flatnonzero((high.excess > 0) & (agreed >= AGREED))
        if not len(over):
            return self._complying(low, high, agreed)
        size = abs(high.left) + abs(high.right) + high.magnitude
        worst = int(max(over, key=lambda k: high.excess[k] / size[k]))
        digits, excess = int(agreed[worst]), float(high.excess[worst])
        left, right = (_text(side[worst]) for side in (high.left, high.right))
        why = self._shaken(high, worst)
        if why:
            confirmation = Confirmation(
                None, digits, left, right, f"not confirmed in digits: {why}"
            )
        else:
            text = f"confirmed in {DIGITS[0]} digits, {excess:.3g} beyond what is allowed"
            confirmation = Confirmation(True, digits, left, right, text)
        return Examination(confirmation, None, self.spent)

    def _complying(self, low: _Values, high: _Values, agreed: np.ndarray) -> Examination:
        """That no entry exceeds what is allowed, in either precision."""
        worst = int(np.argmax(high.excess))
        left, right = (_text(side[worst]) for side in (high.left, high.right))
        if max(max(low.excess), max(high.excess)) > 0 or min(agreed) < AGREED:
            why = f"{DIGITS[0]} and {DIGITS[1]} digits disagree"
            text = f"not confirmed in digits: {why}"
            confirmation = Confirmation(None, int(min(agreed)), left, right, text)
            return Examination(confirmation, None, self.spent)
        arrays = (high.left, high.right, high.magnitude, high.error)
        floats = (jnp.asarray(a.astype(float).reshape(self.shape)) for a in arrays)
        text = f"holds in {DIGITS[0]} digits"
        confirmation = Confirmation(False, int(agreed[worst]), left, right, text)
        return Examination(confirmation, Sides(*floats), self.spent)

    def _shaken(self, values: _Values, worst: int) -> str:
        """Why rounding of the inputs could make the violation; empty where it could not."""
        failed = [a.text for a, held in zip(self.claim.assumptions, values.holds, strict=True)
                  if not held]  # fmt: skip
        largest = max(_largest(self.inputs), float(values.magnitude[worst]))
        excess = values.excess[worst]
        if not failed and excess > ROOT_OF_ROUNDING * largest:
            return ""
        for inputs in _perturbed(self.inputs):
            change = self.values(DIGITS[0], inputs, values.allowed).excess[worst] - excess
            if 2 * abs(change) > excess:
                because = f"'{failed[0]}' holds in floats alone, and " if failed else ""
                return f"{because}rounding of the inputs decides the excess of {float(excess):.3g}"
        return ""


def _interpreted(program: Any, precision: Precision, inputs: list[Any]) -> list[Any]:
    return evaluate(precision, program, inputs)


def _is_float(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jnp.floating)


def _largest(inputs: list[Any]) -> float:
    """The largest float of the inputs, or 1: constants of a formula are terms as well."""
    floats = (float(np.abs(np.asarray(x)).max(initial=0)) for x in inputs if _is_float(x))
    return max(1.0, *floats, 0.0)


def _perturbed(inputs: list[Any]) -> list[list[Any]]:
    """The inputs with each float changed by up to so many units in its last place."""
    rng, width = np.random.default_rng(0), ULPS * float(np.finfo(float).eps)
    return [
        [
            on_device(np.asarray(x) * (1 + width * rng.uniform(-1, 1, x.shape)))
            if _is_float(x)
            else x
            for x in inputs
        ]
        for _ in range(PERTURBED)
    ]


def _agreed(low: Any, high: Any) -> int:
    """Digits to which two numbers of different precision agree, at most those of the lower."""
    if low == high:
        return DIGITS[0]
    relative = abs((high - low) / high) if high != 0 else 1
    return int(np.clip(-float(np.log10(float(max(relative, 1e-300)))), 0, DIGITS[0]))


def _text(value: Any) -> str:
    """A number of mpmath in twenty digits."""
    return value.context.nstr(value, 20)


def _in_floats(claim: Claim, instance: Arrays, why: str) -> Confirmation:
    """Whether the excess in floats is far larger than what rounding of the inputs changes."""
    inputs, tree = jax.tree.flatten({k: jnp.asarray(v) for k, v in instance.items()})
    rows = [inputs, *_perturbed(inputs)]
    batch = jax.tree.unflatten(tree, [jnp.stack(column) for column in zip(*rows, strict=True)])
    _, (sides,) = compile_program(replace(claim, controls=(), assumptions=()))(batch)
    left, right, magnitude, error = (np.asarray(a).reshape(len(rows), -1) for a in sides[:4])
    gap = np.abs(left - right) if claim.kind.rule.equality else left - right
    evidence = Evidence(left, right, magnitude, error, np.ones(len(rows), dtype=bool))
    excess = gap - claim.kind.rule.tolerance(evidence, claim.roundings)
    size = np.abs(left[0]) + np.abs(right[0]) + magnitude[0]
    worst = int(np.argmax(excess[0] / np.where(size > 0, size, 1)))
    first, second = repr(float(left[0, worst])), repr(float(right[0, worst]))
    change = float(np.max(np.abs(excess[1:, worst] - excess[0, worst])))
    beyond = float(excess[0, worst])
    if beyond > max(TIMES * change, CANCELLED * max(_largest(inputs), float(size[worst]))):
        times = f"is {beyond / change:.3g} times its change" if change else "does not change"
        text = f"not evaluated in digits ({why}); the excess in floats {times} under perturbations"
        return Confirmation(True, 0, first, second, f"{text} of {ULPS} units in the last place")
    return Confirmation(None, 0, first, second, f"not confirmed in digits: {why}")
