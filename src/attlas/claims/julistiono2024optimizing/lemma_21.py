r"""Lemma 21: beyond R_pi the gradient's correlation with W is at most 1 + pi times that with W_mm.

Two samples of two tokens. With rho = ||W|| / ||W_mm|| and g_i the gaps under W / rho the
claim reads sum_i c_i exp(-g_i rho) (1 + pi - g_i) >= 0, c_i = -l'_i (gamma_i0 - gamma_i1) / (1 +
exp(-g_i rho))^2. One gap is at most 1, since W_mm is the unique least-norm separator; the other
takes at most exp(-pi rho) / (e rho). With c_max <= C c_min both radii below follow, ours without
the logarithm of 1 / pi.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.cone_instances import (
    closed_form,
    cone_scale,
    cone_source,
    in_the_cone,
    into_cone,
    plain_norm,
    radius_delta,
    solves_the_svm,
    token_gaps,
    wide_enough,
)
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
from attlas.losses.margin_loss import margin_loss
from attlas.tasks.token_selection.gradient import scaled_gradient

_PAPER = "julistiono2024optimizing"
# Norms, the cone's projection and a gradient of two samples of two tokens: 64 roundings.
_TERMS = 64


def _spread(instance: Instance) -> Array:
    """4 / e times C: an upper bound of c_max / c_min, and exp(-x rho) x <= 1 / (e rho)."""
    scores = token_gaps(instance)
    low, high = scores.log_slopes
    return 4 / jnp.e * jnp.exp(high - low) * scores.spread / scores.gap


def radius_pi(instance: Instance, with_log: bool) -> Array:
    """R_pi, with the logarithm of 1 / pi as recalled or without it.

    Args:
        instance: with its SVM solved, and `pi`.
        with_log: whether to divide by pi inside the logarithm.

    Returns:
        The radius.
    """
    pi, bound = instance["pi"], 1 + _spread(instance)
    inside = bound / pi if with_log else bound
    return jnp.maximum(radius_delta(instance), cone_scale(instance).norm / pi * jnp.log(inside))


def _beyond(instance: Instance, with_log: bool) -> dict[str, Array]:
    """W of unit norm placed in the cone, then stretched to 1 to 1.5 times R_pi."""
    placed = closed_form({**instance, "norm": jnp.ones_like(instance["norm"])})
    radius = radius_pi(placed, with_log)
    stretch = radius * (1 + jnp.maximum(0.0, instance["norm"] - 50) / 100)
    mu = cone_scale(placed).mu
    return {**placed, "W": placed["W"] * stretch, "radius": radius, "mu": mu}


def _kept_beyond(instance: Instance) -> dict[str, Array]:
    """A moved W back in the cone, at R_pi itself (the radius does not depend on W)."""
    W = into_cone(instance["W_mm"], instance["W"], instance["p"], instance["mu"])
    return {**instance, "W": W * instance["radius"]}


def _far_enough(instance: Instance) -> Array:
    # W was scaled to the radius: two norms of four entries.
    size = plain_norm(instance["W"], instance["p"])
    return size >= instance["radius"] * (1 - 64 * jnp.finfo(size.dtype).eps)


_ASSUMPTIONS = (
    Assumption("W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm),
    Assumption("W lies in the cone of width mu_0", in_the_cone),
    Assumption("mu_0 is well above rounding", wide_enough),
    Assumption("the norm of W is at least R_pi", _far_enough),
)


def _sides(instance: Instance, without_pi: bool = False) -> Sides:
    """Minus both correlations; the gradient enters up to a positive factor."""
    W, W_mm, X, p = (instance[k] for k in ("W", "W_mm", "X", "p"))
    gamma, z = token_gaps(instance).gamma, jnp.diag(instance["q"])
    G, _ = scaled_gradient(W, X, z, gamma, margin_loss("logistic"))
    W_unit, mm_unit = W / plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    factor = 1.0 if without_pi else 1 + instance["pi"]
    left, right = -jnp.sum(G * W_unit), -factor * jnp.sum(G * mm_unit)
    # G is the same on both sides: only its products with the two directions are rounded.
    return Sides(left, right, jnp.sum(jnp.abs(G) * (jnp.abs(W_unit) + factor * jnp.abs(mm_unit))))


LEMMA_21 = Claim(
    name=f"{_PAPER}/lemma-21",
    paper=_PAPER,
    locator="Lemma 21",
    statement=(
        r"\langle\nabla\mathcal L(W),\bar W\rangle \ge"
        r"(1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle,\quad W\in C_{p,\mu_0,R_\pi},"
        r"\quad R_\pi=\max\left\{R_\delta,\frac{\|W_{mm}\|_{p,p}}{\pi}\log\frac{1+C}{\pi}\right\}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=cone_source(partial(_beyond, with_log=True), T=2),
    sides=_sides,
    assumptions=_ASSUMPTIONS,
    control=(Control("pi = 0", sides=partial(_sides, without_pi=True)),),
    terms=_TERMS,
    ledger=Link("Lemmas 19-21", 9),
    note=(
        "pi from 0.01 to 1; constant C = (4/e) (l'_max / l'_min) (Gamma / gamma_gap) derived for "
        "two samples of two tokens. With one sample of two tokens even pi = 0 holds."
    ),
)

LEMMA_21_SHARPENED = Claim(
    name=f"{_PAPER}/lemma-21-sharpened",
    paper=_PAPER,
    locator="Lemma 21, sharpened",
    statement=(
        r"\langle\nabla\mathcal L(W),\bar W\rangle \ge"
        r"(1+\pi)\langle\nabla\mathcal L(W),\bar W_{mm}\rangle,\quad W\in C_{p,\mu_0,R_\pi},"
        r"\quad R_\pi=\max\left\{R_\delta,\frac{\|W_{mm}\|_{p,p}}{\pi}\log(1+C)\right\}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=cone_source(partial(_beyond, with_log=False), T=2),
    sides=_sides,
    assumptions=_ASSUMPTIONS,
    control=(Control("pi = 0", sides=partial(_sides, without_pi=True)),),
    free=("W",),
    domain=_kept_beyond,
    terms=_TERMS,
    note=(
        "R_pi = O(1/pi) is enough, without the logarithm of 1/pi: shown for two samples of two "
        "tokens, from x exp(-rho x) <= 1 / (e rho)."
    ),
)
