r"""Lemma 20: inside the cone the negative gradient points along every direction of the cone.

The paper leaves the constant of Omega(.) and the one in R_delta open; those here come from our own
reading of its proof (`radius_delta`). Everything is multiplied by exp((1 + delta/2) rho) and formed
from score differences in log space, so that no side underflows.
"""

from functools import partial

import jax
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
_CHAIN = "Lemmas 19-21"
# Gaps are sums of two products of three factors; W is normalised, placed and scaled: 64 roundings,
# magnified by the exponents that they enter (see `_rounding`).
_TERMS = 64


def _beyond(instance: Instance) -> dict[str, Array]:
    """W at 1 to 3 times R_delta, and V another direction of the cone."""
    placed = closed_form(instance)
    V = into_cone(placed["W_mm"], placed["V"], placed["p"], cone_scale(placed).mu)
    size = plain_norm(placed["W"], placed["p"])
    radius, mu = radius_delta(placed), cone_scale(placed).mu
    reach = 1 + placed["norm"] / 50
    longer = placed["W"] * (reach * radius / size)
    return {**placed, "V": V, "W": longer, "radius": radius, "mu": mu}


def _kept_beyond(instance: Instance) -> dict[str, Array]:
    """A moved W back in the cone, at R_delta itself (the constants do not depend on W)."""
    p, W_mm = instance["p"], instance["W_mm"]
    W = into_cone(W_mm, instance["W"], p, instance["mu"])
    return {**instance, "W": W * instance["radius"]}


_instances = cone_source(_beyond)


def _far_enough(instance: Instance) -> Array:
    # W was scaled to the radius: two norms of four entries.
    size = plain_norm(instance["W"], instance["p"])
    return size >= radius_delta(instance) * (1 - 64 * jnp.finfo(size.dtype).eps)


