r"""Constructed instances on which the cone claims (Lemmas 19 to 21, 24, 27 to 30) can be evaluated.

On random data the width mu_0 of the paper's cone is 1e-8 to 1e-15 and R_delta in the thousands, so
that nothing can be measured. Here the attention SVM is solved by construction: with multipliers
lambda_i >= 0, D_i = X_i,alpha - X_i,1 and G = sum_i lambda_i D_i z_i', W_mm = grad psi*(G), every
D_i is divided by its gap D_i' W_mm z_i, and the other tokens are moved along W_mm z_i to gap 1
(support tokens) or beyond. Token 0 is the paper's alpha and token 1 a support token. Samples,
queries and tokens are in general position; three samples of three to six tokens in three
dimensions, or one sample three times, of which some or all have multipliers; some or all other
tokens are support tokens, two or three coordinates are used, and the losses are of Assumption A in
any mixture.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.optimisation.julistiono2024_cone import (
    julistiono2024_mu_0,
    julistiono2024_radius,
)
from attlas.claims.claim import assume
from attlas.losses.margin_loss import MarginLoss
from attlas.optim.mirror_descent import inverse_potential_gradient

EXPONENTS = (1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
SIZES = (3, 4, 3)
"""Samples, tokens and dimensions, by default; fewer of the first and last are used by some."""


def plain_norm(W, p):
    """The entrywise l_p norm of an array of moderate size, in few operations."""
    # `entrywise_norm` guards overflow and zero arrays, of which there are none here, by operations
    # that cost the fourteen claims on the cone a tenth more time: 28.5 s in place of 25.9.
    return jnp.sum(jnp.abs(W) ** p) ** (1 / p)


def cone_divergence(W_mm, W, p):
    """D_psi of the two directions by its form for unit norms, 1 - <grad psi(W), W_mm>.

    The cone's width is many roundings wide here, so that the cancellation does no harm.
    """
    size, centre = plain_norm(W, p), W_mm / plain_norm(W_mm, p)
    return 1 - jnp.sum(jnp.sign(W) * (jnp.abs(W) / size) ** (p - 1) * centre)


def into_cone(W_mm, W, p, width):
    """The direction on the segment from W_mm to W, of unit norm, at which D_psi = width.

    W itself (normalised) if it lies inside already; else its place, by bisection in the logarithm.
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
    mixed = jnp.where(cone_divergence(centre, far, p) <= width, far, at(low))
    return mixed / plain_norm(mixed, p)


def slopes(u):
    """Slopes -l'(u) of the logistic, exponential, linear and sigmoid loss 1 / (1 + e^u)."""
    up, down = jax.nn.sigmoid(u), jax.nn.sigmoid(-u)
    return jnp.stack([down, jnp.exp(-u), jnp.ones_like(u), up * down])


def mixtures(rng, count):
    """Weights of the four losses; all of it on one of them in every second instance or so."""
    pure, mixed = np.eye(4)[rng.integers(4, size=count)], rng.dirichlet(np.ones(4), count)
    return np.where(rng.random((count, 1)) < 0.5, pure, mixed)


def mixed_loss(mixture):
    """The loss of a mixture of the four; every mixture meets Assumption A."""

    def value(u):
        four = jax.nn.softplus(-u), jnp.exp(-u), -u, jax.nn.sigmoid(-u)
        return jnp.tensordot(mixture, jnp.stack(four), 1)

    def slope(u):
        return jnp.tensordot(mixture, slopes(u), 1)

    def log_slope(u):
        # In the log domain: at the worse of far tokens the exponential loss overflows.
        up, down = jax.nn.log_sigmoid(u), jax.nn.log_sigmoid(-u)
        four = jnp.stack([down, -u, jnp.zeros_like(u), up + down], axis=-1)
        return jax.nn.logsumexp(four, b=mixture, axis=-1)

    return MarginLoss(value, lambda u: -slope(u), log_slope)


def gaps(X, z, W):
    """The gaps (X_i,alpha - X_it)' W z_i of all tokens but the chosen one."""
    return jnp.einsum("ntd,de,ne->nt", X[:, :1] - X[:, 1:], W, z)


