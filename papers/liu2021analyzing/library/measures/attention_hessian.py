r"""The Hessian of the multi-head model's empirical risk in closed form."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.axes import require_axes
from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import Decoder, MultiHead


@validate_arguments
def attention_risk_hessian(
    model: MultiHead,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    loss: Callable[[Any], Array] = logistic,
) -> Float[Array, "P P"]:
    r"""Hessian of (1/n) sum_i l(y_i Phi(X_i)), as `hessian_matrix` of `empirical_risk` gives it.

    (1/n) sum_i l''_i grad Phi_i grad Phi_i' + l'_i y_i Hess Phi_i with the derivatives of
    Lemma 1 of deora2023optimization: Hess Phi is block-diagonal over the heads and zero among
    the decoders; its other blocks are, at query x_t with C = diag(phi) - phi phi',
    x_t (X'CX) for a decoder and W, and x_t x_t' (X'MX) for W twice, where
    M = diag(phi c) - phi phi' (c_i + c_j), c = a - <a, phi>, a = X u_t. Samples and queries are
    summed inside matrix products, hence cheaper than P products with the Hessian.

    Args:
        y: labels, -1 or 1.
        loss: loss as a function of the margin.

    Returns:
        The matrix, U before W, each in the order of `ravel_pytree`.

    Examples:
        >>> model = MultiHead(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)))
        >>> attention_risk_hessian(model, 2 * jnp.ones((1, 1, 1)), jnp.ones(1)).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    decoders = "H T d" if model.decoder is Decoder.FULL else "H d"
    shapes = {"model.W": model.W.shape, "model.U": model.U.shape, "X": X.shape}
    require_axes(f"H d d, {decoders}, n T d", shapes)
    n, H = len(X), model.heads
    mixed, first, spread, bent = _moments(model, X)
    unit = 1 / jnp.sqrt(jnp.asarray(H, X.dtype))
    by_u = unit * _read(model, mixed, axis=2).reshape(n, -1)
    by_w = unit * jnp.einsum("ntd,nhte->nhde", X, first).reshape(n, -1)
    margin = y * jnp.sum(by_u * model.U.reshape(1, -1), axis=1)
    slope = jax.vmap(jax.grad(loss))(margin) * y * unit / n
    bend = jax.vmap(jax.grad(jax.grad(loss)))(margin) / n
    features = jnp.concatenate([by_u, by_w], axis=1)

    weighted = slope[:, None, None] * X
    same = jnp.eye(H, dtype=X.dtype)
    uw = _read(model, jnp.einsum("ntd,nhtfe->htfde", weighted, spread), axis=1)
    uw = jnp.einsum("h...de,hk->h...kde", uw, same).reshape(model.U.size, -1)
    squares = weighted[..., :, None] * X[..., None, :]
    ww = jnp.einsum("ntdc,nhtef->hdecf", squares, bent)
    ww = jnp.einsum("hdecf,hk->hdekcf", ww, same).reshape(model.W.size, -1)
    nothing = jnp.zeros((model.U.size, model.U.size), X.dtype)
    second_order = jnp.block([[nothing, uw], [uw.T, ww]])
    return features.T @ (bend[:, None] * features) + second_order


def _read(model: MultiHead, tokens: Array, axis: int) -> Array:
    """What the decoder reads of an array with a token axis: all, their sum, or the last."""
    if model.decoder is Decoder.FULL:
        return tokens
    if model.decoder is Decoder.POOLED:
        return jnp.sum(tokens, axis=axis)
    return jnp.take(tokens, -1, axis=axis)


def _moments(model: MultiHead, X: Array) -> tuple[Array, Array, Array, Array]:
    """X'phi, X'Ca, X'CX and X'MX of every sample, head and query."""
    phi = jax.vmap(model.attention)(X)
    scores = jnp.einsum("nsd,htd->nhts", X, model.token_decoders(X.shape[1]))
    centred = scores - jnp.sum(scores * phi, axis=-1, keepdims=True)
    mixed = jnp.einsum("nhts,nsd->nhtd", phi, X)
    # Second moments about the attended mean, without the T x T matrices C and M.
    second = jnp.einsum("nhts,nsd,nse->nhtde", phi, X, X)
    first = jnp.einsum("nhts,nsd->nhtd", phi * centred, X)
    cross = first[..., :, None] * mixed[..., None, :]
    moved = jnp.einsum("nhts,nsd,nse->nhtde", phi * centred, X, X)
    spread = second - mixed[..., :, None] * mixed[..., None, :]
    bent = moved - cross - jnp.swapaxes(cross, -1, -2)
    return mixed, first, spread, bent
