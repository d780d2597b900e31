"""Instances of a smaller size, where the claim declares sizes and its sampler gives them."""

from collections.abc import Iterator, Mapping

import numpy as np

from attlas.claims.claim import Claim
from attlas.verify.shrink.support import Support

Axes = dict[str, list[int]]


def smaller(
    claim: Claim, arrays: Mapping[str, np.ndarray], supports: Mapping[str, Support], seed: int
) -> Iterator[dict[str, np.ndarray]]:
    """Arrays without one coordinate of a size, the coordinates of least entries first.

    Only sizes whose arrays may all be changed, and at which the sampler gives instances.
    """
    for name, declared in claim.sizes.items():
        axes = _axes(claim, name, declared, seed)
        if not axes or not set(axes) <= set(supports):
            continue
        lengths = {arrays[array].shape[axis] for array, places in axes.items() for axis in places}
        if len(lengths) != 1 or (length := lengths.pop()) < 2:
            continue
        if _shapes(claim, {name: length - 1}, seed) is None:
            continue
        weight = np.zeros(length)
        for array, places in axes.items():
            for axis in places:
                others = tuple(k for k in range(arrays[array].ndim) if k != axis)
                weight += np.abs(arrays[array]).sum(axis=others)
        for coordinate in np.argsort(weight, kind="stable"):
            change = {}
            for array, places in axes.items():
                value = arrays[array]
                for axis in places:
                    value = np.delete(value, coordinate, axis=axis)
                change[array] = value
            yield change


def _axes(claim: Claim, name: str, declared: int, seed: int) -> Axes:
    """The axes of each array that grow with a size."""
    now, more = (_shapes(claim, {name: size}, seed) for size in (declared, declared + 1))
    if now is None or more is None:
        return {}
    axes = {}
    for array, shape in now.items():
        grown = [k for k, (a, b) in enumerate(zip(shape, more[array], strict=True)) if b == a + 1]
        if grown:
            axes[array] = grown
        elif shape != more[array]:
            return {}
    return axes


def _shapes(claim: Claim, size: Mapping[str, int], seed: int) -> dict[str, tuple[int, ...]] | None:
    """Shapes of an instance at a size; None where the sampler gives none."""
    try:
        batch = claim.sized(**size).draw(seed, 2)
    except (TypeError, ValueError, ArithmeticError, IndexError):
        return None
    return {array: np.shape(value)[1:] for array, value in batch.items()}
