r"""Lemma 28: trajectories started in the inner cone stay in the outer one.

One sample of two tokens: there Lemma 21 holds with pi = 0 beyond R_delta, so that pi / (1 + pi) in
(27) can be let go to zero. Trajectories are plain l_p-AttGD with a constant step, a fixed
multiple of 1 / ||grad L(W(0))||_q: after 200 steps the norm has grown by several ||W_mm||.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.cone_instances import (
    closed_form,
    cone_divergence,
    cone_scale,
    cone_source,
    gaps,
    in_the_cone,
    plain_norm,
    radius_delta,
    solves_the_svm,
    token_gaps,
    wide_enough,
)
from attlas.claims.julistiono2024optimizing.lemma_27 import measured_step, small_enough
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)

_PAPER = "julistiono2024optimizing"
_RECORDS, _BETWEEN = 5, 40


def _excess_over_gradient(instance: Instance, log_gradient: Array) -> Array:
    """(L(W) - L_min) / ||grad L(W)||_q, L_min = l(gamma_0) of the one sample."""
    gamma = token_gaps(instance).gamma[0]
    log_s = jax.nn.log_sigmoid(-gaps(instance, instance["W"])[0, 0])
    rise = (gamma[0] - gamma[1]) * jnp.exp(log_s)
    excess = jnp.log1p(jax.nn.sigmoid(-gamma[0]) * jnp.expm1(rise))
    return excess / jnp.exp(log_gradient)


def _start(instance: Instance) -> dict[str, Array]:
    """W(0) at half the cone's width and R_delta or more, the step, and the trajectory."""
    shared = {"norm": jnp.ones_like(instance["norm"]), "share": 0.5 * instance["share"]}
    placed = closed_form({**instance, **shared})
    radius = radius_delta(placed) * (1 + instance["norm"] / 100)
    W = placed["W"] * radius * instance["turn"]
    begun = {**placed, "W": W, "tau": jnp.ones_like(radius)}
    log_gradient = measured_step(begun).log_gradient
    spent = _excess_over_gradient(begun, log_gradient)
    # "R big enough": eta (L(W(0)) - L_min) / ||W(0)||^p takes at most 0.4 of the cone's width.
    room = 0.4 * cone_scale(begun).mu * radius ** begun["p"] / spent
    tau = jnp.minimum(0.05, room)

    def advance(W: Array, _: None) -> tuple[Array, Array]:
        now = {**begun, "W": W, "tau": tau}
        log_now = measured_step(now).log_gradient
        step = measured_step({**now, "tau": tau * jnp.exp(log_now - log_gradient)})
        return step.W_next, small_enough(step)

    def segment(W: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        W, good = jax.lax.scan(advance, W, None, length=_BETWEEN)
        return W, (W, jnp.all(good))

    _, (path, good) = jax.lax.scan(segment, W, None, length=_RECORDS)
    return {**begun, "tau": tau, "spent": spent, "path": path, "small": jnp.all(good)}


_inside = cone_source(_start, T=2, n=1)
_outside = cone_source(_start, T=2, n=1, turn=-1.0)


def _divergences(instance: Instance) -> Array:
    return jax.vmap(lambda W: cone_divergence(instance["W_mm"], W, instance["p"]))(instance["path"])


def _far_enough(instance: Instance) -> Array:
    # W was scaled to the radius: two norms of four entries.
    size = plain_norm(instance["W"], instance["p"])
    return size >= radius_delta(instance) * (1 - 64 * jnp.finfo(size.dtype).eps)


def _stays(instance: Instance) -> Sides:
    left = _divergences(instance)
    return Sides(left, jnp.full_like(left, 1.0) * cone_scale(instance).mu, jnp.ones_like(left))


def _bound(instance: Instance, faster: float = 1.0, loss: float = 1.0) -> Sides:
    """(27) at pi = 0 along the recorded steps."""
    p, W = instance["p"], instance["W"]
    start = plain_norm(W, p)
    norms = jax.vmap(lambda V: plain_norm(V, p))(instance["path"])
    first = (start / norms) ** (faster * (p - 1)) * cone_divergence(instance["W_mm"], W, p)
    second = loss * instance["tau"] * instance["spent"] / (start * norms ** (p - 1))
    left = _divergences(instance)
    return Sides(left, first + second, jnp.ones_like(left))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.RECONSTRUCTED,
    "instances": _inside,
    "assumptions": (
        Assumption(
            "W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm
        ),
        Assumption("W(0) lies in the cone of width mu_0", in_the_cone),
        Assumption("mu_0 is well above rounding", wide_enough),
        Assumption("the norm of W(0) is at least R_delta", _far_enough),
        Assumption("eta is small enough: Lemmas 24 and 25 hold on all steps", lambda i: i["small"]),
    ),
    # A divergence is one minus a sum of four terms: 64 roundings of one.
    "terms": 64,
}

LEMMA_28_BOUND = Claim(
    name=f"{_PAPER}/lemma-28-27",
    locator="Lemma 28, proof (27)",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W(k)) \le \frac{\pi}{1+\pi}"
        r"+\left(\frac{\|W(0)\|}{\|W(k)\|}\right)^{p-1}D_\psi(\bar W_{mm},\bar W(0))"
        r"+\frac{\eta\left(\mathcal L(W(0))-\mathcal L_{\min}\right)}{\|W(0)\|\,\|W(k)\|^{p-1}}"
    ),
    provenance=Provenance.DERIVED,
    sides=_bound,
    control=(
        Control(
            "the ratio of norms to the power 4 (p - 1), without the term of the loss",
            sides=lambda i: _bound(i, faster=4.0, loss=0.0),
        ),
    ),
    ledger=Link("Lemmas 27-29", 4),
    note="Taken at pi = 0, which one sample of two tokens allows: Lemma 27 summed over the steps.",
    **_COMMON,
)

LEMMA_28 = Claim(
    name=f"{_PAPER}/lemma-28",
    locator="Lemma 28",
    statement=(
        r"\forall\mu\in(0,\mu_0]\ \exists R,\ \mu'\in(0,\mu]:\quad "
        r"W(0)\in C_{p,\mu',R} \;\Rightarrow\; W(k)\in C_{p,\mu,R}\ \forall k"
    ),
    provenance=Provenance.RECALLED,
    sides=_stays,
    control=(Control("start outside the cone, at the worse token", instances=_outside),),
    ledger=Link("Lemmas 27-29", 5),
    note=(
        "Here mu = mu_0, mu' <= mu_0 / 2 and R such that the loss takes 0.4 mu_0; divergence "
        "after 40 to 200 steps against mu_0."
    ),
    **_COMMON,
)
