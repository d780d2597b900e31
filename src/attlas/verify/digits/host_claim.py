"""A claim in plain NumPy with numbers of so many digits: its own function on arrays of objects.

What NumPy cannot do with objects, and what would round silently, leaves a violation undecided.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.sides import Sides, complete
from attlas.core.errors import in_short
from attlas.verify.digits.arrays_of_numpy import entered, values_of
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Precision, Unconfirmed


def shape_of_sides(claim: Claim, arrays: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of the sides on one instance."""
    instance: dict[str, Any] = {name: np.array(value)[()] for name, value in arrays.items()}
    return complete(claim.sides(instance), np).left.shape


def evaluated(
    claim: Claim, names: Sequence[str], precision: Precision, inputs: Sequence[Any]
) -> list[Any]:
    """The assumptions and the left side, right side, magnitude and error of one instance.

    Args:
        names: of the arrays, in the order of `inputs`.

    Raises:
        Unconfirmed: if NumPy has no such function of objects, or a number was to be rounded.
    """
    arrays = dict(zip(names, map(np.asarray, inputs), strict=True))
    declared = claim.assumptions[: len(claim.domains)]
    conditions = claim.assumptions[len(declared) :]
    try:
        with np.errstate(all="ignore"):
            holds = [bool(a.holds(_instance(precision, arrays))) for a in conditions]
            sides = claim.sides(_instance(precision, arrays))
    except Unconfirmed:
        raise
    except Exception as error:
        raise Unconfirmed(f"NumPy does not evaluate it with objects ({in_short(error)})") from error
    inside = jax.make_jaxpr(lambda arrays: [a.holds(arrays) for a in declared])(arrays)
    return [*evaluate(precision, inside, list(inputs)), *holds, *_completed(precision, sides)]


def _instance(precision: Precision, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The instance with its floats in digits: numbers as such, and arrays of them."""
    return {
        name: entered(precision, value)[()] if value.dtype.kind == "f" else value[()]
        for name, value in arrays.items()
    }


def _completed(precision: Precision, sides: Sides) -> list[np.ndarray]:
    left, right, error = (
        _exact(precision, side) for side in (sides.left, sides.right, sides.error)
    )
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = np.broadcast_to(left, shape), np.broadcast_to(right, shape)
    if sides.magnitude is None:
        magnitude = np.asarray(np.maximum(abs(left), abs(right)), dtype=object)
    else:
        magnitude = np.broadcast_to(_exact(precision, sides.magnitude), shape)
    return [left, right, magnitude, np.broadcast_to(error, shape)]


def _exact(precision: Precision, side: Any) -> np.ndarray:
    return precision.each(precision.real, values_of(side))
