r"""Lemma 1: gradient and second derivatives of one head, against automatic differentiation.

Symbols as in the paper; `jacobian` is phi'(v), and the printed one is the control.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.deora2023optimization.instances import ROUNDINGS, single_heads
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.models.attention.multi_head import MultiHead

_PAPER = "deora2023optimization"
Jacobian = Callable[[Array], Array]


def _right(v: Array) -> Array:
    phi = jax.nn.softmax(v)
    return jnp.diag(phi) - phi[:, None] * phi[None, :]


def _printed(v: Array) -> Array:
    return jnp.diag(jax.nn.softmax(v)) - v[:, None] * v[None, :]


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    batch = single_heads(rng, count, tokens=3)
    batch |= {"a": rng.normal(size=(count, 3)), "b": rng.normal(size=(count, 2))}
    batch["c"] = rng.normal(size=(count, 2))
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _output(instance: Instance) -> Callable[[Array, Array], Array]:
    """Phi(X; W, U) as function of U and W."""
    return lambda U, W: MultiHead(U[None], W[None])(instance["X"])


def _logits(instance: Instance) -> Array:
    """X W' x_t, one row for each query t."""
    X, W = instance["X"], instance["W"]
    return X @ W @ X.T


def _scale(instance: Instance, values: Array, order: int) -> Array:
    """Size of the added terms: a rounding of the logits moves the softmax by 1 + |logit|."""
    X = instance["X"]
    reach = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=1)))
    terms = reach**order * jnp.sum(jnp.max(jnp.abs(X @ values.T), axis=0))
    return (1 + jnp.max(jnp.abs(_logits(instance)))) * (terms + reach)


def _gradient(instance: Instance, jacobian: Jacobian = _right) -> Sides:
    X, U, W = (instance[k] for k in ("X", "U", "W"))
    logits = _logits(instance)
    by_U = jax.nn.softmax(logits) @ X
    slopes = jax.vmap(jacobian)(logits)
    by_W = jnp.einsum("ti,tk,sk,tsr,rj->ij", X, U, X, slopes, X)
    auto_U, auto_W = jax.grad(_output(instance), argnums=(0, 1))(U, W)
    found = jnp.concatenate([auto_U.ravel(), auto_W.ravel()])
    return Sides(found, jnp.concatenate([by_U.ravel(), by_W.ravel()]), _scale(instance, U, 2))


def _mixed(instance: Instance, jacobian: Jacobian = _right) -> Sides:
    X, U, W, a, b = (instance[k] for k in ("X", "U", "W", "a", "b"))
    slopes = jax.vmap(jacobian)(_logits(instance))
    formula = jnp.einsum("t,ti,s,tsr,rj->ij", a, X, X @ b, slopes, X)
    # <a, grad_U Phi b> is the derivative of Phi in the direction a b' of U.
    values = a[:, None] * b[None, :]
    found = jax.grad(lambda W: jax.jvp(lambda U: _output(instance)(U, W), (U,), (values,))[1])(W)
    return Sides(found, formula, _scale(instance, values, 2))


def _second(instance: Instance, jacobian: Jacobian = _right, third: float = 1.0) -> Sides:
    X, U, W, b, c = (instance[k] for k in ("X", "U", "W", "b", "c"))
    logits, values, step = _logits(instance), U @ X.T, X @ b
    phi = jax.nn.softmax(logits)
    d = step[None, :] * values - values * (phi @ step)[:, None]
    d -= third * step[None, :] * jnp.sum(values * phi, axis=1)[:, None]
    slopes = jax.vmap(jacobian)(logits)
    formula = jnp.einsum("t,ti,ts,tsr,rj->ij", X @ c, X, d, slopes, X)
    # <c, grad_W Phi b> is the derivative of Phi in the direction c b' of W.
    turn = c[:, None] * b[None, :]
    found = jax.grad(lambda W: jax.jvp(lambda W: _output(instance)(U, W), (W,), (turn,))[1])(W)
    sizes = 6 * jnp.linalg.norm(b) * jnp.linalg.norm(c)
    return Sides(found, formula, sizes * _scale(instance, U, 4))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.IDENTITY,
    "status": Status.AS_PRINTED,
    "provenance": Provenance.FOUND,
    "instances": _instances,
    "count": 32,
    "terms": ROUNDINGS,
}
_PRINTED = "the printed phi' = diag(phi) - v v'"

