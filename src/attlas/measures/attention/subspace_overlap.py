r"""Overlap of the subspaces that heads read or write, against subspaces drawn at random."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas._jax.factorising import FACTORISING
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError


class SubspaceOverlap(NamedTuple):
    """Overlap of each pair of heads.

    Attributes:
        overlap: ||U_i' U_j||_F^2 / k, 1 for equal subspaces, 0 for orthogonal ones.
        expected: mean of the same over subspaces drawn at random, k / d.
        deviation: its standard deviation.
    """

    overlap: Float[np.ndarray, "H H"]
    expected: float
    deviation: float


def subspace_overlap(bases: ArrayInput) -> SubspaceOverlap:
    r"""How far the column spaces of heads coincide, with the analytic null.

    $$\tfrac1k\|U_i'U_j\|_F^2,\qquad\mathbb E=\tfrac kd,\qquad
    \operatorname{Var}=\frac{2(d-k)^2}{d^2(d-1)(d+2)}$$

    for two independent uniform subspaces of dimension k in R^d.

    Args:
        bases: one matrix per head, (H, d, k), whose columns are independent and span what
            the head reads or writes.

    Raises:
        UserError: if there are more columns than rows, or fewer than two rows.

    Examples:
        >>> plane = np.eye(4)[:, :2]
        >>> found = subspace_overlap(np.stack([plane, plane[::-1]]))
        >>> found.overlap.tolist(), found.expected
        ([[1.0, 0.0], [0.0, 1.0]], 0.5)
    """
    (matrices,) = read_arrays("H d k", np.float64, bases=bases)
    _, d, k = matrices.shape
    if k > d or d < 2:
        raise UserError(
            f"bases has shape {matrices.shape}: give at least 2 rows and columns <= rows"
        )
    with FACTORISING:
        U = np.linalg.qr(matrices).Q
    # One head against itself and later ones, to avoid a matrix of all pairs of columns.
    heads, side = len(U), U.transpose(1, 0, 2).reshape(d, -1)
    overlap = np.zeros((heads, heads))
    for head, basis in enumerate(U):
        shared = ((basis.T @ side[:, head * k :]) ** 2).sum(axis=0).reshape(-1, k).sum(axis=1) / k
        overlap[head, head:] = overlap[head:, head] = shared
    variance = 2 * (d - k) ** 2 / (d**2 * (d - 1) * (d + 2))
    return SubspaceOverlap(overlap, k / d, variance**0.5)