def attention_svm(X, z, v, p, weight, beyond, margin, size=1.0):
    """Tokens moved so that W_mm solves the SVM, and what the multipliers are after the scaling.

    The largest entry of W_mm is `size`.
    """
    D = X[:, :1] - X[:, 1:]
    G = jnp.einsum("n,nd,ne->de", weight, D[:, 0], z)
    W_mm = size * inverse_potential_gradient(G / jnp.max(jnp.abs(G)), p)
    pull = z @ W_mm.T
    square, margins = jnp.sum(pull**2, axis=1), jnp.einsum("ntd,nd->nt", D, pull)
    aim = jnp.where(beyond, jnp.maximum(margins, 1 + margin), 1.0)
    moved = D + ((aim - margins) / square[:, None])[..., None] * pull[:, None]
    first = jnp.where(weight[:, None] > 0, D[:, 0] / margins[:, :1], moved[:, 0])
    # Across W_mm z_i: support tokens move to scores below that of alpha.
    label, across = jnp.sign(first @ v), v[None] - pull * (pull @ v / square)[:, None]
    low = label[:, None] * (moved @ v) < 0
    turned = moved - (2 * (moved @ v) / (across @ v)[:, None])[..., None] * across[:, None]
    moved = jnp.where((low & ~beyond)[..., None], turned, moved)
    D = jnp.concatenate([first[:, None], moved[:, 1:]], axis=1)
    X = jnp.concatenate([X[:, :1], X[:, :1] - D], axis=1)
    return {"X": X, "W_mm": W_mm, "y": label, "weight": weight * margins[:, 0]}


def scores(X, v, y):
    """The token scores gamma_it = y_i X_it' v."""
    return y[:, None] * (X @ v)


def constants(X, z, v, y, p, W_mm, beyond, mixture, d):
    """Section 1.3's constants of an instance.

    delta, A, mu_0 and ||W_mm||, the least advantage over a support token, the spread of scores, and
    the least and largest slope of the loss on their range.
    """
    tail = jnp.min(jnp.where(beyond, gaps(X, z, W_mm), jnp.inf)) - 1
    delta, dual = jnp.minimum(0.25, tail / 4), p / (p - 1)
    norms = jnp.sum(jnp.abs(X) ** dual, axis=-1) * jnp.sum(jnp.abs(z) ** dual, axis=-1)[:, None]
    norm = plain_norm(W_mm, p)
    A, gamma = norm * jnp.max(norms) ** (1 / dual), scores(X, v, y)
    low, high = jnp.min(gamma), jnp.max(gamma)
    steep = slopes(jnp.stack([low, high, jnp.clip(0, low, high)]))
    return {
        "delta": delta,
        "A": A,
        "mu": julistiono2024_mu_0(delta, A, p, d, constants="printed"),
        "norm": norm,
        "advantage": jnp.min(jnp.where(beyond, jnp.inf, gamma[:, :1] - gamma[:, 1:])),
        "spread": jnp.max(jnp.max(gamma, axis=1) - jnp.min(gamma, axis=1)),
        # The exponential loss overflows at scores below -700, also where it does not count.
        "least_slope": jnp.sum(jnp.where(mixture > 0, mixture * jnp.min(steep, axis=1), 0)),
        "largest_slope": jnp.sum(jnp.where(mixture > 0, mixture * jnp.max(steep, axis=1), 0)),
    }


def tied(raw):
    """The first sample in place of all where n = 1: means over samples are those of one."""
    names = ("X", "z", "weight", "beyond", "margin")
    return {**raw, **{k: jnp.where(raw["n"] == 1, raw[k][:1], raw[k]) for k in names}}


def _svm_inputs(raw):
    """Names of what `attention_svm` is given."""
    names = ("X", "z", "v", "p", "weight", "beyond", "margin", "size")
    return [name for name in names if name in raw]


