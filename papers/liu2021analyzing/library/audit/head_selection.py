r"""How one head stands to the attention SVM of the tokens that it selects."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_radius
from attlas.core.solution import Result, Solution
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.attention_svm import attention_svm_batch

SUPPORT = 1e-6
"""Margins up to 1 + SUPPORT count as 1, as in `support_tokens`."""


class HeadSelection(NamedTuple):
    r"""Comparison with the attention SVM, one entry per head.

    Attributes:
        margin: largest attention margin of unit norm, 1 / ||W_mm||_F; NaN if not certified,
            0 if infeasible.
        gap: relative duality gap of the attention SVM.
        divergence: D_psi(W_mm / ||W_mm||, W / ||W||) of each record, psi = ||.||^2 / 2.
        locally_optimal: whether the tokens are locally optimal for the last decoder.
        best_scores: share of samples whose token has the largest score.
        optimal_margin: largest attention margin of the tokens of largest score, 0 where a
            Farkas certificate shows that none separates them, NaN where not certified.
        radius: norm of W beyond which the cone of the local theorem holds the gradient,
            unknown constant 1; infinite where a token is no better than a support token.
    """

    margin: np.ndarray
    gap: np.ndarray
    divergence: np.ndarray
    locally_optimal: np.ndarray
    best_scores: np.ndarray
    optimal_margin: np.ndarray
    radius: np.ndarray


def head_selection(
    path: MultiHead,
    X: Float[np.ndarray, "e n T d"],
    y: Float[np.ndarray, "e n"],
    tokens: Int[np.ndarray, "e n"],
) -> HeadSelection:
    r"""Solve the l_2 attention SVM of stated tokens and compare the records with it.

    Tokens that the last record attends to most make a feasible problem: W itself separates them.

    Args:
        path: heads that read the last token, axes [e, s] before those of the parameters.
        y: labels, -1 or 1.
        tokens: a token of each sample.

    Source: ($\ell_p$-AttSVM) at p = 2, and section 1.3, of julistiono2024optimizing.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.models.attention.multi_head import Decoder
        >>> head = MultiHead(jnp.ones((1, 1)), 2 * jnp.ones((1, 1, 1)), Decoder.LAST)
        >>> path = jax.tree.map(lambda a: a[None, None], head)
        >>> X, y = np.array([[[[3.0], [1.0]]]]), np.ones((1, 1))
        >>> found = head_selection(path, X, y, np.zeros((1, 1), int))
        >>> print(found.margin.round(6).tolist(), found.locally_optimal.tolist())
        [2.0] [True]
    """
    W = np.swapaxes(np.asarray(path.W)[:, :, 0], -1, -2)
    svm = attention_svm_batch(X, X[:, :, -1], tokens, 2.0)
    scores = y[:, :, None] * np.einsum("entd,ed->ent", X, np.asarray(path.U)[:, -1, 0])
    best = np.take_along_axis(scores, tokens[..., None], 2)
    local, radius = _local(svm, X, tokens, scores, best)
    return HeadSelection(
        _margin(svm),
        svm.certificate["gap"],
        _divergence(W, np.asarray(svm.value)),
        local,
        (scores.max(axis=2) == best[..., 0]).mean(axis=1),
        _margin(attention_svm_batch(X, X[:, :, -1], scores.argmax(axis=2), 2.0)),
        radius,
    )


def _local(
    svm: Solution, X: np.ndarray, tokens: np.ndarray, scores: np.ndarray, best: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether the tokens are locally optimal, and R_delta."""
    margin, margins = _margin(svm), svm.certificate["margins"]
    unselected = np.arange(X.shape[2]) != tokens[..., None]
    support = unselected & (margins <= 1 + SUPPORT)
    score_gap = np.where(support, best - scores, np.inf).min(axis=(1, 2))
    far = np.where(unselected & ~support, margins, np.inf).min(axis=2)
    near = np.where(support, margins, -np.inf).max(axis=2)
    delta = np.minimum((far - near).min(axis=1) / 4, 0.25)
    pull = np.linalg.norm(X, axis=-1).max(axis=2) * np.linalg.norm(X[:, :, -1], axis=-1)
    local = (score_gap > 0) & (margin > 0)
    norm = 1 / np.where(margin > 0, margin, 1.0)
    A, spread = norm * pull.max(axis=1), np.ptp(scores, axis=2).max(axis=1)
    sizes = (norm, delta, A, spread, np.where(local, score_gap, 1.0))
    radii = jax.vmap(
        lambda norm, delta, A, spread, gap: julistiono2024_radius(
            norm, delta, A, spread, gap, X.shape[2]
        )
    )(*(jax.device_put(a) for a in sizes))
    return local, np.where(local, radii, np.inf)


def _margin(svm: Solution) -> np.ndarray:
    """1 / ||W_mm||, 0 where infeasible, NaN where not certified."""
    norm = svm.certificate["norm_upper"]
    solved = np.where(svm.converged, 1 / norm, np.nan)
    return np.where(svm.result == Result.INFEASIBLE.value, 0.0, solved)


def _divergence(W: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Half the squared distance of the directions."""
    sides = (W, target[:, None])
    a, b = (m / np.linalg.norm(m, axis=(-2, -1), keepdims=True) for m in sides)
    return ((a - b) ** 2).sum(axis=(-2, -1)) / 2
