r"""First-order start for large max-margin problems: quasi-Newton in the dual.

Maximises 1'l - (1/2) ||A'l||_q^2 over l >= 0 with L-BFGS-B, at the cost of one product with A
and one with A' a step, only until the multipliers point at the constraints that matter.
"""

import numpy as np
from scipy.optimize import Bounds, minimize

from attlas.norms.entrywise import dual_exponent
from attlas.solvers._methods.certificate import certify, row_norms
from attlas.solvers.constraints import ConstraintOperator

_STEPS_BETWEEN_CERTIFICATES = 5


def primal_point(pull: np.ndarray, p: float) -> np.ndarray:
    r"""The maximiser of <u, w> - (1/2) ||w||_p^2, sign(u) |u|^{q-1} ||u||_q^{2-q}.

    Args:
        pull: u = A'l, [b, D].
        p: exponent, 1 < p < inf.

    Returns:
        w, [b, D], with ||w||_p = ||u||_q.

    Examples:
        >>> primal_point(np.array([[3.0, -4.0]]), 2.0).tolist()
        [[3.0, -4.0]]
    """
    q = dual_exponent(p)
    size = np.abs(pull)
    largest = size.max(axis=-1, keepdims=True)
    ratio = size / np.where(largest > 0, largest, 1.0)
    # One power serves the point and the norm, of which it is most of the cost.
    power = ratio ** (q - 1)
    total = np.einsum("bj,bj->b", power, ratio)[:, None]
    # The norm is largest total^{1/q}, and the point norm sign(u) (|u| / norm)^{q-1}.
    factor = largest * np.where(total > 0, total, 1.0) ** ((2 - q) / q)
    return np.copysign(factor * power, pull)


def dual_descent(rows: ConstraintOperator, p: float, target: float, max_steps: int) -> np.ndarray:
    """Multipliers of one problem to a rough relative gap.

    Args:
        rows: constraints of one problem, the longest row of length about one.
        p: exponent, 1 < p < inf.
        target: relative gap to stop at.

    Returns:
        Multipliers, [1, m].

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> dual_descent(VectorRows(np.eye(2)[None]), 2.0, 1e-6, 50).round(6).tolist()
        [[1.0, 1.0]]
    """
    m = rows.shape[1]
    count = 0

    def objective(l: np.ndarray) -> tuple[float, np.ndarray]:
        w = primal_point(rows.adjoint(l[None]), p)
        # ||w||_p^2 = <A'l, w>, which costs no power
        margins = rows.apply(w)[0]
        return 0.5 * (l @ margins) - l.sum(), margins - 1

    def stop_when_certified(intermediate_result) -> None:
        nonlocal count
        count += 1
        if count % _STEPS_BETWEEN_CERTIFICATES == 0:
            l = intermediate_result.x[None]
            if certify(rows, primal_point(rows.adjoint(l), p), l, p).gap[0] <= target:
                raise StopIteration

    pull = row_norms(rows.adjoint(np.ones((1, m))), dual_exponent(p))[0]
    level = m / max(pull, 1e-150) ** 2
    answer = minimize(
        objective,
        np.full(m, min(level, 1e6)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(0, np.inf),
        callback=stop_when_certified,
        options={"maxiter": max_steps, "maxfun": 2 * max_steps, "ftol": 0, "gtol": 0, "maxcor": 20},
    )
    return answer.x[None]
