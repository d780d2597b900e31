r"""Decompositions of matrices of symbols as rational functions.

A pivot is the first entry of its column that is not zero everywhere. What a program computes from a
decomposition, a solution or a determinant, does not depend on the order of its rows, and agrees by
continuity where that pivot vanishes and the matrix does not become singular.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from attlas.verify.digits import linear_algebra
from attlas.verify.proofs.elements import NotProvedError

Rule = Callable[..., Any]


def _lu(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    del details
    (m, n), lu = a.shape, a.copy()
    exact.spend(2 * m * n * min(m, n))
    order, pivots = np.arange(m), np.arange(min(m, n), dtype=np.int32)
    for k in range(min(m, n)):
        p = next((p for p in range(k, m) if lu[p, k].value), k)
        pivots[k] = p
        lu[[k, p]], order[[k, p]] = lu[[p, k]], order[[p, k]]
        if not lu[k, k].value:
            raise NotProvedError("a matrix may be singular everywhere")
        for i in range(k + 1, m):
            lu[i, k] = lu[i, k] / lu[k, k]
            lu[i, k + 1 :] = lu[i, k + 1 :] - lu[k, k + 1 :] * lu[i, k]
    return [lu, pivots, order.astype(np.int32)]


def _cholesky(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    del details
    n = len(a)
    exact.spend(n**3)
    factor = exact.exact(np.zeros((n, n)))
    for k in range(n):
        square = a[k, k] - exact.ctx.fsum(value * value for value in factor[k, :k])
        factor[k, k] = exact.functions.power(square, Fraction(1, 2))
        for i in range(k + 1, n):
            known = exact.ctx.fsum(factor[i, j] * factor[k, j] for j in range(k))
            factor[i, k] = (a[i, k] - known) / factor[k, k]
    return [factor]


def _eigh(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    """Eigenvectors and eigenvalues of one or two rows, in rising order.

    With d the difference of the diagonal entries and s the root of d^2 + 4 b^2, the larger
    eigenvalue has the eigenvector (b, (s + d) / 2), of the squared length s (s + d) / 2. The
    direction of the pair is drawn: what a program computes must not depend on it.
    """
    if details.get("subset_by_index") is not None or len(a) > 2:
        raise NotProvedError("eigenvalues of three rows or more")
    one, half = exact.ctx.one, exact.real(0.5)
    if len(a) == 1:
        return [np.array([[one]], dtype=object), a[0]]
    b, difference = (a[1, 0] if details["lower"] else a[0, 1]), a[1, 1] - a[0, 0]
    if exact.functions.is_zero(b):
        raise NotProvedError("eigenvalues of a diagonal matrix")
    root = partial(exact.functions.power, exponent=Fraction(1, 2))
    s = root(difference * difference + b * b * 4)
    middle = (a[0, 0] + a[1, 1]) * half
    length = root(s * (s + difference) * half)
    direction = 1 if exact.field.point.prime & 8 else -1
    first, second = b / length * direction, (s + difference) * half / length * direction
    vectors = np.array([[-second, first], [first, second]], dtype=object)
    return [vectors, np.array([middle - s * half, middle + s * half], dtype=object)]


def _svd(exact: Any, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    r"""Singular values of one row, one column or two of each, the largest first.

    Those of two rows and columns are half the sum and half the distance of
    $((a + d)^2 + (b - c)^2)^{1/2}$ and $((a - d)^2 + (b + c)^2)^{1/2}$, of which the first is the
    larger one where the determinant is positive.
    """
    if details.get("subset_by_index") is not None or details["compute_uv"]:
        raise NotProvedError("singular vectors")
    root = partial(exact.functions.power, exponent=Fraction(1, 2))
    if 1 in a.shape:
        squares = (value * value for value in a.ravel())
        return [np.array([root(exact.ctx.fsum(squares))], dtype=object)]
    if a.shape != (2, 2):
        raise NotProvedError("singular values of three rows or columns or more")
    (p, q), (r, s) = a
    direct = root((p + s) * (p + s) + (q - r) * (q - r))
    crossed = root((p - s) * (p - s) + (q + r) * (q + r))
    half = exact.real(0.5)
    sign = exact.functions.sign(p * s - q * r, strict=False)
    return [np.array([(direct + crossed) * half, (direct - crossed) * half * sign], dtype=object)]


RULES: dict[str, Rule] = {
    "eigh": linear_algebra.batched(2, _eigh),
    "lu": linear_algebra.batched(3, _lu),
    "svd": linear_algebra.batched(1, _svd),
    "cholesky": linear_algebra.batched(1, _cholesky),
    "triangular_solve": linear_algebra.RULES["triangular_solve"],
}
"""Operations that decompose a matrix or solve with a triangular one."""
