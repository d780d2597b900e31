"""Evaluate a claim and its controls on a batch of instances, as one compiled program."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.claim import Claim, Instance, Sides

Batch = Mapping[str, Array]


@dataclass(frozen=True)
class Evidence:
    """The sides of a batch as NumPy arrays; the leading axis is the instance.

    Attributes:
        lhs: left sides, shape (count, ...).
        rhs: right sides, same shape.
        scale: magnitude of the added terms, same shape.
        error: certified absolute error, same shape.
        scales: growing parameter of limits and rates, or None.
        applicable: which instances satisfy every assumption, shape (count,).
        refused: text of the assumption that failed most often, "" if none failed.
    """

    lhs: np.ndarray
    rhs: np.ndarray
    scale: np.ndarray
    error: np.ndarray
    scales: np.ndarray | None
    applicable: np.ndarray
    refused: str = ""

    def select(self, index: int) -> "Evidence":
        """The evidence of one instance, as a batch of one."""
        keep = slice(index, index + 1)
        scales = None if self.scales is None else self.scales[keep]
        return Evidence(
            self.lhs[keep],
            self.rhs[keep],
            self.scale[keep],
            self.error[keep],
            scales,
            self.applicable[keep],
            self.refused,
        )


def complete(sides: Sides) -> Sides:
    """Fill in the scale and broadcast all parts to one shape.

    Args:
        sides: what a claim returned.

    Returns:
        Sides whose arrays share a shape; `scales` stays as it was.
    """
    lhs, rhs = jnp.asarray(sides.lhs), jnp.asarray(sides.rhs)
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    lhs, rhs = jnp.broadcast_to(lhs, shape), jnp.broadcast_to(rhs, shape)
    largest = jnp.maximum(jnp.abs(lhs), jnp.abs(rhs))
    scale = largest if sides.scale is None else jnp.asarray(sides.scale)
    error = jnp.asarray(sides.error, dtype=lhs.dtype)
    return Sides(
        lhs,
        rhs,
        jnp.broadcast_to(scale, shape),
        jnp.broadcast_to(error, shape),
        None if sides.scales is None else jnp.asarray(sides.scales),
    )


Program = Callable[[Batch], tuple[Array, tuple[Sides, ...]]]


def compile_program(claim: Claim) -> Program:
    """One program for a claim and all controls that mutate its sides.

    Args:
        claim: the claim.

    Returns:
        Function from a batch to (holds, sides), where `holds` has shape
        (count, assumptions) and `sides` lists the claim's own sides first, then those of
        each control in order (a control without `sides` repeats the claim's).
    """

    def one(instance: Instance) -> tuple[Array, tuple[Sides, ...]]:
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
        own = complete(claim.sides(instance))
        mutated = tuple(
            own if control.sides is None else complete(control.sides(instance))
            for control in claim.controls
        )
        return jnp.stack(holds) if holds else jnp.zeros((0,), dtype=bool), (own, *mutated)

    return jax.jit(jax.vmap(one))


def gather(claim: Claim, holds: Array, sides: Sides, assumed: bool = True) -> Evidence:
    """Bring one program's output to the host as evidence.

    Args:
        claim: the claim, for the texts of its assumptions.
        holds: which assumptions hold, shape (count, assumptions).
        sides: completed sides of a batch.
        assumed: whether failing assumptions exclude an instance (not for control instances).

    Returns:
        The evidence.
    """
    lhs, rhs, scale, error = (np.asarray(part) for part in sides[:4])
    scales = None if sides.scales is None else np.asarray(sides.scales)
    kept = np.asarray(holds)
    refused = ""
    if claim.assumptions and not kept.all():
        refused = claim.assumptions[int(np.argmin(kept.mean(axis=0)))].text
    applicable = np.asarray(kept.all(axis=1) if assumed else np.ones(len(lhs), dtype=bool))
    return Evidence(lhs, rhs, scale, error, scales, applicable, refused)
