r"""Lemmas 22, 23 and 26: one step of l_p-AttGD, and the cosine law of Bregman divergences.

W is W(k), and V, U are further matrices, the paper's W and W'. Lemma 23 states several identities,
whose formulas our text lost: the three of Sun et al. (2022), which the paper cites, each a claim.
"""

from functools import partial

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
    controls=[
        Control("dual norm in place of the inner product", dual=True),
        Control(r"five fourths of $\eta$", share=1.25),
    ],
    roundings=ROUNDINGS,
)
def lemma_22(X, y, z, v, W, p, eta, mixture, *, dual=False, share=1.0):
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
    return Sides(share * drive, growth, magnitude=magnitude)


def with_matrices(rng, count):
    """Points of trajectories with two Gaussian matrices V and U."""
    batch = on_trajectory(rng, count)
    V, U = rng.normal(size=(2, *batch["W"].shape))
    return {**batch, "V": V, "U": U}


def _size(a, b, p):
    """Magnitude of the terms of a divergence D(a, b)."""
    inner = jnp.sum(jnp.abs(potential_gradient(b, p)) * (jnp.abs(a) + jnp.abs(b)))
    return potential(a, p) + potential(b, p) + inner


def _step(X, y, z, v, W, V, p, eta, mixture):
    """A step, the risks before, after and at V, and the magnitude of the terms of Lemma 23."""
    data, loss = TokenSelection(X, y, z, v), mixed_loss(mixture)
    slope = selection_gradient(W, data, loss)
    after = mirror_step(W, slope, eta, p)
    risks = jnp.stack([selection_loss(matrix, data, loss) for matrix in (W, after, V)])
    inner = jnp.sum(jnp.abs(slope) * (jnp.abs(V) + jnp.abs(W) + jnp.abs(after)))
    rounding = jnp.sum(jnp.abs(risks)) * condition(X, z, jnp.abs(W) + jnp.abs(after) + jnp.abs(V))
    magnitude = _size(V, W, p) + _size(V, after, p) + _size(after, W, p) + eta * (rounding + inner)
    # An error of the mirror variable reaches W+ with the condition number 1 / (p - 1).
    return slope, after, risks, magnitude * jnp.maximum(1, 1 / (p - 1))


def _mixed_divergence(slope, W, after, risks, p, eta):
    """D of psi - eta L at W+ from W, as the difference of the two divergences."""
    now, then = risks[0], risks[1]
    return bregman(after, W, p) - eta * (then - now - jnp.sum(slope * (after - W)))


on_matrices = partial(identity, sample=with_matrices, roundings=ROUNDINGS)


@on_matrices(
    "Lemma 23",
    controls=[Control("the two risks exchanged in the divergence", exchanged=True)],
)
def lemma_23(X, y, z, v, W, V, p, eta, mixture, *, exchanged=False):
    r"""$$D_\psi(W, W(k)) = D_\psi(W, W(k+1)) + D_{\psi - \eta\mathcal{L}}(W(k+1), W(k))
    - \eta \langle \nabla\mathcal{L}(W(k)), W - W(k) \rangle
    - \eta \mathcal{L}(W(k)) + \eta \mathcal{L}(W(k+1))$$

    Mixtures of four losses.
    """
    slope, after, risks, magnitude = _step(X, y, z, v, W, V, p, eta, mixture)
    mixed = _mixed_divergence(slope, W, after, risks[1::-1] if exchanged else risks, p, eta)
    remainder = -eta * jnp.sum(slope * (V - W)) - eta * risks[0] + eta * risks[1]
    return Sides(bregman(V, W, p), bregman(V, after, p) + mixed + remainder, magnitude=magnitude)


@on_matrices(
    "Lemma 23, with the divergence of the loss",
    controls=[
        Control(r"$\mathcal{L}(W(k))$ in place of $\mathcal{L}(W(k+1))$", last=0),
        Control("without the divergence of the loss", factor=0.0),
    ],
)
def lemma_23_divergence(X, y, z, v, W, V, p, eta, mixture, *, last=1, factor=1.0):
    r"""$$D_\psi(W, W(k)) = D_\psi(W, W(k+1)) + D_{\psi - \eta\mathcal{L}}(W(k+1), W(k))
    + \eta D_{\mathcal{L}}(W, W(k)) - \eta \mathcal{L}(W) + \eta \mathcal{L}(W(k+1))$$

    $D_{\mathcal{L}}$ is the divergence of the risk, which need not be convex. Mixtures of four
    losses.
    """
    slope, after, risks, magnitude = _step(X, y, z, v, W, V, p, eta, mixture)
    mixed = _mixed_divergence(slope, W, after, risks, p, eta)
    of_risk = factor * (risks[2] - risks[0] - jnp.sum(slope * (V - W)))
    remainder = eta * (of_risk - risks[2] + risks[last])
    return Sides(bregman(V, W, p), bregman(V, after, p) + mixed + remainder, magnitude=magnitude)


@on_matrices(
    "Lemma 23, three points of a step",
    controls=[Control("$W(k)$ in place of $W(k+1)$ in the inner product", before=True)],
)
def lemma_23_points(X, y, z, v, W, V, p, eta, mixture, *, before=False):
    r"""$$D_\psi(W, W(k)) = D_\psi(W, W(k+1)) + D_\psi(W(k+1), W(k))
    - \eta \langle \nabla\mathcal{L}(W(k)), W - W(k+1) \rangle$$

    Lemma 26 at the step: mirror variables differ by $\eta\nabla\mathcal{L}(W(k))$. Mixtures of four
    losses.
    """
    slope, after, _, magnitude = _step(X, y, z, v, W, V, p, eta, mixture)
    inner = jnp.sum(slope * (V - (W if before else after)))
    right = bregman(V, after, p) + bregman(after, W, p) - eta * inner
    return Sides(bregman(V, W, p), right, magnitude=magnitude)


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
