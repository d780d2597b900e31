r"""Least-norm points of one problem (p = 2) by the proximal point method, from any start.

Each round maximises 1'l - (1/2) l'G l - (e/2) |l - l_k|^2 over l >= 0, whose dual is smooth:

    minimise (1/2) |w|^2 + (e/2) |l|^2 over w = A'c,  where  l = (l_k + (1 - A w) / e)_+.

Newton steps on it (Li, Sun and Toh, *A highly efficient semismooth Newton augmented Lagrangian
method*, SIAM J. Optim. 2018) have a regular system also where rows depend on each other, and a line
search makes them descend. Near the solution, the support is exact and one system decides.
"""

from typing import NamedTuple

import numpy as np

from attlas.solvers._methods.central_path import factorise

_FIRST, _SHRINK, _LEAST = 1e-2, 0.1, 1e-7
"""The parameter e, on a Gram matrix whose diagonal is at most one."""
_ROUNDS, _STEPS, _EXCHANGES = 7, 50, 12
_SLOPE, _SHORTEST = 1e-4, 2.0**-20
_NEAR = 1e-2
"""Gap from which the support is tried."""
_ROUNDING, _RIDGE = 1e-12, 1e-13
_SINGLE = 400
"""Exchanges of one row, where those of all rows at once cycle."""


class DualPoint(NamedTuple):
    """Multipliers of one problem [m], the relative gap of their point, and Newton steps."""

    multipliers: np.ndarray
    gap: float
    steps: int


def proximal_newton(gram: np.ndarray, start: np.ndarray, target: float) -> DualPoint:
    """Multipliers of min ||w||_2 s.t. A w >= 1, whose point is w = A'l.

    Args:
        gram: A A', [m, m], the longest row of length about one.
        start: multipliers of any quality, [m], such as those of a part of the rows.
        target: relative gap at which to stop.

    Returns:
        The best multipliers; the gap is above the target where the method failed, infinite where no
        point was feasible.

    Examples:
        >>> proximal_newton(np.diag([1.0, 4.0]), np.zeros(2), 1e-12).multipliers.round(12).tolist()
        [1.0, 0.25]
    """
    l, e, steps = np.maximum(start, 0.0), _FIRST, 0
    best = DualPoint(l, _gap(l, gram @ l), 0)
    for _ in range(_ROUNDS):
        l, count = _proximal_step(gram, l, e)
        steps += count
        candidate = DualPoint(l, _gap(l, gram @ l), steps)
        if candidate.gap < _NEAR:
            candidate = _exact(gram, candidate, target)
            steps = candidate.steps
        if candidate.gap < best.gap:
            best = candidate
        if best.gap <= target:
            break
        e = max(e * _SHRINK, _LEAST)
    else:
        best = _one_by_one(gram, best._replace(steps=steps), target)
        steps = best.steps
    return best._replace(steps=steps)


def _gap(l: np.ndarray, margins: np.ndarray) -> float:
    """Relative gap of the point A'l over its least margin, from weak duality."""
    smallest, square = float(margins.min()), float(l @ margins)
    total = float(l.sum())
    if smallest <= 0 or total <= 0:
        return np.inf
    return max(square / (smallest * total) - 1, 0.0)


def _proximal_step(gram: np.ndarray, start: np.ndarray, e: float) -> tuple[np.ndarray, int]:
    """The next multipliers, and Newton steps; c holds the point w = A'c, u its margins."""
    c, u = start, gram @ start
    for count in range(_STEPS):
        s = start + (1 - u) / e
        l = np.maximum(s, 0)
        r = c - l
        pull = gram @ r
        # The gradient is A'r: its length beside that of w.
        if float(r @ pull) <= (1e-4 * min(1.0, 100 * e)) ** 2 * float(c @ u):
            return l, count
        active = np.flatnonzero(s > 0)
        y = _solved(gram, active, e, pull[active])
        move = -r
        move[active] += y
        full = np.zeros_like(r)
        full[active] = y
        slope = float(r @ (change := gram @ full - pull))
        before = _value(c, u, l, e)
        length = 1.0
        while length > _SHORTEST:
            ahead, margins = c + length * move, u + length * change
            after = _value(ahead, margins, np.maximum(start + (1 - margins) / e, 0), e)
            if after <= before + _SLOPE * length * slope:
                break
            length /= 2
        c, u = c + length * move, u + length * change
    return np.maximum(start + (1 - u) / e, 0), _STEPS


def _value(c: np.ndarray, u: np.ndarray, l: np.ndarray, e: float) -> float:
    return 0.5 * float(c @ u) + 0.5 * e * float(l @ l)


def _solved(gram: np.ndarray, index: np.ndarray, e: float, right: np.ndarray) -> np.ndarray:
    """(G + e I)^{-1} right on some rows."""
    matrix = gram[np.ix_(index, index)]
    matrix.flat[:: len(index) + 1] += e
    return factorise(matrix[None])(right[None])[0]


def _exact(gram: np.ndarray, near: DualPoint, target: float) -> DualPoint:
    """G l = 1 on the support, which loses negative multipliers and gains short margins."""
    best, free = near, near.multipliers > 0
    for count in range(1, _EXCHANGES + 1):
        l = _on_support(gram, free)
        if not np.isfinite(l).all():
            break
        positive = np.maximum(l, 0)
        gap = _gap(positive, gram @ positive)
        best = best._replace(steps=near.steps + count)
        if gap < best.gap:
            best = DualPoint(positive, gap, near.steps + count)
        short = ~free & (gram @ l < 1 - _ROUNDING)
        if gap <= target or not (short.any() or (l < 0).any()):
            break
        free = free & (l >= 0) | short
    return best


def _one_by_one(gram: np.ndarray, near: DualPoint, target: float) -> DualPoint:
    """Exchanges of one row at a time (Lawson and Hanson), each of which raises the dual."""
    l, best = near.multipliers.copy(), near
    free = l > 0
    for count in range(1, _SINGLE + 1):
        aim = _on_support(gram, free)
        if not np.isfinite(aim).all():
            break
        falling = free & (aim <= 0)
        if falling.any():
            room = np.ones(len(l))
            room[falling] = l[falling] / (l - aim)[falling]
            l = np.where(free, l + room.min() * (aim - l), 0.0)
            free = free & ~(falling & (room <= room.min() * (1 + _ROUNDING)))
            l = np.where(free, np.maximum(l, 0), 0.0)
            continue
        l, margins = aim, gram @ aim
        best = min(best, DualPoint(l, _gap(l, margins), near.steps + count), key=lambda x: x.gap)
        worst = int(np.argmin(np.where(free, np.inf, margins)))
        if best.gap <= target or free.all() or margins[worst] >= 1 - _ROUNDING:
            break
        free[worst] = True
    return best._replace(steps=near.steps + count)


def _on_support(gram: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Multipliers on some rows whose margins are 1; the ridge is refined away."""
    l, index = np.zeros(len(gram)), np.flatnonzero(free)
    ridged = gram[np.ix_(index, index)]
    ridged.flat[:: len(index) + 1] += _RIDGE
    with np.errstate(all="ignore"):
        solver = factorise(ridged[None])
        l[index] = solver(np.ones((1, len(index))))[0]
        l[index] += solver((1 - gram @ l)[None, index])[0]
    return l
