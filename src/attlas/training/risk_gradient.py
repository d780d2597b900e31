r"""Empirical risk with its gradient: in closed form for multi-head attention, else by autodiff.

The closed form is Lemma 1 of deora2023optimization with the sum over samples inside the products:
the mixed tokens softmax(X W X') X are never formed. Under `jax.vmap` over models on the same
samples, each product contains the heads of all models.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_arguments
from attlas.core.axes import require_axes
from attlas.core.errors import UserError
from attlas.core.trees import require_real_tree
from attlas.losses.empirical_risk import empirical_risk
from attlas.losses.margin_loss import margin_loss
from attlas.models.attention.multi_head import Decoder, MultiHead


@validate_arguments
def risk_gradient(
    model: Any,
    X: Float[Array, " n *shape"],
    y: Float[Array, " n"],
    weights: Float[Array, " n"],
    loss: str = "logistic",
) -> tuple[Float[Array, ""], Any]:
    r"""Risk L(theta) = (1/n) sum_i w_i l(y_i Phi(X_i)) and its gradient.

    Args:
        model: `MultiHead`, or any Equinox module from a sample to a scalar.
        loss: name of a margin loss.

    Examples:
        >>> model = MultiHead(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)))
        >>> value, slope = risk_gradient(model, jnp.ones((2, 1, 1)), jnp.ones(2), jnp.ones(2))
        >>> float(slope.U[0, 0, 0])
        -0.5
    """
    _require_fit(model, X)
    if isinstance(model, MultiHead):
        stacked = _stacked_gradient(model.decoder, loss)
        stacked_results = stacked(model.U[None], model.W[None], weights[None], X, y)
        value, along_U, along_W = (a[0] for a in stacked_results)
        return value, MultiHead(along_U, along_W, model.decoder)
    return eqx.filter_value_and_grad(
        lambda model: empirical_risk(model, X, y, margin_loss(loss).value, weights)
    )(model)


def _require_fit(model: Any, X: Array) -> None:
    require_real_tree(model, "model")
    if isinstance(model, MultiHead):
        require_axes("n T d", {"X": X.shape})
        model.require_tokens(*X.shape[1:])
    elif not callable(model):
        raise UserError(f"model is a {type(model).__name__}: give one, or a function of a sample")


def _attention_and_readout(model: MultiHead, X: Array) -> tuple[Array, Array, Array]:
    """Queries, attention (n, H, t, s), and the decoder's value for each token s at a query t."""
    queries = X[:, -1:] if model.decoder is Decoder.LAST else X
    logits = jnp.einsum("nhte,nse->nhts", jnp.einsum("ntd,hde->nhte", queries, model.W), X)
    rows = model.U if model.decoder is Decoder.FULL else model.U[:, None, :]
    return queries, jax.nn.softmax(logits, axis=-1), jnp.einsum("htd,nsd->nhts", rows, X)


@validate_arguments
def model_outputs(model: Any, X: Float[Array, " n *shape"]) -> Float[Array, " n"]:
    r"""Outputs Phi(X_i) of a model on many samples at once.

    Args:
        model: `MultiHead`, or any module from a sample to a scalar.

    Examples:
        >>> model_outputs(jnp.sum, jnp.ones((2, 3))).tolist()
        [3.0, 3.0]
    """
    _require_fit(model, X)
    if not isinstance(model, MultiHead):
        return jax.vmap(model)(X)
    _, attention, readout = _attention_and_readout(model, X)
    total = jnp.sum(attention * readout, axis=(1, 2, 3))
    return total / jnp.sqrt(jnp.asarray(model.heads, total.dtype))


# Products with fewer columns than this are slower side by side than one model at a time.
_NARROW = 16


