r"""The distance of hidden states from being equal for all tokens: rank collapse, oversmoothing."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision, read_mask


class RankResidual(NamedTuple):
    """Distances of the hidden states X of one sequence from equal rows.

    Attributes:
        l2: min over c of ||X - 1c'||_F / ||X||_F; the minimiser is the mean row.
        composite: ||X - 1m'|| / ||X|| in sqrt(||.||_1 ||.||_inf), of column and row sums, at the
            mean row m; not the minimum over c, which the mean attains in l2 alone.
        cosine: mean cosine of two different rows.
        largest: largest absolute entry.
    """

    l2: Float[Array, ""]
    composite: Float[Array, ""]
    cosine: Float[Array, ""]
    largest: Float[Array, ""]


def rank_residual(X: ArrayInput, rows: ArrayInput) -> RankResidual:
    r"""Relative distance of hidden rows from a matrix of equal rows, and their mean cosine.

    $$\min_c\frac{\|X-1c^\top\|_F}{\|X\|_F},\qquad
    \frac{\|X-1m^\top\|_{1,\infty}}{\|X\|_{1,\infty}},\quad
    \|\cdot\|_{1,\infty}=\sqrt{\|\cdot\|_1\|\cdot\|_\infty}$$

    Independent rows of mean zero have l2 close to sqrt(1 - 1/T) and cosine close to 0.

    Args:
        X: hidden rows, [T, d]; a list, or an array of NumPy, JAX or torch, traced or not.

    Returns:
        The residuals, NaN where all squares of the rows are zero; the cosine is NaN for one row.

    A `UserError` names an array of another shape or type.

    Source: Dong, Cordonnier, Loukas (2021), whose code takes the mean row, too.

    Examples:
        >>> X = jnp.array([[3.0, 0.0], [-1.0, 0.0]])
        >>> found = rank_residual(X, jnp.ones(2, bool))
        >>> print(f"{float(found.l2):.4f} {float(found.composite):.4f} {float(found.cosine):.1f}")
        0.8944 0.8165 -1.0
    """
    with own_precision("T d", X=X) as (X,):
        counted = jnp.asarray(read_mask(rows, "rows", X.shape[:1]))[:, None]
        number = jnp.sum(counted).astype(X.dtype)
        X = jnp.where(counted, X, 0)
        centred = jnp.where(counted, X - jnp.sum(X, axis=0, keepdims=True) / number, 0)
        length = jnp.linalg.norm(X, axis=1, keepdims=True)
        unit = jnp.where(length > 0, X / jnp.where(length > 0, length, 1), 0)
        together = jnp.sum(jnp.sum(unit, axis=0) ** 2) - jnp.sum(unit**2)
        return RankResidual(
            jnp.linalg.norm(centred) / jnp.linalg.norm(X),
            _composite(centred) / _composite(X),
            together / (number * (number - 1)),
            jnp.max(jnp.abs(X)),
        )


def _composite(X: Array) -> Array:
    """Root of the product of the operator norms on l1 and on linf."""
    size = jnp.abs(X)
    return jnp.sqrt(jnp.max(jnp.sum(size, axis=0)) * jnp.max(jnp.sum(size, axis=1)))
