r"""Lemmas 22, 23 and 26: one step of l_p-AttGD, and the cosine law of Bregman divergences.

W is W(k), and V, U are further matrices, the paper's W and W'.
"""

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides
from attlas.claims.statement import identity, inequality
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import bregman, mirror_step, potential, potential_gradient
from julistiono2024optimizing.cone_instances import mixed_loss
from julistiono2024optimizing.instances import (
    ROUNDINGS,
    condition,
    dual_norm,
    on_trajectory,
)
from julistiono2024optimizing.library.token_selection.gradient import (
    selection_gradient,
    selection_loss,
)


@inequality(
    "Lemma 22",
    sample=on_trajectory,
    search_over=("W", "X", "v"),
    controls=[Control("dual norm in place of the inner product", dual=True)],
    roundings=ROUNDINGS,
)
def lemma_22(X, y, z, v, W, p, eta, mixture, *, dual=False):
    r"""$$\|W(k+1)\|_{p,p}^{p-1} \ge \|W(k)\|_{p,p}^{p-1}
    + \frac{\eta}{\|W(k)\|_{p,p}} \langle -\nabla \mathcal{L}(W(k)), W(k) \rangle$$

    Mixtures of four losses. Shown as drive against growth of the norm; an equality when $W$ is
    along the gradient.
    """
    slope = selection_gradient(W, TokenSelection(X, y, z, v), mixed_loss(mixture))
    after = entrywise_norm(mirror_step(W, slope, eta, p), p)
    before = entrywise_norm(W, p)
    drive = eta * (dual_norm(slope, p) if dual else jnp.sum(-slope * W) / before)
    growth = after ** (p - 1) - before ** (p - 1)
    magnitude = after ** (p - 1) + before ** (p - 1) + eta * dual_norm(slope, p)
    return Sides(drive, growth, magnitude=magnitude)


def with_matrices(rng, count):
    """Points of trajectories with two Gaussian matrices V and U."""
    batch = on_trajectory(rng, count)
    V, U = rng.normal(size=(2, *batch["W"].shape))
    return {**batch, "V": V, "U": U}


def _size(a, b, p):
    """Magnitude of the terms of a divergence D(a, b)."""
    inner = jnp.sum(jnp.abs(potential_gradient(b, p)) * (jnp.abs(a) + jnp.abs(b)))
    return potential(a, p) + potential(b, p) + inner


@identity(
    "Lemma 23",
    sample=with_matrices,
    controls=[Control("the two risks exchanged in the divergence", exchanged=True)],
    roundings=ROUNDINGS,
)
def lemma_23(X, y, z, v, W, V, p, eta, mixture, *, exchanged=False):
    r"""$$D_\psi(W, W(k)) = D_\psi(W, W(k+1)) + D_{\psi - \eta\mathcal{L}}(W(k+1), W(k))
    - \eta \langle \nabla\mathcal{L}(W(k)), W - W(k) \rangle
    - \eta \mathcal{L}(W(k)) + \eta \mathcal{L}(W(k+1))$$

    Mixtures of four losses.
    """
    data, loss = TokenSelection(X, y, z, v), mixed_loss(mixture)
    slope = selection_gradient(W, data, loss)
    after = mirror_step(W, slope, eta, p)
    now, then = selection_loss(W, data, loss), selection_loss(after, data, loss)
    remainder = -eta * jnp.sum(slope * (V - W)) - eta * now + eta * then
    if exchanged:
        now, then = then, now
    # D of psi - eta L is the difference of the two divergences.
    mixed = bregman(after, W, p) - eta * (then - now - jnp.sum(slope * (after - W)))
    right = bregman(V, after, p) + mixed + remainder
    inner = jnp.sum(jnp.abs(slope) * (jnp.abs(V) + jnp.abs(W) + jnp.abs(after)))
    risks = (jnp.abs(now) + jnp.abs(then)) * condition(X, z, jnp.abs(W) + jnp.abs(after))
    magnitude = _size(V, W, p) + _size(V, after, p) + _size(after, W, p) + eta * (risks + inner)
    # An error of the mirror variable reaches W+ with the condition number 1 / (p - 1).
    return Sides(bregman(V, W, p), right, magnitude=magnitude * jnp.maximum(1, 1 / (p - 1)))


@identity(
    "Lemma 26 (cosine law)",
    sample=with_matrices,
    controls=[Control("$V$ in place of $W$", exchanged=True)],
)
def lemma_26(W, V, U, p, *, exchanged=False):
    r"""$$D_\psi(W, V) = D_\psi(W, U) + D_\psi(U, V)
    - \langle \nabla\psi(V) - \nabla\psi(U), W - U \rangle$$
    """
    slopes = potential_gradient(V, p) - potential_gradient(U, p)
    inner = jnp.sum(slopes * (V - U if exchanged else W - U))
    magnitude = _size(W, V, p) + _size(W, U, p) + _size(U, V, p)
    right = bregman(W, U, p) + bregman(U, V, p) - inner
    return Sides(bregman(W, V, p), right, magnitude=magnitude)
