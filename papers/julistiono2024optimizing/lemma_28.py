r"""Trajectories in the cone: (26), (27) and (29), from which Lemmas 28 and 29 follow.

Plain l_p-AttGD with a constant step, 160 steps from W(0) in the cone of half the width, at R_delta
or more. pi_k is the least pi >= 0 with which Lemma 21 holds at W(k): with it the proof's
inequalities can be evaluated far below R_pi, where they are not trivial; pi is the largest pi_k.
All are divided by ||W(0)||^{p-1}.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import inequality
from julistiono2024optimizing.cone_instances import (
    SOLVED,
    WIDE,
    at_radius,
    cone_divergence,
    cone_points,
    far_enough,
    in_the_cone,
    placed,
    plain_norm,
)
from julistiono2024optimizing.lemma_27 import measured_step, small_enough

_STEPS = 160
_FAR = 2.0
"""Half of the starts are at least this times ||W_mm|| / sqrt(mu_0) from the origin."""


def trajectory(data):
    """What 160 plain steps from W measure; `tau` is the move of the mirror variable by the first.

    `drops` are the falls of the loss over ||W(k)|| (||W(k+1)||^{p-1} - ||W(k)||^{p-1}), times eta.
    """
    start = plain_norm(data["W"], data["p"])
    begun = start ** (data["p"] - 1)
    first = measured_step(data, data["W"], data["tau"]).log_gradient

    def advance(W, _):
        step = measured_step(data, W, data["tau"], first)
        tau = step.tau
        size = plain_norm(step.W_next, data["p"])
        return step.W_next, {
            "least_pi": jnp.maximum(step.toward_w / step.toward_mm - 1, 0),
            "toward": tau * step.toward_mm / begun,
            "growth": tau * step.growth / begun,
            # Divided by ||W(0)|| in (26), by ||W(k)|| in (29).
            "fall": -tau * step.descent * plain_norm(W, data["p"]) / (start * begun),
            "power": (size / start) ** (data["p"] - 1),
            "drops": -step.descent / step.growth,
            "divergences": cone_divergence(data["W_mm"], step.W_next, data["p"]),
            "small": small_enough(step.descent, step.power_growth, step.toward_w, step.rounding),
            "error": tau * step.rounding / begun,
        }

    return jax.lax.scan(advance, data["W"], None, length=_STEPS)[1]


def with_path(instance, turn=1.0):
    """A placed instance with its path, the first step of which is 1/100 to 1/10 of ||W_mm||.

    The steps of the path are `small` where the inequalities of Lemmas 24 and 25 hold on all of
    them.
    """
    size, p = instance["radius"] * instance["stretch"], instance["p"]
    share = 10 ** (-2 + 1 * (7 * instance["stretch"] % 1))
    if turn < 0:
        # At the worse tokens the gradient grows along the path, and with it the steps, without
        # bound: these keep all 160 together below half a unit of every logit.
        share = share / (64 * instance["A"])
    tau = share * jnp.minimum(p - 1, 1) * size ** (p - 2) * instance["norm"]
    begun = {**instance, "W": turn * instance["W"], "tau": tau}
    path = trajectory(begun)
    return {**begun, **path, "small": jnp.all(path["small"])}


def from_radius(radius, width=None):
    """A sampler of trajectories from this radius and width, and the projection of a search."""
    paths = jax.jit(
        jax.vmap(with_path, in_axes=(0, None)), compiler_options=CHEAP_COMPILATION, static_argnums=1
    )

    def finish(batch, turn=1.0):
        return {name: np.asarray(value) for name, value in paths(batch, turn).items()}

    def sample(rng, count, turn=1.0, **details):
        return cone_points(rng, count, radius, width, finish=partial(finish, turn=turn), **details)

    def project(**moved):
        return with_path(placed(moved, radius, width))

    return sample, project


def start_radius(instance):
    """R_delta, and for half of the instances at least twice ||W_mm|| / sqrt(mu_0)."""
    near, far = at_radius(instance), _FAR * instance["norm"] / jnp.sqrt(instance["mu"])
    return jnp.where(instance["pi"] < 0.1, jnp.maximum(near, far), near)


_sample, _project = from_radius(start_radius, lambda instance: instance["mu"] / 2)
on_trajectories = partial(
    inequality,
    sample=_sample,
    search_over=("X", "z", "v", "W"),
    project=_project,
    evaluations=1280,
    assumptions=[
        SOLVED,
        assume(r"$W(0)$ lies in the cone of width $\mu_0$", in_the_cone),
        WIDE,
        assume(r"the norm of $W(0)$ is at least $R_\delta$", far_enough),
        assume(r"$\eta$ is small enough: Lemmas 24 and 25 hold on all steps", lambda small: small),
    ],
    count=128,
    # A divergence is one minus a sum of nine terms: 64 roundings of one.
    roundings=64,
)


@on_trajectories(
    "Lemma 28, proof (26)",
    controls=[Control(r"$\pi = 0$", least=0.0)],
    proof_step=ProofStep("Lemmas 27-29", 4),
)
def lemma_28_26(least_pi, toward, growth, fall, error, *, least=1.0):
    r"""$$\langle\nabla\psi(W(k{+}1))-\nabla\psi(W(k)),\bar W_{mm}\rangle \ge
    \frac{\|W(k{+}1)\|^{p-1}-\|W(k)\|^{p-1}}{1+\pi}
    +\frac{\eta}{\|W(0)\|}\left(\mathcal L(W(k{+}1))-\mathcal L(W(k))\right)$$

    The form that can be summed. The formula of (26) is lost; this is what the sentence after it
    sums.
    """
    return Sides(growth / (1 + least * jnp.max(least_pi)) - fall, toward, error=error)


@on_trajectories(
    "Lemma 28, proof (27)",
    controls=[
        Control(r"$\pi = 0$", least=0.0),
        Control("four fifths of the right side", share=0.8),
    ],
    proof_step=ProofStep("Lemmas 27-29", 5),
)
def lemma_28_27(p, W_mm, W, least_pi, power, fall, divergences, *, least=1.0, share=1.0):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) \le \frac{\pi}{1+\pi}
    +\left(\frac{\|W(0)\|}{\|W(k)\|}\right)^{p-1}D_\psi(\bar W_{mm},\bar W(0))
    +\frac{\eta\left(\mathcal L(W(0))-\mathcal L(W(k))\right)}{\|W(0)\|\,\|W(k)\|^{p-1}}$$

    $\mathcal L_{\min}$ of the paper in place of $\mathcal L(W(k))$ is weaker. The sum of (26).
    """
    pi = least * jnp.max(least_pi)
    right = pi / (1 + pi) + (cone_divergence(W_mm, W, p) + jnp.cumsum(fall)) / power
    return Sides(divergences, share * right, magnitude=jnp.ones_like(divergences))


@on_trajectories(
    "Lemma 29, proof (29)",
    controls=[Control("half of the sums", summed=0.5)],
    proof_step=ProofStep("Lemmas 27-29", 7),
)
def lemma_29_29(p, W_mm, W, least_pi, growth, fall, power, divergences, error, *, summed=1.0):
    r"""$$\|W(k)\|^{p-1}D_\psi(\bar W_{mm},\bar W(k)) \le
    \|W(0)\|^{p-1}D_\psi(\bar W_{mm},\bar W(0))
    +\sum_{j<k}\frac{\pi_j}{1+\pi_j}\left(\|W(j{+}1)\|^{p-1}-\|W(j)\|^{p-1}\right)
    +\frac{\eta\left(\mathcal L(W(0))-\mathcal L(W(k))\right)}{\|W(0)\|}$$

    As (27) with a $\pi_j$ for every step; Lemma 29 takes $\pi_j$ of order $\log x_j / x_j$.
    """
    shares = least_pi / (1 + least_pi) * growth
    right = cone_divergence(W_mm, W, p) + jnp.cumsum(summed * (shares + fall))
    return Sides(power * divergences, right, magnitude=power, error=jnp.cumsum(error))
