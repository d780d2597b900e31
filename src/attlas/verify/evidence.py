"""Evaluate a claim and its controls on a batch of instances, as one compiled program."""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Claim
from attlas.claims.sampling import Instance
from attlas.claims.sides import Evidence, Sides
from attlas.core.named_call import parameters

Batch = Mapping[str, Array | np.ndarray]
"""Arrays by name with a leading axis of instances, of JAX or of NumPy."""


def complete(sides: Sides) -> Sides:
    """Fill in the magnitude and broadcast all arrays to one shape; `scales` stay as they are."""
    left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = jnp.broadcast_to(left, shape), jnp.broadcast_to(right, shape)
    largest = jnp.maximum(jnp.abs(left), jnp.abs(right))
    magnitude = largest if sides.magnitude is None else jnp.asarray(sides.magnitude)
    error = jnp.asarray(sides.error, dtype=left.dtype)
    return Sides(
        left,
        right,
        jnp.broadcast_to(magnitude, shape),
        jnp.broadcast_to(error, shape),
        None if sides.scales is None else jnp.asarray(sides.scales),
        None if sides.range is None else jnp.broadcast_to(jnp.asarray(sides.range), shape),
    )


Program = Callable[[Batch], tuple[Array, tuple[Sides, ...]]]


def compile_program(claim: Claim) -> Program:
    """One program for a claim and all its controls.

    Returns:
        Function from a batch to (holds, sides), where `holds` has shape (count, assumptions) and
        `sides` lists those of the claim first, then those of each control in order (a control that
        only changes instances repeats those of the claim).
    """

    def evaluate(instance: Instance) -> tuple[Array, tuple[Sides, ...]]:
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
        claimed = complete(claim.sides(instance))
        changed = tuple(
            complete(claim.sides(instance, control.changes)) if control.changes else claimed
            for control in claim.controls
        )
        return jnp.stack(holds) if holds else jnp.zeros((0,), dtype=bool), (claimed, *changed)

    return jax.jit(jax.vmap(evaluate), compiler_options=CHEAP_COMPILATION)


def instance_at(batch: Batch, index: int) -> dict[str, np.ndarray]:
    """One instance of a batch, by its index.

    Examples:
        >>> instance_at({"x": jnp.array([1.0, 2.0])}, 1)
        {'x': array(2.)}
    """
    # NumPy first: an index into an array of JAX is a program to be compiled.
    return {name: np.asarray(np.asarray(value)[index]) for name, value in batch.items()}


def _distinct_rows(claim: Claim, batch: Batch, keep: np.ndarray) -> int:
    """How many different instances there are, in the arrays that the claim reads."""
    # A trial of a probability or expectation is the whole draw: there all arrays count, and where
    # most draws agree with another in six digits of the largest number of each array, those that
    # do not are counted: copies with a small offset are no independent draws.
    read = parameters(claim.function)
    trials = claim.kind.rule.trials
    all_arrays = read.takes_all or trials
    names = sorted(batch) if all_arrays else [name for name in read.arrays if name in batch]
    if not names:
        return int(keep.sum())
    arrays = [np.asarray(batch[name])[keep] for name in names]
    exactly = _different(arrays)
    apart = _different([_in_six_digits(array) for array in arrays]) if trials else exactly
    # Independent numbers fall into the same millionth by chance, most of thousands do not.
    return apart if 2 * apart < exactly else exactly


def _different(arrays: Sequence[np.ndarray]) -> int:
    """How many rows of arrays with one leading axis differ in a byte."""
    rows = [array.reshape(len(array), -1).view(np.uint8).reshape(len(array), -1) for array in arrays
            if array.size]  # fmt: skip
    if not rows:
        return min(1, len(arrays[0]))
    return len({row.tobytes() for row in np.concatenate(rows, axis=1)})


def _in_six_digits(array: np.ndarray) -> np.ndarray:
    """Floats in millionths of the largest, or as they are where that is undefined."""
    size = np.abs(array).max(initial=0) if array.dtype.kind == "f" else 0
    # Zero is added because -0 and 0 have different bytes.
    return np.round(array / size, 6) + 0.0 if 0 < size < np.inf else array


def gather(
    claim: Claim, holds: Array, sides: Sides, assumed: bool = True, batch: Batch | None = None
) -> Evidence:
    """Bring the output of a program to the host as evidence.

    Args:
        holds: truth of each assumption, shape (count, assumptions).
        assumed: whether failing assumptions exclude an instance (not for control instances).
        batch: the instances, among which different ones are counted.
    """
    arrays = {name: np.asarray(v) for name, v in sides._asdict().items() if v is not None}
    satisfied = np.asarray(holds)
    failed_assumption = ""
    if claim.assumptions and not satisfied.all():
        failed_assumption = claim.assumptions[int(np.argmin(satisfied.mean(axis=0)))].text
    count = len(arrays["left"])
    applicable = np.asarray(satisfied.all(axis=1) if assumed else np.ones(count, dtype=bool))
    distinct = None if batch is None else _distinct_rows(claim, batch, applicable)
    return Evidence(
        **arrays, applicable=applicable, failed_assumption=failed_assumption, distinct=distinct
    )
