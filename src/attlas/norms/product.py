r"""Certified sizes of a product Q K' that is given by its factors.

The entries of a product are rounded, and so is every norm that is taken of them. The functions
add what the rounding may have hidden: their values are not below those of the exact product.
"""

import jax.numpy as jnp
from jax.lax import Precision
from jaxtyping import Array, Float

from attlas._jax.factorising import qr
from attlas.core.argument_validation import validate_record_arguments
from attlas.norms.matrix import frobenius_norm, operator_norm, spectral_norm


@validate_record_arguments
def product_entries(Q: Float[Array, "d r"], K: Float[Array, "n r"]) -> Float[Array, "d n"]:
    r"""Upper values of the |entries| of Q K'.

    Norms that grow with every |entry| (all but the spectral one here) are certified by taking them
    of these, with `upper=True`.

    Returns:
        $|Q K'|$ as computed, plus $\tfrac{r + 8}2\epsilon\,|Q||K|'$ and what underflow may lose.

    Examples:
        >>> found = product_entries(jnp.array([[1.0, 1.0]]), jnp.array([[1.0, -3.0]]))
        >>> print(f"{float(found[0, 0]):.5f}")
        2.00000
    """
    limits, r = jnp.finfo(Q.dtype), Q.shape[1]
    exact = jnp.matmul(Q, K.T, precision=Precision.HIGHEST)
    sizes = jnp.matmul(jnp.abs(Q), jnp.abs(K).T, precision=Precision.HIGHEST)
    # An inner product of r terms in any order is off by (r + 1)/2 eps of that of the sizes; the
    # rest is for the rounding of the sizes and of this sum.
    allowance = (r + 8) / 2 * float(limits.eps)
    return jnp.abs(exact) + (allowance * (1 + 2 * allowance) * sizes + (r + 8) * float(limits.tiny))


@validate_record_arguments
def product_spectral_norm(
    Q: Float[Array, "d r"], K: Float[Array, "n r"], core: tuple[Array, Array, Array] | None = None
) -> Float[Array, ""]:
    r"""An upper value of ||Q K'||_{2->2} at the cost of r x r eigenvectors.

    With any O and R, also rounded ones (see `orthogonal_core`),
    $$\|QK'\|\le\|QR'\|\,\|O\|+\|Q\|_F\|K-OR\|_F,\qquad\|O\|^2\le1+\|O'O-I\|_\infty,$$
    which is close for the factors of K = O R.

    Args:
        core: `orthogonal_core(K)`, a matrix and two scalars, where it is at hand.

    Examples:
        >>> Q, K = jnp.array([[3.0], [4.0]]), jnp.array([[0.0], [2.0], [0.0]])
        >>> print(f"{float(product_spectral_norm(Q, K)):.4f}")
        10.0000
    """
    half = float(jnp.finfo(Q.dtype).eps) / 2
    R, basis, remainder = orthogonal_core(K) if core is None else core
    length, lower = (frobenius_norm(M, upper=True) for M in (Q, R))
    turned = jnp.matmul(Q, R.T, precision=Precision.HIGHEST)
    top = spectral_norm(turned, upper=True) + (R.shape[1] + 4) * half * length * lower
    return (top * basis + length * remainder) * (1 + 16 * half)


@validate_record_arguments
def orthogonal_core(
    W: Float[Array, "d r"],
) -> tuple[Float[Array, "c r"], Float[Array, ""], Float[Array, ""]]:
    r"""A small matrix that has the norms of W y, with what it is off by at most.

    $$|Wy|\le\beta\,|Cy|+\rho\,|y|,\qquad W=OC+E,\ \beta\ge\|O\|,\ \rho\ge\|E\|_F$$

    C is the triangular factor; the orthogonal one is not trusted but measured,
    $\|O\|^2\le1+\|O'O-I\|_\infty$.

    Returns:
        C, with at most min(d, r) rows, beta, which is 1 but for rounding, and rho, which is 0 but
        for rounding.

    Examples:
        >>> C, beta, rho = orthogonal_core(jnp.array([[3.0], [4.0]]))
        >>> print(f"{float(abs(C[0, 0])):.4f} {float(beta):.4f} {float(rho):.4f}")
        5.0000 1.0000 0.0000
    """
    half = float(jnp.finfo(W.dtype).eps) / 2
    O, C = qr(W)
    basis, lower = (frobenius_norm(M, upper=True) for M in (O, C))
    gram = jnp.matmul(O.T, O, precision=Precision.HIGHEST)
    skew = operator_norm(gram - jnp.eye(O.shape[1], dtype=O.dtype), 1, 1, upper=True)
    skew = skew + (W.shape[0] + 4) * half * basis**2
    remainder = W - jnp.matmul(O, C, precision=Precision.HIGHEST)
    left = frobenius_norm(remainder, upper=True) + (C.shape[0] + 6) * half * (basis * lower + lower)
    return C, jnp.sqrt(1 + skew), left