LEMMA_1_GRADIENT = Claim(
    name=f"{_PAPER}/lemma-1-gradient",
    locator="Lemma 1, first item",
    statement=(
        r"\nabla_U \Phi(X;\theta) = \varphi(XWX^\top)X,\quad \nabla_W \Phi(X;\theta) ="
        r"\sum_{t=1}^T x_t u_t^\top X^\top \varphi'(XW^\top x_t) X"
    ),
    sides=_gradient,
    control=(Control(_PRINTED, sides=lambda i: _gradient(i, _printed)),),
    note=(
        "With phi' = diag(phi) - phi phi'. The right side is the formula, the left automatic "
        "differentiation."
    ),
    **_COMMON,
)

LEMMA_1_MIXED = Claim(
    name=f"{_PAPER}/lemma-1-mixed",
    locator="Lemma 1, second item, first formula",
    statement=(
        r"\nabla_W \langle a, \nabla_U \Phi(X;\theta)\, b \rangle ="
        r"\sum_{t=1}^T x_t a_t b^\top X^\top \varphi'(XW^\top x_t) X"
    ),
    sides=_mixed,
    control=(Control(_PRINTED, sides=lambda i: _mixed(i, _printed)),),
    note="With phi' = diag(phi) - phi phi'.",
    **_COMMON,
)

LEMMA_1_SECOND = Claim(
    name=f"{_PAPER}/lemma-1-second",
    locator="Lemma 1, second item, second formula",
    statement=(
        r"\nabla_W \langle c, \nabla_W \Phi(X;\theta)\, b \rangle = \sum_{t=1}^T (c^\top x_t)\,"
        r"x_t d^\top \varphi'(XW^\top x_t) X,\quad d = \mathrm{diag}(Xb) X u_t - X u_t b^\top "
        r"X^\top \varphi(XW^\top x_t) - X b u_t^\top X^\top \varphi(XW^\top x_t)"
    ),
    sides=_second,
    control=(
        Control(_PRINTED, sides=lambda i: _second(i, _printed)),
        Control("d without its third term", sides=lambda i: _second(i, third=0.0)),
    ),
    note="With phi' = diag(phi) - phi phi'.",
    **_COMMON,
)


def _softmax_derivative(instance: Instance, jacobian: Jacobian = _printed) -> Sides:
    v = instance["v"]
    return Sides(jax.jacobian(jax.nn.softmax)(v), jacobian(v), scale=1 + jnp.sum(v**2))


def _witness() -> Witness:
    """Two equal logits, far from zero."""
    return {"v": np.asarray([1.0, 1.0])}


def _one_vector(key: PRNGKeyArray, count: int) -> Instance:
    return {"v": jnp.asarray(generator(key).normal(size=(count, 2)))}


LEMMA_1_PRINTED = Claim(
    name=f"{_PAPER}/softmax-derivative-printed",
    paper=_PAPER,
    locator="Section 2, notation",
    statement=r"\varphi'(v) = \mathrm{diag}(\varphi(v)) - v v^\top",
    kind=Kind.IDENTITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_one_vector,
    sides=_softmax_derivative,
    witness=_witness,
    control=(
        Control(
            "with phi(v) phi(v)' in place of v v'",
            sides=lambda i: _softmax_derivative(i, _right),
            expect=Outcome.SUPPORTED,
        ),
    ),
    expect=Expectation(
        Outcome.VIOLATED, "at v = (1, 1) the derivative is (1, -1; -1, 1) / 4, not (-1/2, -1; ...)"
    ),
    terms=ROUNDINGS,
    note="A slip of notation: Lemma 1 is right with diag(phi) - phi phi'.",
)
