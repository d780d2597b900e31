r"""The margins that deora2023optimization compares, and the tangent kernel, of one head."""

import math
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from attlas.core.solution import Solution
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.solvers.global_margin import global_margin
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin

RADIUS = math.sqrt(2)


class HeadMargins(NamedTuple):
    r"""Margins at parameters of norm sqrt(2), and the kernel along the path.

    Attributes:
        ntk: NTK margin of the first record.
        uniform: margin with W = 0, a linear model on the mean token.
        flat: margin of a linear model on all tokens, which no head of this kind can reach.
        best: best margin found by search over heads, a lower bound of the global margin.
        ceiling: certified upper bound of the global margin.
        reachable: best margin found by the same search at the norm of the last record.
        gap: largest relative duality gap of the first three.
        smallest: least eigenvalue of the kernel at each record.
        scale: largest diagonal entry of the kernel at the first record.
        drift: ||K_k - K_0||_F / ||K_0||_F.
        moved: ||K_k - K_0||_2 over half the least eigenvalue at the start: above 1 the argument
            of lazy training no longer keeps the kernel positive.
        errors: error rates of kernel regression and of the NTK's max-margin classifier on fresh
            samples.
    """

    ntk: float
    uniform: float
    flat: float
    best: float
    ceiling: float
    reachable: float
    gap: float
    smallest: np.ndarray
    scale: float
    drift: np.ndarray
    moved: np.ndarray
    errors: np.ndarray


def head_margins(
    path: list[MultiHead],
    samples: tuple[Float[np.ndarray, "n T d"], Float[np.ndarray, " n"]],
    fresh: tuple[Float[np.ndarray, "N T d"], Float[np.ndarray, " N"]],
    *,
    key: PRNGKeyArray,
    starts: int = 16,
    steps: int = 1000,
) -> HeadMargins:
    r"""Margins and tangent kernel of one head that reads the last token.

    Args:
        path: its records, the start first.
        samples: X and y that it was trained on.
        fresh: X and y that it was not trained on.
        starts: number of starts of the search.
        steps: gradient steps of the search.

    Returns:
        The numbers, NaN if not converged; sections 5.2 and 7 of deora2023optimization.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> head = MultiHead(jnp.zeros((1, 1)), jnp.zeros((1, 1, 1)), Decoder.LAST)
        >>> data = np.array([[[2.0]], [[-1.0]]]), np.array([1.0, -1.0])
        >>> found = head_margins([head], data, data, key=jax.random.key(0), starts=3, steps=1)
        >>> print(f"{found.ntk:.4f} {found.uniform:.4f} {found.best:.4f} {found.smallest[0]:.4f}")
        1.4142 1.4142 1.4142 0.0000
    """
    X, y = samples
    tangent = tangent_prediction(path[0], X, y, fresh[0])
    put = jax.device_put(X), jax.device_put(y)
    mean = X.mean(axis=1, keepdims=True)
    solved = (tangent.margin, linear_margin(mean, y), linear_margin(X, y))
    norm = math.hypot(*(float(np.linalg.norm(a)) for a in (path[-1].U, path[-1].W)))
    best, at_norm = (
        global_margin(*put, 1, Decoder.LAST, radius=r, starts=starts, steps=steps, key=key)
        for r in (RADIUS, norm or RADIUS)
    )
    grams = np.stack([ntk_gram(model, X) for model in path])
    drift, moved = _moved(grams, tangent.eigenvalues[0] / 2)
    wrong = [np.mean(fresh[1] * f <= 0) for f in (tangent.regression, tangent.classifier)]
    ntk, uniform, flat = (_scaled(solution) for solution in solved)
    return HeadMargins(
        ntk=ntk,
        uniform=uniform,
        flat=flat,
        best=float(best.certificate["lower"]),
        ceiling=float(best.certificate["upper"]),
        reachable=float(at_norm.certificate["lower"]),
        gap=max(float(np.nan_to_num(solution.certificate["gap"])) for solution in solved),
        smallest=np.linalg.eigvalsh(grams)[:, 0],
        scale=float(np.diag(grams[0]).max()),
        drift=drift,
        moved=moved,
        errors=np.array(wrong),
    )


def _moved(grams: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Change of the kernel, relative to its norm and to half of lambda."""
    change = grams - grams[0]
    drift = np.linalg.norm(change, axis=(1, 2)) / np.linalg.norm(grams[0])
    spectral = np.linalg.norm(change, 2, axis=(1, 2))
    return drift, spectral / half if half > 0 else np.full(len(grams), np.inf)


def _scaled(solution: Solution) -> float:
    """A margin of parameters of norm 1 at norm sqrt(2)."""
    return RADIUS * float(solution.value) if bool(solution.converged) else math.nan


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
        model: the parameters theta_0.
        y: labels, -1 or 1.
        fresh: samples to predict.

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
    positive = values > len(values) * np.finfo(gram.dtype).eps * values[-1]
    inverse = np.where(positive, 1 / np.where(positive, values, 1), 0)
    regression = cross @ (vectors @ (inverse * (vectors.T @ y)))
    margin = kernel_svm(gram, y)
    solved = bool(margin.converged)
    alpha = np.asarray(margin.certificate["alpha"]) if solved else np.full(len(y), np.nan)
    return TangentPrediction(gram, values, margin, regression, cross @ alpha)
