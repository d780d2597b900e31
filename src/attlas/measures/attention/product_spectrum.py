r"""Spectra of the products W_Q W_K' and W_V W_O of heads, from their small cores.

A head's product is d x d of rank k << d. With W_Q = Q_1 R_1 and W_K = Q_2 R_2 its singular values
are those of the k x k core R_1 R_2', so that the d x d matrix is never formed.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

from attlas._jax.factorising import FACTORISING
from attlas.core.arrays import ArrayInput, read_arrays


class ProductSpectrum(NamedTuple):
    """The spectrum of each product L R', in the leading shape of its factors.

    Attributes:
        singular: singular values, largest first; as many as the smallest side.
        eigenvalues: the k eigenvalues that need not vanish, of R' L.
        error: bound on the distance of each computed singular value from the exact one.
    """

    singular: Float[np.ndarray, "*heads r"]
    eigenvalues: Complex[np.ndarray, "*heads k"]
    error: Float[np.ndarray, "*heads"]

    @property
    def frobenius(self) -> Float[np.ndarray, "*heads"]:
        """Frobenius norm."""
        return np.asarray(np.sqrt(np.sum(self.singular**2, axis=-1)))

    @property
    def nuclear(self) -> Float[np.ndarray, "*heads"]:
        """Nuclear norm, the sum of the singular values."""
        return np.asarray(np.sum(self.singular, axis=-1))

    @property
    def stable_rank(self) -> Float[np.ndarray, "*heads"]:
        """Squared Frobenius over squared spectral norm, between 1 and the rank; NaN for zero."""
        return _ratio(self.frobenius**2, self.singular[..., 0] ** 2)

    @property
    def effective_rank(self) -> Float[np.ndarray, "*heads"]:
        """Exponential of the entropy of the singular values as shares of their sum."""
        share = _ratio(self.singular, self.nuclear[..., None])
        logs = np.log(np.where(share > 0, share, 1))
        return np.asarray(np.exp(-np.sum(share * logs, axis=-1)))

    @property
    def nuclear_share(self) -> Float[np.ndarray, "*heads"]:
        """Nuclear norm over sqrt(k) times the Frobenius norm: 1 for equal singular values."""
        k = self.singular.shape[-1]
        return _ratio(self.nuclear, np.sqrt(k) * self.frobenius)

    @property
    def symmetric_share(self) -> Float[np.ndarray, "*heads"]:
        """Share of the squared Frobenius norm that the symmetric part holds.

        (1 + tr(M M) / ||M||_F^2) / 2: 1 for symmetric, 0 for antisymmetric products.
        """
        square = np.sum(self.eigenvalues**2, axis=-1).real
        return np.asarray((1 + _ratio(square, self.frobenius**2)) / 2)

    @property
    def positivity(self) -> Float[np.ndarray, "*heads"]:
        """Sum of the eigenvalues over the sum of their moduli: 1 copies, -1 erases."""
        moduli = np.sum(np.abs(self.eigenvalues), axis=-1)
        return _ratio(np.sum(self.eigenvalues, axis=-1).real, moduli)


def product_spectrum(left: ArrayInput, right: ArrayInput) -> ProductSpectrum:
    r"""Singular values and eigenvalues of L R' of each head, in float64.

    $$L=Q_1R_1,\ R=Q_2R_2:\quad\sigma_i(LR')=\sigma_i(R_1R_2'),\qquad
    \lambda_i(LR')=\lambda_i(R'L)$$

    Each computed singular value is off by at most $c\,\epsilon\,\|L\|_F\|R\|_F$ with
    $c=4(d+k)\sqrt k$: Householder factors, the product and the singular values of the core are
    backward stable with modest constants (Higham, 2002, Theorem 19.4), and singular values move
    by no more than the spectral norm of what is added.

    Args:
        left: L, (..., d, k): W_Q, or W_V.
        right: R, (..., e, k): W_K, or the transpose of W_O; only square products have
            eigenvalues, those of others are NaN.

    Examples:
        >>> found = product_spectrum([[[3.0], [0.0]]], [[[0.0], [2.0]]])
        >>> found.singular.tolist(), found.symmetric_share.tolist(), found.positivity.tolist()
        ([[6.0]], [0.5], [nan])
    """
    L, R = read_arrays("*heads d k, *heads e k", np.float64, left=left, right=right)
    d, k = max(L.shape[-2], R.shape[-2]), L.shape[-1]
    with FACTORISING:
        cores = np.linalg.qr(L, mode="r") @ np.swapaxes(np.linalg.qr(R, mode="r"), -1, -2)
        singular = np.linalg.svd(cores, compute_uv=False)
        if L.shape == R.shape:
            eigenvalues = np.linalg.eigvals(np.swapaxes(R, -1, -2) @ L)
        else:
            eigenvalues = np.full((*L.shape[:-2], k), np.nan)
    sizes = np.linalg.norm(L, axis=(-2, -1)) * np.linalg.norm(R, axis=(-2, -1))
    error = 4 * (d + k) * np.sqrt(k) * np.finfo(np.float64).eps * sizes
    return ProductSpectrum(singular, eigenvalues.astype(np.complex128), np.asarray(error))


def product_norm(left: ArrayInput, right: ArrayInput) -> Float[np.ndarray, "*heads"]:
    r"""The largest singular value of L R' of each head alone, from k x k Gram matrices, in float64.

    $$\|LR'\|_{2\to2}^2=\lambda_{\max}(C\,R'R\,C'),\qquad C'C=L'L$$

    A quarter of the time of `product_spectrum`; its square is off by
    $c\,\epsilon\,\|L\|_F^2\|R\|_F^2$, so that the largest value keeps its digits unless the product
    cancels, and no other value would.

    Args:
        left: L, (..., d, k).
        right: R, (..., e, k).

    Examples:
        >>> product_norm([[[3.0], [0.0]]], [[[0.0], [2.0]]]).tolist()
        [6.0]
    """
    L, R = read_arrays("*heads d k, *heads e k", np.float64, left=left, right=right)
    grams = [np.swapaxes(factor, -1, -2) @ factor for factor in (L, R)]
    with FACTORISING:
        values, vectors = np.linalg.eigh(grams[0])
        root = np.sqrt(np.maximum(values, 0))[..., None] * np.swapaxes(vectors, -1, -2)
        largest = np.linalg.eigvalsh(root @ grams[1] @ np.swapaxes(root, -1, -2))[..., -1]
    return np.sqrt(np.maximum(largest, 0))


def _ratio(top: np.ndarray | np.floating, bottom: np.ndarray | np.floating) -> np.ndarray:
    """NaN where the bottom is zero: no head, no ratio."""
    return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1), np.nan)
