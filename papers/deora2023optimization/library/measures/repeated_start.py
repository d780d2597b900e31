"""The constants of Corollary 2 of deora2023optimization at the start of repeated heads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.argument_validation import validate_arguments
from attlas.core.arrays import read_array
from attlas.core.axes import require_axes
from attlas.core.errors import UserError
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import MultiHead
from attlas.solvers.kernel_svm import kernel_svm_batch


class StartConstants(NamedTuple):
    """Bounds at the start, one per problem.

    Attributes:
        B_2: norm of a head, at least 1.
        B_Phi: largest output over samples and numbers of heads, at least 1.
        margin: NTK margin for a direction of norm sqrt(2); NaN without a certificate.
    """

    B_2: Float[np.ndarray, " e"]
    B_Phi: Float[np.ndarray, " e"]
    margin: Float[np.ndarray, " e"]


@validate_arguments
def sign_excess(copies: Int[np.ndarray, "*shape 2"]) -> Float[np.ndarray, "*shape"]:
    """|H_+ - H_-| / sqrt(H): outputs of H heads at the start over those of one.

    Args:
        copies: number of heads of each sign.

    Examples:
        >>> sign_excess(np.array([[1, 0], [3, 1]])).tolist()
        [1.0, 1.0]
    """
    if np.any(copies < 0) or np.any(copies.sum(axis=-1) == 0):
        raise UserError("copies holds a negative number or no head: give at least one head each")
    return np.abs(copies[..., 0] - copies[..., 1]) / np.sqrt(copies.sum(axis=-1))


@validate_arguments
def uniform_outputs(
    head: MultiHead, X: Float[Array | np.ndarray, "n T d"]
) -> Float[np.ndarray, " n"]:
    """|phi(X_i)| of one head whose attention is uniform, as after the first step.

    Args:
        head: a model of one head with W = 0.

    Examples:
        Both rows of U weigh the mean token, 4.

        >>> import jax.numpy as jnp
        >>> head = MultiHead(jnp.ones((1, 2, 1)), jnp.zeros((1, 1, 1)))
        >>> uniform_outputs(head, np.array([[[3.0], [5.0]]])).tolist()
        [8.0]
    """
    U = read_array(head.U, "head.U")
    require_axes("h T d, n T d", {"head.U": U.shape, "X": X.shape})
    return np.abs(np.einsum("htd,nsd->n", U, X) / len(U[0]))


@validate_arguments
def start_constants(
    heads: Sequence[MultiHead],
    X: Float[np.ndarray, "e n T d"],
    y: Float[np.ndarray, "e n"],
    copies: Int[np.ndarray, "e k 2"],
) -> StartConstants:
    """B_2, B_Phi and the NTK margin of problems whose heads are copies of one up to sign.

    Right after the first step the NTK is the same for any number of heads and any signs.

    Args:
        heads: the head after the first step, one per problem.
        copies: heads of each sign, for several numbers of heads.

    Examples:
        >>> import jax.numpy as jnp
        >>> head = MultiHead(jnp.array([[[3.0], [4.0]]]), jnp.zeros((1, 1, 1)))
        >>> X, y, copies = np.ones((1, 1, 2, 1)), np.ones((1, 1)), np.array([[[1, 0]]])
        >>> found = start_constants([head], X, y, copies)
        >>> found.B_2.tolist(), found.B_Phi.tolist()
        ([5.0], [7.0])
    """
    require_axes("e, e n T d", {"heads": (len(heads),), "X": X.shape})
    grams = np.stack([ntk_gram(head, samples) for head, samples in zip(heads, X, strict=True)])
    svm = kernel_svm_batch(grams, y)
    margin = np.where(svm.converged, np.sqrt(2) * np.asarray(svm.value), np.nan)
    outputs = np.stack(
        [uniform_outputs(head, samples) for head, samples in zip(heads, X, strict=True)]
    )
    largest = (outputs[:, None, :] * sign_excess(copies)[:, :, None]).max(axis=(1, 2))
    B_2 = np.array([np.linalg.norm(head.U) for head in heads])
    return StartConstants(np.maximum(1, B_2), np.maximum(1, largest), margin)
