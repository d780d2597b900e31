r"""Lemma E.1 of trauger2023sequence: how finely to cover each matrix.

The entropies C_i / eps_i^2 of the parts add up to the least total under sum_i beta_i eps_i = eps
where C_i / eps_i^3 is proportional to beta_i (Lagrange; the problem is convex):
papers/trauger2023sequence/proofs/layers.md.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form


@closed_form
def trauger2023_allocation(
    C: Float[Array, " n"], beta: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    r"""The least total entropy and the resolutions that reach it.

    $$\min_{\sum\beta_i\epsilon_i=\epsilon}\sum_i\frac{C_i}{\epsilon_i^2}
    =\frac{\gamma^3}{\epsilon^2},\qquad\gamma=\sum_iC_i^{1/3}\beta_i^{2/3},\qquad
    \epsilon_i=\frac\epsilon\gamma\Big(\frac{C_i}{\beta_i}\Big)^{1/3}$$

    Args:
        C: entropy coefficients, above 0.
        beta: cost in the output of an error in each part, above 0.

    Returns:
        gamma^3 and the resolutions eps_i at eps = 1.

    Source: Lemma E.1 of trauger2023sequence (found).

    Examples:
        >>> total, parts = trauger2023_allocation(jnp.array([1.0, 8.0]), jnp.array([1.0, 1.0]))
        >>> print(f"{float(total):.3f}", [f"{float(part):.3f}" for part in parts])
        27.000 ['0.333', '0.667']
    """
    gamma = jnp.sum(jnp.cbrt(C) * jnp.cbrt(beta) ** 2)
    return gamma**3, jnp.cbrt(C / beta) / gamma


@closed_form
def trauger2023_allocation_residual(
    C: Float[Array, " n"], beta: Float[Array, " n"], resolution: Float[Array, " n"]
) -> Float[Array, ""]:
    r"""How far resolutions are from the optimality conditions of Lemma E.1 at eps = 1.

    $$\max\Big(\big|\textstyle\sum\beta_i\epsilon_i-1\big|,\ \max_i\big|\tfrac{\mu_i}{\bar\mu}-1
    \big|\Big),\qquad\mu_i=\frac{2C_i}{\beta_i\epsilon_i^3}$$

    Source: conditions of Karush, Kuhn and Tucker for Lemma E.1 of trauger2023sequence.

    Examples:
        >>> C, beta = jnp.array([1.0, 8.0]), jnp.array([1.0, 1.0])
        >>> float(trauger2023_allocation_residual(C, beta, jnp.array([0.5, 0.5])))
        0.777...
    """
    multiplier = 2 * C / (beta * resolution**3)
    spread = jnp.max(jnp.abs(multiplier / jnp.mean(multiplier) - 1))
    return jnp.maximum(jnp.abs(jnp.sum(beta * resolution) - 1), spread)
