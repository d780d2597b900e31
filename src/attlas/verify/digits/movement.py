"""Operations of JAX that move entries of arrays and change none.

The common ones are those of NumPy. Any other runs in JAX on the places of the entries instead of
the entries, which cannot be rounded.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.verify.digits.precision import Precision, in_digits

MOVES = frozenset({
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "slice", "rev"),
    *("concatenate", "stack", "unstack", "tile", "gather", "dynamic_slice", "pad", "split"),
    *("dynamic_update_slice", "scatter"),
})  # fmt: skip
"""Operations that give some of the entries of their operands."""
UNCHANGED = frozenset({"stop_gradient", "optimization_barrier", "copy", "copy_p", "device_put"})
"""Operations that give their operands as they are."""


def _broadcast(details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
    shape, axes = details["shape"], details["broadcast_dimensions"]
    inner = [1] * len(shape)
    for axis, size in zip(axes, a.shape, strict=True):
        inner[int(axis)] = size
    return np.broadcast_to(a.reshape(inner), shape)


def _slice(details: Mapping[str, Any], a: np.ndarray) -> np.ndarray:
    begin, end = details["start_indices"], details["limit_indices"]
    steps = details["strides"] or (1,) * len(begin)
    return a[tuple(slice(*ends) for ends in zip(begin, end, steps, strict=True))]


BY_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "squeeze": lambda details, a: np.squeeze(a, tuple(map(int, details["dimensions"]))),
    "expand_dims": lambda details, a: np.expand_dims(a, tuple(details["dimensions"])),
    "transpose": lambda details, a: np.transpose(a, tuple(map(int, details["permutation"]))),
    "concatenate": lambda details, *a: np.concatenate(a, axis=details["dimension"]),
    "rev": lambda details, a: np.flip(a, tuple(details["dimensions"])),
}


def moved(precision: Precision, equation: Any, operands: list[Any]) -> list[np.ndarray]:
    """The outputs of an operation of `MOVES`.

    Args:
        operands: arrays of numbers of mpmath, where the operation reads floats; other arrays as
            they are.
    """
    name, details = equation.primitive.name, equation.params
    precision.spend(sum(variable.aval.size for variable in equation.outvars) // 4)
    if name == "reshape" and details["dimensions"] is None:
        return [operands[0].reshape(details["new_sizes"])]
    if name in BY_NUMPY:
        return [BY_NUMPY[name](details, *operands)]
    # Place 0 of the pool is what a gather beyond its array gives.
    outside = precision.ctx.nan
    if name == "gather":
        fill = details["fill_value"]
        outside, details = outside if fill is None else fill, {**details, "fill_value": 0}
    pool, places, begin = [precision.exact([outside])], [], 1
    for operand in operands:
        if in_digits(operand):
            places.append(np.arange(begin, begin + operand.size).reshape(operand.shape))
            pool.append(operand.ravel())
            begin += operand.size
        else:
            places.append(operand)
    outputs = equation.primitive.bind(*map(jax.device_put, places), **details)
    outputs = outputs if equation.primitive.multiple_results else [outputs]
    entries = np.concatenate(pool)
    return [np.asarray(entries[np.asarray(output)], dtype=object) for output in outputs]


def scatter_targets(equation: Any, operand: np.ndarray, indices: Any, updates: Any) -> np.ndarray:
    """The place in the flat operand of each entry of the updates, -1 if dropped.

    Args:
        operand: array of any shape, of which the scatter changes entries.

    Returns:
        Integers, shape (entries of the updates,).
    """
    details = equation.params
    options = {name: details[name] for name in ("indices_are_sorted", "unique_indices", "mode")}
    zero, size = jnp.zeros(operand.shape, dtype=int), updates.size

    def one(k: jax.Array) -> jax.Array:
        marked = (jnp.arange(size) == k).astype(int).reshape(updates.shape)
        full = jax.lax.scatter_add(
            zero, jnp.asarray(indices), marked, details["dimension_numbers"], **options
        ).ravel()
        return jnp.where(full.any(), jnp.argmax(full), -1)

    return np.asarray(jax.vmap(one)(jnp.arange(size)))
