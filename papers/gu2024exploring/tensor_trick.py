r"""Appendix H.1: the tensor trick, which turns attention into softmax regression.

Symbols: X (T x d tokens), W (d x d, the product Q K'), V (d x k), z (d); vec stacks the rows of a
matrix, tensor is the Kronecker product.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import SoftmaxNetwork

_T, _D, _K = 3, 2, 2


def sequences(rng, count):
    """Three tokens, from flat to saturated attention."""
    size = six_decades(rng, count)[:, None, None]
    return {
        "X": rng.normal(size=(count, _T, _D)),
        "W": size * rng.normal(size=(count, _D, _D)),
        "V": rng.normal(size=(count, _D, _K)),
        "z": rng.normal(size=(count, _D)),
    }


# Products over d^2 = 4 and T = 3 terms, and one softmax of T logits: below 64 roundings.
on_sequences = partial(identity, sample=sequences, count=32)
_COLUMNS = Control("column-major vec", rows=False)


def _vec(W, rows):
    return W.ravel() if rows else W.T.ravel()


def _logit_size(X, W, right):
    return jnp.max(jnp.abs(X) @ jnp.abs(W) @ jnp.abs(right))


def _attention(X, W, V):
    """All rows of attention, and the size of its rounding."""
    values = X @ V
    magnitude = (1 + _logit_size(X, W, X.T)) * jnp.max(jnp.abs(values))
    return jax.nn.softmax(X @ W @ X.T, axis=1) @ X @ V, magnitude


@on_sequences("Appendix H.1, tensor trick", controls=[_COLUMNS])
def tensor_trick(X, W, z, *, rows=True):
    r"""$$X W z = (X \otimes z^\top) \mathrm{vec}(W)$$

    vec stacks rows.
    """
    right = jnp.kron(X, z[None, :]) @ _vec(W, rows)
    return Sides(X @ W @ z, right, magnitude=_logit_size(X, W, z))


@on_sequences("Appendix H.1, equation (27)", controls=[_COLUMNS])
def attention_as_softmax_regression(X, W, V, *, rows=True):
    r"""$$\big( D^{-1} \exp(X W X^\top) X V \big)_t = (X V)^\top
    \mathrm{softmax}\big( (x_t^\top \otimes X) \mathrm{vec}(W) \big),\quad W = Q K^\top$$

    The softmax term is a softmax regression in $\mathrm{vec}(W)$; the value term is linear in
    $V$.
    """
    left, magnitude = _attention(X, W, V)

    def row(x):
        return V.T @ X.T @ jax.nn.softmax(jnp.kron(x[None, :], X) @ _vec(W, rows))

    return Sides(left, jax.vmap(row)(X), magnitude=magnitude)


@on_sequences(
    "Section 1 and Appendix H.1, attention as a two-layer softmax network",
    status=Status.NEW,
    controls=[Control(r"keys $W^\top X^\top$ in place of $W X^\top$", weighted=False)],
)
def attention_as_network(X, W, V, *, weighted=True):
    r"""$$\big( D^{-1} \exp(X W X^\top) X V \big)_t =
    F\big( W X^\top, x_t, \tfrac{1}{T} (X V)^\top \big)$$

    $T$ tokens are $T$ hidden units: first layer the keys, second layer the values over $T$.
    """
    left, magnitude = _attention(X, W, V)
    model = SoftmaxNetwork((W if weighted else W.T) @ X.T, (X @ V).T / len(X))
    return Sides(left, jax.vmap(model)(X), magnitude=magnitude)
