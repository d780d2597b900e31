r"""The l_p SVM: the direction that the value head takes under mirror descent.

v_mm = argmin ||v||_p subject to y_i x_i' v >= 1.
"""

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, as_float64
from attlas.core.errors import UserError
from attlas.core.solution import Solution
from attlas.solvers._methods.margin_solution import to_solution
from attlas.solvers.constraints import VectorRows
from attlas.solvers.max_margin import max_margin


def lp_svm(
    x: ArrayInput,
    y: ArrayInput,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, " d"]]:
    r"""Solve the hard-margin l_p SVM without offset, with a certificate.

    $$v_{mm}=\arg\min_v \|v\|_p\ \text{s.t.}\ y_i x_i^\top v\ge1$$

    Args:
        x: features, [n, d]; lists, or arrays of NumPy, JAX or torch, as the labels.
        y: labels, +1 or -1, [n].
        p: exponent, 1 < p <= inf.
        tolerance: largest relative duality gap that counts as converged.

    Returns:
        v_mm with the certificate of `attention_svm`, in float64; `dual`, `margins` and `farkas`
        are [n].

    A `UserError` names shapes, values, labels or options that make no problem.

    Source: ($\ell_p$-SVM) of julistiono2024optimizing.

    Examples:
        >>> found = lp_svm([[2.0, 0.0], [0.0, -1.0]], [1.0, -1.0], 3.0)
        >>> found.unwrap().round(9).tolist()
        [0.5, 1.0]
    """
    return _solve(x, y, p, tolerance, max_steps, batch=False)


def lp_svm_batch(
    x: ArrayInput,
    y: ArrayInput,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, "b d"]]:
    r"""Solve the hard-margin l_p SVM of many data sets of one shape together.

    $$v_{mm}^{(b)}=\arg\min_v \|v\|_p\ \text{s.t.}\ y^{(b)}_i x_i^{(b)\top} v\ge1$$

    Arguments, result and errors are those of `lp_svm`, every array with a leading batch axis,
    x [b, n, d]; p is common to the batch.

    Source: ($\ell_p$-SVM) of julistiono2024optimizing.

    Examples:
        >>> found = lp_svm_batch(np.array([[[2.0]], [[-4.0]]]), np.array([[1.0], [-1.0]]), 2.0)
        >>> found.unwrap()[:, 0].round(12).tolist()
        [0.5, 0.25]
    """
    return _solve(x, y, p, tolerance, max_steps, batch=True)


def _solve(x, y, p, tolerance, max_steps, batch: bool) -> Solution:
    lead = "b " if batch else ""
    points, labels = as_float64(x, "x", f"{lead}n d"), as_float64(y, "y", f"{lead}n")
    if not batch:
        points, labels = points[None], labels[None]
    if 0 in points.shape:
        raise UserError(f"x has shape {points.shape[-2:]}: give at least one sample and feature")
    if labels.shape != points.shape[:2]:
        raise UserError(f"y has shape {labels.shape[1:]}, x requires {points.shape[1:2]} labels")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise UserError("y holds labels other than +1 and -1: recode them")
    rows = VectorRows(points * labels[..., None])
    answer = max_margin(rows, p, tolerance, max_steps)
    return to_solution(answer, float(p), lambda w: w, lambda values: values, single=not batch)
