r"""The bound on the end of a spectrum from one Lanczos run with a random start."""

import math

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.errors import UserError

# Halvings of the interval that contains the bound, enough for any width.
_HALVINGS = 200


@validate_arguments
def largest_eigenvalue_bound(
    diagonal: Float[np.ndarray, " k"],
    off_diagonal: Float[np.ndarray, " j"],
    size: int,
    failure: float,
) -> float:
    r"""Upper bound on the largest eigenvalue, from the recurrence that Lanczos computed.

    The orthonormal polynomials of the run have ||p_j(A) b|| = 1 for the unit start b, so the part
    c of b along an eigenvector of lambda obeys c^2 sum_{j <= k} p_j(lambda)^2 <= 1. For b
    uniform on the sphere |c| is below t with probability at most t sqrt(2 (n - 1) / pi): with
    t = failure / sqrt(2 (n - 1) / pi) no eigenvalue lies where the sum exceeds 1 / t^2, and beyond
    the largest Ritz value the sum grows. Van Dorsselaer, Hochstenbach and van der Vorst, SIAM J.
    Matrix Anal. Appl. 22 (2000), with p_k alone in place of the sum.

    Args:
        diagonal: alpha_1..alpha_k of the tridiagonal matrix.
        off_diagonal: beta_1..beta_k; the last is the length of the remainder, 0 where the
            Krylov space is invariant.
        size: dimension n of A, at least 2.
        failure: probability, between 0 and 1.

    Returns:
        The bound; for the smallest eigenvalue negate the diagonal and the answer.

    Raises:
        UserError: if the lengths differ, size is below 2 or failure is not a probability.

    Examples:
        An invariant space of one dimension: nothing but its value has been seen.

        >>> largest_eigenvalue_bound(np.array([3.0]), np.array([0.0]), 100, 1e-6)
        3.0
        >>> largest_eigenvalue_bound(np.zeros(1), np.ones(1), 100, 0.01) > 700
        True
    """
    steps = len(diagonal)
    if not steps or len(off_diagonal) != steps or not 2 <= size < 2**63 or not 1e-150 < failure < 1:
        raise UserError(
            f"{steps} and {len(off_diagonal)} coefficients, size = {size}, failure = {failure}: "
            "choose as many of each, a size of at least 2 and a failure between 1e-150 and 1"
        )
    limit = 2 * (size - 1) / math.pi / failure**2
    # The lower triangle is what the eigensolver reads.
    lower = np.diag(diagonal) + np.diag(off_diagonal[:-1], -1)
    low = float(np.linalg.eigvalsh(lower, UPLO="L")[-1])
    excess = float(np.abs(off_diagonal).max())
    coefficients = list(zip(diagonal.tolist(), off_diagonal.tolist(), strict=True))
    while excess > 0 and not _mass_exceeds(low + excess, coefficients, limit):
        excess *= 2
    high = low + excess
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _mass_exceeds(middle, coefficients, limit):
            high = middle
        else:
            low = middle
    return high


def _mass_exceeds(point: float, coefficients: list[tuple[float, float]], limit: float) -> bool:
    """Whether sum_{j <= k} p_j(point)^2 is above a limit, by the recurrence of three terms."""
    before, now, total, back = 0.0, 1.0, 1.0, 0.0
    for alpha, beta in coefficients:
        ahead = (point - alpha) * now - back * before
        if beta == 0:
            return ahead != 0
        before, now, back = now, ahead / beta, beta
        total += now * now
        if total > limit:
            return True
    return False
