r"""The l_p SVM: the direction that the value head takes under mirror descent.

v_mm = argmin ||v||_p subject to y_i x_i' v >= 1.
"""

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.solution import Solution
from attlas.solvers.constraints import VectorRows
from attlas.solvers.margin_solution import check_options, finite_array, to_solution, working_dtype
from attlas.solvers.max_margin import max_margin


def lp_svm(
    x: ArrayLike,
    y: ArrayLike,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[Array, " d"]]:
    r"""Solve the hard-margin l_p SVM without offset, with a certificate.

    $$v_{mm}=\arg\min_v \|v\|_p\ \text{s.t.}\ y_i x_i^\top v\ge1$$

    Args:
        x: features, [n, d].
        y: labels, +1 or -1, [n].
        p: exponent, 1 < p <= inf.
        tolerance: largest relative duality gap that counts as converged.
        max_steps: interior-point steps at most.

    Returns:
        v_mm with the certificate of `attention_svm`; `dual`, `margins` and `farkas` are [n].

    A `UserError` names shapes, values, labels or options that make no problem.

    Source: ($\ell_p$-SVM) of julistiono2024optimizing.

    Examples:
        >>> import jax.numpy as jnp
        >>> found = lp_svm(jnp.array([[2.0, 0.0], [0.0, -1.0]]), jnp.array([1.0, -1.0]), 3.0)
        >>> found.unwrap().round(9).tolist()
        [0.5, 1.0]
    """
    return _solve(x, y, p, tolerance, max_steps, batch=False)


def lp_svm_batch(
    x: ArrayLike,
    y: ArrayLike,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[Array, "b d"]]:
    r"""Solve the hard-margin l_p SVM of many data sets of one shape together.

    $$v_{mm}^{(b)}=\arg\min_v \|v\|_p\ \text{s.t.}\ y^{(b)}_i x_i^{(b)\top} v\ge1$$

    Args:
        x: features, [b, n, d].
        y: labels, +1 or -1, [b, n].
        p: exponent, 1 < p <= inf, common to the batch.
        tolerance: largest relative duality gap that counts as converged.
        max_steps: interior-point steps of one problem at most.

    Returns:
        As `lp_svm`, every array with a leading batch axis.

    A `UserError` names shapes, values, labels or options that make no problem.

    Source: ($\ell_p$-SVM) of julistiono2024optimizing.

    Examples:
        >>> import jax.numpy as jnp
        >>> found = lp_svm_batch(jnp.array([[[2.0]], [[-4.0]]]), jnp.array([[1.0], [-1.0]]), 2.0)
        >>> found.unwrap()[:, 0].round(12).tolist()
        [0.5, 0.25]
    """
    return _solve(x, y, p, tolerance, max_steps, batch=True)


def _solve(x, y, p, tolerance, max_steps, batch: bool) -> Solution:
    check_options(p, tolerance, max_steps)
    lead = "b " if batch else ""
    dtype = working_dtype(x)
    points, labels = finite_array(x, "x", f"{lead}n d"), finite_array(y, "y", f"{lead}n")
    if not batch:
        points, labels = points[None], labels[None]
    if 0 in points.shape:
        raise UserError(f"x has shape {points.shape[-2:]}: give at least one sample and feature")
    if labels.shape != points.shape[:2]:
        raise UserError(f"y has shape {labels.shape[1:]}, x asks for {points.shape[1:2]} labels")
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise UserError("y holds labels other than +1 and -1: recode them")
    rows = VectorRows(points * labels[..., None])
    answer = max_margin(rows, float(p), tolerance, max_steps)
    return to_solution(
        answer, rows, float(p), tolerance, dtype, lambda w: w, lambda values: values,
        single=not batch,
    )  # fmt: skip
