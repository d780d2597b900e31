r"""Tangent kernels of two-layer networks in the limit of infinite width.

At the symmetric initialisation of Definition 3.7 the kernel of k outputs tends to I_k tensor K at
the rate m^(-1/2): proofs/kernel_limit.md.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.models.networks.softmax_network import Activation


def softmax_ntk_limit(
    X: ArrayInput,
    Z: ArrayInput,
    sigma: float | Float[Array, ""],
    activation: Activation = Activation.SOFTMAX,
) -> Float[Array, "n n2"]:
    r"""The kernel K of one output at infinite width.

    softmax: <x, z> exp(sigma^2 <x, z>). exponential: <x, z> exp(sigma^2 ||x + z||^2 / 2), which
    for unit inputs is exp(sigma^2) times the former. ReLU: <x, z> (pi - angle(x, z)) / (2 pi),
    whatever sigma.

    Args:
        X: samples, (n, d); lists, or an array of NumPy, JAX or torch, as Z.
        Z: samples of the second index, (n2, d).

    Raises:
        UserError: if sigma is a number that is not positive, an array is not finite, or the
            kernel fits no memory.

    Examples:
        >>> x = jnp.array([[1.0, 0.0]])
        >>> print(f"{float(softmax_ntk_limit(x, x, 1.0)[0, 0]):.4f}")
        2.7183
        >>> float(softmax_ntk_limit(x, x, 1.0, Activation.RELU)[0, 0])
        0.5
    """
    if isinstance(sigma, (int, float)) and not sigma > 0:
        raise UserError(f"sigma = {sigma}: the standard deviation must be positive")
    with own_precision("n d, n2 d", X=X, Z=Z) as (left, right):
        size = 8 * len(left) * len(right)
        require_memory(size, "the kernel", "give fewer samples", on_device=True)
        return _limit(left, right, sigma, activation)


@partial(jax.jit, static_argnames="activation")
def _limit(X: Array, Z: Array, sigma: float | Array, activation: Activation) -> Array:
    inner = X @ Z.T
    if activation is Activation.SOFTMAX:
        return inner * jnp.exp(sigma**2 * inner)
    if activation is Activation.EXPONENTIAL:
        squares = jnp.sum(X**2, axis=1)[:, None] + jnp.sum(Z**2, axis=1)[None, :]
        return inner * jnp.exp(sigma**2 * (inner + squares / 2))
    lengths = jnp.linalg.norm(X, axis=1)[:, None] * jnp.linalg.norm(Z, axis=1)[None, :]
    # A zero input has kernel zero whatever its angle.
    cosine = jnp.clip(inner / jnp.where(lengths > 0, lengths, 1), -1, 1)
    return inner * (jnp.pi - jnp.arccos(cosine)) / (2 * jnp.pi)