def placed(raw, radius=None, width=None):
    """Arrays moved into the assumptions: the SVM solved, W in the cone at its radius or beyond.

    `radius` and `width` are functions of what was found; 1 and mu_0 without them. Placing what is
    placed changes nothing but roundings.
    """
    names, raw = _svm_inputs(raw), tied(raw)
    instance = {**raw, **attention_svm(**{name: raw[name] for name in names})}
    names = ("X", "z", "v", "y", "p", "W_mm", "beyond", "mixture", "d")
    instance |= constants(**{name: instance[name] for name in names})
    p, W_mm = raw["p"], instance["W_mm"]
    edge = (instance["mu"] if width is None else width(instance)) * raw["share"]
    instance["radius"] = jnp.ones(()) if radius is None else radius(instance)
    instance["W"] = instance["radius"] * raw["stretch"] * into_cone(W_mm, raw["W"], p, edge)
    instance["V"] = into_cone(W_mm, raw["V"], p, edge)
    return instance


def at_radius(instance):
    """R_delta of placed arrays; c = 1 is enough, by `proofs/cone.md`."""
    spread, advantage, T = instance["spread"], instance["advantage"], instance["X"].shape[1]
    return julistiono2024_radius(
        instance["norm"], instance["delta"], instance["A"], spread, advantage, T
    )


def back_in_place(radius=None, width=None):
    """A projection of moved arrays into the assumptions."""

    def project(**instance):
        return placed(instance, radius, width)

    return project


def solves_the_svm(X, z, p, W_mm, weight, beyond):
    """Whether W_mm is feasible and attains the dual bound, up to rounding.

    Multipliers of G = sum_i lambda_i D_i z_i' give the bound sum_i lambda_i / ||G||_q on every
    feasible norm.
    """
    G = jnp.einsum("n,nd,ne->de", weight, X[:, 0] - X[:, 1], z)
    bound = jnp.sum(weight) / plain_norm(G, p / (p - 1))
    # Powers up to 1 / (p - 1) = 10 multiply the roundings of sums of nine terms.
    slack = 4096 * jnp.finfo(X.dtype).eps
    gap = gaps(X, z, W_mm)
    held = jnp.max(jnp.abs(jnp.where(beyond, 0, gap - 1))) <= slack
    signed = jnp.min(weight) >= 0
    return held & signed & (jnp.abs(plain_norm(W_mm, p) / bound - 1) <= slack)


def in_the_cone(p, W_mm, W, mu):
    """Whether W lies in the cone of width mu_0; the divergence is one minus a sum of nine terms."""
    divergence = cone_divergence(W_mm, W, p)
    return divergence <= mu + 64 * jnp.finfo(divergence.dtype).eps


def wide_enough(mu):
    """Whether rounding (64 roundings of one) is below 1/128 of the cone's width.

    By a divergence, narrower cones do not differ from a single direction.
    """
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

_POOL, _TRIED = 64, 512


def _raw(rng, T, spread, decades):
    """Raw arrays of a pool, before a solution is sought; a third has support tokens alone."""
    (n, _, d), count = SIZES, _TRIED
    used = rng.integers(2, d + 1, count)
    mask = np.arange(d) < used[:, None]
    square = mask[:, None] * mask[:, :, None]
    beyond = (rng.random((count, n, T - 1)) < 0.5) & (rng.random((count, 1, 1)) < 0.65)
    beyond[:, :, 0] = False
    active = rng.random((count, n)) < 0.6
    active[:, 0] = True
    raw = {
        "X": rng.normal(size=(count, n, T, d)) * mask[:, None, None],
        "z": rng.normal(size=(count, n, d)) * mask[:, None],
        "v": rng.normal(size=(count, d)) * mask,
        "p": rng.choice(EXPONENTS, count),
        "d": used.astype(float),
        "weight": active * rng.uniform(0.5, 2.0, (count, n)),
        "beyond": beyond,
        # Tokens just beyond the margin make delta small, which only R_delta can make up for.
        "margin": 10 ** rng.uniform(-2.0, 0.3, (count, n, T - 1)),
        "share": np.minimum(1.0, rng.uniform(0.1, 1.9, count)),
        "stretch": np.maximum(1.0, rng.uniform(-1.0, 3.0, count)),
        "W": rng.normal(size=(count, d, d)) * square,
        "V": rng.normal(size=(count, d, d)) * square,
        "mixture": mixtures(rng, count),
        "pi": 10 ** rng.uniform(-2.0, 0.0, count),
        "centred": rng.random(count) < 0.5,
        "n": rng.choice([1.0, n], count),
    }
    if decades:
        # Every instance has decades of its own, so that gaps of one order are among them.
        own = rng.uniform(-decades, 0, (count, 1, 1))
        raw["ratio"] = 10 ** (own * rng.random((count, n, T - 1)))
        # The exponential loss, whose slope is unbounded, has scores up to about 30.
        longest = np.where(raw["mixture"][:, 1] > 0, 10.0, 100.0)
        length = longest * 10 ** rng.uniform(-decades, 0, count)
        raw["v"] *= (length / np.linalg.norm(raw["v"], axis=1))[:, None]
    if not spread:
        return raw
    # Tokens are as small as W_mm is large; their scores stay.
    size = 10 ** rng.uniform(-spread, spread, count)
    small = {"X": raw["X"] / size[:, None, None, None], "v": raw["v"] * size[:, None]}
    return {**raw, **small, "size": size}


