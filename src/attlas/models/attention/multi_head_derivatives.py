r"""First and second derivatives of the multi-head model in closed form.

Lemma 1 of deora2023optimization with softmax'(s) = diag(a) - a a', a = softmax(s). The decoders
that read the sum of the tokens or the last token are the full form with tied or missing rows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_arguments
from attlas.models.attention.multi_head import Decoder, MultiHead


class _Reading(NamedTuple):
    """Inputs of the decoders: the relevant queries, their attention, U_h x_s for each token.

    r is T for the full and the pooled decoder and 1 for the last token's.
    """

    queries: Float[Array, "r d"]
    attention: Float[Array, "H r T"]
    values: Float[Array, "H r T"]
    scale: Float[Array, ""]


def _reading(model: MultiHead, X: Float[Array, "T d"]) -> _Reading:
    model.require_tokens(*X.shape)
    queries = X[-1:] if model.decoder is Decoder.LAST else X
    logits = jnp.einsum("td,hde,se->hts", queries, model.W, X)
    U = model.U if model.decoder is Decoder.FULL else model.U[:, None]
    values = jnp.einsum("htd,sd->hts", U, X)
    values = jnp.broadcast_to(values, logits.shape)
    scale = 1 / jnp.sqrt(jnp.asarray(model.heads, logits.dtype))
    return _Reading(queries, jax.nn.softmax(logits, axis=-1), values, scale)


def _centred(
    attention: Float[Array, "*batch T"], values: Float[Array, "*batch T"]
) -> Float[Array, "*batch T"]:
    """Values minus their mean under the attention, row by row."""
    return values - jnp.sum(attention * values, axis=-1, keepdims=True)


@validate_arguments
def model_gradient(model: MultiHead, X: Float[Array, "T d"]) -> MultiHead:
    r"""Gradient of Phi(X) in all parameters.

    nabla_{U_h} Phi = H^(-1/2) softmax(X W_h X') X and
    nabla_{W_h} Phi = H^(-1/2) sum_t x_t u_t' X' softmax'(X W_h' x_t) X, Lemma 1 of
    deora2023optimization; summed over the tokens, or at the last one, for tied decoders.

    Examples:
        >>> model = MultiHead(jnp.array([[3.0]]), jnp.array([[[0.0]]]), Decoder.LAST)
        >>> slope = model_gradient(model, jnp.array([[0.0], [2.0]]))
        >>> slope.U.tolist(), slope.W.tolist()
        ([[1.0]], [[[6.0]]])
    """
    queries, attention, values, scale = _reading(model, X)
    mixed = jnp.einsum("hts,sd->htd", attention, X)
    U = mixed if model.decoder is Decoder.FULL else jnp.sum(mixed, axis=1)
    weights = attention * _centred(attention, values)
    W = jnp.einsum("td,hts,se->hde", queries, weights, X)
    return MultiHead(scale * U, scale * W, model.decoder)


@validate_arguments
def mixed_derivative(
    W: Float[Array, "d d"],
    X: Float[Array, "T d"],
    a: Float[Array, " T"],
    b: Float[Array, " d"],
) -> Float[Array, "d d"]:
    r"""Gradient in W of <a, nabla_U Phi b>, one head with the full decoder.

    sum_t a_t x_t b' X' softmax'(X W' x_t) X, Lemma 1 of deora2023optimization.

    Args:
        a: weights of the rows of nabla_U Phi.
        b: weights of its columns.

    Examples:
        >>> one = jnp.ones(1)
        >>> X = jnp.array([[1.0], [3.0]])
        >>> mixed_derivative(jnp.zeros((1, 1)), X, jnp.ones(2), one).tolist()
        [[4.0]]
    """
    attention = jax.nn.softmax(X @ W @ X.T, axis=-1)
    values = jnp.broadcast_to((X @ b)[None, :], attention.shape)
    weights = a[:, None] * attention * _centred(attention, values)
    return X.T @ weights @ X


@validate_arguments
def second_derivative(
    U: Float[Array, "T d"],
    W: Float[Array, "d d"],
    X: Float[Array, "T d"],
    c: Float[Array, " d"],
    b: Float[Array, " d"],
) -> Float[Array, "d d"]:
    r"""Gradient in W of <c, nabla_W Phi b>, one head with the full decoder.

    sum_t (c' x_t) x_t d_t' softmax'(X W' x_t) X with
    d_t = diag(X b) X u_t - (b' X' a_t) X u_t - (u_t' X' a_t) X b and a_t = softmax(X W' x_t):
    Lemma 1 of deora2023optimization.

    Args:
        c: weights of the rows of nabla_W Phi.
        b: weights of its columns.

    Examples:
        At W = 0, x = (0, 2) and u = 1, the attention (1/2, 1/2) has no third moment.

        >>> one = jnp.ones(1)
        >>> second_derivative(
        ...     jnp.ones((2, 1)), jnp.zeros((1, 1)), jnp.array([[0.0], [2.0]]), one, one
        ... ).item()
        0.0
    """
    attention = jax.nn.softmax(X @ W @ X.T, axis=-1)
    values, along = U @ X.T, jnp.broadcast_to((X @ b)[None, :], attention.shape)
    value_mean = jnp.sum(attention * values, axis=-1, keepdims=True)
    along_mean = jnp.sum(attention * along, axis=-1, keepdims=True)
    d = along * values - along_mean * values - value_mean * along
    weights = (X @ c)[:, None] * attention * _centred(attention, d)
    return X.T @ weights @ X


@validate_arguments
def hessian_form(
    model: MultiHead, X: Float[Array, "T d"], direction: MultiHead
) -> Float[Array, ""]:
    r"""Second derivative of Phi(X) along a direction of the parameters.

    With q_t = X D' x_t the logits' direction, D of the W-part and E of the U-part:
    H^(-1/2) sum_h sum_t 2 Cov_{a_t}(X e_t, q_t) + Cov_{a_t}(X u_t, (q_t - mean)^2), which is
    Lemma 1 of deora2023optimization applied twice: the U-block of the Hessian is zero and the
    W-block is a third central moment of the attention.

    Examples:
        >>> point = MultiHead(jnp.array([[3.0]]), jnp.array([[[0.0]]]), Decoder.LAST)
        >>> along = MultiHead(jnp.array([[1.0]]), jnp.array([[[1.0]]]), Decoder.LAST)
        >>> float(hessian_form(point, jnp.array([[0.0], [2.0]]), along))
        4.0
    """
    queries, attention, values, scale = _reading(model, X)
    turned = _centred(attention, jnp.einsum("td,hde,se->hts", queries, direction.W, X))
    moved = _reading(direction, X).values
    summed = 2 * moved * turned + _centred(attention, values) * turned**2
    return scale * jnp.sum(attention * summed)


@validate_arguments
def model_hessian(model: MultiHead, X: Float[Array, "T d"]) -> Float[Array, "P P"]:
    r"""Dense Hessian of Phi(X), by Lemma 1 of deora2023optimization.

    Block-diagonal over the heads; within a head the U-block is zero, the entries of the
    (U, W)-block are x_t Cov_{a_t}(X), those of the W-block x_t x_t' times the third central
    moments E_{a_t}[(x'u_t - mean)(x - mean)(x - mean)'], all over sqrt(H).

    Returns:
        The symmetric matrix, parameters in the order ravel(U), ravel(W).

    Examples:
        >>> model = MultiHead(jnp.array([[3.0]]), jnp.array([[[0.0]]]), Decoder.LAST)
        >>> model_hessian(model, jnp.array([[0.0], [2.0]])).tolist()
        [[0.0, 2.0], [2.0, 0.0]]
    """
    queries, attention, values, scale = _reading(model, X)
    mean = jnp.einsum("hts,sd->htd", attention, X)
    spread = X[None, None] - mean[:, :, None]
    covariance = jnp.einsum("hts,htsi,htsj->htij", attention, spread, spread)
    third = attention * _centred(attention, values)
    moment = jnp.einsum("hts,htsi,htsj->htij", third, spread, spread)
    cross = jnp.einsum("tk,htil->htikl", queries, covariance)
    if model.decoder is not Decoder.FULL:
        cross = jnp.sum(cross, axis=1, keepdims=True)
    square = jnp.einsum("tk,tm,htln->hklmn", queries, queries, moment)
    same = jnp.eye(model.heads, dtype=X.dtype)
    rows, columns = model.U.size, model.W.size
    cross = jnp.einsum("hg,hfikl->hfigkl", same, cross).reshape(rows, columns)
    square = jnp.einsum("hg,hklmn->hklgmn", same, square).reshape(columns, columns)
    zero = jnp.zeros((rows, rows), X.dtype)
    return scale * jnp.block([[zero, cross], [cross.T, square]])
