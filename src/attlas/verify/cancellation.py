"""How large the terms are that cancel in the sides of a limit or rate, measured where it is open.

A gap such as a loss above its minimum ends at the rounding of the losses, which its own size does
not tell. Inputs that are all moved by one rounding, up or down, move the sides by the rounding of
their terms: by eps times the size of what cancels. This is the idea of stochastic arithmetic
(Vignes 1993), at the inputs alone.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.sides import Batch, Program, Sides
from attlas.claims.verdict import Outcome
from attlas.verify.evidence import decide, gather

_REPEATS = 4
"""Evaluations with moved inputs: two sides that agree to the last digit agree in all by chance."""
_SMALL = 1e-9
"""Share of both sides below which one may be the rounding of terms that cancel."""


def with_cancelled_terms(
    claim: Claim, program: Program, batch: Batch, evaluated: tuple, *, alpha: float, seed: int
) -> tuple:
    """The truth of assumptions, and sides whose `magnitude` is measured where they stay open.

    Args:
        evaluated: output of the program for the batch.
        alpha: error probability of this look.
        seed: seed of the directions in which inputs are moved.

    Returns:
        The same pair; for a kind without scales, or where all sides are decided, unchanged.
    """
    holds, sides = evaluated
    if not claim.kind.rule.scaled:
        return evaluated

    def is_open(which: Sides) -> bool:
        evidence = gather(claim, holds, which)
        return decide(claim, evidence, alpha=alpha).outcome is Outcome.INCONCLUSIVE

    with np.errstate(all="ignore"):
        shared = [True, *(control.sample is None for control in claim.controls)]
        places = [k for k, same in enumerate(shared) if same and _is_small(sides[k])]
        places = [k for k in places if is_open(sides[k])]
        if not places:
            return evaluated
        terms = _terms(program, batch, sides, places, seed)
    changed = list(sides)
    for k in places:
        magnitude = np.maximum(np.asarray(sides[k].magnitude), terms[k])
        changed[k] = sides[k]._replace(magnitude=magnitude)
    return holds, tuple(changed)


def _is_small(sides: Sides) -> bool:
    """Whether the left side is anywhere so small that it may be rounding."""
    return bool(np.any(np.abs(sides.left) <= _SMALL * np.asarray(sides.magnitude)))


def _terms(
    program: Program, batch: Batch, sides: Sequence[Sides], places: Sequence[int], seed: int
) -> dict[int, np.ndarray]:
    """The size of the terms of each side that is named, of the shape of its sides."""
    eps, rng = float(np.finfo(float).eps), np.random.default_rng(seed)
    left = {k: np.asarray(sides[k].left) for k in places}
    terms = {k: np.zeros(left[k].shape) for k in places}
    for _ in range(_REPEATS):
        moved = program({name: _rounded_anew(value, rng) for name, value in batch.items()})[1]
        for k in places:
            size = np.abs(np.asarray(moved[k].left) - left[k]) / eps
            terms[k] = np.maximum(terms[k], np.where(np.isfinite(size), size, 0.0))
    return terms


def _rounded_anew(value: Array | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Floats that are moved by one rounding each, up or down; other arrays as they are."""
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value
    return value * (1 + np.finfo(value.dtype).eps * rng.choice([-1.0, 1.0], size=value.shape))
