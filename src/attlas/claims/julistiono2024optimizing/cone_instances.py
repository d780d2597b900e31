r"""Constructed instances on which the cone claims (Lemmas 19 to 21, 27, 28) can be evaluated.

On random data the width mu_0 of the paper's cone is 1e-8 to 1e-15 and R_delta in the
thousands, so that nothing can be measured. Here the query of sample i is q_i e_i, so that the
attention SVM splits into columns, each with one support constraint and a closed form,
W_mm e_i = G_i / (D_i' G_i q_i), G_i = grad psi*(D_i), D_i = X_i,alpha - X_i,t; tokens tau are
moved until they lie beyond the margin (their multiplier is zero). The paper's alpha is token 0
here, its support token t is token 1, its other tokens tau are the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from attlas.bounds.optimisation.julistiono2024_cone import (
    julistiono2024_mu_0,
    julistiono2024_radius,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Instance
from attlas.losses.logistic import logistic_log_slope
from attlas.optim.mirror_descent import inverse_potential_gradient

EXPONENTS = (1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


def plain_norm(W: Float[Array, "..."], p: Float[Array, ""]) -> Float[Array, ""]:
    """The entrywise l_p norm of an array of moderate size, in few operations.

    Args:
        W: any shape.
        p: exponent.

    Returns:
        The norm, a scalar.
    """
    return jnp.sum(jnp.abs(W) ** p) ** (1 / p)


def cone_divergence(
    W_mm: Float[Array, "*shape"], W: Float[Array, "*shape"], p: Float[Array, ""]
) -> Float[Array, ""]:
    """D_psi of the two directions by its form for unit norms, 1 - <grad psi(W), W_mm>.

    The cone's width is many roundings wide here, so that the cancellation does no harm.

    Args:
        W_mm: solution of the attention SVM.
        W: point whose direction is compared.
        p: exponent.

    Returns:
        The divergence, a scalar.
    """
    size, centre = plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    return 1 - jnp.sum(jnp.sign(W) * (jnp.abs(W) / size) ** (p - 1) * centre)


def into_cone(
    W_mm: Float[Array, "d d"],
    W: Float[Array, "d d"],
    p: Float[Array, ""],
    width: Float[Array, ""],
) -> Float[Array, "d d"]:
    """The direction on the segment from W_mm to W, of unit norm, at which D_psi = width.

    The place on the segment is found by bisection in its logarithm and held fixed when
    differentiated.

    Args:
        W_mm: centre of the cone.
        W: any other direction.
        p: exponent.
        width: of the cone, above rounding.

    Returns:
        A matrix of unit norm inside the cone: W itself (normalised) if it lies there already.
    """
    centre, far = W_mm / plain_norm(W_mm, p), W / plain_norm(W, p)

    def at(log_share: Array) -> Array:
        return centre + jnp.exp(log_share) * (far - centre)

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
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
        delta: min(1/4, delta'/4).
        A: ||W_mm|| max ||X_it z_i'||_q.
        mu: the printed width mu_0.
        norm: ||W_mm||_{p,p}.
        rho: ||W||_{p,p} / ||W_mm||_{p,p}.
    """

    delta: Float[Array, ""]
    A: Float[Array, ""]
    mu: Float[Array, ""]
    norm: Float[Array, ""]
    rho: Float[Array, ""]


def gaps(instance: Instance, W: Float[Array, "d d"]) -> Float[Array, "n others"]:
    """The gaps (X_i,alpha - X_it)' W z_i of all tokens but the chosen one.

    Args:
        instance: tokens `X` (n, T, d) and query sizes `q` (n,).
        W: any matrix.

    Returns:
        Gaps; the support token comes first.
    """
    X, q = instance["X"], instance["q"]
    return jnp.sum((X[:, :1] - X[:, 1:]) * (W.T[: len(q)] * q[:, None])[:, None, :], axis=-1)