_ASSUMPTIONS = (
    Assumption("W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm),
    Assumption("W lies in the cone of width mu_0", in_the_cone),
    Assumption("mu_0 is well above rounding", wide_enough),
    Assumption("the norm of W is at least R_delta", _far_enough),
)


def _rounding(instance: Instance) -> Array:
    """How much an error of one rounding in X, W or z moves an exponent."""
    X, q, W = instance["X"], instance["q"], instance["W"]
    return 1 + jnp.max(jnp.sum(jnp.abs(X) * (jnp.abs(W.T) * q[:, None])[:, None, :], axis=-1))


def _sides(instance: Instance, sign: float = 1.0) -> Sides:
    """The bound and the correlation, both times exp((1 + delta/2) rho)."""
    scale, scores = cone_scale(instance), token_gaps(instance)
    G, log_size = scaled_gradient(
        instance["W"],
        instance["X"],
        jnp.diag(instance["q"]),
        sign * scores.gamma,
        margin_loss("logistic"),
    )
    exponent = (1 + scale.delta / 2) * scale.rho
    V = instance["V"] / plain_norm(instance["V"], instance["p"])
    lift = jnp.exp(log_size + exponent)
    slope = jnp.exp(scores.log_slopes[0])
    bound = slope * scores.gap * (1 - scale.delta / 2) / (8 * scale.norm)
    error = _TERMS * jnp.finfo(bound.dtype).eps * _rounding(instance)
    return Sides(bound, -jnp.sum(G * V) * lift, error=jnp.sum(jnp.abs(G * V)) * lift * error)


LEMMA_20 = Claim(
    name=f"{_PAPER}/lemma-20",
    paper=_PAPER,
    locator="Lemma 20",
    statement=(
        r"-\langle\nabla\mathcal L(W),\bar V\rangle \ge"
        r"\frac{\ell'_{\min}\,\gamma_{gap}(1-\delta/2)}{8\|W_{mm}\|_{p,p}}\,"
        r"e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}} > 0,\quad "
        r"W,V\in C_{p,\mu_0,R_\delta},\quad R_\delta=\frac{\|W_{mm}\|_{p,p}}{\delta}"
        r"\log\frac{10\,T^2\,\Gamma A}{\gamma_{gap}}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=_instances,
    sides=_sides,
    assumptions=_ASSUMPTIONS,
    control=(Control("a token of lower score chosen as alpha", sides=partial(_sides, sign=-1.0)),),
    free=("W",),
    domain=_kept_beyond,
    terms=_TERMS,
    ledger=Link(_CHAIN, 8),
    note=(
        "Form recalled, constants (10 in R_delta, 8 in the bound) derived; norms from R_delta to "
        "3 R_delta. Every sample has a support token: without one see lemma-20-no-support. The "
        "bound loses most through exp(-delta rho / 2), the allowance of (12c)."
    ),
)


def _softmax_sides(instance: Instance, quarter: float = 0.25) -> Sides:
    """The product s_alpha s_t against exp(-(1 + delta/2) rho) / 4, times that exponential."""
    scale = cone_scale(instance)
    h = jnp.sum(instance["X"] * (instance["W"].T * instance["q"][:, None])[:, None, :], axis=-1)
    logs = jax.nn.log_softmax(h, axis=1)
    exponent = (1 + scale.delta / 2) * scale.rho
    right = jnp.exp(jnp.min(logs[:, 0] + logs[:, 1]) + exponent)
    error = _TERMS * jnp.finfo(right.dtype).eps * _rounding(instance)
    return Sides(jnp.full_like(right, quarter), right, error=right * error)


def _softmax_reversed(instance: Instance) -> Sides:
    """The exponent of (12c)'s other end."""
    sides, scale = _softmax_sides(instance), cone_scale(instance)
    return sides._replace(rhs=sides.rhs * jnp.exp(-2 * scale.delta * scale.rho))


LEMMA_20_SOFTMAX = Claim(
    name=f"{_PAPER}/lemma-20-softmax",
    paper=_PAPER,
    locator="Lemma 20, proof (from (12c))",
    statement=(
        r"s_{i\alpha_i}s_{it} \ge \frac14 e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}},"
        r"\quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R_\delta}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_softmax_sides,
    assumptions=_ASSUMPTIONS,
    control=(Control("exponent 1 - 3/2 delta", sides=_softmax_reversed),),
    terms=_TERMS,
    ledger=Link(_CHAIN, 7),
    note="Both sides are multiplied by the exponential.",
)


def _covariance_sides(instance: Instance, sign: float = 1.0) -> Sides:
    """Half the support's part against the covariance of scores and gaps, of each sample."""
    scale, scores = cone_scale(instance), token_gaps(instance)
    X, z, W = instance["X"], jnp.diag(instance["q"]), instance["W"]
    V = instance["V"] / plain_norm(instance["V"], instance["p"])

    def sample(x: Array, query: Array, gamma: Array) -> tuple[Array, Array, Array]:
        G, log_size = scaled_gradient(
            W, x[None], query[None], sign * gamma[None], margin_loss("correlation")
        )
        logs = jax.nn.log_softmax(x @ (W @ query))
        # Relative to s_alpha s_t, so that both sides are of moderate size.
        lift = jnp.exp(log_size - logs[0] - logs[1])
        return -jnp.sum(G * V) * lift, jnp.sum(jnp.abs(G * V)) * lift, jnp.ones_like(lift)

    right, size, one = jax.vmap(sample)(X, z, scores.gamma)
    left = one * scores.gap * (1 - scale.delta / 2) / (2 * scale.norm)
    error = _TERMS * jnp.finfo(left.dtype).eps * _rounding(instance)
    return Sides(left, right, error=size * error)


LEMMA_20_COVARIANCE = Claim(
    name=f"{_PAPER}/lemma-20-covariance",
    paper=_PAPER,
    locator="Lemma 20, proof (between (14) and (16))",
    statement=(
        r"\gamma_i^\top\left(\mathrm{diag}(s_i)-s_is_i^\top\right)X_i\bar V z_i \ge"
        r"\frac{\gamma_{gap}(1-\delta/2)}{2\|W_{mm}\|_{p,p}}\,s_{i\alpha_i}"
        r"\sum_{t\in\mathcal T_i}s_{it},\quad V,W\in C_{p,\mu_0,R_\delta}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_covariance_sides,
    assumptions=_ASSUMPTIONS,
    control=(
        Control(
            "a token of lower score chosen as alpha", sides=partial(_covariance_sides, sign=-1.0)
        ),
    ),
    terms=_TERMS,
    ledger=Link(_CHAIN, 6),
    note="Both sides are divided by s_alpha s_t. The half is what R_delta leaves of the support.",
)
