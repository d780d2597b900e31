r"""Lemma 19: margins inside the cone, with the two links of its proof.

`delta`, `A`, `mu` (mu_0) are those of definition (8), `norm` is ||W_mm||_{p,p}, `beyond` marks the
tokens tau that are no support tokens, rho = ||W|| / ||W_mm||; norms are entrywise l_p.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.claim import Control, ProofStep, Sides, Source, Status, assume
from attlas.claims.statement import inequality
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    back_in_place,
    cone_points,
    gaps,
    plain_norm,
)

_CHAIN = "Lemmas 19-21"
# The longest path: W_mm (powers of exponent up to 10 and sums of three terms), a product of 3 x 3
# with two vectors, and two norms of nine entries: below 128 roundings.
_ROUNDINGS = 128
SOME_BEYOND = assume("some token is no support token", lambda beyond: jnp.any(beyond))

on_cone = partial(
    inequality,
    sample=partial(cone_points, tokens=6),
    assumptions=IN_CONE,
    search_over=("X", "z", "W"),
    project=back_in_place(),
    roundings=_ROUNDINGS,
)
on_printed_cone = partial(on_cone, source=Source.RECALLED)
with_others = partial(on_printed_cone, assumptions=[*IN_CONE, SOME_BEYOND])


def _turn(p, W_mm, W):
    """The difference of the two directions."""
    return W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p)


def _relative(X, z, p, norm, W):
    """Gaps under W / rho, and their rounding: the size of the terms times gamma_t."""
    # That rounding is an error of the sides, not their magnitude, so that a search is not rewarded
    # for making the terms that cancel large.
    rho = plain_norm(W, p) / norm
    largest = jnp.max(jnp.abs(X), axis=1)
    size = 2 * jnp.max(jnp.einsum("nd,de,ne->n", largest, jnp.abs(W), jnp.abs(z))) / rho
    return gaps(X, z, W) / rho, _ROUNDINGS * jnp.finfo(size.dtype).eps * size


def _past_support(gap, beyond):
    """The least gap of a token beyond the margin over a support token of its sample."""
    support = jnp.max(jnp.where(beyond, -jnp.inf, gap), axis=1)
    return jnp.min(jnp.min(jnp.where(beyond, gap, jnp.inf), axis=1) - support)


@on_printed_cone(
    "Lemma 19, proof (from Lemma 13 and (8))",
    search_over="W",
    controls=[Control("$8A$ in place of $4A$", parts=8.0)],
    proof_step=ProofStep(_CHAIN, 1),
)
def lemma_19_distance(p, W_mm, W, delta, A, *, parts=4.0):
    r"""$$D_\psi(\bar W_{mm},\bar W) \le \mu_0 \;\Rightarrow\;
    \|\bar W-\bar W_{mm}\|_{p,p} \le \frac{\delta}{4A}$$

    Where the cone loses its width: Lemma 13 is loose, so that points on the edge of the cone use
    only a part of the allowed distance.
    """
    return Sides(plain_norm(_turn(p, W_mm, W), p), delta / (parts * A), magnitude=jnp.ones(()))


@on_printed_cone(
    "Lemma 19, proof (Hölder's inequality)",
    controls=[Control("the smallest entry of the difference in place of its norm", by_entry=True)],
    proof_step=ProofStep(_CHAIN, 2),
)
def lemma_19_hoelder(X, z, p, W_mm, W, A, norm, *, by_entry=False):
    r"""$$\max_{t,\tau}\left|(X_{it}-X_{i\tau})^\top\left(\frac{W}{\rho}-W_{mm}\right)z_i\right|
    \le 2A\,\|\bar W-\bar W_{mm}\|_{p,p},\quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    $A$ takes every token by itself; with half the longest difference of two tokens in its place
    the bound would not change when all tokens move together.
    """
    gap, rounding = _relative(X, z, p, norm, W)
    change, turn = gap - gaps(X, z, W_mm), _turn(p, W_mm, W)
    pairs = jnp.max(change, axis=1, initial=0) - jnp.min(change, axis=1, initial=0)
    bound = A * jnp.min(jnp.abs(turn)) if by_entry else 2 * A * plain_norm(turn, p)
    return Sides(jnp.max(pairs), bound, error=2 * rounding)


@with_others(
    "Lemma 19 (12a)",
    controls=[Control("9/2 in place of 3/2", factor=4.5)],
    proof_step=ProofStep(_CHAIN, 3),
    evaluations=1856,
)
def lemma_19_12a(X, z, p, norm, W, delta, beyond, *, factor=1.5):
    r"""$$(X_{it}-X_{i\tau})^\top W z_i \ge \frac32\delta\,\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},
    \quad t\in\mathcal T_i,\ \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}$$

    Both sides are divided by $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$. See lemma-19-sharpened: 7/2
    in place of 3/2 holds.
    """
    gap, rounding = _relative(X, z, p, norm, W)
    return Sides(factor * delta, _past_support(gap, beyond), error=rounding)


@with_others(
    "Lemma 19 (12b)",
    controls=[Control("9/2 in place of 3/2", factor=4.5)],
    proof_step=ProofStep(_CHAIN, 4),
    evaluations=1728,
)
def lemma_19_12b(X, z, p, norm, W, delta, beyond, *, factor=1.5):
    r"""$$(X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac32\delta\right)
    \frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad \tau\in\bar{\mathcal T}_i,\ W\in C_{p,\mu_0,R}$$

    Both sides are divided by $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$. Samples here have a support
    token each; without one see lemma-19-no-support.
    """
    gap, rounding = _relative(X, z, p, norm, W)
    least = jnp.min(jnp.where(beyond, gap, jnp.inf))
    return Sides(1 + factor * delta, least, error=rounding)


@on_printed_cone(
    "Lemma 19 (12c)",
    controls=[Control(r"without the factor $\rho$", relative=False)],
    proof_step=ProofStep(_CHAIN, 5),
)
def lemma_19_12c(X, z, p, norm, W, delta, beyond, *, relative=True):
    r"""$$\left(1-\frac\delta2\right)\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}} \le
    (X_{i\alpha_i}-X_{it})^\top W z_i \le \left(1+\frac\delta2\right)
    \frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}},\quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R}$$

    Shown as the distance of gap over $\rho = \|W\|_{p,p} / \|W_{mm}\|_{p,p}$ from 1 against the
    allowance $\delta / 2$, so that the ratio is the share of the allowance that the cone of width
    $\mu_0$ can use.
    """
    gap, rounding = _relative(X, z, p, norm, W)
    gap = gap if relative else gaps(X, z, W)
    return Sides(jnp.max(jnp.where(beyond, 0, jnp.abs(gap - 1))), delta / 2, error=rounding)


@on_cone(
    "Lemma 19 (12a), (12b), sharpened",
    status=Status.SHARPENED,
    assumptions=[*IN_CONE, SOME_BEYOND],
    controls=[Control("9/2 in place of 7/2", factor=4.5)],
    evaluations=1728,
)
def lemma_19_sharpened(X, z, p, norm, W, delta, beyond, *, factor=3.5):
    r"""$$(X_{it}-X_{i\tau})^\top W z_i \ge \frac72\delta\rho,\quad
    (X_{i\alpha_i}-X_{i\tau})^\top W z_i \ge \left(1+\frac72\delta\right)\rho,
    \quad \rho=\frac{\|W\|_{p,p}}{\|W_{mm}\|_{p,p}}$$

    $\delta' \ge 4 \delta$ at $W_{mm}$, and the cone moves a gap by at most $\delta / 2$. If the
    paper's $\delta'$ has a factor 1/2 (our text of it is recalled), even 15/2 would hold.
    """
    gap, rounding = _relative(X, z, p, norm, W)
    least = jnp.stack([_past_support(gap, beyond), jnp.min(jnp.where(beyond, gap, jnp.inf)) - 1])
    return Sides(jnp.full(2, factor) * delta, least, error=rounding)
