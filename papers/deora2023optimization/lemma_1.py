r"""Lemma 1: gradient and second derivatives of one head, against automatic differentiation.

`jacobian` is phi'(v), and the printed one is the control.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.claims.claim import Control, Kind, Sides, Source
from attlas.claims.statement import erratum, identity
from attlas.models.attention.multi_head import MultiHead
from attlas.models.attention.multi_head_derivatives import (
    hessian_form,
    mixed_derivative,
    model_gradient,
    model_hessian,
    second_derivative,
)
from deora2023optimization.instances import ROUNDINGS, single_heads


def softmax_derivative(v, printed=False):
    """diag(phi(v)) - phi(v) phi(v)', or the printed diag(phi(v)) - v v'."""
    phi = jax.nn.softmax(v)
    right = v if printed else phi
    return jnp.diag(phi) - right[:, None] * right[None, :]


def heads_and_directions(rng, count):
    """Single heads of three tokens, and directions a, b, c."""
    batch = single_heads(rng, count, tokens=3)
    batch |= {"a": rng.normal(size=(count, 3)), "b": rng.normal(size=(count, 2))}
    return {**batch, "c": rng.normal(size=(count, 2))}


def _output(X):
    """Phi(X; W, U) as function of U and W."""
    return lambda U, W: MultiHead(U[None], W[None])(X)


def _slopes(logits, printed):
    return jax.vmap(lambda v: softmax_derivative(v, printed))(logits)


def _magnitude(X, logits, values, order):
    """Size of the added terms: a rounding of the logits moves the softmax by 1 + |logit|."""
    length = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=1)))
    terms = length**order * jnp.sum(jnp.max(jnp.abs(X @ values.T), axis=0))
    return (1 + jnp.max(jnp.abs(logits))) * (terms + length)


on_heads = partial(
    identity, source=Source.FOUND, sample=heads_and_directions, count=32, roundings=ROUNDINGS
)
_PRINTED = Control(r"the printed $\varphi' = \mathrm{diag}(\varphi) - v v^\top$", printed=True)


@on_heads(
    "Lemma 1, first item", controls=[_PRINTED, Control("$W$ transposed in the first", turned=True)]
)
def lemma_1_gradient(X, U, W, *, printed=False, turned=False):
    r"""$$\nabla_U \Phi(X;\theta) = \varphi(XWX^\top)X,\quad \nabla_W \Phi(X;\theta) =
    \sum_{t=1}^T x_t u_t^\top X^\top \varphi'(XW^\top x_t) X$$

    With $\varphi' = \mathrm{diag}(\varphi) - \varphi \varphi^\top$. The right side is the
    formula, the left automatic differentiation.
    """
    logits = X @ W @ X.T
    by_U = jax.nn.softmax(logits.T if turned else logits) @ X
    by_W = jnp.einsum("ti,tk,sk,tsr,rj->ij", X, U, X, _slopes(logits, printed), X)
    auto_U, auto_W = jax.grad(_output(X), argnums=(0, 1))(U, W)
    automatic = jnp.concatenate([auto_U.ravel(), auto_W.ravel()])
    formula = jnp.concatenate([by_U.ravel(), by_W.ravel()])
    return Sides(automatic, formula, _magnitude(X, logits, U, 2))


@on_heads("Lemma 1, second item, first formula", controls=[_PRINTED])
def lemma_1_mixed(X, U, W, a, b, *, printed=False):
    r"""$$\nabla_W \langle a, \nabla_U \Phi(X;\theta)\, b \rangle =
    \sum_{t=1}^T x_t a_t b^\top X^\top \varphi'(XW^\top x_t) X$$

    With $\varphi' = \mathrm{diag}(\varphi) - \varphi \varphi^\top$.
    """
    logits = X @ W @ X.T
    formula = jnp.einsum("t,ti,s,tsr,rj->ij", a, X, X @ b, _slopes(logits, printed), X)
    # <a, grad_U Phi b> is the derivative of Phi in the direction a b' of U.
    values = a[:, None] * b[None, :]
    automatic = jax.grad(lambda W: jax.jvp(lambda U: _output(X)(U, W), (U,), (values,))[1])(W)
    return Sides(automatic, formula, _magnitude(X, logits, values, 2))


@on_heads(
    "Lemma 1, second item, second formula",
    controls=[_PRINTED, Control("$d$ without its third term", third=0.0)],
)
def lemma_1_second(X, U, W, b, c, *, printed=False, third=1.0):
    r"""$$\nabla_W \langle c, \nabla_W \Phi(X;\theta)\, b \rangle = \sum_{t=1}^T (c^\top x_t)\,
    x_t d^\top \varphi'(XW^\top x_t) X,\quad d = \mathrm{diag}(Xb) X u_t - X u_t b^\top
    X^\top \varphi(XW^\top x_t) - X b u_t^\top X^\top \varphi(XW^\top x_t)$$

    With $\varphi' = \mathrm{diag}(\varphi) - \varphi \varphi^\top$.
    """
    logits, values, step = X @ W @ X.T, U @ X.T, X @ b
    phi = jax.nn.softmax(logits)
    d = step[None, :] * values - values * (phi @ step)[:, None]
    d -= third * step[None, :] * jnp.sum(values * phi, axis=1)[:, None]
    formula = jnp.einsum("t,ti,ts,tsr,rj->ij", X @ c, X, d, _slopes(logits, printed), X)
    # <c, grad_W Phi b> is the derivative of Phi in the direction c b' of W.
    turn = c[:, None] * b[None, :]
    automatic = jax.grad(lambda W: jax.jvp(lambda W: _output(X)(U, W), (W,), (turn,))[1])(W)
    sizes = 6 * jnp.linalg.norm(b) * jnp.linalg.norm(c)
    return Sides(automatic, formula, sizes * _magnitude(X, logits, U, 4))


@on_heads(
    "Lemma 1, the library's closed forms",
    source=Source.DERIVED,
    controls=[Control("one percent more", share=1.01)],
)
def lemma_1_closed_forms(X, U, W, a, b, c, *, share=1.0):
    r"""$$\nabla \Phi,\quad \nabla^2 \Phi,\quad \langle v, \nabla^2 \Phi\, v \rangle,\quad
    \nabla_W \langle a, \nabla_U \Phi\, b \rangle,\quad
    \nabla_W \langle c, \nabla_W \Phi\, b \rangle$$

    As the library computes them, against automatic differentiation; $v = (a b^\top, c b^\top)$.
    """
    flat, back = ravel_pytree(MultiHead(U[None], W[None]))
    slope = jax.grad(lambda theta: back(theta)(X))(flat)
    bend = jax.hessian(lambda theta: back(theta)(X))(flat)
    along = MultiHead(jnp.outer(a, b)[None], jnp.outer(c, b)[None])
    v, half = ravel_pytree(along)[0], U.size
    left = [ravel_pytree(model_gradient(back(flat), X))[0], model_hessian(back(flat), X)]
    left += [hessian_form(back(flat), X, along), mixed_derivative(W, X, a, b)]
    left.append(second_derivative(U, W, X, c, b))
    of_U, of_W = bend[half:, :half] @ v[:half], bend[half:, half:] @ v[half:]
    right = [slope, bend, v @ bend @ v, of_U, of_W]
    size = (1 + jnp.sum(v**2)) * _magnitude(X, X @ W @ X.T, U, 4)
    values, expected = (jnp.concatenate([jnp.ravel(x) for x in side]) for side in (left, right))
    return Sides(values, share * expected, magnitude=size)


@erratum(
    "Section 2, notation",
    of=Kind.IDENTITY,
    witness=lambda: {"v": np.asarray([1.0, 1.0])},
    sample=lambda rng, count: {"v": rng.normal(size=(count, 2))},
    reason="at $v = (1, 1)$ the derivative is $(1, -1; -1, 1) / 4$, not $(-1/2, -1; ...)$",
    corrected=Control(r"with $\varphi(v) \varphi(v)^\top$ in place of $v v^\top$", printed=False),
    roundings=ROUNDINGS,
)
def softmax_derivative_printed(v, *, printed=True):
    r"""$$\varphi'(v) = \mathrm{diag}(\varphi(v)) - v v^\top$$

    A slip of notation: Lemma 1 is right with $\mathrm{diag}(\varphi) - \varphi \varphi^\top$.
    """
    left, right = jax.jacobian(jax.nn.softmax)(v), softmax_derivative(v, printed)
    return Sides(left, right, magnitude=1 + jnp.sum(v**2))