def cone_scale(instance: Instance) -> ConeScale:
    """The constants delta, A, mu_0 and the two norms of an instance.

    Args:
        instance: with `X`, `q`, `p`, `W_mm` and `W`.

    Returns:
        The constants; delta = 1/4 where no token lies beyond the margin.
    """
    X, size, W_mm, p = (instance[k] for k in ("X", "q", "W_mm", "p"))
    delta_prime = jnp.min(gaps(instance, W_mm)[:, 1:], initial=jnp.inf) - 1
    delta = jnp.minimum(0.25, delta_prime / 4)
    q = p / (p - 1)
    reach = jnp.sum(jnp.abs(X) ** q, axis=-1) ** (1 / q) * jnp.abs(size)[:, None]
    norm = plain_norm(W_mm, p)
    A = norm * jnp.max(reach)
    mu = julistiono2024_mu_0(delta, A, p, X.shape[-1])
    return ConeScale(delta, A, mu, norm, plain_norm(instance["W"], p) / norm)


def closed_form(instance: Instance) -> dict[str, Array]:
    """Move an instance into the assumptions: SVM solved, far tokens far, W in the cone.

    Args:
        instance: raw arrays `X`, `q`, `p`, `margin`, `share`, `norm`, `W`.

    Returns:
        The instance with `W_mm`, its tokens tau beyond the margin, and `W` of the given norm
        at the given share of the cone's width.
    """
    X, q, p = instance["X"], instance["q"], instance["p"]
    D = X[:, 0] - X[:, 1]
    # The solution does not see the size of D; size one keeps powers 1 / (p - 1) finite.
    G = inverse_potential_gradient(D / jnp.max(jnp.abs(D), axis=1, keepdims=True), p)
    columns = G / (jnp.sum(D * G, axis=1) * q)[:, None]
    u = columns * q[:, None]
    reached = jnp.sum((X[:, :1] - X[:, 2:]) * u[:, None, :], axis=-1)
    short = jnp.maximum(1 + instance["margin"] - reached, 0)
    push = u / jnp.sum(u * u, axis=1, keepdims=True)
    far = X[:, 2:] - short[:, :, None] * push[:, None, :]
    # A coordinate without a query has no constraint.
    W_mm = jnp.zeros_like(instance["W"]).at[:, : len(q)].set(columns.T)
    placed = {**instance, "X": jnp.concatenate([X[:, :2], far], axis=1), "W_mm": W_mm}
    width = cone_scale(placed).mu * instance["share"]
    return {**placed, "W": instance["norm"] * into_cone(W_mm, instance["W"], p, width)}


def solves_the_svm(instance: Instance) -> Bool[Array, ""]:
    """Whether W_mm is feasible and attains the dual bound.

    With lambda free, ||sum lambda_i C_i||_q <= 1 and disjoint columns, the dual's value is
    (sum_i ||C_i||_q^{-p})^{1/p}, C_i = D_i z_i': weak duality makes this a certificate.

    Args:
        instance: with `X`, `q`, `p` and `W_mm`.

    Returns:
        Truth up to rounding.
    """
    X, p, W_mm = instance["X"], instance["p"], instance["W_mm"]
    q = p / (p - 1)
    c = jnp.sum(jnp.abs(X[:, 0] - X[:, 1]) ** q, axis=1) ** (1 / q) * jnp.abs(instance["q"])
    bound = jnp.sum(c**-p) ** (1 / p)
    # Powers up to 1 / (p - 1) = 10 multiply the roundings of a few sums of two terms.
    slack = 256 * jnp.finfo(X.dtype).eps
    feasible = jnp.min(gaps(instance, W_mm)) >= 1 - slack
    return feasible & (jnp.abs(plain_norm(W_mm, p) / bound - 1) <= slack)


def in_the_cone(instance: Instance) -> Bool[Array, ""]:
    """Whether W lies in the cone of width mu_0.

    Args:
        instance: with `X`, `q`, `p`, `W_mm` and `W`.

    Returns:
        Truth up to rounding: the divergence is one minus a sum of four terms.
    """
    divergence = cone_divergence(instance["W_mm"], instance["W"], instance["p"])
    return divergence <= cone_scale(instance).mu + 64 * jnp.finfo(divergence.dtype).eps


def wide_enough(instance: Instance) -> Bool[Array, ""]:
    """Whether rounding (64 roundings of one) is below 1/128 of the cone's width.

    Args:
        instance: with `X`, `q`, `p`, `W_mm` and `W`.

    Returns:
        Truth; narrower cones cannot be told from a single direction by a divergence.
    """
    mu = cone_scale(instance).mu
    return mu >= 8192 * jnp.finfo(mu.dtype).eps


_POOL = 64


