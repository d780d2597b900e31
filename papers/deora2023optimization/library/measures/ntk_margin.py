"""NTK margins of multi-head attention at given weights, as deora2023optimization measures them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.axes import require_axes
from attlas.core.piece_cache import cached_pieces
from attlas.core.solution import Result
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.kernel_svm import kernel_svm_batch
from deora2023optimization.library.bounds.deora2023_initialisation import SEPARATOR_NORM


@validate_arguments
def ntk_margins(
    models: Sequence[MultiHead],
    X: Float[Array | np.ndarray, "e n T d"],
    y: Float[Array | np.ndarray, "e n"],
    norm: float = SEPARATOR_NORM,
) -> Float[np.ndarray, " e"]:
    r"""The margins of models linearised at their parameters, each on its samples.

    $$\gamma=\max_{\|\theta\|\le r}\min_i y_i\langle\nabla\Phi(X_i;\theta_0),\theta\rangle$$

    Args:
        models: parameters theta_0, one per problem.
        y: labels of each, -1 or 1.
        norm: r, sqrt(2) in P3.

    Returns:
        The margins, solved with a certificate: 0 where the labels are not separable, NaN where
        the solver did not converge.

    Source: Assumption P3 of Definition 1 of deora2023optimization.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> X, y = np.array([[[[3.0]], [[-3.0]]]]), np.array([[1.0, -1.0]])
        >>> ntk_margins([make_multi_head(1, 1, 1)], X, y, norm=2.0).round(6).tolist()
        [6.0]
        >>> ntk_margins([make_multi_head(1, 1, 1)], X, abs(y)).tolist()
        [0.0]
    """
    require_axes("e, e n T d", {"models": (len(models),), "X": X.shape})
    grams = cached_pieces(
        (models, X), len(models),
        lambda some: (ntk_gram(models[k], X[k]) for k in some), like=lambda: 0,
    )  # fmt: skip
    svm = kernel_svm_batch(np.stack(grams), y)
    margin = np.where(svm.converged, norm * np.asarray(svm.value), np.nan)
    return np.where(np.asarray(svm.result) == Result.INFEASIBLE.value, 0.0, margin)
