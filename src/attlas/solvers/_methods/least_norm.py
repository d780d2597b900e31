r"""Least-norm points (p = 2) of a batch of max-margin problems from their Gram matrices.

With G = A A' the multipliers solve the complementarity problem l >= 0, G l >= 1, l'(G l - 1) = 0.
A few projected gradient steps, in single precision, guess the support; block pivoting (Portugal,
Judice and Vicente, *A comparison of block pivoting and interior-point algorithms for linear least
squares problems with nonnegative variables*, Math. Comp. 1994) then solves G l = 1 on it and
exchanges every index of a wrong sign, most often once or twice. It may cycle: the caller certifies.
"""

import numpy as np

from attlas.solvers._methods.central_path import factorise

_GRADIENT_STEPS, _PIVOTS = 16, 12
# Problems whose systems are solved together, packed to one size.
_GROUP = 200
# Square of the length of a row below which the guess is in double precision.
_SHORT = 1e-12
# Pivots without fewer wrong signs after which a problem is given up.
_PATIENCE = 3
# Shortfall of a margin, of 1, that rounding may leave.
_ROUNDING = 1e-12


def least_norm_multipliers(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Multipliers of min ||w||_2 s.t. A w >= 1, whose point is w = A'l.

    Args:
        gram: A A', [b, m, m], the longest row of length about one.

    Returns:
        Multipliers [b, m], NaN where a system was singular; the number of pivots [b]; and the gap
        of the points of the positive multipliers, to the rounding of G and infinite where one is
        not feasible [b]. Where the pivots did not end the multipliers are those of the last.

    Examples:
        >>> multipliers, *_ = least_norm_multipliers(np.diag([1.0, 4.0])[None])
        >>> multipliers.tolist()
        [[1.0, 0.25]]
    """
    b, m, _ = gram.shape
    free = _rough_multipliers(gram) > 0
    multipliers, pivots, alive = np.zeros((b, m)), np.zeros(b, int), np.arange(b)
    fewest, stale, gap = np.full(b, m + 1), np.zeros(b, int), np.full(b, np.inf)
    for count in range(1, _PIVOTS + 1):
        l = _on_support(gram, free)
        margins = np.matmul(gram, l[..., None])[..., 0]
        wrong = np.where(free, l < 0, margins < 1 - _ROUNDING)
        number = wrong.sum(axis=-1)
        better = number < fewest
        stale = np.where(better, 0, stale + 1)
        done = (number == 0) | (stale >= _PATIENCE) | (count == _PIVOTS)
        multipliers[alive], pivots[alive] = l, count
        over, left = number == 0, np.flatnonzero(done & (number > 0))
        gap[alive[over]] = _gap(l[over], margins[over])
        if len(left):
            positive = np.maximum(l[left], 0)
            gap[alive[left]] = _gap(positive, np.matmul(gram[left], positive[..., None])[..., 0])
        going = np.flatnonzero(~done)
        if not len(going):
            break
        fewest, stale = np.where(better, number, fewest)[going], stale[going]
        free, alive = (free ^ wrong)[going], alive[going]
        if len(going) < len(gram):
            gram = gram[going]
    return multipliers, pivots, gap


def _gap(l: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Relative gap of the points A'l, l >= 0, from their margins G l, [b]."""
    smallest, total = margins.min(axis=-1), l.sum(axis=-1)
    square = np.einsum("bm,bm->b", l, margins)
    feasible = (smallest > 0) & (total > 0)
    return np.where(feasible, np.maximum(square / (smallest * total) - 1, 0), np.inf)


def _rough_multipliers(gram: np.ndarray) -> np.ndarray:
    """Projected gradient with the steps of Barzilai and Borwein, short and long by turns.

    Lengths are those of rows of length one, |l_i| sqrt(G_ii): without that twice as many steps
    guess as much of the support.
    """
    # A guess: half of the digits are enough, and products read half of the memory. Squares of the
    # multipliers of very short rows would overflow.
    if np.einsum("bii->bi", gram).min() > _SHORT:
        gram = gram.astype(np.float32)
    tiny, diagonal = np.finfo(np.float32).tiny, np.einsum("bii->bi", gram)
    diagonal = np.where(diagonal > 0, diagonal, np.ones_like(diagonal))
    inverse = 1 / diagonal

    def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.einsum("bm,bm->b", x, y)[:, None]

    def product(x: np.ndarray) -> np.ndarray:
        return np.matmul(gram, x[..., None])[..., 0]

    power = product(inverse)
    level = inverse.sum(axis=-1, keepdims=True) / np.maximum(inner(inverse, power), tiny)
    l, gradient = inverse * level, power * level - 1
    scaled = inverse * gradient
    step = inner(gradient, scaled) / np.maximum(inner(scaled, product(scaled)), tiny)
    for count in range(_GRADIENT_STEPS):
        ahead = np.maximum(l - step * scaled, 0)
        after = product(ahead)
        after -= 1
        move, change = ahead - l, after - gradient
        bend = inner(move, change)
        if count % 2 == 0:
            top, bottom = bend, inner(change, inverse * change)
        else:
            top, bottom = inner(move, diagonal * move), bend
        step = np.where((top > 0) & (bottom > 0), top / np.where(bottom > 0, bottom, 1), step)
        l, gradient = ahead, after
        scaled = inverse * gradient
    # The last step needs no gradient at its end.
    return np.maximum(l - step * scaled, 0)


def _on_support(gram: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Solve G l = 1 on the free indices, l = 0 elsewhere, by groups of supports of like size."""
    b, m, _ = gram.shape
    sizes = free.sum(axis=-1)
    order, full = np.argsort(sizes, kind="stable"), np.zeros((b, m))
    for low in range(0, b, _GROUP):
        group = order[low : low + _GROUP]
        width = max(int(sizes[group[-1]]), 1)
        used = np.arange(width) < sizes[group, None]
        at, column = np.nonzero(free[group])
        index = np.zeros((len(group), width), int)
        index[used] = column
        line = (group[:, None] * m + index)[:, :, None] * m
        packed = np.take(gram, line + index[:, None, :])
        problem, spare = np.nonzero(~used)
        packed[problem, spare] = packed[problem, :, spare] = 0
        packed[problem, spare, spare] = 1
        full[group[at], column] = factorise(packed)(used.astype(float))[used]
    return full
