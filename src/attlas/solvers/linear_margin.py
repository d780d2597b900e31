r"""The best margin of a linear model on flattened tokens: what attention is compared with."""

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, as_float64
from attlas.core.errors import UserError
from attlas.core.solution import Solution
from attlas.solvers.lp_svm import lp_svm


def linear_margin(
    X: ArrayInput,
    y: ArrayInput,
    *,
    tolerance: float = 1e-8,
    max_steps: int = 100,
) -> Solution[Float[np.ndarray, ""]]:
    r"""Margin of the linear model <U, X> of unit Frobenius norm, without offset.

    $$\gamma_{lin}=\max_{\|U\|_F\le1}\min_i y_i\langle U,X_i\rangle$$

    Tokens that no U separates give `Result.INFEASIBLE`: not separable.

    Args:
        X: tokens, [n, T, d].
        y: labels, +1 or -1, [n].
        tolerance: largest relative duality gap that counts as converged.

    Returns:
        gamma_lin, NaN if not separable. Certificate: `lower` <= gamma_lin <= `upper`, their
        relative `gap`, `U` (the best model, unit norm, [T, d]), `dual` (weights lambda on the
        simplex, gamma_lin = ||sum_i lambda_i y_i X_i||), `farkas` and `farkas_residual` as in
        `lp_svm`. Stats: `steps`.

    Raises:
        UserError: if X holds no token or no feature; `lp_svm` refuses labels and options.

    Source: gamma_lin in sections 5.2 and 7 and Appendix F of deora2023optimization.

    Examples:
        >>> X = np.array([[[3.0, 0.0]], [[0.0, -4.0]]])
        >>> found = linear_margin(X, np.array([1.0, -1.0]))
        >>> print(f"{float(found.unwrap()):.9f}")
        2.400000000
        >>> found.certificate["U"].round(9).tolist()
        [[0.8, 0.6]]
    """
    samples = as_float64(X, "X", "n T d")
    if 0 in samples.shape:
        raise UserError(f"X has shape {samples.shape}: give at least one sample, token and feature")
    flat = samples.reshape(len(samples), -1)
    svm = lp_svm(flat, y, 2.0, tolerance=tolerance, max_steps=max_steps)
    return _inverted(svm, samples.shape[1:])


def _inverted(svm: Solution, shape: tuple[int, ...]) -> Solution[Float[np.ndarray, ""]]:
    """The best margin is the inverse of the norm of the least solution with margins 1."""
    bounds = svm.certificate
    lower = 1 / bounds["norm_upper"]
    infeasible = bounds["norm_upper"] == np.inf
    certificate = {
        "lower": lower,
        "upper": 1 / bounds["norm_lower"],
        "gap": bounds["gap"],
        "U": svm.value.reshape(shape) * lower,
        "dual": bounds["dual"] / bounds["dual"].sum(),
        "farkas": bounds["farkas"],
        "farkas_residual": bounds["farkas_residual"],
    }
    value = np.asarray(np.nan if infeasible else lower)
    return Solution(value, svm.result, certificate, {"steps": svm.stats["steps"]})
