r"""Certificates of max-margin problems min ||w||_p s.t. A w >= 1, by weak duality.

For every l >= 0 and every feasible w, 1'l <= l'A w <= ||A'l||_q ||w||_p, so 1'l / ||A'l||_q
bounds the optimum from below, while w divided by its smallest margin bounds it from above.
Both sides are invariant under scaling and need no accuracy of the method that found them.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar

from attlas.norms.entrywise import dual_exponent
from attlas.solvers.constraints import ConstraintOperator


class MarginCertificate(NamedTuple):
    """Evidence for a batch of problems; fields have the batch as leading axis.

    Attributes:
        w: the primal point over its smallest margin, [b, D]; NaN where no margin is positive.
        upper: ||w||_p, infinite where no margin is positive.
        lower: 1'l / ||A'l||_q.
        gap: upper / lower - 1, the relative excess of the norm at most.
        margins: A w, [b, m].
    """

    w: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    gap: np.ndarray
    margins: np.ndarray


def power_map(u: np.ndarray, exponent: float) -> np.ndarray:
    """sign(u) |u|^exponent, the gradient map of a power potential.

    Args:
        u: array of any shape.
        exponent: positive power.

    Examples:
        >>> power_map(np.array([-2.0, 3.0]), 2.0).tolist()
        [-4.0, 9.0]
    """
    if exponent == 1:
        return u
    return np.copysign(np.abs(u) ** exponent, u)


def row_norms(array: np.ndarray, p: float) -> np.ndarray:
    """The l_p norm of each row of [b, D], without overflow.

    Args:
        p: exponent, 1 <= p <= inf.

    Examples:
        >>> row_norms(np.array([[3.0, -4.0], [0.0, 0.0]]), 2.0).tolist()
        [5.0, 0.0]
    """
    size = np.abs(array)
    largest = size.max(axis=-1)
    if p == np.inf:
        return largest
    ratio = size / np.where(largest > 0, largest, 1.0)[:, None]
    if p == 2:
        return largest * np.sqrt(np.einsum("bj,bj->b", ratio, ratio))
    return largest * np.sum(ratio**p, axis=-1) ** (1 / p)


def certify(
    rows: ConstraintOperator, w: np.ndarray, multipliers: np.ndarray, p: float
) -> MarginCertificate:
    """Bound the optimum from both sides, in plain float64.

    Args:
        w: primal points, [b, D], of any scale.
        multipliers: dual points, [b, m]; negative entries count as zero.
        p: exponent, 1 < p <= inf.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> found = certify(VectorRows(np.eye(2)[None]), np.ones((1, 2)), np.ones((1, 2)), 2.0)
        >>> found.upper.round(12).tolist(), bool(found.gap[0] < 1e-14)
        ([1.414213562373], True)
    """
    dual = np.maximum(multipliers, 0.0)
    return certificate_of(w, rows.apply(w), dual, rows.adjoint(dual), p)


def certificate_of(
    w: np.ndarray, margins: np.ndarray, dual: np.ndarray, pull: np.ndarray, p: float
) -> MarginCertificate:
    """The certificate from products with the constraints that are known already.

    Args:
        w: primal points, [b, D], of any scale.
        margins: A w, [b, m].
        dual: dual points l >= 0, [b, m].
        pull: A'l, [b, D].
        p: exponent, 1 < p <= inf.

    Examples:
        >>> w, l = np.array([[2.0]]), np.array([[3.0]])
        >>> certificate_of(w, 4 * w, l, 4 * l, 2.0).upper.tolist()
        [0.25]
    """
    smallest, upper, lower, gap = _both_sides(w, margins, dual, pull, p)
    factor = np.where(smallest > 0, smallest, np.nan)[:, None]
    return MarginCertificate(w / factor, upper, lower, gap, margins / factor)


def relative_gap(
    w: np.ndarray, margins: np.ndarray, dual: np.ndarray, pull: np.ndarray, p: float
) -> np.ndarray:
    """The gap of `certificate_of` alone, [b], from the same arguments.

    Examples:
        >>> w, l = np.array([[2.0]]), np.array([[3.0]])
        >>> relative_gap(w, 4 * w, l, 4 * l, 2.0).tolist()
        [0.0]
    """
    return _both_sides(w, margins, dual, pull, p)[-1]


def _both_sides(
    w: np.ndarray, margins: np.ndarray, dual: np.ndarray, pull: np.ndarray, p: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Smallest margin, upper and lower bound and their relative gap, [b] each."""
    smallest = margins.min(axis=-1)
    usable = smallest > 0
    upper = np.divide(row_norms(w, p), smallest, out=np.full(len(w), np.inf), where=usable)
    length = row_norms(pull, dual_exponent(p))
    total = dual.sum(axis=-1)
    lower = np.divide(total, length, out=np.zeros(len(w)), where=length > 0)
    gap = np.divide(upper - lower, lower, out=np.full(len(w), np.inf), where=usable & (lower > 0))
    return smallest, upper, lower, np.maximum(gap, 0.0)


