r"""The hard-margin SVM in a feature space known by its Gram matrix only.

gamma = max_{||theta|| <= 1} min_i y_i <phi_i, theta> = min_{lambda in simplex}
||sum_i lambda_i y_i phi_i||, with K_ij = <phi_i, phi_j>. The Gram matrix is factored on the
eigenvalues above its rounding, the rows of the factor go to the common max-margin engine, and
both bounds of gamma are then computed from K itself.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, as_float64, read_array, working_dtype
from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.solvers.constraints import VectorRows
from attlas.solvers.farkas import farkas_multipliers
from attlas.solvers.max_margin import max_margin


def kernel_svm(
    K: ArrayInput,
    y: ArrayInput,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, ""]]:
    r"""Margin of labelled samples in a feature space, from their Gram matrix, with a certificate.

    $$\gamma=\max_{\|\theta\|\le1}\min_i y_i\langle\phi_i,\theta\rangle
    =\min_{\lambda\ge0,\,1^\top\lambda=1}\Big\|\sum_i\lambda_iy_i\phi_i\Big\|$$

    Labels that no theta separates give `Result.INFEASIBLE`: not separable. A margin whose square
    is below the rounding of K counts as none; features at hand resolve it better (`lp_svm`).

    Args:
        K: Gram matrix <phi_i, phi_j>, symmetric and positive semidefinite, [n, n]; its type
            says how much of it is rounding, the computation is in float64.
        y: labels, +1 or -1, [n].
        tolerance: largest relative distance of the two bounds that counts as converged.

    Returns:
        gamma, NaN if not separable. Certificate: `lower` <= gamma <= `upper`, their relative
        `gap`, `rounding` (uncertainty of gamma that the rounding of K can make), `dual` (lambda),
        `alpha` (theta = sum_i alpha_i phi_i has norm 1 and the margin `lower`), `margins`
        (y_i <phi_i, theta>), `farkas` (if not separable, lambda with sum_i lambda_i y_i phi_i = 0
        up to `farkas_residual`, in units of the longest phi_i; else 0). Stats: `steps`, `rank` of
        K above rounding, `support` (samples on the margin).

    A `UserError` names shapes, values, labels, a matrix that is not a Gram matrix, or options.

    Source: Assumption P3 of Definition 1 of deora2023optimization, for NTK features.

    Examples:
        >>> found = kernel_svm(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0]))
        >>> print(f"{float(found.unwrap()):.9f}", found.certificate["dual"].round(9).tolist())
        0.707106781 [0.5, 0.5]
        >>> kernel_svm(np.ones((2, 2)), np.array([1.0, -1.0])).unwrap()
        Traceback (most recent call last):
            ...
        attlas.core.solution.NotConverged: INFEASIBLE: no point satisfies the constraints: ...
    """
    return _solve(K, y, tolerance, max_steps, batch=False)


def kernel_svm_batch(
    K: ArrayInput,
    y: ArrayInput,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, " b"]]:
    r"""Margins of many labelled samples of one size, from a stack of Gram matrices.

    $$\gamma^{(b)}=\max_{\|\theta\|\le1}\min_i y^{(b)}_i\langle\phi^{(b)}_i,\theta\rangle$$

    Arguments, result and errors are those of `kernel_svm`, every array with a leading batch axis,
    K [b, n, n].

    Source: Assumption P3 of Definition 1 of deora2023optimization, for NTK features.

    Examples:
        >>> found = kernel_svm_batch(np.array([[[4.0]], [[9.0]]]), np.array([[1.0], [-1.0]]))
        >>> found.unwrap().round(9).tolist()
        [2.0, 3.0]
    """
    return _solve(K, y, tolerance, max_steps, batch=True)


class _Problem(NamedTuple):
    """A batch: y_i y_j K_ij in units of its largest entry, |phi_i|, a factor, its rounding."""

    labels: np.ndarray
    signed: np.ndarray
    scale: np.ndarray
    lengths: np.ndarray
    factor: np.ndarray
    level: np.ndarray


def _inputs(K: ArrayInput, y: ArrayInput, batch: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """The arrays in float64 with a batch axis, and the rounding unit of K as it was given."""
    lead = "b " if batch else ""
    matrix = read_array(K, "K")
    gram, labels = as_float64(matrix, "K", f"{lead}n n"), as_float64(y, "y", f"{lead}n")
    if not batch:
        gram, labels = gram[None], labels[None]
    b, n, columns = gram.shape
    if 0 in gram.shape or n != columns:
        raise UserError(f"K has shape {gram.shape[1:]}: give a square matrix, one row per sample")
    if labels.shape != (b, n):
        raise UserError(f"y has shape {labels.shape[1:]}, K requires ({n},) labels")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise UserError("y holds labels other than +1 and -1: recode them")
    return gram, labels, float(jnp.finfo(working_dtype(matrix.dtype)).eps)


def _problem(gram: np.ndarray, labels: np.ndarray, eps: float) -> _Problem:
    # Half the digits: more than the rounding of any sum of products, less than a wrong matrix.
    beyond_rounding = np.sqrt(eps)
    diagonal = np.einsum("bii->bi", gram)
    scale = np.abs(gram).max(axis=(1, 2))
    scale = np.where(scale > 0, scale, 1.0)
    # Rounding of an inner product is relative to both lengths, so short samples keep theirs.
    lengths = np.sqrt(np.where(diagonal > 0, diagonal / scale[:, None], 1.0))
    signed = gram / scale[:, None, None] * labels[:, :, None] * labels[:, None, :]
    cosines = signed / (lengths[:, :, None] * lengths[:, None, :])
    skew = np.abs(cosines - cosines.transpose(0, 2, 1)).max(axis=(1, 2))
    if skew.max() > beyond_rounding:
        raise UserError(f"K is not symmetric: K_ij and K_ji differ by {skew.max():.1e} of |phi|^2")
    values, vectors = np.linalg.eigh(0.5 * (cosines + cosines.transpose(0, 2, 1)))
    lowest = np.maximum(-values[:, 0], 0.0)
    if (lowest > beyond_rounding * values[:, -1]).any():
        raise UserError(
            f"K over its diagonal has eigenvalue {-lowest.max():.1e}: no Gram matrix has one < 0"
        )
    n = labels.shape[1]
    # What asymmetry and negative eigenvalues show of the rounding that made K counts as well.
    level = np.maximum(n * eps * values[:, -1], 2 * np.maximum(lowest, n * skew))
    positive = np.where(values > level[:, None], values, 0.0)
    used = max(1, int((positive > 0).sum(axis=-1).max()))
    factor = vectors[:, :, -used:] * np.sqrt(positive[:, None, -used:])
    signed = 0.5 * (signed + signed.transpose(0, 2, 1))
    return _Problem(labels, signed, scale, lengths, lengths[:, :, None] * factor, level)


def _square(problem: _Problem, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """||sum_i lambda_i y_i phi_i||^2 from K itself, and what of it may be rounding of K."""
    square = np.einsum("bi,bij,bj->b", weights, problem.signed, weights, optimize=True)
    return np.maximum(square, 0.0), problem.level * np.sum((problem.lengths * weights) ** 2, axis=1)


def _weights(problem: _Problem, tolerance: float, max_steps: int) -> tuple[np.ndarray, ...]:
    """Dual weights on the simplex, which problems ran out of steps, and the steps taken."""
    rows = VectorRows(problem.factor)
    answer = max_margin(rows, 2.0, tolerance, max_steps)
    infeasible = answer.result == Result.INFEASIBLE.value
    resisting = answer.result == Result.MAX_STEPS.value
    weights = np.where(infeasible[:, None], answer.farkas, np.maximum(answer.multipliers, 0.0))
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.divide(weights, total, out=np.full_like(weights, 1 / weights.shape[1]),
                        where=total > 0)  # fmt: skip
    for i in np.flatnonzero(resisting):
        # The engine requires more than a Gram matrix determines: its rounding is squared here.
        trial = weights.copy()
        trial[i] = farkas_multipliers(rows.take(np.array([i])))[0]
        if _square(problem, trial)[0][i] < _square(problem, weights)[0][i]:
            weights = trial
    return weights, resisting, answer.steps


def _solve(K, y, tolerance: float, max_steps: int, batch: bool) -> Solution:
    problem = _problem(*_inputs(K, y, batch))
    weights, resisting, steps = _weights(problem, tolerance, max_steps)
    square, doubt = _square(problem, weights)
    infeasible = square <= doubt
    dual = np.where(infeasible[:, None], np.nan, weights)
    unit, length = np.sqrt(problem.scale), np.sqrt(np.where(infeasible, np.nan, square))
    pull = np.matmul(problem.signed, dual[..., None])[..., 0]
    margins = pull / length[:, None] * unit[:, None]
    lower, upper = margins.min(axis=-1), length * unit
    value, gap = lower, np.abs(upper - lower) / upper
    rounding = (np.sqrt(square + doubt) - np.sqrt(square)) * unit
    exhausted = resisting & (gap * upper > rounding)
    result = np.where(exhausted, Result.MAX_STEPS.value, Result.PRECISION.value)
    result = np.where(gap <= tolerance, Result.CONVERGED.value, result)
    result = np.where(infeasible, Result.INFEASIBLE.value, result)
    certificate = {
        "lower": np.where(infeasible, 0.0, lower),
        "upper": np.where(infeasible, np.sqrt(square + doubt) * unit, upper),
        "gap": gap,
        "rounding": rounding,
        "dual": dual,
        "alpha": problem.labels * dual / upper[:, None],
        "margins": margins,
        "farkas": np.where(infeasible[:, None], weights, 0.0),
        "farkas_residual": np.where(infeasible, np.sqrt(square), np.nan),
    }
    stats = {
        "steps": steps,
        "rank": np.count_nonzero(problem.factor.any(axis=1), axis=-1),
        # Interior points keep weight times slack small: the larger of the two names the set.
        "support": dual > margins / upper[:, None] - 1,
    }
    if not batch:
        value, result = np.asarray(value[0]), result[0]
        certificate = {name: array[0] for name, array in certificate.items()}
        stats = {name: array[0] for name, array in stats.items()}
    return Solution(value, np.asarray(result), certificate, stats)
