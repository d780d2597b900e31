r"""Least-norm points (p = 2) of a batch of max-margin problems from their Gram matrices.

With G = A A' the multipliers solve the complementarity problem l >= 0, G l >= 1, l'(G l - 1) = 0.
A few projected gradient steps guess the support; block pivoting (Portugal, Judice and Vicente,
*A comparison of block pivoting and interior-point algorithms for linear least squares problems
with nonnegative variables*, Math. Comp. 1994) then solves G l = 1 on it and exchanges every index
of a wrong sign, most often two to four times. It may cycle: the caller certifies.
"""

import numpy as np

from attlas.solvers._methods.central_path import factorise

_GRADIENT_STEPS, _PIVOTS = 20, 12
# Pivots without fewer wrong signs after which a problem is given up.
_PATIENCE = 3
# Shortfall of a margin, of 1, that rounding may leave.
_ROUNDING = 1e-12


def least_norm_multipliers(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of min ||w||_2 s.t. A w >= 1, whose point is w = A'l.

    Args:
        gram: A A', [b, m, m], the longest row of length about one.

    Returns:
        Multipliers [b, m], NaN where a system was singular, and the number of pivots [b]; where
        the pivots did not end the multipliers are those of the last.

    Examples:
        >>> multipliers, _ = least_norm_multipliers(np.diag([1.0, 4.0])[None])
        >>> multipliers.tolist()
        [[1.0, 0.25]]
    """
    b, m, _ = gram.shape
    free = _rough_multipliers(gram) > 0
    multipliers, pivots, alive = np.zeros((b, m)), np.zeros(b, int), np.arange(b)
    fewest, stale = np.full(b, m + 1), np.zeros(b, int)
    for count in range(1, _PIVOTS + 1):
        gram_alive = gram if len(alive) == b else gram[alive]
        l = _on_support(gram_alive, free)
        slack = np.matmul(gram_alive, l[..., None])[..., 0] - 1
        wrong = np.where(free, l < 0, slack < -_ROUNDING)
        number = wrong.sum(axis=-1)
        better = number < fewest[alive]
        stale[alive] = np.where(better, 0, stale[alive] + 1)
        fewest[alive] = np.where(better, number, fewest[alive])
        going = (number > 0) & (stale[alive] < _PATIENCE)
        multipliers[alive], pivots[alive] = l, count
        alive, free = alive[going], (free ^ wrong)[going]
        if not len(alive):
            break
    return multipliers, pivots


def _rough_multipliers(gram: np.ndarray) -> np.ndarray:
    """Projected gradient with the steps of Barzilai and Borwein, short and long by turns."""
    b, m, _ = gram.shape

    def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.einsum("bm,bm->b", x, y)[:, None]

    def product(x: np.ndarray) -> np.ndarray:
        return np.matmul(gram, x[..., None])[..., 0]

    ones = np.ones((b, m))
    power = product(ones)
    level = m / np.maximum(inner(ones, power), 1e-150)
    l, gradient = ones * level, power * level - 1
    step = inner(gradient, gradient) / np.maximum(inner(gradient, product(gradient)), 1e-150)
    for count in range(_GRADIENT_STEPS):
        ahead = np.maximum(l - step * gradient, 0)
        after = product(ahead) - 1
        move, change = ahead - l, after - gradient
        bend = inner(move, change)
        short = count % 2 == 0
        top, bottom = (bend, inner(change, change)) if short else (inner(move, move), bend)
        step = np.where((top > 0) & (bottom > 0), top / np.where(bottom > 0, bottom, 1), step)
        l, gradient = ahead, after
    return l


def _on_support(gram: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Solve G l = 1 on the free indices, l = 0 elsewhere: the supports are packed to one size."""
    b, m, _ = gram.shape
    sizes = free.sum(axis=-1)
    width = max(int(sizes.max()), 1)
    index = np.argsort(~free, axis=-1, kind="stable")[:, :width]
    spare = np.arange(width) >= sizes[:, None]
    packed = gram[np.arange(b)[:, None, None], index[:, :, None], index[:, None, :]]
    packed[spare[:, :, None] | spare[:, None, :]] = 0
    packed[:, np.arange(width), np.arange(width)] += spare
    full = np.zeros((b, m))
    np.put_along_axis(full, index, factorise(packed)(np.where(spare, 0.0, 1.0)), axis=-1)
    return full
