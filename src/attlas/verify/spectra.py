r"""Enclosures of singular values and eigenvalues of matrices of intervals.

Let $M$ be the midpoints, $M = U S V^\top + E$ with computed $U, S, V$, and $\|U^\top U - I\| \le
\delta$ and $\|V^\top V - I\| \le \epsilon$. Then the k-th singular value of $U S V^\top$ is $S_k$
times a number between $\sqrt{(1 - \delta)(1 - \epsilon)}$ and $\sqrt{(1 + \delta)(1 + \epsilon)}$
(Ostrowski), and that of a matrix within the intervals differs from it by at most the Frobenius
norms of $E$ and of the radii (Weyl). Eigenvalues of symmetric matrices likewise, with $U = V$.
"""

from typing import Any

import numpy as np

from attlas.verify import intervals as iv
from attlas.verify.intervals import Interval, Undecided


def singular_values(a: Interval) -> Interval:
    """The singular values of matrices, falling, shape (..., min(m, n)).

    Raises:
        Undecided: if a matrix has an entry without bounds.

    Examples:
        >>> values = singular_values(iv.exact(np.array([[3.0, 0.0], [4.0, 5.0]])))
        >>> bool((values.low**2 <= [45, 5]).all() and (values.high**2 >= [45, 5]).all())
        True
        >>> bool((values.high - values.low).max() < 1e-13)
        True
    """
    shape = (*a.low.shape[:-2], min(a.low.shape[-2:]))
    low, high = np.empty(shape), np.empty(shape)
    for place in np.ndindex(shape[:-1]):
        matrix = _bounded(a, place)
        u, s, vt = np.linalg.svd(_middle(matrix), full_matrices=False)
        ends = _around(matrix, u, s, vt)
        low[place], high[place] = np.maximum(ends.low, 0), ends.high
    return Interval(low, high)


def eigenvalues(a: Interval) -> Interval:
    """The eigenvalues of the symmetric parts of matrices, rising, shape (..., n).

    Raises:
        Undecided: if a matrix has an entry without bounds.

    Examples:
        >>> values = eigenvalues(iv.exact(np.array([[2.0, 1.0], [1.0, 2.0]])))
        >>> bool((values.low <= [1, 3]).all() and (values.high >= [1, 3]).all())
        True
    """
    turned = Interval(np.swapaxes(a.low, -1, -2), np.swapaxes(a.high, -1, -2))
    half = iv.exact(np.full(a.low.shape, 0.5))
    symmetric = iv.multiply(half, iv.add(a, turned))
    low, high = np.empty(a.low.shape[:-1]), np.empty(a.low.shape[:-1])
    for place in np.ndindex(a.low.shape[:-2]):
        matrix = _bounded(symmetric, place)
        middle = _middle(matrix)
        values, v = np.linalg.eigh((middle + middle.T) / 2)
        ends = _around(matrix, v, values, v.T)
        low[place], high[place] = ends.low, ends.high
    return Interval(low, high)


def _bounded(a: Interval, place: tuple[int, ...]) -> Interval:
    matrix = Interval(np.asarray(a.low)[place], np.asarray(a.high)[place])
    if not (np.isfinite(matrix.low).all() and np.isfinite(matrix.high).all()):
        raise Undecided("a matrix without bounds has no spectrum")
    return matrix


def _middle(a: Interval) -> np.ndarray:
    return a.low + (a.high - a.low) / 2


def _around(a: Interval, u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> Interval:
    """Enclosures of the spectrum of all matrices in `a` by those of u diag(s) vt."""
    left, right = iv.exact(u), iv.exact(vt)
    product = _product(_product(left, iv.exact(np.diag(s))), right)
    distance = _norm(iv.subtract(a, product))
    one = iv.exact(np.ones(()))
    off = [_norm(iv.subtract(_product(q, r), iv.exact(np.eye(len(s)))))
           for q, r in ((iv.exact(u.T), left), (right, iv.exact(vt.T)))]  # fmt: skip
    most = iv.root(iv.multiply(iv.add(one, off[0]), iv.add(one, off[1]))).high
    rest = [iv.subtract(one, x).low for x in off]
    least = iv.root(iv.multiply(*(iv.exact(np.maximum(x, 0.0)) for x in rest))).low
    scaled = iv.multiply(iv.exact(s), Interval(np.full(s.shape, least), np.full(s.shape, most)))
    reach = np.full(s.shape, distance.high)
    return iv.add(scaled, Interval(-reach, reach))


def _product(a: Interval, b: Interval) -> Interval:
    terms = iv.multiply(
        Interval(a.low[:, :, None], a.high[:, :, None]),
        Interval(b.low[None], b.high[None]),
    )
    return iv.total(terms, (1,))


def _norm(a: Interval) -> Any:
    """An enclosure of the Frobenius norm, whose upper end bounds that of every matrix in `a`."""
    return iv.root(iv.total(iv.whole_power(a, 2), (0, 1)))
