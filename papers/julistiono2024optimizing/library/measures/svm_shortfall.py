"""How far a path of attention matrices is from the SVMs of the nuclear and Frobenius norms."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attlas.core.argument_validation import validate_arguments
from attlas.solvers.attention_svm import attention_svm
from julistiono2024optimizing.library.solvers.nuclear_svm import nuclear_svm

NORMS = ("nuclear", "Frobenius")


class SvmShortfall(NamedTuple):
    """Along one path, against the SVMs of the tokens that its end selects, in order of `NORMS`.

    Of two equal tokens none can be selected over the other: where the end selects one of them, the
    SVM is infeasible.

    Attributes:
        shortfall: 1 - (margin / norm of W) x (norm of the SVM): between 0 and 1 once all margins
            are positive, 0 for any minimiser; NaN without a certificate or where W is zero.
        apart: 1 - cosine between W and the SVM; NaN likewise.
        spread: nuclear over Frobenius norm of W; NaN where W is zero.
        svm_spread: nuclear over Frobenius norm of the SVMs; NaN without a certificate.
        tokens: selected at the end.
        certified: whether the SVM was solved.
    """

    shortfall: Float[np.ndarray, "two s"]
    apart: Float[np.ndarray, "two s"]
    spread: Float[np.ndarray, " s"]
    svm_spread: Float[np.ndarray, " two"]
    tokens: Int[np.ndarray, " n"]
    certified: Bool[np.ndarray, " two"]


@validate_arguments
def svm_shortfall(
    X: Float[np.ndarray, "n T d"], z: Float[np.ndarray, "n d"], W: Float[np.ndarray, "s d d"]
) -> SvmShortfall:
    """Shortfall in both norms, cosine to both SVMs, and effective rank along one path.

    Args:
        W: the path, its last entry the end.

    Examples:
        One constraint: its matrix of rank one, at any length, minimises both norms.

        >>> X, z = np.array([[[1.0, 0.0], [-1.0, 0.0]]]), np.array([[0.0, 1.0]])
        >>> found = svm_shortfall(X, z, np.array([[[0.0, 3.0], [0.0, 0.0]]]))
        >>> bool(np.abs(found.shortfall).max() < 1e-6), found.tokens.tolist()
        (True, [0])
    """
    samples = np.arange(len(z))
    scores = np.einsum("ntd,sdc,nc->snt", X, W, z)
    tokens = scores[-1].argmax(axis=1)
    selected = scores[:, samples, tokens]
    scores[:, samples, tokens] = -np.inf
    margin = (selected - scores.max(axis=2)).min(axis=1)
    singular = np.linalg.svd(W, compute_uv=False)
    sizes = (singular.sum(axis=1), np.linalg.norm(singular, axis=1))
    sizes = [np.where(size > 0, size, np.nan) for size in sizes]
    svms = (nuclear_svm(X, z, tokens), attention_svm(X, z, tokens, 2.0))
    certified = np.array([bool(svm.converged) for svm in svms])
    solved = [svm if svm.converged else None for svm in svms]
    values = [
        np.full_like(W[0], np.nan) if svm is None else np.asarray(svm.value) for svm in solved
    ]
    goals = [value / np.linalg.norm(value) for value in values]
    units = [np.nan if svm is None else float(svm.certificate["norm_upper"]) for svm in solved]
    shortfall = [1 - margin * unit / size for unit, size in zip(units, sizes, strict=True)]
    cosine = [np.sum(goal[None] * W, axis=(1, 2)) / sizes[1] for goal in goals]
    spread = [
        np.linalg.svd(goal, compute_uv=False).sum() if valid else np.nan
        for goal, valid in zip(goals, certified, strict=True)
    ]
    return SvmShortfall(
        np.stack(shortfall),
        1 - np.stack(cosine),
        sizes[0] / sizes[1],
        np.array(spread),
        tokens,
        certified,
    )
