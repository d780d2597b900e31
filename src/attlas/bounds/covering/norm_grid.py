r"""Grids of norms and their union cost, for bounds whose norms are measured after training.

A bound holds for a class whose norms are fixed before the sample is seen. Norms rounded up to a
grid whose points p_j >= 0 sum to 1 hold at once with probability 1 - delta, point j failing with
delta p_j: ln(1 / p_j), in nats, is the union cost. papers/trauger2023sequence/proofs/union.md.
"""

import math

import numpy as np
from jaxtyping import Float, Int

from attlas.bounds.closed_form import closed_form

RESOLUTIONS = (1, 4, 7, 10)
"""Grids of 2^s points per octave; any may be taken afterwards for ln 4 nats."""

SMALLEST = 2.0**-1000
"""A norm below it counts as this."""


def _cell(norm: Float[np.ndarray, "..."], resolution: int) -> tuple[np.ndarray, np.ndarray]:
    """Octave k, (2^(k-1), 2^k], and the point in it, 1 to 2^resolution."""
    size = np.maximum(norm, SMALLEST)
    part, octave = np.frexp(size)
    # exact: doubling, subtracting one half's double and scaling by a power of two do not round
    point = np.ceil((2 * part - 1) * 2.0**resolution)
    edge = point == 0
    return np.where(edge, octave - 1, octave), np.where(edge, 2.0**resolution, point)


@closed_form
def round_up_norm(norm: Float[np.ndarray, "..."], resolution: int) -> Float[np.ndarray, "..."]:
    r"""The next point of the grid, $2^{k-1}(1+i/2^s)$ with $1\le i\le2^s$.

    Here s is `resolution`.

    Returns:
        Values at least the norms and at most 1 + 2^-s times them.

    Source: derived, papers/trauger2023sequence/proofs/union.md.

    Examples:
        >>> round_up_norm(np.array([1.0, 1.1, 3.0]), 1).tolist()
        [1.0, 1.5, 3.0]
    """
    octave, point = _cell(np.asarray(norm, float), resolution)
    return np.asarray(np.ldexp(1 + point / 2.0**resolution, octave - 1))


@closed_form
def norm_grid_cost(norm: Float[np.ndarray, "..."], resolution: int) -> Float[np.ndarray, "..."]:
    r"""The union cost of a norm rounded up to its grid.

    $$\ln\frac1{p_j}=s\ln2+\ln\tfrac32+\ln\big((|k|+1)(|k|+2)\big)$$

    Here s is `resolution`.

    Source: derived, papers/trauger2023sequence/proofs/union.md.

    Examples:
        >>> print(f"{float(norm_grid_cost(np.array(1.0), 0)):.4f}")  # ln 3
        1.0986
    """
    octave: Int[np.ndarray, "..."] = np.abs(_cell(np.asarray(norm, float), resolution)[0])
    constant = resolution * math.log(2) + math.log(1.5)
    return np.asarray(constant + np.log((octave + 1.0) * (octave + 2.0)))
