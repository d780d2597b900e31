r"""The nuclear-norm attention SVM: the bias of the factored pair W = W_K W_Q'.

W_* = argmin ||W||_* subject to (X_{i a_i} - X_{it})' W z_i >= 1. Small d only: one semidefinite
program of order 2 d.
"""

import clarabel
import numpy as np
from jaxtyping import Float
from scipy import sparse

from attlas.core.arrays import ArrayInput, as_float64, read_array
from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.solvers.attention_svm import attention_rows, check_problem, scatter_others
from attlas.solvers.constraints import AttentionRows
from attlas.solvers.farkas import farkas_multipliers, farkas_tolerance
from attlas.solvers.max_margin import check_options

_LARGEST_DIMENSION = 32


def nuclear_svm(
    X: ArrayInput,
    z: ArrayInput,
    tokens: ArrayInput,
    *,
    tolerance: float = 1e-6,
    max_steps: int = 200,
) -> Solution[Float[np.ndarray, "d d"]]:
    r"""Solve the nuclear-norm attention SVM of one data set, with a certificate.

    $$W_\star=\arg\min_W \|W\|_*\ \text{s.t.}\ (X_{i\alpha_i}-X_{it})^\top W z_i\ge1$$

    Solved as min (tr P + tr Q)/2 with [[P, W], [W', Q]] positive semidefinite. The certificate
    is computed afterwards from W and the multipliers l alone: the dual norm is the spectral
    norm, hence every feasible W has ||W||_* >= 1'l / ||A'l||_2. A `UserError` names shapes,
    values, tokens or options that make no problem.

    Args:
        X: tokens, [n, T, d], T >= 2, d <= 32.
        z: queries, [n, d].
        tokens: selected token of each sample, [n].
        tolerance: largest relative duality gap that counts as converged.

    Returns:
        W_* with smallest margin 1 (the minimiser need not be unique), NaN where infeasible.
        Certificate: `gap`, `violation`, `norm_upper`, `norm_lower`, `dual` [n, T], `margins`
        [n, T], `farkas` [n, T], `farkas_residual`, as in `attention_svm`.

    Raises:
        UserError: if d is above 32.

    Source: Tarzanagh et al. 2023 (arXiv 2308.16898), the factored attention SVM (recalled).

    Examples:
        >>> result = nuclear_svm([[[1.0, 0.0], [-1.0, 0.0]]], [[0.0, 1.0]], [0])
        >>> abs(result.unwrap()).round(6).tolist()
        [[0.0, 0.5], [0.0, 0.0]]
    """
    check_options(2.0, tolerance, max_steps)
    points, queries = as_float64(X, "X", "n T d")[None], as_float64(z, "z", "n d")[None]
    index = read_array(tokens, "tokens")[None]
    check_problem(points, queries, index)
    d = points.shape[-1]
    if d > _LARGEST_DIMENSION:
        raise UserError(f"d = {d} is above {_LARGEST_DIMENSION}: too large for a dense program")
    rows = attention_rows(points, queries, index)
    unit = rows.scaled(1 / np.maximum(rows.lengths().max(axis=-1), np.finfo(float).tiny))
    W, dual, steps = _semidefinite(unit.select(np.arange(rows.shape[1])), d, max_steps)
    value, result, certificate = _judge(rows, W, dual, tolerance)
    for name in ("dual", "margins", "farkas"):
        certificate[name] = scatter_others(certificate[name], index, points.shape)[0]
    return Solution(value, np.asarray(int(result)), certificate, {"steps": np.asarray(steps)})


def _judge(rows: AttentionRows, W: np.ndarray, dual: np.ndarray, tolerance: float):
    """Value, result code and certificate."""
    m = rows.shape[1]
    smallest = rows.apply(W.reshape(1, -1)).min()
    value = W / (smallest if smallest > 0 else np.nan)
    margins = rows.apply(value.reshape(1, -1))[0]
    pull = np.linalg.norm(rows.adjoint(dual[None]).reshape(W.shape), 2)
    lower = dual.sum() / pull if pull > 0 else 0.0
    upper = np.linalg.norm(value, "nuc") / margins.min() if smallest > 0 else np.inf
    gap = upper / lower - 1 if lower > 0 else np.inf
    violation = np.maximum(1 - margins.min(), 0)
    result, weights, residual = Result.CONVERGED, np.zeros(m), np.nan
    if not max(gap, violation) <= tolerance:
        result = Result.MAX_STEPS
        multipliers, length = farkas_multipliers(rows)
        if length <= farkas_tolerance(rows):
            result, weights, residual = Result.INFEASIBLE, multipliers, length
            value, upper, lower = np.full_like(value, np.nan), np.inf, np.inf
            gap, violation, margins = np.nan, np.nan, np.full(m, np.nan)
    share = dual / max(dual.sum(), np.finfo(float).tiny)
    return value, result, {
        "gap": np.asarray(gap),
        "violation": np.asarray(violation),
        "norm_upper": np.asarray(upper),
        "norm_lower": np.asarray(lower),
        "dual": share * lower if np.isfinite(lower) else np.full(m, np.nan),
        "margins": margins,
        "farkas": weights,
        "farkas_residual": np.asarray(residual),
    }  # fmt: skip


def _semidefinite(A: np.ndarray, d: int, max_steps: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Min (tr P + tr Q)/2 with the block matrix positive semidefinite; returns W, multipliers."""
    order = 2 * d
    row, column = np.tril_indices(order)[1], np.tril_indices(order)[0]  # upper triangle by columns
    place = np.zeros((order, order), int)
    place[row, column] = place[column, row] = np.arange(len(row))
    size = len(row)
    inside = place[:d, d:].ravel()
    bound = sparse.csc_matrix(
        (-A.ravel(), (np.repeat(np.arange(len(A)), d * d), np.tile(inside, len(A)))),
        shape=(len(A), size),
    )
    weight = np.where(row == column, 1.0, np.sqrt(2.0))
    matrix = sparse.vstack([bound, -sparse.diags(weight)], format="csc")
    right = np.concatenate([-np.ones(len(A)), np.zeros(size)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter, settings.max_threads = False, max_steps, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(len(A)), clarabel.PSDTriangleConeT(order)]
    cost = np.where(row == column, 0.5, 0.0)
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix((size, size)), cost, matrix, right, cones, settings
    ).solve()
    W = np.nan_to_num(np.asarray(solution.x))[inside].reshape(d, d)
    return W, np.maximum(np.nan_to_num(np.asarray(solution.z))[: len(A)], 0), solution.iterations
