r"""One attention head along its training: risks, margins and what its attention selects.

The head reads the last token, f(X) = u' X' softmax(X W' x_T). That is the model of
julistiono2024optimizing at the query z = x_T and with W transposed, deora2023optimization's with
H = 1 and a last-token decoder, one layer of trauger2023sequence read at [CLS] with W_v = W_c = I,
and a self-attention network of liu2021analyzing with the two hidden units +-u at the last word.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.core.errors import UserError
from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.solvers.token_optimality import attention_margins


class HeadPath(NamedTuple):
    r"""What is recorded of each step; the last axis of the risks is training, fresh samples.

    Attributes:
        risk: mean logistic loss.
        ramp: mean of min(1, max(0, 1 - y f)), 1-Lipschitz and of range 1.
        error: share of samples with y f <= 0.
        outputs: f on the fresh samples.
        attention: weights that the last token gives, on the fresh samples.
        decoder: least margin over ||u||.
        tokens: tokens that the last record attends to most, on the training samples.
        selection: least attention margin of these tokens over ||W||_F.
        norms: ||u|| and ||W||_F.
    """

    risk: Float[Array, "s 2"]
    ramp: Float[Array, "s 2"]
    error: Float[Array, "s 2"]
    outputs: Float[Array, "s N"]
    attention: Float[Array, "s N T"]
    decoder: Float[Array, " s"]
    tokens: Int[Array, " n"]
    selection: Float[Array, " s"]
    norms: Float[Array, "s 2"]


def single_head_path(
    path: MultiHead,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    fresh_X: Float[Array, "N T d"],
    fresh_y: Float[Array, " N"],
) -> HeadPath:
    r"""Measure recorded steps of one head; for use inside `jax.jit` and `jax.vmap`.

    Args:
        path: one head with a last-token decoder, records along the leading axis.
        y: their labels +-1.

    Raises:
        UserError: if there are several heads or another decoder.

    Source: margins of deora2023optimization (appendix F) and of ($\ell_p$-AttSVM) of
    julistiono2024optimizing.

    Examples:
        >>> head = MultiHead(jnp.full((1, 1), 2.0), jnp.ones((1, 1, 1)), Decoder.LAST)
        >>> path = jax.tree.map(lambda a: a[None], head)
        >>> X, y = jnp.array([[[3.0], [1.0]]]), jnp.ones(1)
        >>> found = single_head_path(path, X, y, X, y)
        >>> found.tokens.tolist(), found.selection.tolist(), found.error.tolist()
        ([0], [2.0], [[0.0, 0.0]])
    """
    if path.decoder is not Decoder.LAST or path.U.shape[1] != 1:
        raise UserError(
            f"a path of {path.U.shape[1]} heads with decoder '{path.decoder}': give one head "
            "that reads the last token"
        )
    queries = X[:, -1]
    logits = jnp.einsum("nd,sde,nte->snt", queries, path.W[:, 0], X)
    tokens = jnp.argmax(logits[-1], axis=1)

    def measure(model: MultiHead) -> tuple[Array, ...]:
        u, W = model.U[0], model.W[0]
        outputs, rows = _read(model, fresh_X)
        sides = (y * _read(model, X)[0], fresh_y * outputs)
        losses = [jnp.stack([f(m) for m in sides]) for f in (_risk, _ramp, _error)]
        sizes = jnp.stack([jnp.linalg.norm(u), jnp.linalg.norm(W)])
        gaps = attention_margins(X, queries, tokens, W.T)
        others = jnp.arange(X.shape[1])[None, :] != tokens[:, None]
        least = jnp.min(jnp.where(others, gaps, jnp.inf)) / sizes[1]
        return (*losses, outputs, rows, jnp.min(sides[0]) / sizes[0], least, sizes)

    risk, ramp, error, outputs, attention, decoder, least, norms = jax.vmap(measure)(path)
    return HeadPath(risk, ramp, error, outputs, attention, decoder, tokens, least, norms)


def _read(model: MultiHead, X: Array) -> tuple[Array, Array]:
    """Outputs, and the attention rows of the last tokens alone."""
    rows = jax.nn.softmax(jnp.einsum("nd,de,nte->nt", X[:, -1], model.W[0], X), axis=-1)
    return jnp.einsum("nt,ntd,d->n", rows, X, model.U[0]), rows


def _risk(margin: Array) -> Array:
    return jnp.mean(logistic(margin))


def _ramp(margin: Array) -> Array:
    return jnp.mean(jnp.clip(1 - margin, 0, 1))


def _error(margin: Array) -> Array:
    return jnp.mean((margin <= 0).astype(margin.dtype))
