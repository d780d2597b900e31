"""How far a path of attention matrices is from the SVMs of the nuclear and Frobenius norms."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from attlas.core.door import door
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.nuclear_svm import nuclear_svm

NORMS = ("nuclear", "Frobenius")


class SvmShortfall(NamedTuple):
    """Along one path, against the SVMs of the tokens that its end selects, in order of `NORMS`.

    Attributes:
        shortfall: 1 - (margin / norm of W) x (norm of the SVM): between 0 and 1 once all margins
            are positive, 0 for any minimiser; NaN without a certificate.
        apart: 1 - cosine between W and the SVM; NaN without a certificate.
        spread: nuclear over Frobenius norm of W.
        svm_spread: the same of the SVMs; NaN without a certificate.
        tokens: selected at the end.
        certified: whether the SVM was solved.
    """

    shortfall: Float[np.ndarray, "two s"]
    apart: Float[np.ndarray, "two s"]
    spread: Float[np.ndarray, " s"]
    svm_spread: Float[np.ndarray, " two"]
    tokens: Int[np.ndarray, " n"]
    certified: Bool[np.ndarray, " two"]


@door
def svm_shortfall(
    X: Float[np.ndarray, "n T d"], z: Float[np.ndarray, "n d"], W: Float[np.ndarray, "s d d"]
) -> SvmShortfall:
    """Shortfall in both norms, cosine to both SVMs, and effective rank along one path.

    Args:
        X: tokens.
        z: queries.
        W: the path, its last entry the end.

    Returns:
        The measures.
    """
    samples = np.arange(len(z))
    scores = np.einsum("ntd,sdc,nc->snt", X, W, z)
    tokens = scores[-1].argmax(axis=1)
    selected = scores[:, samples, tokens]
    scores[:, samples, tokens] = -np.inf
    margin = (selected - scores.max(axis=2)).min(axis=1)
    singular = np.linalg.svd(W, compute_uv=False)
    sizes = (singular.sum(axis=1), np.linalg.norm(singular, axis=1))
    svms = (nuclear_svm(X, z, tokens), attention_svm(X, z, tokens, 2.0))
    certified = np.array([bool(svm.converged) for svm in svms])
    goals = [np.asarray(svm.value) / np.linalg.norm(svm.value) for svm in svms]
    units = [float(svm.certificate["norm_upper"]) for svm in svms]
    shortfall = [1 - margin * unit / size for unit, size in zip(units, sizes, strict=True)]
    cosine = [np.sum(goal[None] * W, axis=(1, 2)) / sizes[1] for goal in goals]
    return SvmShortfall(
        np.where(certified[:, None], np.stack(shortfall), np.nan),
        np.where(certified[:, None], 1 - np.stack(cosine), np.nan),
        sizes[0] / sizes[1],
        np.array(
            [
                np.linalg.svd(goal, compute_uv=False).sum() if solved else np.nan
                for goal, solved in zip(goals, certified, strict=True)
            ]
        ),
        tokens,
        certified,
    )