def distance_bound(upper: np.ndarray, lower: np.ndarray, p: float) -> np.ndarray:
    r"""Largest possible ||w - w*||_p of a feasible w from the optimum, by uniform convexity.

    With r = max(p, 2) and the largest c such that, for all v and w,

    $$\|w\|_p^r\ge\|v\|_p^r+\langle\nabla\|v\|_p^r,w-v\rangle+c\,\|w-v\|_p^r,$$

    the distance is at most ((upper^r - lower^r) / c)^{1/r}: at v = w* the inner product is not
    negative, since w* minimises the norm over a convex set that contains w.

    For p <= 2, c = p - 1 (Ball, Carlen and Lieb 1994). They prove the inequality of the middle,
    ||w||^2 + ||v||^2 - 2 ||(w + v) / 2||^2 >= (p - 1) ||w - v||^2 / 2. So on the line v + t (w - v)
    the function ||.||^2 - (p - 1) t^2 ||w - v||^2 is convex at middles and continuous, hence
    convex: it lies above its tangent at t = 0.

    For p > 2 it suffices to look at one entry, v = -t and w - v = 1: c is the smallest
    phi(t) = |1 - t|^p - |t|^p + p sign(t) |t|^{p-1}. For t <= 0 and for t >= 1 powers of sums and
    the mean value theorem give phi >= 1. In between, phi' vanishes where x = t / (1 - t) solves
    (p - 2) x^{p-1} + (p - 1) x^{p-2} = 1, which one x in (0, 1) does, and there
    phi = (1 + x^{p-1}) / (1 + x)^{p-1}.

    Both constants are best possible: (1, 1) + s (1, -1) for p <= 2 and s -> 0, and (1 - t, a + b)
    beside w* = (-t, a) with a^{p-1} b = t^{p-1} for p > 2 and a -> inf come as near as one likes.
    At p = inf the optimum is not unique.

    Args:
        upper: ||w||_p, [b].
        lower: a lower bound on ||w*||_p, [b].
        p: exponent, 1 < p <= inf.

    Returns:
        The bound, [b]; infinite at p = inf.

    Examples:
        At p = 2 it is the theorem of Pythagoras; at p = 4, x = 1/2 and c = 1/3.

        >>> distance_bound(np.array([5.0]), np.array([3.0]), 2.0).round(12).tolist()
        [4.0]
        >>> print(f"{distance_bound(np.array([3.0]), np.array([0.0]), 4.0)[0] ** 4:.6f}")
        243.000000
    """
    if p == np.inf:
        return np.full(np.shape(upper), np.inf)
    power = max(p, 2.0)
    ratio = np.clip(lower / upper, 1e-300, 1.0)
    missing = -np.expm1(power * np.log(ratio))
    return upper * missing ** (1 / power) * np.exp(-_log_convexity(p) / power)


def _log_convexity(p: float) -> float:
    """The logarithm of c in `distance_bound`: c itself underflows for large p."""
    if p <= 2:
        return math.log(p - 1)
    x = root_scalar(
        lambda x: (p - 2) * x ** (p - 1) + (p - 1) * x ** (p - 2) - 1, bracket=(0, 1)
    ).root
    return math.log1p(x ** (p - 1)) - (p - 1) * math.log1p(x)
