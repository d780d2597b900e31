"""Gradient descent beside the bounds of deora2023optimization on its gradient and its Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attlas.bounds.optimisation.deora2023_training import Setting
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.losses.empirical_risk import empirical_risk
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes
from attlas.models.attention.multi_head import MultiHead, head_norms, parameter_norm
from attlas.solvers.kernel_svm import kernel_svm
from attlas.training.gradient_descent import gradient_descent
from attlas.training.risk_gradient import model_outputs
from deora2023optimization.library.bounds.deora2023_initialisation import SEPARATOR_NORM, Start
from deora2023optimization.library.bounds.deora2023_versions import (
    deora2023_certified,
    deora2023_loss_bounds,
)


class BoundedDescent(NamedTuple):
    """Measurements at each record, divided by their bounds, by version of the constants.

    Attributes:
        loss: training loss.
        smallest: smallest eigenvalue of the Hessian; NaN without convergence.
        largest: largest eigenvalue of the Hessian; NaN without convergence.
        residual: residual of the two eigenpairs.
        converged: whether both have converged.
        bound: beta_1, beta_2 and beta_3 / sqrt(H) of Corollary 1.
        ratio: ||grad L|| / L, ||hess L|| and -lambda_min / L over them.
        self_bounded: ||hess L|| over the sharp bound that falls with the loss.
        heads_demanded: heads demanded by Theorem 1, with the last record as its target, and by
            Corollary 2.
        step_certified: step sizes certified by the same two.
    """

    loss: Float[np.ndarray, " k"]
    smallest: Float[np.ndarray, " k"]
    largest: Float[np.ndarray, " k"]
    residual: Float[np.ndarray, " k"]
    converged: Bool[np.ndarray, " k"]
    bound: Float[np.ndarray, "3 v k"]
    ratio: Float[np.ndarray, "3 v k"]
    self_bounded: Float[np.ndarray, " k"]
    heads_demanded: Float[np.ndarray, "2 v"]
    step_certified: Float[np.ndarray, "2 v"]


def descend_beside_bounds(
    start: MultiHead,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    R: float,
    rate: float,
    schedule: tuple[int, ...],
) -> BoundedDescent:
    """Train once, measure every record, and evaluate the bounds there.

    Args:
        y: labels, -1 or 1.
        R: bound on the norm of a token, at least 1.
        schedule: recorded steps, the last one the end.

    Returns:
        Measured quantities over their bounds.
    """
    steps, data = schedule[-1], (float(X.shape[1]), float(X.shape[2]), R)
    path = gradient_descent(start, X, y, step_size=rate, steps=steps, record_at=schedule)
    records = [path.at(k) for k in range(len(schedule))]
    largest_head = jax.vmap(head_norms)(path.params).max(axis=1)
    bounds = deora2023_loss_bounds(*data, float(start.heads), largest_head)
    extremes = [hessian_extremes(empirical_risk, model, X, y) for model in records]
    converged = np.array([bool(extreme.converged) for extreme in extremes])
    low, high = (
        np.where(converged, [getattr(extreme.value, end)[0] for extreme in extremes], np.nan)
        for end in ("smallest", "largest")
    )
    norm, loss = np.maximum(abs(low), abs(high)), np.asarray(path.loss)
    measured = [path.gradient_norm / loss, norm, np.maximum(-low, 0) / loss]
    # What theory certifies.
    svm = kernel_svm(ntk_gram(start, np.asarray(X)), np.asarray(y))
    margin = SEPARATOR_NORM * jnp.where(svm.converged, svm.value, jnp.nan)
    B_2, B_Phi = (jnp.maximum(1, a) for a in (largest_head[0], abs(model_outputs(start, X)).max()))
    away = parameter_norm(jax.tree.map(jnp.subtract, records[-1], start))
    begin, target = Start(*data, B_2, B_Phi, margin), Setting(*data, away, largest_head[-1])
    certified = deora2023_certified(target, begin, float(steps), float(start.heads))
    return BoundedDescent(
        loss,
        low,
        high,
        np.array([np.max(extreme.certificate["residual"]) for extreme in extremes]),
        converged,
        np.stack(bounds[:3]),
        np.stack(measured)[:, None] / np.stack(bounds[:3]),
        norm / np.asarray(bounds.self_bounded[-1] * loss),
        np.asarray(certified.heads),
        np.asarray(certified.step_size),
    )
