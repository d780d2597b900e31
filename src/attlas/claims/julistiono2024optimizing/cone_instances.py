r"""Constructed instances on which the cone claims (Lemmas 19 to 21, 27, 28) can be evaluated.

On random data the width mu_0 of the paper's cone is 1e-8 to 1e-15 and R_delta in the
thousands, so that nothing can be measured. Here the query of sample i is q_i e_i, so that the
attention SVM splits into columns, each with one support constraint and a closed form,
W_mm e_i = G_i / (D_i' G_i q_i), G_i = grad psi*(D_i), D_i = X_i,alpha - X_i,t; tokens tau are
moved until they lie beyond the margin (their multiplier is zero). The paper's alpha is token 0
here, its support token t is token 1, its other tokens tau are the rest.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.optimisation.julistiono2024_cone import (
    julistiono2024_mu_0,
    julistiono2024_radius,
)
from attlas.core.claim import assume
from attlas.losses.logistic import logistic_log_slope
from attlas.optim.mirror_descent import inverse_potential_gradient

EXPONENTS = (1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


def plain_norm(W, p):
    """The entrywise l_p norm of an array of moderate size, in few operations."""
    # `entrywise_norm` guards overflow and zero arrays, of which there are none here, by operations
    # that cost the checks of this paper a third more time, most of it compiling.
    return jnp.sum(jnp.abs(W) ** p) ** (1 / p)


def cone_divergence(W_mm, W, p):
    """D_psi of the two directions by its form for unit norms, 1 - <grad psi(W), W_mm>.

    The cone's width is many roundings wide here, so that the cancellation does no harm.
    """
    size, centre = plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    return 1 - jnp.sum(jnp.sign(W) * (jnp.abs(W) / size) ** (p - 1) * centre)


def into_cone(W_mm, W, p, width):
    """The direction on the segment from W_mm to W, of unit norm, at which D_psi = width.

    W itself (normalised) if it lies inside already. The place on the segment is found by bisection
    in its logarithm and held fixed when differentiated.
    """
    centre, far = W_mm / plain_norm(W_mm, p), W / plain_norm(W, p)

    def at(log_share):
        return centre + jnp.exp(log_share) * (far - centre)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        good = cone_divergence(centre, at(middle), p) <= width
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    # Forty halvings of the interval reach both ends to 1e-11.
    start = jnp.full((), jnp.log(1e-12)), jnp.zeros(())
    low, _ = jax.lax.fori_loop(0, 40, halve, start)
    mixed = at(jax.lax.stop_gradient(low))
    return mixed / plain_norm(mixed, p)


class ConeScale(NamedTuple):
    """The constants of section 1.3 on one instance.

    Attributes:
        delta: min(1/4, delta'/4); 1/4 where no token lies beyond the margin.
        A: ||W_mm|| max ||X_it z_i'||_q.
        mu: the printed width mu_0.
        norm: ||W_mm||_{p,p}.
    """

    delta: Array
    A: Array
    mu: Array
    norm: Array


def gaps(X, q, W):
    """The gaps (X_i,alpha - X_it)' W z_i of all tokens but the chosen one, support token first."""
    return jnp.sum((X[:, :1] - X[:, 1:]) * (W.T[: len(q)] * q[:, None])[:, None, :], axis=-1)


def cone_scale(X, q, p, W_mm):
    """The constants delta, A and mu_0 of an instance, and the norm of W_mm."""
    delta_prime = jnp.min(gaps(X, q, W_mm)[:, 1:], initial=jnp.inf) - 1
    delta = jnp.minimum(0.25, delta_prime / 4)
    dual = p / (p - 1)
    reach = jnp.sum(jnp.abs(X) ** dual, axis=-1) ** (1 / dual) * jnp.abs(q)[:, None]
    norm = plain_norm(W_mm, p)
    A = norm * jnp.max(reach)
    mu = julistiono2024_mu_0(delta, A, p, X.shape[-1], constants="printed")
    return ConeScale(delta, A, mu, norm)


def closed_form(raw):
    """Move raw arrays into the assumptions: SVM solved, far tokens far, W in the cone.

    The tokens tau lie beyond the margin, and W has the given norm at the given share of the width.
    """
    X, q, p = raw["X"], raw["q"], raw["p"]
    D = X[:, 0] - X[:, 1]
    # The solution does not see the size of D; size one keeps powers 1 / (p - 1) finite.
    G = inverse_potential_gradient(D / jnp.max(jnp.abs(D), axis=1, keepdims=True), p)
    columns = G / (jnp.sum(D * G, axis=1) * q)[:, None]
    u = columns * q[:, None]
    reached = jnp.sum((X[:, :1] - X[:, 2:]) * u[:, None, :], axis=-1)
    short = jnp.maximum(1 + raw["margin"] - reached, 0)
    push = u / jnp.sum(u * u, axis=1, keepdims=True)
    far = X[:, 2:] - short[:, :, None] * push[:, None, :]
    # A coordinate without a query has no constraint.
    W_mm = jnp.zeros_like(raw["W"]).at[:, : len(q)].set(columns.T)
    X = jnp.concatenate([X[:, :2], far], axis=1)
    width = cone_scale(X, q, p, W_mm).mu * raw["share"]
    return {**raw, "X": X, "W_mm": W_mm, "W": raw["norm"] * into_cone(W_mm, raw["W"], p, width)}


def solves_the_svm(X, q, p, W_mm):
    """Whether W_mm is feasible and attains the dual bound, up to rounding.

    With lambda free, ||sum lambda_i C_i||_q <= 1 and disjoint columns, the dual's value is
    (sum_i ||C_i||_q^{-p})^{1/p}, C_i = D_i z_i': weak duality makes this a certificate.
    """
    dual = p / (p - 1)
    c = jnp.sum(jnp.abs(X[:, 0] - X[:, 1]) ** dual, axis=1) ** (1 / dual) * jnp.abs(q)
    bound = jnp.sum(c**-p) ** (1 / p)
    # Powers up to 1 / (p - 1) = 10 multiply the roundings of a few sums of two terms.
    slack = 256 * jnp.finfo(X.dtype).eps
    feasible = jnp.min(gaps(X, q, W_mm)) >= 1 - slack
    return feasible & (jnp.abs(plain_norm(W_mm, p) / bound - 1) <= slack)


def in_the_cone(X, q, p, W_mm, W):
    """Whether W lies in the cone of width mu_0; the divergence is one minus a sum of four terms."""
    divergence = cone_divergence(W_mm, W, p)
    return divergence <= cone_scale(X, q, p, W_mm).mu + 64 * jnp.finfo(divergence.dtype).eps


def wide_enough(X, q, p, W_mm):
    """Whether rounding (64 roundings of one) is below 1/128 of the cone's width.

    By a divergence, narrower cones do not differ from a single direction.
    """
    mu = cone_scale(X, q, p, W_mm).mu
    return mu >= 8192 * jnp.finfo(mu.dtype).eps


def far_enough(p, W, radius):
    """Whether W, scaled to the radius or beyond, is there up to the rounding of two norms."""
    size = plain_norm(W, p)
    return size >= radius * (1 - 64 * jnp.finfo(size.dtype).eps)


SOLVED = assume(
    "$W_{mm}$ solves the attention SVM (its norm equals the dual bound)", solves_the_svm
)
WIDE = assume(r"$\mu_0$ is well above rounding", wide_enough)
IN_CONE = [SOLVED, assume(r"$W$ lies in the cone of width $\mu_0$", in_the_cone), WIDE]


def kept_in_cone(W_mm, W, p, mu, radius):
    """A moved W back in the cone, at the norm `radius` (neither constant depends on W)."""
    return {"W": radius * into_cone(W_mm, W, p, mu)}


_POOL = 64


@partial(jax.jit, static_argnums=1)
def _placed(raw, place):
    """One compiled program per function, whatever the samplers that share it."""
    return jax.vmap(place)(raw)


def cone_source(place, T=3, n=2, turn=1.0):
    """A sampler: n samples (1 or 2) with tokens alpha, t and T - 2 tokens tau, moved by `place`.

    Half of the points are to lie on the cone's edge (share = 1), where the lemmas are tightest.
    Pools of one size are placed, so that checks and challenges compile one program. At T = 2 all
    tokens are support tokens and delta = 1/4; `turn` is passed on, -1 for starts at the antipode.
    """

    def sample(rng, count):
        pools = []
        for _ in range(-(-count // _POOL)):
            raw = {
                "X": rng.normal(size=(_POOL, n, T, 2)),
                "q": rng.uniform(0.5, 2.0, (_POOL, n)),
                "v": rng.normal(size=(_POOL, 2)),
                "p": rng.choice(EXPONENTS, _POOL),
                "margin": rng.uniform(0.1, 1.5, (_POOL, n, T - 2)),
                "share": np.minimum(1.0, rng.uniform(0.1, 1.9, _POOL)),
                "norm": rng.uniform(1.0, 100.0, _POOL),
                "W": rng.normal(size=(_POOL, 2, 2)),
                "V": rng.normal(size=(_POOL, 2, 2)),
                "turn": np.full(_POOL, turn),
                "pi": 10 ** rng.uniform(-2.0, 0.0, _POOL),
            }
            pools.append(_placed(raw, place))
        return {name: jnp.concatenate([pool[name] for pool in pools])[:count] for name in pools[0]}

    return sample


class Scores(NamedTuple):
    """What the lemmas on the gradient need of the token scores.

    Attributes:
        gamma: token scores, labels chosen so that token 0 scores above token 1.
        gap: gamma_gap, the least advantage over a support token.
        spread: Gamma, the largest difference of two scores of a sample.
        log_slopes: logarithms of the least and the largest slope -l' of the logistic loss.
    """

    gamma: Array
    gap: Array
    spread: Array
    log_slopes: tuple[Array, Array]


def token_gaps(X, v):
    """The scores y_i X_it v with y_i = sign((X_i0 - X_i1)' v), and their constants."""
    plain = X @ v
    gamma = jnp.sign(plain[:, :1] - plain[:, 1:2]) * plain
    slopes = logistic_log_slope(jnp.max(gamma)), logistic_log_slope(jnp.min(gamma))
    spread = jnp.max(jnp.max(gamma, axis=1) - jnp.min(gamma, axis=1))
    return Scores(gamma, jnp.min(gamma[:, 0] - gamma[:, 1]), spread, slopes)


def radius_delta(X, q, v, p, W_mm):
    r"""R_delta of Lemma 20 with the constant c = 10 that our proof gives.

    With S, Q the attention on support and on other tokens, the covariance of scores and gaps of a
    sample is at least s_a S gamma_gap (1 - delta/2) / M - S^2 Gamma delta / (2 M)
    - 2 Q Gamma A / M, M = ||W_mm||; beyond R_delta the last two take at most half of the first.
    """
    scale, scores = cone_scale(X, q, p, W_mm), token_gaps(X, v)
    return julistiono2024_radius(
        scale.norm, scale.delta, scale.A, scores.spread, scores.gap, X.shape[1], constant=10.0
    )


def queries(X, q):
    """The queries z_i = q_i e_i, one per row."""
    return q[:, None] * jnp.eye(len(q), X.shape[-1])