def _narrowed(raw):
    """The SVM solved by tokens whose gaps of scores are `ratio` times as large.

    That of a token with a multiplier shrinks along v before W_mm is sought, those of the others
    across W_mm z_i, which leaves their margins as they are.
    """
    names, v = _svm_inputs(raw), raw["v"]
    D = raw["X"][:, :1] - raw["X"][:, 1:]
    shrunk = (1 - raw["ratio"]) * (D @ v) / (v @ v)
    X = jnp.concatenate(
        [raw["X"][:, :1], raw["X"][:, :1] - D + shrunk[..., None] * v[None, None]], axis=1
    )
    svm = attention_svm(**{**{name: raw[name] for name in names}, "X": X})
    D, pull = svm["X"][:, :1] - svm["X"][:, 1:], raw["z"] @ svm["W_mm"].T
    across = v[None] - pull * ((pull @ v) / jnp.sum(pull**2, axis=1))[:, None]
    free = ~raw["beyond"] & ((jnp.arange(D.shape[1]) > 0) | (raw["weight"][:, None] == 0))
    shrunk = free * (1 - raw["ratio"]) * (D @ v) / (across @ v)[:, None]
    X = svm["X"].at[:, 1:].add(shrunk[..., None] * across[:, None])
    return {**raw, "X": X, "weight": svm["weight"]}


@partial(jax.jit, static_argnums=(1, 2), compiler_options=CHEAP_COMPILATION)
@partial(jax.vmap, in_axes=(0, None, None))
def _placed(raw, radius, width):
    """Placed arrays, half of them with alpha and token 1 at opposite places, where A is small."""
    names, raw = _svm_inputs(raw), tied(raw)
    raw = _narrowed(raw) if "ratio" in raw else raw
    X = attention_svm(**{name: raw[name] for name in names})["X"]
    centre = jnp.where(raw["centred"], X[:, :1] + X[:, 1:2], 0) / 2
    instance = placed({**raw, "X": raw["X"] - centre}, radius, width)
    good = solves_the_svm(*(instance[k] for k in ("X", "z", "p", "W_mm", "weight", "beyond")))
    # At scores in the hundreds the slope of the exponential loss, and so the radius, overflows.
    good &= wide_enough(instance["mu"]) & jnp.isfinite(instance["radius"])
    good &= jnp.isfinite(instance["largest_slope"])
    return {**instance, "good": good}


def cone_points(
    rng, count, radius=None, width=None, finish=None, tokens=SIZES[1], spread=0.0, decades=6.0
):
    """Placed instances of so many `tokens`; `finish` adds to a batch what a claim needs besides.

    The largest entry of W_mm is 1, or 10^-spread to 10^spread. Scores span so many `decades`, and
    the gaps of scores of support tokens are shrunk by factors of as many, each by its own.
    """
    pools = []
    while sum(len(pool["p"]) for pool in pools) < count:
        pool = {
            name: np.asarray(a)
            for name, a in _placed(_raw(rng, tokens, spread, decades), radius, width).items()
        }
        best = np.flatnonzero(pool.pop("good"))[:_POOL]
        pools.append({name: value[best] for name, value in pool.items()})
    batch = {name: np.concatenate([pool[name] for pool in pools])[:count] for name in pools[0]}
    return batch if finish is None else {**batch, **finish(batch)}
