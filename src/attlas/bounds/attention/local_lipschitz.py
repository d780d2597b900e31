r"""How much the output of one attention head can change at the tokens at hand.

The Jacobian of X -> P(X) X V has three parts: through the values (P at fixed weights), through the
queries (the diagonal blocks, covariances of values and keys under a row's weights), and through the
keys (rank-one blocks). No d x d matrix is formed for any of their bounds.

w_ij and u_ij are the derivatives of the logit of tokens i and j by x_i and by x_j, here
s W_Q T_i' k_j and s W_K S_j' q_i with the maps T and S of queries and keys; Cov_i is the
covariance under row i of P. Without positions u_ij = u_i = A'x_i + a, and the last part is at
most sqrt(max column sum of P) max_i sqrt(lambda_i) |u_i|. Masks are zeros of P.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas._jax.factorising import after
from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.norms.matrix import frobenius_norm, spectral_norm
from attlas.norms.product import orthogonal_core, product_spectral_norm

_PRECISION = jax.lax.Precision.HIGHEST


class LocalLipschitz(NamedTuple):
    """Upper values of the norm of the Jacobian of each head, and of its three parts.

    Attributes:
        by_values: ||V|| ||P||, of what moves at fixed weights.
        by_queries: the largest diagonal block ||V Cov_i(x, w_i)||.
        by_keys: the rank-one blocks, sqrt of max_j ||sum_i lambda_i p_ij u_ij u_ij'||.
    """

    by_values: Float[Array, "*heads"]
    by_queries: Float[Array, "*heads"]
    by_keys: Float[Array, "*heads"]

    @property
    def total(self) -> Float[Array, "*heads"]:
        """The certificate, the sum of the parts."""
        value = self.by_values + self.by_queries + self.by_keys
        return value * (1 + 4 * float(jnp.finfo(value.dtype).eps))


@closed_form
def local_lipschitz(
    weights: Float[Array, "n n"],
    queries: Float[Array, "n k"],
    keys: Float[Array, "n k"],
    values: Float[Array, "n v"],
    W_Q: Float[Array, "d k"],
    W_K: Float[Array, "d k"],
    W_V: Float[Array, "d v"],
    W_O: Float[Array, "v e"],
    scale: float | Array,
    query_maps: Float[Array, "n k k"] | None = None,
    key_maps: Float[Array, "n k k"] | None = None,
    squarings: int | None = None,
) -> LocalLipschitz:
    r"""An upper value of the norm of one head's Jacobian at its tokens; vmap over heads and texts.

    $$\|J\|\le\|V\|\,\|P\|_2+\max_i\|V\operatorname{Cov}_i(x,w_i)\|+
    \sqrt{\max_j\Big\|\sum_i\lambda_i\,p_{ij}\,u_{ij}u_{ij}'\Big\|},\qquad
    \lambda_i=\|V\operatorname{Cov}_i(x,x)V'\|$$

    Args:
        weights: P, rows sum to one.
        queries: q_i, of each token, biases, norms and rotations included.
        values: W_V' x_j, with bias or without.
        W_Q: the query projection, which acts on what the Jacobian is taken by.
        scale: s, of the logits.
        query_maps: T_i, how q_i changes with W_Q' x_i: the rotation of position i, times the
            Jacobian of a query norm where there is one; None for the identity.
        key_maps: S_j of k_j and W_K' x_j.
        squarings: None for norms by verified eigenvectors; else for the cheaper upper value
            (tr G^p)^{1/p}, p = 2^squarings, of each Gram matrix G of size k instead of its largest
            eigenvalue, too large by at most k^{1/p} and the rounding of float32, in which the
            powers of many are taken: products alone, and differentiable.

    Returns:
        The parts; their sum is the certificate. For the arrays as given: what their own rounding
        changes is of relative order eps times the largest |logit|.

    Raises:
        UserError: if squarings is below 1.

    Source: derived, papers/attlas_audit/proofs/certificates.md.

    Examples:
        A sink: every token reads the first one alone, and the certificate is sqrt(n) ||V||.

        >>> P, X = jnp.zeros((4, 4)).at[:, 0].set(1.0), jnp.arange(8.0).reshape(4, 2)
        >>> found = local_lipschitz(P, X, X, X, *[jnp.eye(2)] * 4, 1.0)
        >>> print(f"{float(found.by_values):.6f} {float(found.total):.4f}")
        2.000000 2.0000
    """
    if squarings is not None and squarings < 1:
        raise UserError(f"squarings = {squarings}: give at least 1, or None for eigenvectors")
    tokens, matrices = (weights, queries, keys, values), (W_Q, W_K, W_V, W_O)
    return _terms(tokens, matrices, scale, query_maps, key_maps, squarings)


def _terms(
    tokens: tuple[Array, ...],
    matrices: tuple[Array, ...],
    scale: float | Array,
    query_maps: Array | None,
    key_maps: Array | None,
    squarings: int | None,
) -> LocalLipschitz:
    """The three parts of `local_lipschitz`."""
    (weights, queries, keys, values), (W_Q, W_K, W_V, W_O) = tokens, matrices
    n, eps = weights.shape[0], float(jnp.finfo(weights.dtype).eps)
    # One factorisation after the other, see `after`: together they can lock XLA.
    core = C_O, beta_O, rho_O = orthogonal_core(W_O.T)
    C_Q, beta_Q, rho_Q = orthogonal_core(after(W_Q, beta_O))
    C_K, beta_K, rho_K = orthogonal_core(after(W_K, beta_Q))
    value_norm = product_spectral_norm(after(W_V, beta_K), W_O.T, core)
    gain = _norm(after(weights, value_norm)[None], squarings)[0]
    size_O, size_Q, size_K = (frobenius_norm(C, upper=True) for C in (C_O, C_Q, C_K))
    # What rounding adds to products and sums of n, k and v terms, relative to the terms' sizes.
    loss = (2 * n + 4 * max(W_Q.shape[1], W_V.shape[1]) + 64) * eps

    # Centred about any point, for accuracy; covariances do not depend on it.
    values, near = (x - jnp.mean(x, axis=0, keepdims=True) for x in (values, keys))
    longest, widest = (jnp.sqrt(jnp.max(jnp.sum(x**2, axis=-1))) for x in (values, near))
    seen = _product(values, C_O.T)
    spread = _top(after(_covariances(weights, seen, seen), gain), squarings)
    lam = beta_O**2 * spread + (loss * size_O + 3 * rho_O) * size_O * longest**2

    right = _turned(query_maps, C_Q)
    cross = scale * _product(_covariances(weights, seen, near), right)
    cross = _norm(after(cross, spread), squarings)
    slack = loss * size_O * size_Q + rho_O * size_Q + rho_Q * size_O
    slack = scale * _size(query_maps) * slack * longest * widest
    by_queries = beta_O * beta_Q * jnp.max(cross) + 2 * slack

    moments = jnp.einsum(
        "ij,ia,ib->jab", lam[:, None] * weights, queries, queries, precision=_PRECISION
    )
    side = _turned(key_maps, C_K)
    inner = scale**2 * _product(_product(jnp.swapaxes(side, -1, -2), moments), side)
    mass = jnp.max(_product(lam * jnp.sum(queries**2, axis=1), weights))
    slack = (scale * _size(key_maps)) ** 2 * mass * size_K * (loss * size_K + 3 * rho_K)
    by_keys = jnp.sqrt(beta_K**2 * jnp.max(_top(after(inner, cross), squarings)) + slack)

    terms = (value_norm * gain, by_queries, by_keys)
    return LocalLipschitz(*(part * (1 + 32 * eps) for part in terms))


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, precision=_PRECISION)


def _covariances(weights: Array, x: Array, y: Array) -> Array:
    """Of the rows of x and y under each row of weights."""
    second_moment = jnp.einsum("ij,ja,jb->iab", weights, x, y, precision=_PRECISION)
    return second_moment - _product(weights, x)[:, :, None] * _product(weights, y)[:, None, :]


def _turned(maps: Array | None, C: Array) -> Array:
    """T_i C' for each token, or C' alone as one of a batch."""
    return C.T[None] if maps is None else _product(maps, C.T)


def _size(maps: Array | None) -> Array | float:
    return 1.0 if maps is None else jnp.sqrt(jnp.max(jnp.sum(maps**2, axis=(-2, -1))))


def _top(gram: Array, squarings: int | None) -> Array:
    """Upper values of the norms of matrices that are symmetric but for rounding."""
    if squarings is None:
        return spectral_norm(gram, upper=True)
    # Powers of a matrix of size one need no digits that their root forgets: of many float32 is
    # half the cost, and its rounding is added below.
    kind = gram.dtype if len(gram) == 1 else jnp.dtype(jnp.float32)
    k, eps = gram.shape[-1], float(jnp.finfo(kind).eps)
    even = (gram + jnp.swapaxes(gram, -1, -2)) / 2
    unit = jnp.max(jnp.abs(even), axis=(-2, -1))
    unit = jnp.where(unit > 0, unit, 1.0)

    def square(turn: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        # Scaled by its own size after each turn, so that no power overflows or vanishes.
        power, grown = state
        power = _product(power, power)
        largest = jnp.max(jnp.abs(power), axis=(-2, -1))
        largest = jnp.where(largest > 0, largest, 1.0)
        root = jnp.exp2(-(turn + 1.0)).astype(grown.dtype)
        return power / largest[:, None, None], grown * largest.astype(grown.dtype) ** root

    start = (even / unit[:, None, None]).astype(kind), jnp.ones_like(unit)
    power, grown = jax.lax.fori_loop(0, squarings - 1, square, start)
    sizes = jnp.sqrt(jnp.sum(power**2, axis=(-2, -1))).astype(unit.dtype)
    estimate = unit * grown * sizes ** (0.5 ** (squarings - 1))
    # A squaring loses (k + 2) eps of the squared Frobenius norm, at most sqrt(k) times that of the
    # square; each later one doubles that, and its root halves it.
    return estimate * (1 + 2 * squarings * (k + 8) * k**0.5 * eps)


def _norm(matrices: Array, squarings: int | None) -> Array:
    """Upper values of the spectral norms."""
    if squarings is None:
        return spectral_norm(matrices, upper=True)
    k, eps = matrices.shape[-2], float(jnp.finfo(matrices.dtype).eps)
    gram = _product(jnp.swapaxes(matrices, -1, -2), matrices)
    # A Gram matrix of k terms is off by (k + 2) eps of the trace, at most k times its norm.
    return jnp.sqrt(_top(gram, squarings)) * (1 + (k + 8) * gram.shape[-1] * eps)
