r"""First-order start for large max-margin problems: gradient and quasi-Newton steps in the dual.

Maximises 1'l - (1/2) ||A'l||_q^2 over l >= 0 by projected gradients and, where these do not
suffice, L-BFGS-B, at the cost of one product with A and one with A' a step, only until the
multipliers point at the constraints that matter.
"""

import numpy as np
from scipy.optimize import Bounds, minimize

from attlas.norms.entrywise import dual_exponent
from attlas.solvers._methods.certificate import certify, row_norms
from attlas.solvers.constraints import ConstraintOperator

_STEPS_BETWEEN_CERTIFICATES = 5
# Gradient steps at most, and the part of the first that its curvature is measured on.
_GRADIENT_STEPS, _TRIAL = 100, 1e-3
# Least gap that is aimed at in single precision, and the least square of a row's length.
_SINGLE_GAP, _SHORT = 1e-4, 1e-12
# Steps in which the gap must fall to a part of what it was.
_WINDOW, _LEAST_PROGRESS = 12, 0.6
# Exponent above which gradient steps stall: the dual's curvature grows where u passes zero.
_LARGEST = 3.0


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
    ratio = np.abs(pull)
    largest = ratio.max(axis=-1, keepdims=True)
    ratio /= np.where(largest > 0, largest, 1.0)
    # One power serves the point and the norm, of which it is most of the cost.
    power = ratio ** (q - 1)
    total = np.einsum("bj,bj->b", power, ratio)[:, None]
    # The norm is largest total^{1/q}, and the point norm sign(u) (|u| / norm)^{q-1}.
    power *= largest * np.where(total > 0, total, 1.0) ** ((2 - q) / q)
    return np.copysign(power, pull, out=power)


def dual_descent(rows: ConstraintOperator, p: float, target: float, max_steps: int) -> np.ndarray:
    """Multipliers of one problem to a rough relative gap, by `quasi_newton_descent` in the end.

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
    l, gap = gradient_descent(rows, p, target, max_steps)
    return l if gap <= target else quasi_newton_descent(rows, p, target, max_steps)


def gradient_descent(
    rows: ConstraintOperator, p: float, target: float, max_steps: int
) -> tuple[np.ndarray, float]:
    """Projected gradient with the steps of Barzilai and Borwein, in units of the rows' lengths.

    A step costs a third of one by L-BFGS-B, whose own work is as much as the products. The
    arguments are those of `dual_descent`; the steps end where they no longer get on.

    Returns:
        Multipliers [1, m] and their gap, infinite where no point was feasible; above p = 3 no steps
        are taken.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> l, gap = gradient_descent(VectorRows(np.eye(2)[None]), 2.0, 1e-6, 50)
        >>> l.round(6).tolist(), bool(gap < 1e-6)
        ([[1.0, 1.0]], True)
    """
    if p > _LARGEST:
        return np.ones((1, rows.shape[1])), np.inf
    # Rows that cancel have an infinite level.
    with np.errstate(all="ignore"):
        return _gradient_steps(rows, p, target, min(max_steps, _GRADIENT_STEPS))


def _gradient_steps(
    rows: ConstraintOperator, p: float, target: float, most: int
) -> tuple[np.ndarray, float]:
    diagonal = np.maximum(rows.lengths()[0], 1e-150) ** 2
    # A start needs half of the digits, but squares of the multipliers of very short rows overflow.
    if target >= _SINGLE_GAP and diagonal.min() > _SHORT:
        rows, diagonal = rows.single(), diagonal.astype(np.float32)

    def margins_of(l: np.ndarray) -> np.ndarray:
        return rows.apply(primal_point(rows.adjoint(l[None]), p))[0]

    l = 1 / diagonal
    margins = margins_of(l)
    level = l.sum() / (l @ margins)
    l, gradient = l * level, margins * level - 1
    scaled = gradient / diagonal
    # The curvature along the first step, by a difference.
    ahead = l - _TRIAL * scaled
    bend = scaled @ (gradient + 1 - margins_of(ahead))
    step = _TRIAL * (scaled @ gradient) / bend if bend > 0 else 0.0  # 0 where the start is optimal
    best, nearest, before = l, np.inf, np.inf
    for count in range(1, most + 1):
        ahead = np.maximum(l - step * scaled, 0)
        margins = margins_of(ahead)
        after = margins - 1
        move, change = ahead - l, after - gradient
        bend = move @ change
        if bend > 0:
            short = count % 2 == 1
            step = (
                bend / (change @ (change / diagonal)) if short else move @ (diagonal * move) / bend
            )
        l, gradient = ahead, after
        scaled = gradient / diagonal
        # ||w||_p^2 = ||A'l||_q^2 = l'A w: the gap of weak duality costs no norm.
        smallest, total = margins.min(), l.sum()
        gap = (l @ margins) / (smallest * total) - 1 if smallest > 0 and total > 0 else np.inf
        if gap < nearest:
            nearest, best = gap, l
        if nearest <= target or not np.isfinite(margins).all():
            break
        if count % _WINDOW == 0:
            if nearest > _LEAST_PROGRESS * before:
                break
            before = nearest
    return best[None].astype(float), float(nearest)


def quasi_newton_descent(
    rows: ConstraintOperator, p: float, target: float, max_steps: int
) -> np.ndarray:
    """L-BFGS-B from equal multipliers, which gets on where gradient steps do not.

    The arguments are those of `dual_descent`, for one problem.

    Returns:
        Its multipliers, [1, m].

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> quasi_newton_descent(VectorRows(np.eye(2)[None]), 2.0, 1e-6, 50).round(6).tolist()
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
