r"""Appendix H.1: the tensor trick, which turns attention into softmax regression.

Symbols: X (T x d tokens), W (d x d, the product Q K'), V (d x k), z (d); vec stacks the rows of a
matrix, tensor is the Kronecker product.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.networks.softmax_network import SoftmaxNetwork

_PAPER = "gu2024exploring"
_T, _D, _K = 3, 2, 2
_ROUNDINGS = 64
"""Products over d^2 = 4 and T = 3 terms, and one softmax of T logits."""


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    size = 10 ** rng.uniform(-1, 1, (count, 1, 1))
    return {
        "X": jnp.asarray(rng.normal(size=(count, _T, _D))),
        "W": jnp.asarray(size * rng.normal(size=(count, _D, _D))),
        "V": jnp.asarray(rng.normal(size=(count, _D, _K))),
        "z": jnp.asarray(rng.normal(size=(count, _D))),
    }


def _vec(W: Array, rows: bool) -> Array:
    return W.ravel() if rows else W.T.ravel()


def _logit_size(instance: Instance, right: Array) -> Array:
    return jnp.max(jnp.abs(instance["X"]) @ jnp.abs(instance["W"]) @ jnp.abs(right))


def _vector(instance: Instance, rows: bool = True) -> Sides:
    X, W, z = (instance[k] for k in ("X", "W", "z"))
    right = jnp.kron(X, z[None, :]) @ _vec(W, rows)
    return Sides(X @ W @ z, right, scale=_logit_size(instance, z))


_CONTROL = "column-major vec"

TENSOR_TRICK = Claim(
    name=f"{_PAPER}/tensor-trick",
    paper=_PAPER,
    locator="Appendix H.1, tensor trick",
    statement=r"X W z = (X \otimes z^\top) \mathrm{vec}(W)",
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_vector,
    control=Control(_CONTROL, sides=partial(_vector, rows=False)),
    count=32,
    terms=_ROUNDINGS,
    note="vec stacks rows.",
)


def _attention(instance: Instance, rows: bool = True) -> Sides:
    """Every row of attention as softmax regression in vec(W), then averaged values."""
    X, W, V = (instance[k] for k in ("X", "W", "V"))
    left = jax.nn.softmax(X @ W @ X.T, axis=1) @ X @ V

    def row(x: Array) -> Array:
        design = jnp.kron(x[None, :], X)
        return V.T @ X.T @ jax.nn.softmax(design @ _vec(W, rows))

    scale = (1 + _logit_size(instance, X.T)) * jnp.max(jnp.abs(X @ V))
    return Sides(left, jax.vmap(row)(X), scale=scale)


ATTENTION_AS_REGRESSION = Claim(
    name=f"{_PAPER}/attention-as-softmax-regression",
    paper=_PAPER,
    locator="Appendix H.1, equation (27)",
    statement=(
        r"\big( D^{-1} \exp(X W X^\top) X V \big)_t = (X V)^\top"
        r"\mathrm{softmax}\big( (x_t^\top \otimes X) \mathrm{vec}(W) \big),\quad W = Q K^\top"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_attention,
    control=Control(_CONTROL, sides=partial(_attention, rows=False)),
    count=32,
    terms=_ROUNDINGS,
    note="The softmax term is a softmax regression in vec(W); the value term is linear in V.",
)


def _as_network(instance: Instance, weighted: bool = True) -> Sides:
    X, W, V = (instance[k] for k in ("X", "W", "V"))
    left = jax.nn.softmax(X @ W @ X.T, axis=1) @ X @ V
    keys = W @ X.T if weighted else W.T @ X.T
    model = SoftmaxNetwork(keys, (X @ V).T / len(X))
    scale = (1 + _logit_size(instance, X.T)) * jnp.max(jnp.abs(X @ V))
    return Sides(left, jax.vmap(model)(X), scale=scale)


ATTENTION_AS_NETWORK = Claim(
    name=f"{_PAPER}/attention-as-network",
    paper=_PAPER,
    locator="Section 1 and Appendix H.1, attention as a two-layer softmax network",
    statement=(
        r"\big( D^{-1} \exp(X W X^\top) X V \big)_t ="
        r"F\big( W X^\top, x_t, \tfrac{1}{T} (X V)^\top \big)"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_as_network,
    control=Control("keys W' X' in place of W X'", sides=partial(_as_network, weighted=False)),
    count=32,
    terms=_ROUNDINGS,
    note="T tokens are T hidden units: first layer the keys, second layer the values over T.",
)
