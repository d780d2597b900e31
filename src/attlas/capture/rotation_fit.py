"""Rotary positions as a model applies them: measured from what stands before and after."""

import numpy as np
from jaxtyping import Float

from attlas.transformers.canonical import Rotary


def fitted_rotation(
    before: Float[np.ndarray, "B T k"], after: Float[np.ndarray, "B T k"], tolerance: float
) -> tuple[Rotary | None, float] | None:
    r"""The rotation by positions 0, 1, ... that turns one into the other, and a factor.

    $$z_t\mapsto c\,z_te^{it\omega}$$

    The frequencies are those of the second position; all positions have to agree with them.

    Returns:
        Rotary positions, or None in their place where the factor alone does it; None where no
        rotation of halves or of neighbours does.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(2, 5, 2))
        >>> turn = np.exp(0.3j * np.arange(5)) * (x[..., 0] + 1j * x[..., 1])
        >>> rotary, factor = fitted_rotation(x, 2 * np.stack([turn.real, turn.imag], -1), 1e-9)
        >>> print(rotary.frequencies.round(6), round(factor, 6))
        [0.3] 2.0
    """
    first = before[:, 0]
    if not np.any(first):
        return None
    factor = float(np.sum(after[:, 0] * first) / np.sum(first**2))
    if factor == 0:
        return None
    factor = 1.0 if abs(factor - 1) <= tolerance else factor
    turned, limit = after / factor, tolerance * np.abs(before).max()
    if np.abs(turned[:, 0] - first).max() > limit:
        return None
    if np.abs(turned - before).max() <= limit:
        return None, factor
    if before.shape[1] < 3:
        return None
    size = before.shape[2]
    for pairs in range(size // 2, 0, -1):
        rest = slice(2 * pairs, None)
        if pairs < size // 2 and np.abs(turned[..., rest] - before[..., rest]).max() > limit:
            return None
        for interleaved in (False, True):
            old, new = (_complex(rows, pairs, interleaved) for rows in (before, turned))
            frequencies = np.angle(np.sum(new[:, 1] * old[:, 1].conj(), axis=0))
            angles = np.arange(before.shape[1])[:, None] * frequencies
            if np.abs(new - old * np.exp(1j * angles)).max() <= limit:
                return Rotary(frequencies, interleaved), factor
    return None


def _complex(rows: np.ndarray, pairs: int, interleaved: bool) -> np.ndarray:
    rows = rows[..., : 2 * pairs]
    if interleaved:
        return rows[..., 0::2] + 1j * rows[..., 1::2]
    return rows[..., :pairs] + 1j * rows[..., pairs:]
