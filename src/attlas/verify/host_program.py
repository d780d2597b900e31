"""Claims in plain NumPy: their sides instance by instance, without compilation."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Assumption, Claim
from attlas.claims.sides import Batch, Program, Sides, complete


def host_program(claim: Claim) -> Program:
    """The program of a claim in plain NumPy and of all its controls, as `compile_program` gives it.

    The function sees float64 arrays of NumPy and may branch on their values; it gets copies, so
    that it may also write to them. Warnings of NumPy are silent: a side that is not finite decides
    nothing.
    """
    inside, conditions = declared_and_written(claim)

    def program(batch: Batch) -> tuple[np.ndarray, tuple[Sides, ...]]:
        arrays = {name: np.asarray(value) for name, value in batch.items()}
        count = len(next(iter(arrays.values())))
        with np.errstate(all="ignore"):
            rows = [_evaluated(claim, conditions, arrays, k) for k in range(count)]
        written = np.array([held for held, _ in rows], dtype=bool).reshape(count, -1)
        holds = np.concatenate([inside(batch), written], axis=1)
        return holds, tuple(
            _stacked(variant) for variant in zip(*(s for _, s in rows), strict=True)
        )

    return program


def declared_and_written(claim: Claim) -> tuple[Any, Sequence[Assumption]]:
    """The conditions of a claim's domains as one program of JAX, and those that its author wrote.

    Returns:
        Function from a batch to truth values of shape (count, domains); the other assumptions.
    """
    # `claim_maker` lists the conditions of domains first.
    declared = claim.assumptions[: len(claim.domains)]

    def conditions(instance: Mapping[str, Any]) -> list[Any]:
        return [jax.numpy.asarray(a.holds(instance), dtype=bool) for a in declared]

    compiled = jax.jit(jax.vmap(conditions), compiler_options=CHEAP_COMPILATION)

    def inside(batch: Batch) -> np.ndarray:
        count = len(next(iter(batch.values())))
        columns = [np.asarray(column) for column in compiled(dict(batch))] if declared else []
        return np.array(columns, dtype=bool).reshape(len(columns), count).T

    return inside, claim.assumptions[len(declared) :]


def host_instance(arrays: Mapping[str, Any], index: int) -> dict[str, Any]:
    """A copy of one instance of a batch; numbers are scalars of NumPy.

    Examples:
        >>> host_instance({"x": np.array([1.0, 2.0])}, 1)
        {'x': np.float64(2.0)}
    """
    return {name: np.asarray(value)[index].copy() for name, value in arrays.items()}


def _evaluated(
    claim: Claim, conditions: Sequence[Assumption], arrays: Mapping[str, np.ndarray], index: int
) -> tuple[list[bool], list[Sides]]:
    """Whether the written assumptions hold, and the sides of the claim and of each control."""
    held = [bool(a.holds(host_instance(arrays, index))) for a in conditions]
    variants = [{}, *(control.changes for control in claim.controls)]
    claimed = complete(claim.sides(host_instance(arrays, index)), np)
    changed = (
        complete(claim.sides(host_instance(arrays, index), changes), np) if changes else claimed
        for changes in variants[1:]
    )
    return held, [claimed, *changed]


def _stacked(rows: Sequence[Sides]) -> Sides:
    """The sides of all instances, with a leading axis."""
    columns = zip(*rows, strict=True)
    stacked: list[Any] = [None if c[0] is None else np.stack(c) for c in columns]
    return Sides(*stacked)
