r"""What a model linearised at its start would do: least eigenvalue, NTK margin, its predictions.

Kernel regression is the limit of the squared loss in the lazy regime of gu2024exploring, the
max-margin classifier that of the logistic loss, to which deora2023optimization's NTK margin
belongs. Both are compared with the model that was trained.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.solution import Solution
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.kernel_svm import kernel_svm


class TangentPrediction(NamedTuple):
    """The linearised model.

    Attributes:
        gram: tangent kernel of the training samples.
        eigenvalues: of it, ascending.
        margin: NTK margin of parameters of norm 1, with certificate.
        regression: predictions of kernel regression of least norm on the fresh samples.
        classifier: outputs of the max-margin classifier there; NaN where the margin did not
            converge.
    """

    gram: np.ndarray
    eigenvalues: np.ndarray
    margin: Solution
    regression: np.ndarray
    classifier: np.ndarray


def tangent_prediction(
    model: MultiHead,
    X: Float[np.ndarray, "n T d"],
    y: Float[np.ndarray, " n"],
    fresh: Float[np.ndarray, "N T d"],
) -> TangentPrediction:
    r"""Predict with the tangent kernel of a model.

    $$\hat f(x)=k(x)^\top K^+y,\qquad\hat g(x)=k(x)^\top\alpha$$

    with alpha of the hard-margin SVM on K. Eigenvalues of K below n eps times the largest count
    as zero. The output at the start is left out of both: it is small for a small start.

    Args:
        model: the start.
        X: training samples.
        y: labels +-1.
        fresh: samples to predict.

    Returns:
        Kernel and predictions.

    Source: section 4 of gu2024exploring; P3 of Definition 1 of deora2023optimization.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.models.attention.multi_head import Decoder
        >>> head = MultiHead(jnp.zeros((1, 1)), jnp.zeros((1, 1, 1)), Decoder.LAST)
        >>> X, y = np.array([[[2.0]], [[-1.0]]]), np.array([1.0, -1.0])
        >>> found = tangent_prediction(head, X, y, np.array([[[5.0]]]))
        >>> print(f"{float(found.margin.unwrap()):.4f} {found.regression[0]:.4f}")
        1.0000 3.0000
    """
    gram, cross = ntk_gram(model, X), ntk_gram(model, fresh, X)
    values, vectors = np.linalg.eigh(gram)
    kept = values > len(values) * np.finfo(gram.dtype).eps * values[-1]
    inverse = np.where(kept, 1 / np.where(kept, values, 1), 0)
    regression = cross @ (vectors @ (inverse * (vectors.T @ y)))
    margin = kernel_svm(gram, y)
    solved = bool(margin.converged)
    alpha = np.asarray(margin.certificate["alpha"]) if solved else np.full(len(y), np.nan)
    return TangentPrediction(gram, values, margin, regression, cross @ alpha)
