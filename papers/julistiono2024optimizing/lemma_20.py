r"""Lemma 20: inside the cone the negative gradient points along every direction of the cone.

The paper leaves the constant of Omega(.) and the one in R_delta open; 3/4 and 1 are proved in
papers/julistiono2024optimizing/proofs/cone.md. Everything is multiplied by exp((1 + delta/2) rho)
and formed from score differences in log space, so that no side underflows.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Control, ProofStep, Sides, Source, assume
from attlas.claims.statement import inequality
from attlas.losses.margin_loss import margin_loss
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    at_radius,
    attention_svm,
    back_in_place,
    cone_points,
    far_enough,
    mixed_loss,
    placed,
    plain_norm,
    scores,
)
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient

_CHAIN = "Lemmas 19-21"
# Gaps are sums of nine products of three factors; W is normalised, placed and scaled: 64 roundings,
# magnified by the exponents that they enter (see `exponent_rounding`).
_ROUNDINGS = 64


def without_delta(instance):
    """A quarter of R_delta without its factor 1 / delta: at most delta / 4 of R_delta."""
    return at_radius(instance) * instance["delta"] / 4


beyond_radius = partial(
    inequality,
    sample=partial(cone_points, radius=at_radius, spread=2.5),
    assumptions=[*IN_CONE, assume(r"the norm of $W$ is at least $R_\delta$", far_enough)],
    search_over=("X", "z", "v", "W"),
    project=back_in_place(at_radius),
    roundings=_ROUNDINGS,
)


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _steepest(raw):
    """A support token far across W_mm z, opposite to alpha; W at the cone's edge towards it."""
    names = ("z", "v", "p", "weight", "beyond", "margin")
    fixed = {name: raw[name] for name in names}

    def tokens(length):
        D = jnp.stack([raw["e"], length * raw["g"], length / 2 * raw["g"]])
        X = jnp.concatenate([jnp.zeros_like(D[:1]), -D])
        return attention_svm(jnp.broadcast_to(X, raw["X"].shape), **fixed)

    # The margin has 1 / |W_mm z|, whatever the far token is; A is ten times that.
    length = 20 / plain_norm(tokens(0.0)["W_mm"] @ raw["z"][0], 2.0)
    far = tokens(length)
    X = far["X"] - (far["X"][:, :1] + far["X"][:, 2:3]) / 2
    turn = jnp.outer(X[0, 0] - X[0, 2], raw["z"][0])
    W = far["W_mm"] + 1e3 * turn * plain_norm(far["W_mm"], 2.0) / plain_norm(turn, 2.0)
    arrays = {name: value for name, value in raw.items() if name not in ("e", "g")}
    return placed({**arrays, "X": X, "W": W}, at_radius)


def steep_points(rng, count):
    """The instances, every fourth one sample whose gap grows by nearly delta / 2 in the cone.

    There p is next to 2, where the printed width is that of a Euclidean ball of delta / (4 A).
    """
    batch = cone_points(rng, count, at_radius)
    raw = {name: value[3::4] for name, value in batch.items()}
    some = len(raw["p"])
    if not some:
        return batch
    axes = np.linalg.qr(rng.normal(size=(some, 3, 3)))[0]
    z = rng.normal(size=(some, 1, 3))
    raw |= {"e": axes[:, 0], "g": axes[:, 1], "v": axes[:, 0] + 0.1 * axes[:, 1]}
    raw["z"] = np.repeat(z / np.linalg.norm(z, axis=2, keepdims=True), 3, axis=1)
    raw["beyond"] = np.broadcast_to([False, False, True], raw["beyond"].shape)
    for name, value in (("p", 1.999), ("n", 1.0), ("d", 3.0), ("weight", 1.0), ("margin", 1.0)):
        raw[name] = np.full_like(raw[name], value)
    raw["share"], raw["stretch"] = np.ones(some), np.ones(some)
    for name, value in _steepest(raw).items():
        batch[name][3::4] = value
    return batch


def exponent_rounding(X, z, W):
    """How much the roundings of X, W and z move an exponent."""
    size = jnp.max(jnp.einsum("ntd,de,ne->nt", jnp.abs(X), jnp.abs(W), jnp.abs(z)))
    return _ROUNDINGS * jnp.finfo(size.dtype).eps * (1 + size)