def _vectorised(place: Callable[[Instance], Instance]) -> Callable[[Instance], Instance]:
    """One compiled program for each function, whatever the sources that share it."""
    return jax.jit(jax.vmap(place))


def cone_source(
    place: Callable[[Instance], Instance], T: int = 3, n: int = 2, turn: float = 1.0
) -> Callable[[PRNGKeyArray, int], Instance]:
    """A source of instances: samples with tokens alpha, t and T - 2 tokens tau.

    Half of the points are to lie on the cone's edge (share = 1), where the lemmas are tightest.
    Pools of one size are placed, so that checks and challenges compile one program.

    Args:
        place: moves one raw instance into the assumptions, such as `closed_form`.
        T: tokens a sample; with 2 all are support tokens and delta = 1/4.
        n: samples, 1 or 2.
        turn: passed on as the array `turn`; -1 for starts at the antipode.

    Returns:
        Function of a key and a count.
    """
    placed = _vectorised(place)

    def instances(key: PRNGKeyArray, count: int) -> Instance:
        draw, pools = generator(key), []
        for _ in range(-(-count // _POOL)):
            raw = {
                "X": draw.normal(size=(_POOL, n, T, 2)),
                "q": draw.uniform(0.5, 2.0, (_POOL, n)),
                "v": draw.normal(size=(_POOL, 2)),
                "p": draw.choice(EXPONENTS, _POOL),
                "margin": draw.uniform(0.1, 1.5, (_POOL, n, T - 2)),
                "share": np.minimum(1.0, draw.uniform(0.1, 1.9, _POOL)),
                "norm": draw.uniform(1.0, 100.0, _POOL),
                "W": draw.normal(size=(_POOL, 2, 2)),
                "V": draw.normal(size=(_POOL, 2, 2)),
                "turn": np.full(_POOL, turn),
                "pi": 10 ** draw.uniform(-2.0, 0.0, _POOL),
            }
            pools.append(placed({name: jnp.asarray(value) for name, value in raw.items()}))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[:count], *pools)

    return instances


class Scores(NamedTuple):
    """What the lemmas on the gradient need of the token scores.

    Attributes:
        gamma: token scores, labels chosen so that token 0 scores above token 1.
        gap: gamma_gap, the least advantage over a support token.
        spread: Gamma, the largest difference of two scores of a sample.
        log_slopes: logarithms of the least and the largest slope -l' of the logistic loss.
    """

    gamma: Float[Array, "n T"]
    gap: Float[Array, ""]
    spread: Float[Array, ""]
    log_slopes: tuple[Float[Array, ""], Float[Array, ""]]


def token_gaps(instance: Instance) -> Scores:
    """The scores y_i X_it v with y_i = sign((X_i0 - X_i1)' v), and their constants.

    Args:
        instance: with `X` and `v`.

    Returns:
        The scores.
    """
    plain = instance["X"] @ instance["v"]
    gamma = jnp.sign(plain[:, :1] - plain[:, 1:2]) * plain
    slopes = logistic_log_slope(jnp.max(gamma)), logistic_log_slope(jnp.min(gamma))
    spread = jnp.max(jnp.max(gamma, axis=1) - jnp.min(gamma, axis=1))
    return Scores(gamma, jnp.min(gamma[:, 0] - gamma[:, 1]), spread, slopes)


def radius_delta(instance: Instance) -> Float[Array, ""]:
    r"""R_delta of Lemma 20 with the constant c = 10 that our proof gives.

    With S, Q the attention on support and on other tokens, the covariance of scores and gaps of a
    sample is at least s_a S gamma_gap (1 - delta/2) / M - S^2 Gamma delta / (2 M)
    - 2 Q Gamma A / M, M = ||W_mm||; beyond R_delta the last two take at most half of the first.

    Args:
        instance: with its SVM solved.

    Returns:
        The radius.
    """
    scale, scores = cone_scale(instance), token_gaps(instance)
    T = instance["X"].shape[1]
    return julistiono2024_radius(
        scale.norm, scale.delta, scale.A, scores.spread, scores.gap, T, constant=10.0
    )


def queries(instance: Instance) -> Float[Array, "n d"]:
    """The queries z_i = q_i e_i.

    Args:
        instance: with `X` and `q`.

    Returns:
        Queries, one a row.
    """
    q = instance["q"]
    return q[:, None] * jnp.eye(len(q), instance["X"].shape[-1])
