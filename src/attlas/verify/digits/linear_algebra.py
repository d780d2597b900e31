"""Decompositions of JAX in the precision at hand, with the signs and orders of LAPACK.

Eigenvectors and singular vectors are unique up to a sign at best; what a claim computes from them
must not depend on it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.verify.digits.elementwise import Rule, divide
from attlas.verify.digits.precision import Precision, Unconfirmed


def batched(outputs: int, one: Callable[..., Any]) -> Rule:
    """A rule on a matrix, along the leading axes."""

    def rule(precision: Precision, details: Mapping[str, Any], *arrays: np.ndarray) -> list[Any]:
        lead = arrays[0].shape[:-2]
        results: list[list[Any]] = [[] for _ in range(outputs)]
        for place in np.ndindex(lead):
            values = one(precision, details, *(a[place] for a in arrays))
            for result, value in zip(results, values, strict=True):
                result.append(value)
        stacked = (np.stack(result) for result in results)
        return [array.reshape(*lead, *array.shape[1:]) for array in stacked]

    return rule


def _finite(precision: Precision, a: np.ndarray) -> bool:
    return all(precision.ctx.isfinite(value) for value in a.ravel())


def _matrix(precision: Precision, a: np.ndarray) -> Any:
    if not a.size:
        raise Unconfirmed("a decomposition of an empty matrix")
    if not _finite(precision, a):
        raise Unconfirmed("a decomposition of a matrix that is not finite")
    return precision.ctx.matrix(a.tolist())


def _array(matrix: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, dtype=object)
    array.reshape(-1)[:] = list(matrix)
    return array


def _attempt(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except RuntimeError as error:  # mpmath: no convergence
        raise Unconfirmed(f"a decomposition does not converge ({error})") from error


def _eigh(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    if details.get("subset_by_index") is not None:
        raise Unconfirmed("an eigenvalue problem of a few eigenvalues")
    n = len(a)
    precision.spend(20 * n**3)
    lower = np.tril(np.ones((n, n), dtype=bool), 0 if details["lower"] else -1)
    lower = lower if details["lower"] else ~lower
    symmetric = np.where(lower, a, a.T)
    values, vectors = _attempt(lambda: precision.ctx.eigsy(_matrix(precision, symmetric)))
    return [_array(vectors, (n, n)), _array(values, (n,))]


def _eig(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    if details["compute_left_eigenvectors"] or details["compute_right_eigenvectors"]:
        raise Unconfirmed("the eigenvectors of a matrix that is not symmetric")
    n, ctx = len(a), precision.ctx
    precision.spend(60 * n**3)
    values = list(_attempt(lambda: ctx.eig(_matrix(precision, a), left=False, right=False)))
    ordered = []  # as LAPACK orders them
    for near in np.linalg.eigvals(a.astype(float)):
        ordered.append(min(values, key=lambda value: abs(complex(value) - complex(near))))
        values.remove(ordered[-1])
    result = np.empty(n, dtype=object)
    result[:] = [ctx.mpc(value) for value in ordered]
    return [result]


def _svd(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    if details.get("subset_by_index") is not None:
        raise Unconfirmed("a decomposition of a few singular values")
    (m, n), k, full = a.shape, min(a.shape), details["full_matrices"]
    precision.spend(30 * m * n * max(m, n))
    matrix = _matrix(precision, a)
    if not details["compute_uv"]:
        values = _attempt(lambda: precision.ctx.svd_r(matrix, compute_uv=False))
        return [_array(values, (k,))]
    u, s, v = _attempt(lambda: precision.ctx.svd_r(matrix, full_matrices=full))
    return [_array(s, (k,)), _array(u, (m, m if full else k)), _array(v, (n if full else k, n))]


def _qr(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    """Householder's, where the diagonal of R has the sign opposite to the pivot."""
    if details.get("pivoting"):
        raise Unconfirmed("a QR decomposition with pivoting")
    (m, n), ctx = a.shape, precision.ctx
    precision.spend(4 * m * m * max(m, n))
    r, q = a.copy(), precision.exact(np.eye(m))
    for k in range(min(m - 1, n)):
        x = r[k:, k]
        below = ctx.fsum(value * value for value in x[1:])
        if below == 0:
            continue
        norm = ctx.sqrt(x[0] * x[0] + below)
        v = x.copy()
        v[0] = x[0] + norm if x[0] >= 0 else x[0] - norm
        twice = 2 / ctx.fsum(value * value for value in v)
        r[k:] = r[k:] - np.outer(v, twice * (v @ r[k:]))
        q[:, k:] = q[:, k:] - np.outer(q[:, k:] @ v, twice * v)
    k = m if details["full_matrices"] else min(m, n)
    upper = np.triu(np.ones((m, n), dtype=bool))
    return [q[:, :k], np.where(upper, r, ctx.zero)[:k]]


