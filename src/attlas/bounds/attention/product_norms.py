r"""Certified spectral norms of the products W_Q W_K' and W_V W_O of several heads."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas._jax.factorising import one_at_a_time
from attlas.bounds.closed_form import closed_form
from attlas.norms.product import product_spectral_norm

_many = one_at_a_time(jax.jit(jax.vmap(product_spectral_norm)))


@closed_form
def product_norms(
    left: Float[Array, "*heads d k"], right: Float[Array, "*heads e k"]
) -> Float[Array, "*heads"]:
    r"""An upper value of ||L R'||_{2->2} of each head, from k x k eigenvectors, rounded up.

    See `product_spectral_norm`: the eigenvalue routine is not trusted, its result is verified and
    what rounding may have hidden is added, of order eps ||L||_F ||R||_F in all.

    Args:
        left: L: W_Q, or W_V.
        right: R: W_K, or the transpose of W_O.

    Source: derived, see `attlas.norms.product`.

    Examples:
        >>> print(f"{float(product_norms([[[3.0], [4.0]]], [[[0.0], [2.0]]])[0]):.6f}")
        10.000000
    """
    heads = left.shape[:-2]
    flat = (factor.reshape(-1, *factor.shape[-2:]) for factor in (left, right))
    return _many(*flat).reshape(heads)


@closed_form
def bias_norms(
    W: Float[Array, "*heads d k"], b: Float[Array, "*heads k"]
) -> Float[Array, "*heads"]:
    r"""|W b| of each head, rounded up: how a bias of queries weighs keys, W_K b_Q, and such.

    Examples:
        >>> print(f"{float(bias_norms([[[3.0], [4.0]]], [[2.0]])[0]):.6f}")
        10.000000
    """
    d, k = W.shape[-2:]
    eps = float(jnp.finfo(W.dtype).eps)
    product = jnp.matmul(W, b[..., None], precision=jax.lax.Precision.HIGHEST)[..., 0]
    sizes = jnp.matmul(jnp.abs(W), jnp.abs(b)[..., None], precision=jax.lax.Precision.HIGHEST)
    upper = jnp.abs(product) + (k + 8) * eps * sizes[..., 0]
    return jnp.sqrt(jnp.sum(upper**2, axis=-1)) * (1 + (d + 24) * eps)
