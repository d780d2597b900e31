r"""A proof is checked again: the two sides in digits, at random points of its domain.

This shares no arithmetic with the prover: the program runs with numbers of mpmath, where square
roots, logarithms and comparisons are those of real numbers. Two analytic functions that agree to so
many digits at random points are equal, or differ by less than anybody could construct by accident.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.proof import BOX, ENUMERATION, INTERVALS, PATHS, PERFORMANCE, SQUARES, Proof
from attlas.claims.sampling import Instance
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, Unconfirmed
from attlas.verify.proofs.boxes import recheck_on_box
from attlas.verify.proofs.enumeration import recheck_enumeration
from attlas.verify.proofs.exact_rules import meant, meant_square
from attlas.verify.proofs.slopes import recheck_slopes
from attlas.verify.proofs.squares import recheck_squares
from attlas.verify.proofs.witnesses import recheck_at_witness
from attlas.verify.proofs.worst_cases import recheck_worst_case
from attlas.verify.registry import refuse_failing_claim

DIGITS = 80
AGREED = 50
"""Digits to which both sides agree, beside the larger one or 1."""
POINTS = 2
_TRIES = 6


class _Meant(Precision):
    """Numbers of mpmath, where a float stands for the short fraction nearest to it."""

    def real(self, value: Any) -> Any:
        """A number of Python or NumPy as the number of mpmath that is meant."""
        if isinstance(value, float | np.floating) and np.isfinite(value):
            square = meant_square(float(value))
            if square is not None:
                root = self.ctx.sqrt(self.ctx.mpf(square.numerator) / square.denominator)
                return root if value > 0 else -root
            fraction = meant(float(value))
            return self.ctx.mpf(fraction.numerator) / fraction.denominator
        return super().real(value)


@refuse_failing_claim
def recheck(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Evaluate the sides of a proved claim in digits at random points of its domain.

    A search on a box is run again besides; sums of squares, and multipliers and runs of a worst
    case, are checked in fractions.

    Args:
        seed: it gives the points.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    if proof.method == INTERVALS:
        return recheck_at_witness(claim, proof)
    if proof.method == PERFORMANCE:
        return recheck_worst_case(claim, proof)
    if proof.method == SQUARES and "slope" in proof.certificate:
        return recheck_slopes(claim, proof, seed=seed)
    if proof.method == SQUARES:
        return recheck_squares(claim, proof, seed=seed)
    if proof.method == BOX:
        return recheck_on_box(claim, proof, seed=seed)
    if proof.method == ENUMERATION:
        return recheck_enumeration(claim, proof, seed=seed)
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        batch = claim.draw(seed, claim.count)
        shapes = {name: tuple(shape) for name, shape in proof.where["shapes"].items()}
        if any(np.shape(batch[name])[1:] != shape for name, shape in shapes.items()):
            return "its sampler draws other shapes now"
        program = jax.make_jaxpr(lambda instance: _both(claim, instance))(
            {name: value[0] for name, value in batch.items()}
        )
        agreed, why = 0, "no point of its domain was found where both sides are defined"
        for attempt in range(_TRIES):
            row = {name: value[attempt % claim.count] for name, value in batch.items()}
            # Zeros and equal entries of a drawn instance belong to its path.
            move = attempt % 2 == 1 and proof.method != PATHS
            moved = _moved(rng, row, proof.where, move)
            try:
                difference = _difference(program, moved)
            except Unconfirmed as error:
                return f"the digits cannot evaluate it: {error}"
            if difference is None:
                continue
            if difference > AGREED_TO:
                return f"the sides differ by {difference:.1e} in {DIGITS} digits"
            agreed += 1
            if agreed == POINTS:
                return ""
    return why


AGREED_TO = 10.0**-AGREED


def _both(claim: Claim, instance: Instance) -> tuple[Array, Array]:
    sides = claim.sides(instance)
    left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
    return tuple(jnp.broadcast_arrays(left, right))  # pyright: ignore[reportReturnType]


def _moved(
    rng: np.random.Generator, row: Mapping[str, Any], where: Mapping[str, Any], move: bool
) -> list[Any]:
    """The arrays of an instance in order of names, with symbols moved within their signs."""
    arrays = []
    for name in sorted(row):
        array = np.asarray(row[name]) if row[name].dtype.kind in "biuf" else row[name]
        if move and name in where["signs"] and not where["links"]:
            factors = 1 + rng.uniform(size=array.shape)
            fixed = where["fixed"].get(name)
            if fixed is not None:
                still = np.array([v is not None for v in fixed]).reshape(array.shape)
                factors = np.where(still, 1.0, factors)
            array = array * factors
        arrays.append(array)
    return arrays


def _difference(program: Any, inputs: list[Any]) -> float | None:
    """The largest difference of the sides beside their size; None where one is not defined."""
    precision = _Meant(DIGITS)
    left, right = evaluate(precision, program, inputs)
    largest = precision.ctx.zero
    for a, b in zip(np.ravel(left), np.ravel(right), strict=True):
        if not (precision.ctx.isfinite(a) and precision.ctx.isfinite(b)):
            return None
        largest = max(largest, abs(a - b) / max(1, abs(a), abs(b)))
    return float(largest)