@cache
def _stacked_gradient(decoder: Decoder, loss: str) -> Callable[..., tuple[Array, Array, Array]]:
    """Risks and gradients of models (B, ...) on shared samples; `jax.vmap` widens the stack."""

    def plain(U: Array, W: Array, weights: Array, X: Array, y: Array) -> tuple:
        queries = 1 if decoder is Decoder.LAST else X.shape[1]
        form = _one_by_one if queries * W.shape[0] * W.shape[1] < _NARROW else _side_by_side
        return form(decoder, loss, U, W, weights, X, y)

    gradient = jax.custom_batching.custom_vmap(plain)

    @gradient.def_vmap
    def rule(size: int, batched: list, *arguments: Array) -> tuple[tuple, tuple]:
        if batched[3] or batched[4]:
            axes = tuple(0 if moves else None for moves in batched)
            return jax.vmap(plain, axes)(*arguments), (True, True, True)
        stacks = (
            (a if moves else jnp.broadcast_to(a[None], (size, *a.shape))).reshape(-1, *a.shape[-k:])
            for a, moves, k in zip(arguments[:3], batched[:3], _own_axes(decoder), strict=True)
        )
        results = gradient(*stacks, *arguments[3:])
        return tuple(a.reshape(size, -1, *a.shape[1:]) for a in results), (True, True, True)

    return gradient


def _own_axes(decoder: Decoder) -> tuple[int, int, int]:
    """Numbers of axes of one model's U, W and weights."""
    return 3 if decoder is Decoder.FULL else 2, 3, 1


def _one_by_one(
    decoder: Decoder, loss: str, U: Array, W: Array, weights: Array, X: Array, y: Array
) -> tuple[Array, Array, Array]:
    def of_model(U: Array, W: Array, weights: Array) -> tuple[Array, Array, Array]:
        model = MultiHead(U, W, decoder)
        queries, attention, readout = _attention_and_readout(model, X)
        mean = jnp.sum(attention * readout, axis=-1, keepdims=True)
        root = jnp.sqrt(jnp.asarray(model.heads, X.dtype))
        margins = y * jnp.sum(mean, axis=(1, 2, 3)) / root
        rule = margin_loss(loss)
        pull = weights * y * rule.derivative(margins) / (y.shape[0] * root)
        share = attention * pull[:, None, None, None]
        along_U = jnp.einsum("nhts,nsd->htd", share, X)
        if decoder is not Decoder.FULL:
            along_U = jnp.sum(along_U, axis=1)
        moved = jnp.einsum("nhts,nse->nhte", share * (readout - mean), X)
        along_W = jnp.einsum("ntd,nhte->hde", queries, moved)
        return jnp.mean(weights * rule.value(margins)), along_U, along_W

    return jax.vmap(of_model)(U, W, weights)


def _side_by_side(
    decoder: Decoder, loss: str, U: Array, W: Array, weights: Array, X: Array, y: Array
) -> tuple[Array, Array, Array]:
    # One column for each query, model and head, in this order; the axis that the softmax
    # reduces is not the last one, so that its passes run over long rows.
    (n, T, d), (B, H) = X.shape, W.shape[:2]
    queries = X[:, -1:] if decoder is Decoder.LAST else X
    t = queries.shape[1]
    flat, rows = X.reshape(n * T, d), queries.reshape(n * t, d)
    turned = rows @ W.transpose(2, 0, 1, 3).reshape(d, B * H * d)
    logits = jnp.einsum("nse,nqe->nsq", X, turned.reshape(n, t * B * H, d))
    read = U.transpose(2, 0, 1, 3) if decoder is Decoder.FULL else U[None]
    readout = (flat @ read.reshape(-1, d).T).reshape(n, T, -1)
    if decoder is Decoder.POOLED:
        readout = jnp.tile(readout, (1, 1, t))

    powers = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    total = jnp.sum(powers, axis=1, keepdims=True)
    mean = jnp.sum(powers * readout, axis=1, keepdims=True) / total
    root = jnp.sqrt(jnp.asarray(H, X.dtype))
    margins = y[:, None] * jnp.sum(mean.reshape(n, t, B, H), axis=(1, 3)) / root
    rule = margin_loss(loss)
    pull = weights.T * y[:, None] * rule.derivative(margins) / (n * root)
    pull = jnp.broadcast_to(pull[:, None, :, None], (n, t, B, H)).reshape(n, 1, -1)
    share = powers * (pull / total)

    along_U = (share.reshape(n * T, -1).T @ flat).reshape(t, B, H, d)
    along_U = along_U.transpose(1, 2, 0, 3) if decoder is Decoder.FULL else jnp.sum(along_U, axis=0)
    moved = jnp.einsum("nsq,nse->nqe", share * (readout - mean), X).reshape(n * t, B * H * d)
    along_W = (rows.T @ moved).reshape(d, B, H, d).transpose(1, 2, 0, 3)
    return jnp.mean(weights * rule.value(margins).T, axis=1), along_U, along_W
