r"""Krylov spaces of a Hessian, orthogonal to given vectors: matfree's Lanczos as one program."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from matfree.decomp import tridiag_sym


class RitzPairs(NamedTuple):
    """Eigenpairs of a Hessian restricted to a Krylov space.

    Attributes:
        values: Ritz values in ascending order.
        coefficients: coordinates in `basis`, one column per value.
        bounds: beta_K |s_K|, the residual of each pair in exact arithmetic.
        basis: orthonormal rows that span the space.
        off_diagonal: K entries; the last is the norm of the remainder outside the space.
        steps: requested dimension; the basis is shorter if the space is invariant.
    """

    values: np.ndarray
    coefficients: np.ndarray
    bounds: np.ndarray
    basis: Float[Array, "K P"]
    diagonal: np.ndarray
    off_diagonal: np.ndarray
    steps: int

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        """The Ritz vectors with some indices, as rows."""
        weights = jnp.asarray(self.coefficients[:, indices].T, self.basis.dtype)
        return np.asarray(weights @ self.basis)


def ritz_pairs(
    risk: Callable[..., Array],
    parameters: Any,
    args: tuple[Any, ...],
    start: np.ndarray,
    locked: np.ndarray,
    centre: float,
    steps: int,
) -> RitzPairs:
    r"""Ritz pairs of the Hessian on the complement of the locked vectors.

    The operator is (I - V V') H (I - V V') + c V V': with c in the middle of the spectrum the
    locked directions disturb neither end, even if rounding lets a part of them in.

    Args:
        risk: scalar function of the parameters and `args`.
        parameters: any pytree; its floating arrays are what is differentiated.
        start: start vector, [P].
        locked: orthonormal rows V', or rows of zeros.
        steps: dimension K of the space, at most P.

    Returns:
        The pairs; values are NaN if the Hessian is not finite.

    Examples:
        |x|^2 / 2 has the Hessian I, whose Krylov space ends after one vector.

        >>> risk, start, locked = lambda x: (x @ x) / 2, np.array([1.0, 0.0]), np.zeros((1, 2))
        >>> ritz_pairs(risk, jnp.zeros(2), (), start, locked, 0.0, 2).values.tolist()
        [1.0]
    """
    dtype = ravel_pytree(eqx.filter(parameters, eqx.is_inexact_array))[0].dtype
    diagonal, off, beta, basis = _lanczos(
        risk, parameters, args, jnp.asarray(start, dtype), jnp.asarray(locked, dtype),
        jnp.asarray(centre, dtype), steps,
    )  # fmt: skip
    main, side = np.asarray(diagonal, float), np.asarray(off, float)
    # A remainder below the rounding of a product, sqrt(P) eps ||H||, is noise, and normalised
    # noise need not be orthogonal to the basis: the space is invariant, and ends there.
    size_so_far = np.maximum.accumulate(np.abs(main))[:-1]
    noise = np.flatnonzero(
        ~(side > float(jnp.finfo(dtype).eps) * np.sqrt(len(start)) * size_so_far)
    )
    size = int(noise[0]) + 1 if noise.size else steps
    if not np.isfinite(main[0]):
        nothing = np.full(1, np.nan)
        return RitzPairs(nothing, np.ones((1, 1)), nothing, basis[:1], nothing, nothing, steps)
    # The lower triangle is what the eigensolver reads.
    lower = np.diag(main[:size]) + np.diag(side[: size - 1], -1)
    values, coefficients = np.linalg.eigh(lower, UPLO="L")
    last = float(beta) if size == steps else np.nan_to_num(side[size - 1])
    bounds = last * np.abs(coefficients[-1])
    off_diagonal = np.append(side[: size - 1], last)
    return RitzPairs(values, coefficients, bounds, basis[:size], main[:size], off_diagonal, steps)


@eqx.filter_jit
def hessian_products(
    risk: Callable[..., Array],
    parameters: Any,
    args: tuple[Any, ...],
    vectors: Float[Array, "m P"],
) -> Float[Array, "m P"]:
    r"""Products H v, one row per vector, forward over reverse.

    Args:
        risk: scalar function of the parameters and `args`.
        parameters: any pytree; its floating arrays are what is differentiated.
        vectors: rows v in the order of `ravel_pytree`.

    Examples:
        >>> risk = lambda x: x[0] ** 2 + 3 * x[0] * x[1]
        >>> hessian_products(risk, jnp.zeros(2), (), jnp.eye(2)).tolist()
        [[2.0, 3.0], [3.0, 0.0]]
    """
    return jax.lax.map(_product(risk, parameters, args), vectors)


def _product(
    risk: Callable[..., Array], parameters: Any, args: tuple[Any, ...]
) -> Callable[[Array], Array]:
    """The map v -> H v; everything that does not depend on v is computed once."""
    moved, fixed = eqx.partition(parameters, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(moved)

    def value(vector: Array) -> Array:
        return risk(eqx.combine(unravel(vector), fixed), *args)

    return jax.linearize(jax.grad(value), flat)[1]


@eqx.filter_jit
def _lanczos(
    risk: Callable[..., Array],
    parameters: Any,
    args: tuple[Any, ...],
    start: Array,
    locked: Array,
    centre: Array,
    steps: int,
) -> tuple[Array, ...]:
    product = _product(risk, parameters, args)

    def deflated(vector: Array) -> Array:
        inside = locked.T @ (locked @ vector)
        image = product(vector - inside)
        return image - locked.T @ (locked @ image) + centre * inside

    vector = start - locked.T @ (locked @ start)
    vector = vector - locked.T @ (locked @ vector)
    decomposition = tridiag_sym(steps, materialize=False, custom_vjp=False)(deflated, vector)
    diagonal, off = decomposition.J_small
    length = jnp.linalg.norm(jnp.asarray(decomposition.residual))
    return diagonal, off, length, jnp.asarray(decomposition.Q_tall)
