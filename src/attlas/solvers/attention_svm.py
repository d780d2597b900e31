r"""The l_p attention SVM: the direction that mirror descent selects tokens by.

W_mm = argmin ||W||_{p,p} subject to (X_{i a_i} - X_{it})' W z_i >= 1 for all i and t != a_i.
"""

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, as_float64, read_array
from attlas.core.solution import Solution
from attlas.solvers._methods.attention_problem import (
    attention_rows,
    check_problem,
    scatter_others,
)
from attlas.solvers._methods.margin_solution import to_solution
from attlas.solvers.max_margin import max_margin


def attention_svm(
    X: ArrayInput,
    z: ArrayInput,
    tokens: ArrayInput,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, "d d"]]:
    r"""Solve the l_p attention SVM of one data set, with a certificate.

    $$W_{mm}=\arg\min_W \|W\|_{p,p}\ \text{s.t.}
    \ (X_{i\alpha_i}-X_{it})^\top W z_i\ge1,\ t\ne\alpha_i$$

    Value and certificate are float64 NumPy arrays, whatever the precision of the input and
    of JAX, and they are of the numbers passed in: float32 data are solved as they stand.

    Args:
        X: tokens, [n, T, d], T >= 2; lists, or arrays of NumPy, JAX or torch, as z and tokens.
        z: queries, [n, d].
        tokens: selected token alpha_i of each sample, integers in [0, T), [n].
        p: exponent, 1 < p <= inf. The minimiser is unique for p < inf.
        tolerance: largest relative duality gap that counts as converged.

    Returns:
        W_mm, scaled so that its smallest margin is 1, or NaN where infeasible. Certificate:
        `gap` = norm_upper / norm_lower - 1; `violation` of the constraints; `norm_upper` =
        ||W||_{p,p}; `norm_lower`, below which no feasible norm lies; `distance`, a bound on
        ||W - W_mm||_{p,p}; `dual` multipliers [n, T] with sum = norm (0 at alpha_i);
        `margins` [n, T] (0 at alpha_i); when infeasible `farkas` weights [n, T], of sum 1,
        whose combination of constraints has the relative length `farkas_residual`, rounding.

    A `UserError` names shapes, values, tokens or options that make no problem.

    Source: ($\ell_p$-AttSVM) of julistiono2024optimizing.

    Examples:
        One sample, two tokens: W is the constraint itself over its squared length.

        >>> found = attention_svm([[[1.0, 0.0], [-1.0, 0.0]]], [[0.0, 1.0]], [0], 2.0)
        >>> found.unwrap().round(12).tolist()
        [[0.0, 0.5], [0.0, 0.0]]
        >>> bool(found.certificate["gap"] < 1e-8)
        True
    """
    return _solve(X, z, tokens, p, tolerance, max_steps, batch=False)


def attention_svm_batch(
    X: ArrayInput,
    z: ArrayInput,
    tokens: ArrayInput,
    p: float,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, "b d d"]]:
    r"""Solve the l_p attention SVM of many data sets of one shape together.

    $$W_{mm}^{(b)}=\arg\min_W \|W\|_{p,p}\ \text{s.t.}
    \ (X^{(b)}_{i\alpha_i}-X^{(b)}_{it})^\top W z^{(b)}_i\ge1$$

    Small problems step together through one batched interior point and leave it one by one;
    each has its own result code and certificate, equal to those of `attention_svm`.

    Arguments, result and errors are those of `attention_svm`, every array with a leading batch
    axis, X [b, n, T, d]; p is common to the batch.

    Source: ($\ell_p$-AttSVM) of julistiono2024optimizing.

    Examples:
        >>> X = np.array([[[[1.0], [-1.0]]], [[[3.0], [-1.0]]]])
        >>> found = attention_svm_batch(X, np.ones((2, 1, 1)), np.zeros((2, 1), int), 3.0)
        >>> found.unwrap()[:, 0, 0].round(12).tolist()
        [0.5, 0.25]
    """
    return _solve(X, z, tokens, p, tolerance, max_steps, batch=True)


def _solve(X, z, tokens, p, tolerance, max_steps, batch: bool) -> Solution:
    lead = "b " if batch else ""
    points, queries = as_float64(X, "X", f"{lead}n T d"), as_float64(z, "z", f"{lead}n d")
    selected = read_array(tokens, "tokens")
    if not batch:
        points, queries, selected = points[None], queries[None], selected[None]
    check_problem(points, queries, selected)
    rows = attention_rows(points, queries, selected)
    b, _, _, d = points.shape

    def shape_rows(values: np.ndarray) -> np.ndarray:
        return scatter_others(values, selected, points.shape)

    answer = max_margin(rows, p, tolerance, max_steps)
    return to_solution(answer, float(p), lambda w: w.reshape(b, d, d), shape_rows, single=not batch)
