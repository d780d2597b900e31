r"""Decompositions of matrices of symbols as rational functions.

A pivot is the first entry of its column that is not zero everywhere. What a program computes from a
decomposition, a solution or a determinant, does not depend on the order of its rows, and agrees by
continuity where that pivot vanishes and the matrix does not become singular.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
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


RULES: dict[str, Rule] = {
    "lu": linear_algebra.batched(3, _lu),
    "cholesky": linear_algebra.batched(1, _cholesky),
    "triangular_solve": linear_algebra.RULES["triangular_solve"],
}
"""Operations that decompose a matrix or solve with a triangular one."""
