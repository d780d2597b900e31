r"""Lemma 19: margins inside the cone, with the two links of its proof.

The paper's alpha_i, t in T_i, tau in bar T_i are our tokens 0, 1 and 2 of two samples. `delta`,
`A` and `mu_0` are those of definition (8), rho = ||W|| / ||W_mm||; norms are entrywise l_p.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.cone_instances import (
    closed_form,
    cone_scale,
    cone_source,
    gaps,
    in_the_cone,
    into_cone,
    plain_norm,
    solves_the_svm,
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

_PAPER = "julistiono2024optimizing"
_CHAIN = "Lemmas 19-21"
# The longest path: W_mm (powers of exponent up to 10 and sums of two terms), a product of 2 x 2
# with two vectors, and two norms of four entries: below 64 roundings.
_TERMS = 64


_ASSUMPTIONS = (
    Assumption(r"W_mm solves the attention SVM (its norm equals the dual bound)", solves_the_svm),
    Assumption(r"W lies in the cone of width mu_0", in_the_cone),
    Assumption(r"mu_0 is well above rounding", wide_enough),
)


def _placed(instance: Instance) -> dict[str, Array]:
    placed = closed_form(instance)
    return {**placed, "mu": cone_scale(placed).mu}


def _kept_in_cone(instance: Instance) -> dict[str, Array]:
    """A moved W back in the cone (mu_0 does not depend on it); only its direction matters."""
    W = into_cone(instance["W_mm"], instance["W"], instance["p"], instance["mu"])
    return {**instance, "W": instance["norm"] * W}


def _relative(instance: Instance) -> tuple[Array, Array]:
    """Gaps under W / rho, and their rounding: the size of the terms times gamma_t."""
    X, q, W = (instance[k] for k in ("X", "q", "W"))
    rho = cone_scale(instance).rho
    terms = (jnp.abs(X[:, :1]) + jnp.abs(X[:, 1:])) * (jnp.abs(W.T) * q[:, None])[:, None, :]
    size = jnp.max(jnp.sum(terms, axis=-1)) / rho
    return gaps(instance, W) / rho, _TERMS * jnp.finfo(size.dtype).eps * size


def _turn(instance: Instance) -> Array:
    """The difference of the two directions."""
    W, W_mm, p = (instance[k] for k in ("W", "W_mm", "p"))
    return W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p)


def _distance(instance: Instance, parts: float = 4.0) -> Sides:
    scale = cone_scale(instance)
    left = plain_norm(_turn(instance), instance["p"])
    return Sides(left, scale.delta / (parts * scale.A), jnp.ones(()))


def _hoelder(instance: Instance) -> Sides:
    gap, rounding = _relative(instance)
    bound = 2 * cone_scale(instance).A * plain_norm(_turn(instance), instance["p"])
    change = jnp.abs(gap - gaps(instance, instance["W_mm"]))
    return Sides(jnp.max(change), bound, error=rounding)


def _hoelder_by_entry(instance: Instance) -> Sides:
    bound = cone_scale(instance).A * jnp.min(jnp.abs(_turn(instance)))
    return _hoelder(instance)._replace(rhs=bound)


def _support_to_other(instance: Instance, factor: float = 1.5) -> Sides:
    gap, rounding = _relative(instance)
    left = factor * cone_scale(instance).delta
    return Sides(left, jnp.min(gap[:, 1:] - gap[:, :1]), error=rounding)


def _chosen_to_other(instance: Instance, factor: float = 1.5) -> Sides:
    gap, rounding = _relative(instance)
    left = 1 + factor * cone_scale(instance).delta
    return Sides(left, jnp.min(gap[:, 1:]), error=rounding)


def _chosen_to_support(instance: Instance) -> Sides:
    # The rounding of the cancelled terms is an error here, not a scale, so that a search is not
    # rewarded for making them large.
    gap, rounding = _relative(instance)
    left = jnp.max(jnp.abs(gap[:, 0] - 1))
    return Sides(left, cone_scale(instance).delta / 2, error=rounding)


def _without_rho(instance: Instance) -> Sides:
    left = jnp.max(jnp.abs(gaps(instance, instance["W"])[:, 0] - 1))
    return _chosen_to_support(instance)._replace(lhs=left)


def _sharpened(instance: Instance, factor: float = 3.5) -> Sides:
    first, second = _support_to_other(instance, factor), _chosen_to_other(instance, factor)
    left, right = jnp.stack([first.lhs, second.lhs]), jnp.stack([first.rhs, second.rhs])
    return Sides(left, right, error=first.error)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": cone_source(_placed),
    "assumptions": _ASSUMPTIONS,
    "terms": _TERMS,
}

LEMMA_19_DISTANCE = Claim(
    name=f"{_PAPER}/lemma-19-distance",
    locator="Lemma 19, proof (from Lemma 13 and (8))",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W) \le \mu_0 \;\Rightarrow\;"
        r"\|\bar W-\bar W_{mm}\|_{p,p} \le \frac{\delta}{4A}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_distance,
    control=(Control("8 A in place of 4 A", sides=lambda i: _distance(i, parts=8.0)),),
    ledger=Link(_CHAIN, 1),
    note=(
        "Where the cone loses its width: Lemma 13 is loose, so that points on the edge of the "
        "cone use only a part of the allowed distance."
    ),
    **_COMMON,
)

LEMMA_19_HOELDER = Claim(
    name=f"{_PAPER}/lemma-19-hoelder",
    locator="Lemma 19, proof (Hoelder's inequality)",
    statement=(
        r"\max_{t,\tau}\left|(X_{it}-X_{i\tau})^\top\left(\frac{W}{\rho}-W_{mm}\right)z_i\right|"
        r"\le 2A\,\|\bar W-\bar W_{mm}\|_{p,p},\quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_hoelder,
    control=(
        Control(
            "the smallest entry of the difference in place of its norm", sides=_hoelder_by_entry
        ),
    ),
    ledger=Link(_CHAIN, 2),
    note=(
        "A takes every token by itself; with half the longest difference of two tokens in its "
        "place the bound would not change when all tokens move together."
    ),
    **_COMMON,
)

LEMMA_19_A = Claim(
    name=f"{_PAPER}/lemma-19-12a",
    locator="Lemma 19 (12a)",
    statement=(
        r"(X_{it}-X_{i\tau})^\top W z_i \ge \frac32\delta\,\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},"
        r"\quad t\in\mathcal T_i,\ \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_support_to_other,
    control=(Control("9/2 in place of 3/2", sides=lambda i: _support_to_other(i, factor=4.5)),),
    ledger=Link(_CHAIN, 3),
    note="Both sides are divided by rho. See lemma-19-sharpened: 7/2 in place of 3/2 holds.",
    **_COMMON,
)

LEMMA_19_B = Claim(
    name=f"{_PAPER}/lemma-19-12b",
    locator="Lemma 19 (12b)",
    statement=(
        r"(X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac32\delta\right)"
        r"\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_chosen_to_other,
    control=(Control("9/2 in place of 3/2", sides=lambda i: _chosen_to_other(i, factor=4.5)),),
    ledger=Link(_CHAIN, 4),
    note=(
        "Both sides are divided by rho. Samples here have a support token each; without one see "
        "lemma-19-no-support."
    ),
    **_COMMON,
)

LEMMA_19_C = Claim(
    name=f"{_PAPER}/lemma-19-12c",
    locator="Lemma 19 (12c)",
    statement=(
        r"\left(1-\frac\delta2\right)\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}} \le"
        r"(X_{i\alpha_i}-X_{it})^\top W z_i \le \left(1+\frac\delta2\right)"
        r"\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_chosen_to_support,
    control=(Control("without the factor rho", sides=_without_rho),),
    ledger=Link(_CHAIN, 5),
    note=(
        "Shown as |gap / rho - 1| against the allowance delta / 2, so that the ratio says how "
        "much of the allowance the cone of width mu_0 can use."
    ),
    free=("W",),
    domain=_kept_in_cone,
    **_COMMON,
)

LEMMA_19_SHARPENED = Claim(
    name=f"{_PAPER}/lemma-19-sharpened",
    locator="Lemma 19 (12a), (12b), sharpened",
    statement=(
        r"(X_{it}-X_{i\tau})^\top W z_i \ge \frac72\delta\rho,\quad"
        r"(X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac72\delta\right)\rho,"
        r"\quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=_sharpened,
    control=(Control("9/2 in place of 7/2", sides=lambda i: _sharpened(i, factor=4.5)),),
    note=(
        "delta' >= 4 delta at W_mm, and the cone moves a gap by at most delta / 2. If the paper's "
        "delta' has a factor 1/2 (our text of it is recalled), even 15/2 would hold."
    ),
    free=("W",),
    domain=_kept_in_cone,
    **_COMMON,
)