@beyond_radius(
    "Lemma 20",
    Source.RECALLED,
    sample=steep_points,
    controls=[
        Control(r"a token of lower score chosen as $\alpha$", sign=-1.0),
        Control("50 in place of 3/4", factor=50.0),
    ],
    proof_step=ProofStep(_CHAIN, 8),
)
def lemma_20(
    X, z, v, y, p, W, V, mixture, delta, norm, advantage, least_slope, *, sign=1.0, factor=0.75
):
    r"""$$-\langle\nabla\mathcal L(W),\bar V\rangle \ge
    \frac{3\,|\ell'|_{\min}\,\gamma_{gap}(1-\delta/2)}{4\|W_{mm}\|_{p,p}}\,
    e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}} > 0,\quad
    W,V\in C_{p,\mu_0,R_\delta},\quad R_\delta=\frac{\|W_{mm}\|_{p,p}}{\delta}
    \log\frac{T^2\,\Gamma A}{\gamma_{gap}}$$

    Form recalled, both constants proved by us; mixtures of four losses, one of them not convex,
    norms from $R_\delta$ to $3 R_\delta$. Every sample has a support token: without one see
    lemma-20-no-support. The scale of $W_{mm}$ spans five decades. A search stays
    below the bound: the constant 3/4 is not tested closely.
    """
    exponent = (1 + delta / 2) * plain_norm(W, p) / norm
    G, log_size = scaled_gradient(W, X, z, sign * scores(X, v, y), mixed_loss(mixture))
    terms = G * V / plain_norm(V, p)
    lift = jnp.exp(log_size + exponent)
    bound = factor * least_slope * advantage * (1 - delta / 2) / norm
    error = jnp.sum(jnp.abs(terms)) * lift * exponent_rounding(X, z, W)
    return Sides(bound, -jnp.sum(terms) * lift, error=error)


@beyond_radius(
    "Lemma 20, proof (from (12c))",
    sample=steep_points,
    search_over=("X", "z", "W"),
    controls=[
        Control(r"exponent $1 - \frac32 \delta$", reversed_end=True),
        Control("5/4 in place of 5/6", share=5 / 4),
    ],
    proof_step=ProofStep(_CHAIN, 7),
)
def lemma_20_softmax(X, z, p, W, delta, norm, beyond, *, reversed_end=False, share=5 / 6):
    r"""$$s_{i\alpha_i}s_{it} \ge \frac56 e^{-(1+\delta/2)\|W\|_{p,p}/\|W_{mm}\|_{p,p}},
    \quad t\in\mathcal T_i,\ W\in C_{p,\mu_0,R_\delta}$$

    Both sides are multiplied by the exponential. With gaps of $1 + \delta/2$, nearly reached next
    to $p = 2$ and for large $A$, the left side is 1 up to $T e^{-R_\delta / \|W_{mm}\|}$ and its
    5/6 is what the other tokens may take away.
    """
    rho = plain_norm(W, p) / norm
    logs = jax.nn.log_softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=1)
    pairs = jnp.where(beyond, jnp.inf, logs[:, :1] + logs[:, 1:])
    product = jnp.exp(jnp.min(pairs) + (1 + delta / 2) * rho)
    error = product * exponent_rounding(X, z, W)
    if reversed_end:
        product = product * jnp.exp(-2 * delta * rho)
    return Sides(share * jnp.ones_like(product), product, error=error)


@beyond_radius(
    "Lemma 20, proof (between (14) and (16))",
    controls=[
        Control(r"a token of lower score chosen as $\alpha$", sign=-1.0),
        Control("5/4 in place of 19/20", share=5 / 4),
        Control(
            r"a quarter of $R_\delta$ without the factor $1/\delta$",
            sample=partial(cone_points, radius=without_delta),
        ),
    ],
    proof_step=ProofStep(_CHAIN, 6),
    evaluations=1600,
)
def lemma_20_covariance(
    X, z, v, y, p, W, V, delta, norm, advantage, beyond, *, sign=1.0, share=0.95
):
    r"""$$\gamma_i^\top\left(\mathrm{diag}(s_i)-s_is_i^\top\right)X_i\bar V z_i \ge
    \frac{19\,\gamma_{gap}(1-\delta/2)}{20\,\|W_{mm}\|_{p,p}}\,s_{i\alpha_i}
    \sum_{t\in\mathcal T_i}s_{it},\quad V,W\in C_{p,\mu_0,R_\delta}$$

    Both sides are divided by $s_{i\alpha_i} \sum_t s_{it}$. $R_\delta$ leaves a twentieth to all
    pairs of tokens but $\alpha_i$ and a support token.
    """
    V = V / plain_norm(V, p)

    def sample(x, query, gamma, others):
        G, log_size = scaled_gradient(
            W, x[None], query[None], sign * gamma[None], margin_loss("correlation")
        )
        logs = jax.nn.log_softmax(x @ (W @ query))
        support = jax.nn.logsumexp(jnp.where(others, -jnp.inf, logs[1:]))
        # Relative to s_alpha sum s_t, so that both sides are of moderate size.
        lift = jnp.exp(log_size - logs[0] - support)
        return -jnp.sum(G * V) * lift, jnp.sum(jnp.abs(G * V)) * lift

    covariance, size = jax.vmap(sample)(X, z, scores(X, v, y), beyond)
    left = jnp.full_like(covariance, share * advantage * (1 - delta / 2) / norm)
    return Sides(left, covariance, error=size * exponent_rounding(X, z, W))
