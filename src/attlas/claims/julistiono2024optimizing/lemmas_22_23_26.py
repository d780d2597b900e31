r"""Lemmas 22, 23 and 26: one step of l_p-AttGD, and the cosine law of Bregman divergences.

W is W(k), W+ = W(k+1), and eta the step; V, U are further matrices (the paper's W, W').
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    condition,
    dual_norm,
    gradient,
    mirror_step,
    on_trajectory,
    risk,
)
from attlas.core.generator import generator
from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.optim.mirror_descent import bregman, potential, potential_gradient

_PAPER = "julistiono2024optimizing"


def _twenty_two(instance: Instance, dual: bool = False) -> Sides:
    W, p, eta = instance["W"], instance["p"], instance["eta"]
    slope = gradient(instance, W)
    after = entrywise_norm(mirror_step(W, slope, eta, p), p)
    before = entrywise_norm(W, p)
    drive = eta * (dual_norm(slope, p) if dual else jnp.sum(-slope * W) / before)
    growth = after ** (p - 1) - before ** (p - 1)
    scale = after ** (p - 1) + before ** (p - 1) + eta * dual_norm(slope, p)
    return Sides(drive, growth, scale=scale)


LEMMA_22 = Claim(
    name=f"{_PAPER}/lemma-22",
    paper=_PAPER,
    locator="Lemma 22",
    statement=(
        r"\|W(k+1)\|_{p,p}^{p-1} \ge \|W(k)\|_{p,p}^{p-1}"
        r"+ \frac{\eta}{\|W(k)\|_{p,p}} \langle -\nabla \mathcal{L}(W(k)), W(k) \rangle"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=on_trajectory,
    sides=_twenty_two,
    free=("W", "X", "v"),
    control=(
        Control("dual norm in place of the inner product", sides=partial(_twenty_two, dual=True)),
    ),
    terms=ROUNDINGS,
    note="Shown as drive against growth of the norm; an equality when W is along the gradient.",
)


def _with_matrices(key: PRNGKeyArray, count: int) -> Instance:
    batch = on_trajectory(key, count)
    shape = batch["W"].shape
    V, U = generator(key).normal(size=(2, *shape))
    return {**batch, "V": jnp.asarray(V), "U": jnp.asarray(U)}


def _size(a: Array, b: Array, p: Array) -> Array:
    """Magnitude of the terms of a divergence D(a, b)."""
    inner = jnp.sum(jnp.abs(potential_gradient(b, p)) * (jnp.abs(a) + jnp.abs(b)))
    return potential(a, p) + potential(b, p) + inner


def _twenty_three(instance: Instance, exchanged: bool = False) -> Sides:
    V, W, p, eta = instance["V"], instance["W"], instance["p"], instance["eta"]
    slope = gradient(instance, W)
    after = mirror_step(W, slope, eta, p)
    now, then = risk(instance, W), risk(instance, after)
    if exchanged:
        now, then = then, now
    # D of psi - eta L is the difference of the two divergences.
    mixed = bregman(after, W, p) - eta * (then - now - jnp.sum(slope * (after - W)))
    rest = -eta * jnp.sum(slope * (V - W)) - eta * risk(instance, W) + eta * risk(instance, after)
    right = bregman(V, after, p) + mixed + rest
    inner = jnp.sum(jnp.abs(slope) * (jnp.abs(V) + jnp.abs(W) + jnp.abs(after)))
    risks = (jnp.abs(now) + jnp.abs(then)) * condition(instance, jnp.abs(W) + jnp.abs(after))
    scale = _size(V, W, p) + _size(V, after, p) + _size(after, W, p) + eta * (risks + inner)
    # An error of the mirror variable reaches W+ with the condition number 1 / (p - 1).
    return Sides(bregman(V, W, p), right, scale=scale * jnp.maximum(1, 1 / (p - 1)))


LEMMA_23 = Claim(
    name=f"{_PAPER}/lemma-23",
    paper=_PAPER,
    locator="Lemma 23",
    statement=(
        r"D_\psi(W, W(k)) = D_\psi(W, W(k+1)) + D_{\psi - \eta\mathcal{L}}(W(k+1), W(k))"
        r"- \eta \langle \nabla\mathcal{L}(W(k)), W - W(k) \rangle"
        r"- \eta \mathcal{L}(W(k)) + \eta \mathcal{L}(W(k+1))"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_with_matrices,
    sides=_twenty_three,
    control=(
        Control(
            "the two risks exchanged in the divergence",
            sides=partial(_twenty_three, exchanged=True),
        ),
    ),
    terms=ROUNDINGS,
)


def _twenty_six(instance: Instance, exchanged: bool = False) -> Sides:
    W, V, U, p = instance["W"], instance["V"], instance["U"], instance["p"]
    slopes = potential_gradient(V, p) - potential_gradient(U, p)
    inner = jnp.sum(slopes * (V - U if exchanged else W - U))
    scale = _size(W, V, p) + _size(W, U, p) + _size(U, V, p)
    right = bregman(W, U, p) + bregman(U, V, p) - inner
    return Sides(bregman(W, V, p), right, scale=scale)


LEMMA_26 = Claim(
    name=f"{_PAPER}/lemma-26",
    paper=_PAPER,
    locator="Lemma 26 (cosine law)",
    statement=(
        r"D_\psi(W, V) = D_\psi(W, U) + D_\psi(U, V)"
        r"- \langle \nabla\psi(V) - \nabla\psi(U), W - U \rangle"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_with_matrices,
    sides=_twenty_six,
    control=(Control("V in place of W", sides=partial(_twenty_six, exchanged=True)),),
)
