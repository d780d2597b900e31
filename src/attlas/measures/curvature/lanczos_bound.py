r"""What one Lanczos run from a random start proves about the end of a spectrum."""

import math

from attlas.core.errors import UserError


def lanczos_error_bound(steps: int, size: int, failure: float) -> float:
    r"""Largest shortfall of Lanczos' extreme value, as a part of the spectrum's width.

    For a symmetric matrix of dimension n and a start uniform on the sphere, the largest Ritz
    value xi of a Krylov space of dimension k misses the largest eigenvalue by more than
    eps (lambda_max - lambda_min) with probability at most 1.648 sqrt(n) exp(-sqrt(eps)(2k-1)):
    Kuczynski and Wozniakowski, SIAM J. Matrix Anal. Appl. 13 (1992), section 4. The gaps of the
    spectrum play no part. Solved here for eps; the other end follows with -A.

    Args:
        steps: k, at least 1.
        size: n, at least 1.
        failure: probability, between 0 and 1.

    Returns:
        eps, infinite where it would be a half or more: then nothing is proved.

    Raises:
        UserError: if steps or size is below 1 or failure is not a probability.

    Examples:
        >>> print(f"{lanczos_error_bound(80, 10_000, 1e-6):.4f}")
        0.0142
        >>> lanczos_error_bound(5, 10_000, 1e-6)
        inf
    """
    if steps < 1 or size < 1 or not 0 < failure < 1:
        raise UserError(
            f"steps = {steps}, size = {size}, failure = {failure}: "
            "choose steps and size of at least 1 and failure between 0 and 1"
        )
    found = (math.log(1.648 * math.sqrt(size) / failure) / (2 * steps - 1)) ** 2
    return found if found < 0.5 else math.inf
