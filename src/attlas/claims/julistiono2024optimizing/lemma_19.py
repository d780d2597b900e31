r"""Lemma 19: margins inside the cone, with the two links of its proof.

The paper's alpha_i, t in T_i, tau in bar T_i are our tokens 0, 1 and 2 of two samples. `delta`,
`A` and `mu_0` are those of definition (8), rho = ||W|| / ||W_mm||; norms are entrywise l_p.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.julistiono2024optimizing.cone_instances import (
    IN_CONE,
    closed_form,
    cone_scale,
    cone_source,
    gaps,
    kept_in_cone,
    plain_norm,
)
from attlas.core.claim import Control, ProofStep, Sides, Source, Status
from attlas.core.statement import inequality

_CHAIN = "Lemmas 19-21"
# The longest path: W_mm (powers of exponent up to 10 and sums of two terms), a product of 2 x 2
# with two vectors, and two norms of four entries: below 64 roundings.
_ROUNDINGS = 64


def _in_cone(raw):
    placed = closed_form(raw)
    mu = cone_scale(*(placed[name] for name in ("X", "q", "p", "W_mm"))).mu
    # Only the direction of W matters.
    return {**placed, "mu": mu, "radius": placed["norm"]}


on_cone = partial(
    inequality, sample=cone_source(_in_cone), assumptions=IN_CONE, roundings=_ROUNDINGS
)
on_printed_cone = partial(on_cone, source=Source.RECALLED)


def _turn(p, W_mm, W):
    """The difference of the two directions."""
    return W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p)


def _relative(X, q, p, W_mm, W):
    """Gaps under W / rho, and their rounding: the size of the terms times gamma_t."""
    # That rounding is an error of the sides, not their magnitude, so that a search is not rewarded
    # for making the terms that cancel large.
    rho = plain_norm(W, p) / plain_norm(W_mm, p)
    terms = (jnp.abs(X[:, :1]) + jnp.abs(X[:, 1:])) * (jnp.abs(W.T) * q[:, None])[:, None, :]
    size = jnp.max(jnp.sum(terms, axis=-1)) / rho
    return gaps(X, q, W) / rho, _ROUNDINGS * jnp.finfo(size.dtype).eps * size


@on_printed_cone(
    "Lemma 19, proof (from Lemma 13 and (8))",
    controls=[Control("$8A$ in place of $4A$", parts=8.0)],
    proof_step=ProofStep(_CHAIN, 1),
)
def lemma_19_distance(X, q, p, W_mm, W, *, parts=4.0):
    r"""$$D_\psi(\bar W_{mm},\bar W) \le \mu_0 \;\Rightarrow\;
    \|\bar W-\bar W_{mm}\|_{p,p} \le \frac{\delta}{4A}$$

    Where the cone loses its width: Lemma 13 is loose, so that points on the edge of the cone use
    only a part of the allowed distance.
    """
    scale = cone_scale(X, q, p, W_mm)
    distance = plain_norm(_turn(p, W_mm, W), p)
    return Sides(distance, scale.delta / (parts * scale.A), magnitude=jnp.ones(()))


@on_printed_cone(
    "Lemma 19, proof (Hölder's inequality)",
    controls=[Control("the smallest entry of the difference in place of its norm", by_entry=True)],
    proof_step=ProofStep(_CHAIN, 2),
)
def lemma_19_hoelder(X, q, p, W_mm, W, *, by_entry=False):
    r"""$$\max_{t,\tau}\left|(X_{it}-X_{i\tau})^\top\left(\frac{W}{\rho}-W_{mm}\right)z_i\right|
    \le 2A\,\|\bar W-\bar W_{mm}\|_{p,p},\quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    $A$ takes every token by itself; with half the longest difference of two tokens in its place
    the bound would not change when all tokens move together.
    """
    gap, rounding = _relative(X, q, p, W_mm, W)
    A, turn = cone_scale(X, q, p, W_mm).A, _turn(p, W_mm, W)
    bound = A * jnp.min(jnp.abs(turn)) if by_entry else 2 * A * plain_norm(turn, p)
    return Sides(jnp.max(jnp.abs(gap - gaps(X, q, W_mm))), bound, error=rounding)


@on_printed_cone(
    "Lemma 19 (12a)",
    controls=[Control("9/2 in place of 3/2", factor=4.5)],
    proof_step=ProofStep(_CHAIN, 3),
)
def lemma_19_12a(X, q, p, W_mm, W, *, factor=1.5):
    r"""$$(X_{it}-X_{i\tau})^\top W z_i \ge \frac32\delta\,\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},
    \quad t\in\mathcal T_i,\ \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}$$

    Both sides are divided by $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$. See lemma-19-sharpened: 7/2
    in place of 3/2 holds.
    """
    gap, rounding = _relative(X, q, p, W_mm, W)
    delta = cone_scale(X, q, p, W_mm).delta
    return Sides(factor * delta, jnp.min(gap[:, 1:] - gap[:, :1]), error=rounding)


@on_printed_cone(
    "Lemma 19 (12b)",
    controls=[Control("9/2 in place of 3/2", factor=4.5)],
    proof_step=ProofStep(_CHAIN, 4),
)
def lemma_19_12b(X, q, p, W_mm, W, *, factor=1.5):
    r"""$$(X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac32\delta\right)
    \frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}$$

    Both sides are divided by $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$. Samples here have a support
    token each; without one see lemma-19-no-support.
    """
    gap, rounding = _relative(X, q, p, W_mm, W)
    delta = cone_scale(X, q, p, W_mm).delta
    return Sides(1 + factor * delta, jnp.min(gap[:, 1:]), error=rounding)


@on_printed_cone(
    "Lemma 19 (12c)",
    search_over="W",
    project=kept_in_cone,
    controls=[Control(r"without the factor $\rho$", relative=False)],
    proof_step=ProofStep(_CHAIN, 5),
)
def lemma_19_12c(X, q, p, W_mm, W, *, relative=True):
    r"""$$\left(1-\frac\delta2\right)\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}} \le
    (X_{i\alpha_i}-X_{it})^\top W z_i \le \left(1+\frac\delta2\right)
    \frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R}$$

    Shown as the distance of gap over $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$ from 1 against the
    allowance $\delta / 2$, so that the ratio is the share of the allowance that the cone of width
    $\mu_0$ can use.
    """
    gap, rounding = _relative(X, q, p, W_mm, W)
    gap = gap if relative else gaps(X, q, W)
    allowance = cone_scale(X, q, p, W_mm).delta / 2
    return Sides(jnp.max(jnp.abs(gap[:, 0] - 1)), allowance, error=rounding)


@on_cone(
    "Lemma 19 (12a), (12b), sharpened",
    status=Status.SHARPENED,
    search_over="W",
    project=kept_in_cone,
    controls=[Control("9/2 in place of 7/2", factor=4.5)],
)
def lemma_19_sharpened(X, q, p, W_mm, W, *, factor=3.5):
    r"""$$(X_{it}-X_{i\tau})^\top W z_i \ge \frac72\delta\rho,\quad
    (X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac72\delta\right)\rho,
    \quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    $\delta' \ge 4 \delta$ at $W_{mm}$, and the cone moves a gap by at most $\delta / 2$. If the
    paper's $\delta'$ has a factor 1/2 (our text of it is recalled), even 15/2 would hold.
    """
    gap, rounding = _relative(X, q, p, W_mm, W)
    allowance = factor * cone_scale(X, q, p, W_mm).delta
    least = jnp.stack([jnp.min(gap[:, 1:] - gap[:, :1]), jnp.min(gap[:, 1:])])
    return Sides(jnp.stack([allowance, 1 + allowance]), least, error=rounding)
