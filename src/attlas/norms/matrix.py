r"""Matrix norms with their orientation spelled out, and certified upper values of them.

||W||_{q,p} of section 2.1 of trauger2023sequence takes the q-norm of every COLUMN W_{:,i} first and
the p-norm of the results second: `column_norm`. The same of the rows is ||W'||_{q,p}: `row_norm`.
Edelman et al. (2022) write the same column convention, and their Lemma 4.6 bounds ||W'||_{2,1},
the sum of the row lengths, where Lemma 3.5 of trauger2023sequence quotes it with ||W||_{2,1}.

With `upper=True` a value is not below the norm of the given numbers: it is raised by a bound on
its own rounding, valid for sums in any order and elementary functions right to four units.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas._jax.factorising import eigh, svd
from attlas.core.argument_validation import validate_record_arguments
from attlas.core.errors import UserError
from attlas.norms.entrywise import dual_exponent, vector_norm

_INF = float("inf")


@validate_record_arguments
def column_norm(
    W: Float[Array, "*batch r d"], q: float | int, p: float | int, *, upper: bool = False
) -> Float[Array, "*batch"]:
    r"""The norm ||W||_{q,p} = || (||W_{:,1}||_q, ..., ||W_{:,d}||_q) ||_p, columns first.

    Section 2.1 of trauger2023sequence. Lemma 3.3 takes (1,inf), the largest column sum of absolute
    values; Lemma 3.4 (2,1), the sum of column lengths; Lemma 3.6 (1,1), where columns and rows
    agree.

    Args:
        W: matrices with r rows and d columns.
        q: inner exponent, 1 <= q <= inf.
        p: outer exponent, 1 <= p <= inf.
        upper: whether to add the rounding allowance, so that the value is an upper bound.

    Returns:
        The norms, in the units of W; NaN or infinite where an entry is.

    Examples:
        >>> W = jnp.array([[3.0, 0.0], [4.0, 1.0]])
        >>> float(column_norm(W, 2, 1)), float(column_norm(W, 1, float("inf")))
        (6.0, 7.0)
    """
    inner = vector_norm(W, q, axis=-2)
    # Two sums over both axes may be merged into one whose rounding grows with r d.
    outer = vector_norm(jax.lax.optimization_barrier(inner) if upper else inner, p, axis=-1)
    return _raised(outer, W.shape[-2] + W.shape[-1] + 40) if upper else outer


@validate_record_arguments
def row_norm(
    W: Float[Array, "*batch r d"], q: float | int, p: float | int, *, upper: bool = False
) -> Float[Array, "*batch"]:
    r"""The norm ||W'||_{q,p}: the q-norms of the rows first, the p-norm of them second.

    Args:
        W: matrices with r rows and d columns.
        q: inner exponent, 1 <= q <= inf.
        p: outer exponent, 1 <= p <= inf.
        upper: whether to add the rounding allowance, so that the value is an upper bound.

    Examples:
        >>> W = jnp.array([[3.0, 4.0], [0.0, 1.0]])
        >>> float(row_norm(W, 2, 1)), float(row_norm(W, 1, float("inf")))
        (6.0, 7.0)
    """
    return column_norm(jnp.swapaxes(W, -1, -2), q, p, upper=upper)


@validate_record_arguments
def frobenius_norm(W: Float[Array, "*batch r d"], *, upper: bool = False) -> Float[Array, "*batch"]:
    r"""The norm ||W||_F = (sum_ij W_ij^2)^{1/2}.

    Args:
        upper: whether to add the rounding allowance, so that the value is an upper bound.

    Examples:
        >>> float(frobenius_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]])))
        5.0
    """
    return column_norm(W, 2, 2, upper=upper)


@validate_record_arguments
def spectral_norm(W: Float[Array, "*batch r d"], *, upper: bool = False) -> Float[Array, "*batch"]:
    r"""The norm ||W||_{2->2}, the largest singular value.

    The upper value needs no trust in an eigenvalue routine: for ANY square V with
    ||V'V - I|| <= e < 1, ||W||^2 <= ||(WV)'(WV)||_inf / (1 - e), and the rounding of each
    product is bounded by that of its inner products. It is close when V holds the right singular
    vectors, which is what the routine is asked for. The excess is of order eps times the product
    of the sides: a few per cent for 2048 x 512 in float32, 1e-10 in float64.

    Args:
        upper: whether to give the certified upper bound instead; infinite if no V is found.

    Examples:
        >>> print(f"{float(spectral_norm(jnp.array([[0.0, 2.0], [1.0, 0.0]]))):.12f}")
        2.000000000000
    """
    return _spectral_upper(W) if upper else svd(W, compute_uv=False)[..., 0]


@validate_record_arguments
def operator_norm(
    W: Float[Array, "*batch r d"], q: float | int, p: float | int, *, upper: bool = False
) -> Float[Array, "*batch"]:
    r"""The norm ||W||_{q->p} = sup_x ||W x||_p / ||x||_q, where it has a closed form.

    1 -> p is the largest p-norm of a column, q -> inf the largest dual norm of a row, 2 -> 2 the
    largest singular value; the others are hard to compute.

    Args:
        q: exponent of the arguments.
        p: exponent of the values.
        upper: whether to add the rounding allowance, so that the value is an upper bound.

    Raises:
        UserError: if q -> p has no closed form.

    Examples:
        >>> W = jnp.array([[1.0, -2.0], [3.0, 4.0]])
        >>> float(operator_norm(W, 1, float("inf"))), float(operator_norm(W, 1, 1))
        (4.0, 6.0)
        >>> float(operator_norm(W, float("inf"), float("inf")))
        7.0
    """
    if q == 1:
        return column_norm(W, p, _INF, upper=upper)
    if p == _INF:
        return row_norm(W, dual_exponent(float(q)), _INF, upper=upper)
    if q == 2 and p == 2:
        return spectral_norm(W, upper=upper)
    raise UserError(f"||W||_{{{q} -> {p}}} has no closed form: choose q = 1, p = inf or 2 -> 2")


def _raised(value: Array, terms: int) -> Array:
    """A computed norm times 1 + terms eps, plus what underflow may have lost."""
    # One p-norm of n numbers: dividing by the largest, half an eps; the power, four; the sum in
    # any order, (n - 1)/2; these through the root, times 1/p <= 1; the root, four; the rounding of
    # 1/p, ln(n)/2; the product, a half. Together n/2 + 10 + ln(n)/2 to first order: n + 20 leaves
    # a second n/2 for the higher orders.
    limits = jnp.finfo(value.dtype)
    return value * (1 + terms * float(limits.eps)) + terms * float(limits.tiny)


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def _spectral_upper(W: Array) -> Array:
    """The certified bound of `spectral_norm`, on the side with fewer columns."""
    A = jnp.swapaxes(W, -1, -2) if W.shape[-2] < W.shape[-1] else W
    r, d = A.shape[-2:]
    eps = float(jnp.finfo(A.dtype).eps)
    # An inner product of n terms in any order is off by (n + 1)/2 eps of that of the sizes.
    half = eps / 2
    largest = jnp.max(jnp.abs(A), axis=(-2, -1))
    usable = (largest > 0) & jnp.isfinite(largest)
    unit = jnp.where(usable, largest, 1)
    # Largest entry one: no product below overflows, and what underflows is under one eps.
    A = jnp.where(usable[..., None, None], A / unit[..., None, None], 0)
    # The bound holds for any V, so that its derivative needs none of the eigenvectors'.
    _, V = jax.lax.stop_gradient(eigh(_product(jnp.swapaxes(A, -1, -2), A)))
    B = _product(A, V)
    length, basis = frobenius_norm(A, upper=True), frobenius_norm(V, upper=True)
    identity = jnp.eye(d, dtype=A.dtype).reshape((1,) * (A.ndim - 2) + (d, d))
    gram, metric = (_product(jnp.swapaxes(M, -1, -2), M) for M in (B, V))
    skew = operator_norm(metric - identity, _INF, _INF, upper=True) + (d + 4) * half * basis**2
    square = operator_norm(gram, _INF, _INF, upper=True)
    square = square + (r + 4) * half * frobenius_norm(B, upper=True) ** 2
    turned = jnp.sqrt(square) + (d + 4) * half * length * basis
    bound = turned / jnp.sqrt(jnp.where(skew < 1, 1 - skew, 1)) + eps * length
    bound = _raised(jnp.where(skew < 1, bound, _INF) * unit, 20)
    return jnp.where(usable, bound, jnp.where(largest > 0, _INF, largest))