def _lu(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    """With the largest pivot of each column, as LAPACK."""
    del details
    (m, n), ctx = a.shape, precision.ctx
    precision.spend(2 * m * n * min(m, n))
    lu, order, pivots = a.copy(), np.arange(m), []
    for k in range(min(m, n)):
        sizes = [abs(value) for value in lu[k:, k]]
        p = k + sizes.index(max(sizes))
        pivots.append(p)
        if p != k:
            lu[[k, p]], order[[k, p]] = lu[[p, k]], order[[p, k]]
        if lu[k, k] == 0:
            continue
        for i in range(k + 1, m):
            lu[i, k] = divide(ctx, lu[i, k], lu[k, k])
            lu[i, k + 1 :] = lu[i, k + 1 :] - lu[i, k] * lu[k, k + 1 :]
    return [lu, np.array(pivots, dtype=np.int32), order.astype(np.int32)]


def _cholesky(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[np.ndarray]:
    del details
    n, ctx = len(a), precision.ctx
    precision.spend(n**3)
    factor = precision.exact(np.zeros((n, n)))
    for k in range(n):
        square = a[k, k] - ctx.fsum(value * value for value in factor[k, :k])
        if not square > 0:
            return [np.full((n, n), ctx.nan, dtype=object)]
        factor[k, k] = ctx.sqrt(square)
        if k + 1 < n:
            rest = a[k + 1 :, k] - (factor[k + 1 :, :k] @ factor[k, :k] if k else ctx.zero)
            factor[k + 1 :, k] = rest / factor[k, k]
    return [factor]


def _triangular(
    precision: Precision, details: Mapping[str, Any], a: np.ndarray, b: np.ndarray
) -> list[np.ndarray]:
    """Substitution for op(A) X = B, or X op(A) = B."""
    n, ctx = len(a), precision.ctx
    precision.spend(n * b.size)
    lower = bool(details["lower"])
    matrix, upper = a, not lower
    if details["transpose_a"]:
        matrix, upper = matrix.T, lower
    right = b
    if not details["left_side"]:
        matrix, upper, right = matrix.T, not upper, b.T
    x = np.empty(right.shape, dtype=object)
    for k in reversed(range(n)) if upper else range(n):
        known = range(k + 1, n) if upper else range(k)
        for column in range(right.shape[1]):
            value = right[k, column] - ctx.fsum(matrix[k, j] * x[j, column] for j in known)
            x[k, column] = value if details["unit_diagonal"] else divide(ctx, value, matrix[k, k])
    return [x if details["left_side"] else x.T]


def _exponential(
    precision: Precision, details: Mapping[str, Any], a: np.ndarray
) -> list[np.ndarray]:
    """exp(A) by squaring the series of exp(A / 2^k), whose norm is below 1/256."""
    del details
    n, ctx = len(a), precision.ctx
    if not _finite(precision, a):
        return [np.full((n, n), ctx.nan, dtype=object)]
    norm = max((ctx.fsum(map(abs, column)) for column in a.T), default=ctx.zero)
    halvings = max(0, int(ctx.ceil(ctx.log(256 * norm, 2)))) if norm > 0 else 0
    if halvings > 8 + precision.digits:
        raise Unconfirmed("the exponential of a matrix too large for its digits")
    scaled, size = a / ctx.mpf(2) ** halvings, norm / ctx.mpf(2) ** halvings
    total, term, bound, order = precision.exact(np.eye(n)), precision.exact(np.eye(n)), ctx.one, 0
    while bound > ctx.eps**2:
        order += 1
        precision.spend(n**3)
        term, bound = term @ scaled / order, bound * size / order
        total = total + term
    for _ in range(halvings):
        precision.spend(n**3)
        total = total @ total
    return [total]


exponential_of_matrix = batched(1, _exponential)
RULES: dict[str, Rule] = {
    "eig": batched(1, _eig),
    "eigh": batched(2, _eigh),
    "qr": batched(2, _qr),
    "lu": batched(3, _lu),
    "cholesky": batched(1, _cholesky),
    "triangular_solve": batched(1, _triangular),
}


def _svd_rule(precision: Precision, details: Mapping[str, Any], a: np.ndarray) -> list[Any]:
    return batched(3 if details["compute_uv"] else 1, _svd)(precision, details, a)


RULES["svd"] = _svd_rule
