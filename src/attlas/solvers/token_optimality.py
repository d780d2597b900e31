r"""Which selections of tokens are optimal: support tokens, and local optimality."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.core.arrays import ArrayInput, own_precision, read_indices
from attlas.core.axes import require_axes
from attlas.data.token_selection import TokenSelection, token_scores, validate


def attention_margins(
    X: ArrayInput,
    z: ArrayInput,
    tokens: ArrayInput,
    W: ArrayInput,
) -> Float[Array, "n T"]:
    r"""Margins (X_{i a_i} - X_{it})' W z_i of the selected tokens, zero at t = a_i.

    Args:
        X: tokens, [n, T, d].
        z: queries, [n, d].
        tokens: selected token of each sample, [n].
        W: key-query matrix, [d, d].

    A `UserError` names an array that cannot be read, is not finite or does not fit the others.

    Source: constraints of ($\ell_p$-AttSVM), julistiono2024optimizing.

    Examples:
        >>> X = jnp.array([[[2.0], [-1.0]]])
        >>> attention_margins(X, jnp.ones((1, 1)), jnp.array([0]), jnp.ones((1, 1))).tolist()
        [[0.0, 3.0]]
    """
    with own_precision("n T d, n d, d d", X=X, z=z, W=W) as (X, z, W):
        selected = read_indices(tokens, "tokens", X.shape[:1], X.shape[1])
        return _margins(X, z, jnp.asarray(selected), W)


def _margins(X: Array, z: Array, tokens: Array, W: Array) -> Float[Array, "n T"]:
    attention = jnp.einsum("ntd,nd->nt", X, z @ W.T)
    return jnp.take_along_axis(attention, tokens[:, None], axis=1) - attention


def support_tokens(
    X: ArrayInput,
    z: ArrayInput,
    tokens: ArrayInput,
    W: ArrayInput,
    tolerance: float = 1e-6,
) -> Bool[Array, "n T"]:
    r"""The support tokens T_i = {t != a_i : (X_{i a_i} - X_{it})' W_mm z_i = 1}.

    Args:
        X: tokens, [n, T, d].
        z: queries, [n, d].
        tokens: selected token of each sample, [n].
        W: the solution W_mm of `attention_svm` for these tokens, [d, d].
        tolerance: margins up to 1 + tolerance count as 1. It should exceed the error of the
            margins, at most the certificate's `distance` times the largest ||X_it z_i'||_{q,q}.

    Returns:
        Whether each token is a support token; false everywhere if W is NaN (infeasible).

    Source: section 1.1 of julistiono2024optimizing.

    Examples:
        >>> X = jnp.array([[[1.0, 0.0], [-1.0, 0.0], [-3.0, 0.0]]])
        >>> W = jnp.array([[0.0, 0.5], [0.0, 0.0]])
        >>> support_tokens(X, jnp.array([[0.0, 1.0]]), jnp.array([0]), W).tolist()
        [[False, True, False]]
    """
    # The W of an infeasible problem is NaN, and an answer: it is not refused.
    with own_precision(X=X, z=z, W=W) as (X, z, W):
        require_axes("n T d, n d, d d", {"X": X.shape, "z": z.shape, "W": W.shape})
        selected = jnp.asarray(read_indices(tokens, "tokens", X.shape[:1], X.shape[1]))
        others = jnp.arange(X.shape[1])[None, :] != selected[:, None]
        return others & (_margins(X, z, selected, W) <= 1 + tolerance)


def is_locally_optimal(
    data: TokenSelection,
    tokens: ArrayInput,
    W: ArrayInput,
    tolerance: float = 1e-6,
) -> Bool[Array, ""]:
    r"""Whether every selected token scores higher than all its support tokens.

    Locally optimal: gamma_{i a_i} > gamma_it for all t in T_i and all i.

    Args:
        data: samples, labels, queries and value head.
        tokens: selected token of each sample, [n].
        W: the solution W_mm of `attention_svm` for these tokens.

    Returns:
        True or false; false if an entry of W is not finite, as where the problem is infeasible:
        such a W is no W_mm.

    Source: section 1.1 of julistiono2024optimizing.

    Examples:
        >>> X = jnp.array([[[1.0, 0.0], [-1.0, 0.0]]])
        >>> data = TokenSelection(X, jnp.ones(1), jnp.array([[0.0, 1.0]]), jnp.array([1.0, 0.0]))
        >>> W = jnp.array([[0.0, 0.5], [0.0, 0.0]])
        >>> bool(is_locally_optimal(data, jnp.array([0]), W))
        True
    """
    scores, best = _scores(data, tokens)
    support = support_tokens(data.X, data.z, tokens, W, tolerance)
    return jnp.all(jnp.where(support, best > scores, True)) & jnp.all(jnp.isfinite(jnp.asarray(W)))


def _scores(data: TokenSelection, tokens: ArrayInput) -> tuple[Array, Array]:
    """The scores of all tokens, and those of the selected ones in a column."""
    validate(data)
    scores = token_scores(data)
    selected = jnp.asarray(read_indices(tokens, "tokens", scores.shape[:1], scores.shape[1]))
    return scores, jnp.take_along_axis(scores, selected[:, None], axis=1)
