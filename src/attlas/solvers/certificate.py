r"""Certificates of max-margin problems min ||w||_p s.t. A w >= 1, by weak duality.

For every l >= 0 and every feasible w, 1'l <= l'A w <= ||A'l||_q ||w||_p, so 1'l / ||A'l||_q
bounds the optimum from below, while w divided by its smallest margin bounds it from above.
Both sides are invariant under scaling and need no accuracy of the method that found them.
"""

from typing import NamedTuple

import numpy as np

from attlas.norms.entrywise import batch_norm, dual_exponent
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
        u: any array.
        exponent: positive power.

    Returns:
        Array of the same shape.

    Examples:
        >>> power_map(np.array([-2.0, 3.0]), 2.0).tolist()
        [-4.0, 9.0]
    """
    if exponent == 1:
        return u
    return np.copysign(np.abs(u) ** exponent, u)


def certify(
    rows: ConstraintOperator, w: np.ndarray, multipliers: np.ndarray, p: float
) -> MarginCertificate:
    """Bound the optimum from both sides, in plain float64.

    Args:
        rows: constraints.
        w: primal points, [b, D], of any scale.
        multipliers: dual points, [b, m]; negative entries count as zero.
        p: exponent, 1 < p <= inf.

    Returns:
        The certificate.

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

    Returns:
        The certificate.

    Examples:
        >>> w, l = np.array([[2.0]]), np.array([[3.0]])
        >>> certificate_of(w, 4 * w, l, 4 * l, 2.0).upper.tolist()
        [0.25]
    """
    smallest = margins.min(axis=-1)
    usable = smallest > 0
    factor = np.where(usable, smallest, np.nan)[:, None]
    norm = batch_norm(w, p)
    upper = np.divide(norm, smallest, out=np.full(len(w), np.inf), where=usable)
    length = batch_norm(pull, dual_exponent(p))
    total = dual.sum(axis=-1)
    lower = np.divide(total, length, out=np.zeros(len(w)), where=length > 0)
    gap = np.divide(upper - lower, lower, out=np.full(len(w), np.inf), where=usable & (lower > 0))
    return MarginCertificate(w / factor, upper, lower, np.maximum(gap, 0.0), margins / factor)


def distance_bound(upper: np.ndarray, lower: np.ndarray, p: float) -> np.ndarray:
    r"""Largest possible ||w - w*||_p of a feasible w from the optimum, by uniform convexity.

    The middle of two feasible points is feasible. Ball-Carlen-Lieb (1 < p <= 2) gives
    ||w - w*||_p^2 <= 2 (upper^2 - lower^2) / (p - 1), Clarkson (p >= 2)
    ||w - w*||_p^p <= 2^{p-1} (upper^p - lower^p); at p = inf the optimum is not unique.

    Args:
        upper: ||w||_p, [b].
        lower: a lower bound on ||w*||_p, [b].
        p: exponent, 1 < p <= inf.

    Returns:
        The bound, [b]; infinite at p = inf.

    Examples:
        >>> distance_bound(np.array([1.0]), np.array([1.0]), 3.0).tolist()
        [0.0]
    """
    if p == np.inf:
        return np.full(np.shape(upper), np.inf)
    power = min(p, 2.0) if p <= 2 else p
    ratio = np.clip(lower / upper, 0.0, 1.0)
    missing = np.maximum(-np.expm1(power * np.log(np.where(ratio > 0, ratio, 1e-300))), 0.0)
    if p <= 2:
        return upper * np.sqrt(2 * missing / (p - 1))
    return upper * (2 ** (p - 1) * missing) ** (1 / p)
