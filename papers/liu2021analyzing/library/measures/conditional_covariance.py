r"""What linear regression on some features leaves of others: (A3) and (A5) of liu2021analyzing.

The covariance that is inverted is often singular (dead units, more units than samples). The
convention here is regression of least norm: directions in which the n x d matrix of centred
features has a singular value below its rounding, max(n, d) eps ||z2||_F, are not used. In
particular n samples of d >= n - 1 generic features predict anything, and the covariance on the
same data is zero whatever the target: it is informative on fresh data only.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas._jax.factorising import one_at_a_time
from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.memory import require_memory


class ConditionalCovariance(NamedTuple):
    """Covariance of the residuals.

    Attributes:
        covariance: var(z1 | z2).
        largest: its largest eigenvalue, which (A3) asks to be small.
        unconditional: largest eigenvalue of var(z1), for scale.
        rank: directions of z2 that were used.
    """

    covariance: Float[Array, "D D"]
    largest: Float[Array, ""]
    unconditional: Float[Array, ""]
    rank: Int[Array, ""]


def conditional_covariance(
    target: ArrayInput, regressors: ArrayInput, fresh: tuple[ArrayInput, ArrayInput] | None = None
) -> ConditionalCovariance:
    r"""Covariance of z1 after linear regression, with intercept, on z2.

    $$\mathrm{var}(z_1|z_2)=\Sigma_{11}-\Sigma_{12}\Sigma_{22}^+\Sigma_{21}$$

    computed from the residuals themselves, by a singular value decomposition of the centred
    z2, so that nothing cancels. Averages divide by n.

    Args:
        target: samples of z1, [n, D]; a list, or an array of NumPy, JAX or torch, traced or not.
        regressors: samples of z2, [n, d].
        fresh: other samples (z1, z2), [m, D] and [m, d], on which the regression is then judged:
            the second moments of its errors there, its intercept's included.

    A `UserError` names samples that do not fit, are none or are not finite.

    Source: (A3), (A5) of liu2021analyzing; the print inverts the other block.

    Examples:
        >>> z = jnp.array([[1.0], [2.0], [6.0]])
        >>> float(conditional_covariance(3 * z + 1, z).largest) < 1e-28
        True
        >>> print(f"{float(conditional_covariance(z, jnp.ones((3, 1))).largest):.4f}")
        4.6667
    """
    axes, arrays = "n D, n d", {"target": target, "regressors": regressors}
    if fresh is not None:
        axes, (z1, z2) = f"{axes}, m D, m d", fresh
        arrays |= {"fresh[0]": z1, "fresh[1]": z2}
    with own_precision(axes, **arrays) as (target, regressors, *others):
        size = 8 * target.shape[1] ** 2
        require_memory(size, f"the covariance of target of shape {target.shape}", "drop columns")
        return _of_residuals(target, regressors, tuple(others) or None)


@one_at_a_time
@jax.jit
def _of_residuals(target: Array, regressors: Array, fresh: tuple[Array, ...] | None) -> Any:
    n, d = regressors.shape
    z1, z2 = target - target.mean(0)[None, :], regressors - regressors.mean(0)[None, :]
    left, sizes, right = jnp.linalg.svd(z2, full_matrices=False)
    # The rounding of the centring counts, too: a constant feature is zero only up to it.
    # Written so that a NaN of traced samples is kept, and seen in the result.
    used = ~(sizes <= max(n, d) * jnp.finfo(regressors.dtype).eps * jnp.linalg.norm(regressors))
    left = jnp.where(used[None, :], left, 0.0)
    if fresh is None:
        # Twice: the first projection leaves its own rounding, the second removes that.
        errors = z1 - left @ (left.T @ z1)
        errors = errors - left @ (left.T @ errors)
    else:
        slopes = right.T @ (left.T @ z1 / jnp.where(used, sizes, 1.0)[:, None])
        centred = fresh[1] - regressors.mean(0)[None, :]
        errors = fresh[0] - target.mean(0)[None, :] - centred @ slopes
    moments = jnp.stack([errors.T @ errors / errors.shape[0], z1.T @ z1 / n])
    tops = jnp.linalg.eigvalsh(moments)[:, -1]
    return ConditionalCovariance(moments[0], tops[0], tops[1], jnp.sum(used))


def schur_complement(
    target: ArrayInput, cross: ArrayInput, regressors: ArrayInput
) -> Float[Array, "D D"]:
    r"""var(z1 | z2) from the population's own covariances.

    $$\Sigma_{11}-\Sigma_{12}\Sigma_{22}^+\Sigma_{21}$$

    Eigenvalues of Sigma_22 below d eps times the largest count as zero: a matrix whose entries
    are rounded does not say whether they are.

    Args:
        target: Sigma_11, [D, D]; a list, or an array of NumPy, JAX or torch, traced or not.
        cross: Sigma_12, [D, d].
        regressors: Sigma_22, [d, d].

    Returns:
        The conditional covariance; exact for Gaussian vectors, infinite where it overflows.

    A `UserError` names an array that is not finite or does not fit the others.

    Source: section 3.1 of liu2021analyzing, with the inverse taken of Sigma_22.

    Examples:
        >>> one = jnp.ones((1, 1))
        >>> schur_complement(2 * one, one, 4 * one).tolist()
        [[1.75]]
        >>> schur_complement(2 * one, 0 * one, 0 * one).tolist()
        [[2.0]]
    """
    with own_precision("D D, D d, d d", target=target, cross=cross, regressors=regressors) as (
        target,
        cross,
        regressors,
    ):
        return _schur_complement(target, cross, regressors)


@one_at_a_time
@jax.jit
def _schur_complement(target: Array, cross: Array, regressors: Array) -> Array:
    values, vectors = jnp.linalg.eigh(regressors)
    used = ~(values <= regressors.shape[0] * jnp.finfo(regressors.dtype).eps * values[-1])
    inverse = jnp.where(used, 1 / jnp.where(used, values, 1.0), 0.0)
    part = cross @ vectors
    return target - (part * inverse[None, :]) @ part.T
