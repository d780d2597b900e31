r"""The norm of W_Q R_m W_K' under rotary positions, the largest over relative offsets m."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.factorising import after, cholesky, one_at_a_time
from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least
from attlas.models.attention.rotation import turn
from attlas.norms.matrix import frobenius_norm, spectral_norm
from attlas.norms.product import orthogonal_core


@closed_form
def rotary_core_norm(
    W_Q: Float[Array, "*heads d k"],
    W_K: Float[Array, "*heads d k"],
    frequencies: Float[Array, " pairs"],
    tokens: int,
    interleaved: bool = False,
    causal: bool = True,
) -> Float[Array, "*heads"]:
    r"""An upper value of max over m of ||W_Q R_m W_K'||, m = 0, ..., n - 1, all enumerated.

    Token i asks and token j is asked with m = i - j, negative too where a head is not causal. With
    W_Q = O_1 C_1 and W_K = O_2 C_2 the norm is that of the k x k core M = C_1 R_m C_2'. No grid,
    hence no grid error; for texts of at most n tokens. Eigenvectors are computed only where M
    exceeds the largest norm t so far: t^2 I - M M' has no Cholesky factor then.

    Here n is `tokens`.

    Args:
        W_K: key projection of each head.
        frequencies: angle per position of each pair.
        interleaved: rotate coordinates (0, 1), (2, 3), ... instead of (i, i + k / 2).
        causal: whether tokens see only those before them; else the offsets -m are enumerated too.

    Returns:
        The norms, rounded up: eigenvectors are verified, see `spectral_norm`, and the rounding of
        factors, angles, products and Cholesky factors is added.

    Raises:
        UserError: for no token, more angles than fit the memory, or more than k / 2 pairs.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        >>> left, right = [[[1.0, 0.0]]], [[[0.0, 1.0]]]
        >>> found = [rotary_core_norm(left, right, [1.5], n)[0] for n in (1, 2, 3)]
        >>> print(" ".join(f"{float(each):.4f}" for each in found))
        0.0000 0.9975 0.9975
    """
    pairs, k = frequencies.size, W_Q.shape[-1]
    if 2 * pairs > k:
        raise UserError(
            f"frequencies turn {pairs} pairs of k = {k} coordinates: give at most k / 2"
        )
    require_at_least(1, tokens=tokens)
    require_memory(16 * tokens * pairs, f"an angle of each of {tokens} positions", "give fewer")
    first = 0 if causal else 1 - tokens
    # Norms that grow with the offset would each be the largest so far: in random order few are.
    offsets = jnp.asarray(np.random.default_rng(0).permutation(np.arange(first, tokens)))
    dtype = jnp.result_type(W_Q, W_K)
    flat = (matrix.astype(dtype).reshape(-1, *matrix.shape[-2:]) for matrix in (W_Q, W_K))
    angles = offsets[:, None].astype(frequencies.dtype) * frequencies[None]
    return _largest(*flat, angles, interleaved).reshape(W_Q.shape[:-2])


@one_at_a_time
@partial(jax.jit, static_argnames="interleaved")
def _largest(W_Q: Array, W_K: Array, angles: Array, interleaved: bool) -> Array:
    eps = float(jnp.finfo(W_Q.dtype).eps)
    widest = jnp.max(jnp.abs(angles), initial=0.0)

    def head(pair: tuple[Array, Array]) -> Array:
        C, basis, remainder = orthogonal_core(pair[0])
        D, key_basis, left = orthogonal_core(after(pair[1], basis))
        sizes = frobenius_norm(C, upper=True), frobenius_norm(D, upper=True)
        # Angles are off by eps of themselves, their cosines by four units, a turned pair by two
        # more; a product of k terms by (k + 4) / 2 eps of that of the sizes.
        slack = (2 * widest + 16 + C.shape[-1]) * eps * sizes[0] * sizes[1]

        # A factor that is found proves t^2 (1 + e) I - M M' >= -(k + 2) eps k t^2 (1 + e) I (the
        # backward error of Cholesky), and M M' is off by k eps ||M||_F^2: ||M||^2 <= t^2 (1 + 4 e).
        loss = C.shape[0] * (C.shape[0] + 2) * eps
        least = float(jnp.finfo(W_Q.dtype).tiny) ** 0.5 / eps  # below, squares lose digits
        identity = jnp.eye(C.shape[0], dtype=C.dtype)

        def next_offset(top: Array, angle: Array) -> tuple[Array, None]:
            turned = turn(C, jnp.broadcast_to(angle, (C.shape[0], angle.size)), interleaved)
            M = jnp.matmul(turned, D.T, precision=jax.lax.Precision.HIGHEST)
            square = jnp.matmul(M, M.T, precision=jax.lax.Precision.HIGHEST)
            factor = cholesky(jax.lax.stop_gradient(top**2 * (1 + loss) * identity - square))
            below = jnp.all(jnp.isfinite(factor)) & (top > least)
            higher = jax.lax.cond(
                below, lambda: top, lambda: jnp.maximum(top, spectral_norm(M, upper=True))
            )
            return higher, None

        top, _ = jax.lax.scan(next_offset, jnp.zeros((), C.dtype), angles)
        top = top * (1 + 2 * loss) + slack
        # W_Q R W_K' = (O_1 C_1 + E_1) R (O_2 C_2 + E_2)'.
        right = (sizes[1] * key_basis + left) * remainder + sizes[0] * basis * left
        return (top * basis * key_basis + right) * (1 + 16 * eps)

    return jax.lax.map(head, (W_Q, W_K))
