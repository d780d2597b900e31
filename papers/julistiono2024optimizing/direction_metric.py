r"""The metric <U, V> = sum |W_mm|^{2-p} U V / (p - 1), in which lag and memory are orthogonal.

U and V are mirror variables, C_i = (X_i,alpha - X_i,t) z_i' the directions in which samples of two
tokens move them; papers/julistiono2024optimizing/proofs/rates.md. Smaller problems are padded by
zeros: where W_mm vanishes the weight is zero, and a sample of share zero is none.
"""

import jax.numpy as jnp


def metric(W_mm, p):
    """Weights of the metric, entry by entry."""
    return jnp.where(W_mm == 0, 0, jnp.abs(W_mm) ** (2 - p) / (p - 1))


def gram_of(W_mm, C, p):
    """H_ij = <C_i, C_j>."""
    return jnp.einsum("ide,de,jde->ij", C, metric(W_mm, p), C)


def across(U, W_mm, C, gram, p, projected=1.0):
    """U^perp, the part of U orthogonal to all C_i; U itself where projected = 0."""
    inner = jnp.einsum("ide,de->i", C, metric(W_mm, p) * U)
    return U - projected * jnp.einsum("i,ide->de", jnp.linalg.solve(gram, inner), C)


def half_square(U, W_mm, p):
    """||U||^2 / 2."""
    return jnp.sum(metric(W_mm, p) * U**2) / 2


def lag_of(theta, share, gram, C):
    """sum_i b_i C_i with H b = theta - mean, the mean weighted by the shares lambda_i."""
    there = share > 0
    centred = jnp.where(there, theta - jnp.sum(jnp.where(there, share * theta, 0)), 0)
    return jnp.einsum("i,ide->de", jnp.linalg.solve(gram, centred), C)


def half_squared_lag(theta, share, gram):
    """(theta - mean)' H^-1 (theta - mean) / 2, the mean weighted by the shares lambda_i."""
    there = share > 0
    centred = jnp.where(there, theta - jnp.sum(jnp.where(there, share * theta, 0)), 0)
    return centred @ jnp.linalg.solve(gram, centred) / 2
