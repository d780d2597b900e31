r"""Gradient of the selection loss in closed form, also where it underflows.

L(W) = (1/n) sum_i l(gamma_i' s_i) with gamma_i = y_i X_i v and s_i = softmax(X_i W z_i).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.margin_loss import MarginLoss, margin_loss


def selection_loss(
    W: Float[Array, "d d"], data: TokenSelection, loss: str | MarginLoss = "logistic"
) -> Float[Array, ""]:
    r"""The empirical risk L(W) with the value head fixed.

    Args:
        loss: a margin loss, or its name.

    Examples:
        >>> from attlas.data.token_selection import make_infeasible_selection
        >>> data = make_infeasible_selection(jax.random.key(0))
        >>> value = selection_loss(jnp.zeros((10, 10)), data, "correlation")
        >>> bool(abs(value + jnp.mean(token_scores(data))) < 1e-12)
        True
    """
    h = jnp.einsum("ntd,nd->nt", data.X, data.z @ W.T)
    margin = jnp.sum(jax.nn.softmax(h, axis=1) * token_scores(data), axis=1)
    return jnp.mean(margin_loss(loss).value(margin))


def selection_gradient(
    W: Float[Array, "d d"], data: TokenSelection, loss: str | MarginLoss = "logistic"
) -> Float[Array, "d d"]:
    r"""Gradient of the risk, Lemma 17 of julistiono2024optimizing.

    (1/n) sum_i l'(gamma_i' s_i) X_i' (diag(s_i) - s_i s_i') gamma_i z_i'.

    Args:
        loss: a margin loss, or its name.

    Examples:
        >>> from attlas.data.token_selection import make_token_selection
        >>> data, W = make_token_selection(jax.random.key(0)), jnp.eye(10)
        >>> error = selection_gradient(W, data) - jax.grad(selection_loss)(W, data)
        >>> bool(jnp.max(jnp.abs(error)) < 1e-14)
        True
    """
    direction, log_scale = scaled_gradient(W, data.X, data.z, token_scores(data), margin_loss(loss))
    return direction * jnp.exp(log_scale)


def scaled_gradient(
    W: Float[Array, "d d"],
    X: Float[Array, "n T d"],
    z: Float[Array, "n d"],
    scores: Float[Array, "n T"],
    loss: MarginLoss,
) -> tuple[Float[Array, "d d"], Float[Array, ""]]:
    r"""The same gradient as a matrix of moderate size times exp(log scale).

    With a_i the token of largest attention, D_it = h_it - h_ia and g_it = gamma_it - gamma_ia,
    the coefficients of a sample sum to zero, so that its gradient is
    l' sum_{t != a} s_it (g_it - sum_r s_ir g_ir) (X_it - X_ia) z_i'. All s_it with t != a share
    the factor exp(max D) and are formed relative to it: nothing cancels and nothing
    underflows, however large W is.

    Returns:
        Matrix G and logarithm k with gradient = exp(k) G.

    Examples:
        >>> from attlas.data.token_selection import make_separable_selection
        >>> data = make_separable_selection(jax.random.key(0))
        >>> G, k = scaled_gradient(
        ...     4e3 * data.separator, data.X, data.z, token_scores(data), margin_loss("logistic"))
        >>> bool(jnp.max(jnp.abs(G)) > 1e-3), bool(k < -3e3)
        (True, True)
    """
    h = jnp.einsum("ntd,nd->nt", X, z @ W.T)
    top = jnp.argmax(h, axis=1)[:, None]
    not_top = jnp.arange(h.shape[1])[None, :] != top
    below = h - jnp.take_along_axis(h, top, 1)
    gap = scores - jnp.take_along_axis(scores, top, 1)
    weight = jnp.exp(below)
    total = jnp.sum(weight, axis=1, keepdims=True)
    mean = jnp.sum(weight * gap, axis=1, keepdims=True) / total
    margin = jnp.take_along_axis(scores, top, 1) + mean
    logs = jnp.where(not_top, loss.log_slope(margin) - jnp.log(total) + below, -jnp.inf)
    scale = jax.lax.stop_gradient(jnp.max(logs))
    coefficient = -jnp.exp(logs - scale) * (gap - mean) / h.shape[0]
    best = jnp.take_along_axis(X, top[:, :, None], 1)
    return jnp.einsum("nt,ntd,ne->de", coefficient, X - best, z), scale
