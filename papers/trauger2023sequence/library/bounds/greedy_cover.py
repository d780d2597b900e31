r"""A cover of the l_1 ball by greedy steps: Maurey's count without the ceiling.

Step t moves the largest entry of what is left by delta_t: 1/2 first, then E_{t-1}, the squared
error reached. After K steps it is at most E_K <= 1 / (K + 3), where Maurey has 1 / K, so that
log N(eps) <= (B/eps)^2 log(2k+1) holds as printed, for all eps:
papers/trauger2023sequence/proofs/covers.md.
"""

import math

import numpy as np
from jaxtyping import Float

from attlas.bounds.closed_form import closed_form
from attlas.core.memory import require_memory


@closed_form
def greedy_cover_errors(steps: int) -> Float[np.ndarray, " steps"]:
    r"""The squared radii E_1, ..., E_K of the greedy covers of the unit l_1 ball.

    $$E_1=\tfrac14,\qquad E_{t+1}=E_t-E_t^2,\qquad E_K\le\frac1{K+3}$$

    Args:
        steps: number K of steps.

    Source: derived, sharpens Lemma 3.1 of trauger2023sequence on the l_1 ball.

    Examples:
        >>> greedy_cover_errors(2).tolist()
        [0.25, 0.1875]
    """
    require_memory(8 * steps, f"an error for each of {steps} steps", "give fewer")
    errors = np.full(steps, 0.25)
    for step in range(1, steps):
        errors[step] = errors[step - 1] * (1 - errors[step - 1])
    return errors


@closed_form
def greedy_cover_steps(ratio: float) -> int:
    r"""Steps that reach the distance eps in the ball of radius B.

    $$K=0\ (B\le\epsilon),\qquad K=\max\big(1,\lceil(B/\epsilon)^2\rceil-3\big)\ \text{else}$$

    Args:
        ratio: B / eps.

    Returns:
        K; the cover has at most (2k+1)^K centres in R^k, and K <= (B/eps)^2.

    Source: derived.

    Examples:
        >>> [greedy_cover_steps(ratio) for ratio in (1.0, 2.0, 3.0)]
        [0, 1, 6]
    """
    return 0 if ratio <= 1 else max(1, math.ceil(ratio**2) - 3)


@closed_form
def greedy_cover_centre(
    v: Float[np.ndarray, " k"], radius: float, steps: int
) -> Float[np.ndarray, " k"]:
    r"""The centre of the greedy cover that lies near a point of the l_1 ball.

    Args:
        v: point with ||v||_1 <= radius.
        radius: radius B of the ball.
        steps: number K of steps.

    Returns:
        The centre, at distance at most B sqrt(E_K) from v.

    Source: derived.

    Examples:
        >>> greedy_cover_centre(np.array([1.0, 0.0]), 1.0, 2).tolist()
        [0.75, 0.0]
    """
    residual = v / radius
    for error in [0.5, *greedy_cover_errors(steps)[:-1]][:steps]:
        largest = int(np.argmax(np.abs(residual)))
        # a step from below half its size would lengthen the residual; without it E is small already
        if abs(residual[largest]) >= error / 2:
            residual = residual.copy()
            residual[largest] -= math.copysign(error, residual[largest])
    return v - radius * residual
