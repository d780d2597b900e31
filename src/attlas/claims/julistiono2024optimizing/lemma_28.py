r"""Lemma 28: trajectories started in the inner cone stay in the outer one.

One sample of two tokens: there Lemma 21 holds with pi = 0 beyond R_delta, so that pi / (1 + pi) in
(27) can be let go to zero. Trajectories are plain l_p-AttGD with a constant step, a fixed
multiple of 1 / ||grad L(W(0))||_q: after 200 steps the norm has grown by several ||W_mm||.
"""

from functools import partial

import jax
import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.cone_instances import (
    SOLVED,
    WIDE,
    closed_form,
    cone_divergence,
    cone_scale,
    cone_source,
    far_enough,
    gaps,
    in_the_cone,
    plain_norm,
    radius_delta,
    token_gaps,
)
from attlas.claims.julistiono2024optimizing.lemma_27 import measured_step, small_enough
from attlas.core.claim import Control, ProofStep, Sides, Source, assume
from attlas.core.statement import inequality

_RECORDS, _BETWEEN = 5, 40


def _excess_over_gradient(X, q, v, W, log_gradient):
    """(L(W) - L_min) / ||grad L(W)||_q, L_min = l(gamma_0) of the one sample."""
    gamma = token_gaps(X, v).gamma[0]
    log_s = jax.nn.log_sigmoid(-gaps(X, q, W)[0, 0])
    rise = (gamma[0] - gamma[1]) * jnp.exp(log_s)
    excess = jnp.log1p(jax.nn.sigmoid(-gamma[0]) * jnp.expm1(rise))
    return excess / jnp.exp(log_gradient)


def _trajectory(raw):
    """W(0) at half the cone's width and R_delta or more, the step, and the trajectory."""
    shared = {"norm": jnp.ones_like(raw["norm"]), "share": 0.5 * raw["share"]}
    placed = closed_form({**raw, **shared})
    X, q, v, p, W_mm = (placed[name] for name in ("X", "q", "v", "p", "W_mm"))
    least = radius_delta(X, q, v, p, W_mm)
    radius = least * (1 + raw["norm"] / 100)
    W = placed["W"] * radius * raw["turn"]
    step_from = partial(measured_step, X, q, v, p, W_mm)
    log_gradient = step_from(W, jnp.ones_like(radius)).log_gradient
    spent = _excess_over_gradient(X, q, v, W, log_gradient)
    # "R big enough": eta (L(W(0)) - L_min) / ||W(0)||^p takes at most 0.4 of the cone's width.
    room = 0.4 * cone_scale(X, q, p, W_mm).mu * radius**p / spent
    tau = jnp.minimum(0.05, room)

    def advance(W, _):
        log_now = step_from(W, tau).log_gradient
        step = step_from(W, tau * jnp.exp(log_now - log_gradient))
        return step.W_next, small_enough(step.descent, step.power_growth, step.toward_w)

    def segment(W, _):
        W, good = jax.lax.scan(advance, W, None, length=_BETWEEN)
        return W, (W, jnp.all(good))

    _, (path, good) = jax.lax.scan(segment, W, None, length=_RECORDS)
    found = {"tau": tau, "spent": spent, "path": path, "small": jnp.all(good)}
    return {**placed, "W": W, "radius": least, **found}


on_trajectories = partial(
    inequality,
    sample=cone_source(_trajectory, T=2, n=1),
    assumptions=[
        SOLVED,
        assume(r"$W(0)$ lies in the cone of width $\mu_0$", in_the_cone),
        WIDE,
        assume(r"the norm of $W(0)$ is at least $R_\delta$", far_enough),
        assume(r"$\eta$ is small enough: Lemmas 24 and 25 hold on all steps", lambda small: small),
    ],
    # A divergence is one minus a sum of four terms: 64 roundings of one.
    roundings=64,
)


def _divergences(W_mm, path, p):
    return jax.vmap(lambda W: cone_divergence(W_mm, W, p))(path)


@on_trajectories(
    "Lemma 28, proof (27)",
    controls=[
        Control(
            "the ratio of norms to the power $4 (p - 1)$, without the term of the loss",
            faster=4.0,
            loss=0.0,
        )
    ],
    proof_step=ProofStep("Lemmas 27-29", 4),
)
def lemma_28_27(p, W_mm, W, path, tau, spent, *, faster=1.0, loss=1.0):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) \le \frac{\pi}{1+\pi}
    +\left(\frac{\|W(0)\|}{\|W(k)\|}\right)^{p-1}D_\psi(\bar W_{mm},\bar W(0))
    +\frac{\eta\left(\mathcal L(W(0))-\mathcal L_{\min}\right)}{\|W(0)\|\,\|W(k)\|^{p-1}}$$

    Taken at $\pi = 0$, which one sample of two tokens allows: Lemma 27 summed over the steps.
    """
    start = plain_norm(W, p)
    norms = jax.vmap(lambda V: plain_norm(V, p))(path)
    first = (start / norms) ** (faster * (p - 1)) * cone_divergence(W_mm, W, p)
    second = loss * tau * spent / (start * norms ** (p - 1))
    return Sides(_divergences(W_mm, path, p), first + second, magnitude=jnp.ones_like(norms))


@on_trajectories(
    "Lemma 28",
    Source.RECALLED,
    controls=[
        Control(
            "start outside the cone, at the worse token",
            sample=cone_source(_trajectory, T=2, n=1, turn=-1.0),
        )
    ],
    proof_step=ProofStep("Lemmas 27-29", 5),
)
def lemma_28(X, q, p, W_mm, path):
    r"""$$\forall\mu\in(0,\mu_0]\ \exists R,\ \mu'\in(0,\mu]:\quad
    W(0)\in C_{p,\mu',R} \;\Rightarrow\; W(k)\in C_{p,\mu,R}\ \forall k$$

    Here $\mu = \mu_0$, $\mu' \le \mu_0 / 2$ and $R$ such that the loss takes $0.4 \mu_0$;
    divergence after 40 to 200 steps against $\mu_0$.
    """
    left = _divergences(W_mm, path, p)
    mu = cone_scale(X, q, p, W_mm).mu
    return Sides(left, jnp.full_like(left, mu), magnitude=jnp.ones_like(left))
