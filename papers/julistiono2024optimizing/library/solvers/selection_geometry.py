r"""The data-dependent numbers of a solved selection: delta, A, score range and score gap."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.core.arrays import ArrayInput, own_precision, read_indices
from attlas.data.token_selection import TokenSelection, token_scores, validate
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.token_optimality import attention_margins, support_tokens


class SelectionGeometry(NamedTuple):
    r"""Numbers that the cones of julistiono2024optimizing are made of (section 1.3).

    Attributes:
        delta_prime: smallest attention gap of a support token over a token that is neither
            support nor selected; infinite if there is no such pair.
        delta: min(1/4, delta_prime / 4).
        A: ||W_mm||_{p,p} max_it ||X_it z_i'||_{q,q}.
        norm: ||W_mm||_{p,p}.
        score_range: Gamma, the largest |gamma_it - gamma_i tau|.
        score_gap: gamma_gap, the smallest gamma_{i a_i} - gamma_it over support tokens;
            infinite without support tokens, negative unless locally optimal.
    """

    delta_prime: Float[Array, ""]
    delta: Float[Array, ""]
    A: Float[Array, ""]
    norm: Float[Array, ""]
    score_range: Float[Array, ""]
    score_gap: Float[Array, ""]


def selection_geometry(
    data: TokenSelection,
    tokens: ArrayInput,
    W: ArrayInput,
    p: float | Float[Array, ""],
    tolerance: float = 1e-6,
) -> SelectionGeometry:
    r"""Compute delta', delta, A, Gamma and gamma_gap of a selection and its W_mm.

    $$\delta'=\min_i\min_{t\in\mathcal T_i,\tau\in\bar{\mathcal T}_i}(X_{it}-X_{i\tau})^\top
    W_{mm}z_i,\quad A=\|W_{mm}\|_{p,p}\max_{i,t}\|X_{it}z_i^\top\|_{q,q}$$

    Args:
        data: samples, labels, queries and value head.
        tokens: selected token of each sample, [n].
        W: the solution W_mm of `attention_svm` for these tokens and this p, [d, d].
        p: exponent, 1 < p < inf.

    Returns:
        The numbers, for `bounds.optimisation.julistiono2024_cone`.

    Source: section 1.3 of julistiono2024optimizing.

    Examples:
        >>> X = jnp.array([[[1.0, 0.0], [-1.0, 0.0], [-3.0, 0.0]]])
        >>> data = TokenSelection(X, jnp.ones(1), jnp.array([[0.0, 1.0]]), jnp.array([1.0, 0.0]))
        >>> W = jnp.array([[0.0, 0.5], [0.0, 0.0]])
        >>> result = selection_geometry(data, jnp.array([0]), W, 2.0)
        >>> [float(x) for x in result]
        [1.0, 0.25, 1.5, 0.5, 4.0, 2.0]
    """
    validate(data)
    index = jnp.asarray(read_indices(tokens, "tokens", data.X.shape[:1], data.X.shape[1]))
    with own_precision(X=data.X, y=data.y, z=data.z, v=data.v, W=W) as (*arrays, W_mm):
        return _geometry(TokenSelection(*arrays), index, W_mm, p, tolerance)


def _geometry(
    data: TokenSelection,
    tokens: Int[Array, " n"],
    W: Float[Array, "d d"],
    p: float | Float[Array, ""],
    tolerance: float,
) -> SelectionGeometry:
    margins = attention_margins(data.X, data.z, tokens, W)
    support = support_tokens(data.X, data.z, tokens, W, tolerance)
    selected = jnp.arange(data.X.shape[1])[None, :] == tokens[:, None]
    lowest_other = jnp.min(jnp.where(support | selected, jnp.inf, margins), axis=1)
    highest_support = jnp.max(jnp.where(support, margins, -jnp.inf), axis=1)
    delta_prime = jnp.min(lowest_other - highest_support)
    q = p / (p - 1)
    lengths = jax.vmap(jax.vmap(entrywise_norm, (0, None)), (0, None))(data.X, q)
    pull = jnp.max(lengths * jax.vmap(entrywise_norm, (0, None))(data.z, q)[:, None])
    norm = entrywise_norm(W, p)
    scores = token_scores(data)
    best = jnp.take_along_axis(scores, tokens[:, None], axis=1)
    return SelectionGeometry(
        delta_prime,
        jnp.minimum(0.25, delta_prime / 4),
        norm * pull,
        norm,
        jnp.max(jnp.max(scores, axis=1) - jnp.min(scores, axis=1)),
        jnp.min(jnp.where(support, best - scores, jnp.inf)),
    )
