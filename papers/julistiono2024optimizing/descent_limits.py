r"""Norm divergence, direction and rate on the discrete descent, with a constant step.

Norm divergence: plain l_p-AttGD, 10^5 steps from W(0) in the cone at R_delta, at most `START` times
||W_mm|| from the origin; the first step moves the mirror variable as 1/10 of ||W_mm|| would. There
log k stays below 12, so that 1 / ||W(k)|| hardly falls; exp(-||W(k)|| / ||W_mm||) falls like a
power of k.

Direction: on most starts the divergence still rises in these steps. For one sample of two tokens
all gradients are multiples of one matrix G, so that the mirror variable is u(0) + c_k G with
c_{k+1} = c_k + eta g(c_k), and k is known without taking the steps: where g decreases, by r or less
from one step to the next,

    (1 - r) int_{c_1}^{c_{k+1}} dc / (eta g) <= k <= int_{c_0}^{c_k} dc / (eta g).

A descent of 1000 steps is compared with both ends.
"""

from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Source, assume
from attlas.claims.sampling import shared
from attlas.claims.statement import limit, rate
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import inverse_potential_gradient, mirror_step, potential_gradient
from julistiono2024optimizing.cone_instances import (
    at_radius,
    cone_points,
    mixed_loss,
    plain_norm,
    scores,
)
from julistiono2024optimizing.convergence import envelope
from julistiono2024optimizing.flow_instances import LATE, START, divergences, gaussian_selections
from julistiono2024optimizing.lemma_27 import measured_step, small_enough
from julistiono2024optimizing.library.token_selection.gradient import (
    scaled_gradient,
    selection_gradient,
)

COUNT = 40
STEPS = 10 ** np.arange(2, 6)


def _recorded(step, start):
    """States after each number of `STEPS`."""

    def until(state, steps):
        state = jax.lax.fori_loop(0, steps, step, state)
        return state, state

    return jax.lax.scan(until, start, jnp.asarray(np.diff(STEPS, prepend=0)))[1]


@jax.jit
@jax.vmap
def _descents(data):
    """Norms at the recorded steps, and whether Lemmas 24 and 25 hold on the steps from there."""
    p, loss = data["p"], mixed_loss(data["mixture"])
    gamma, size = scores(data["X"], data["v"], data["y"]), plain_norm(data["W"], data["p"])
    tau = 0.1 * (p - 1) * size ** (p - 2) * data["norm"]
    begun = measured_step(data, data["W"], tau)

    def step(_, dual):
        W = inverse_potential_gradient(dual, p)
        G, log_scale = scaled_gradient(W, data["X"], data["z"], gamma, loss)
        return dual - tau * jnp.exp(log_scale - begun.log_gradient) * G

    def measured(dual):
        W = inverse_potential_gradient(dual, p)
        now = measured_step(data, W, tau, begun.log_gradient)
        small = small_enough(now.descent, now.power_growth, now.toward_w, now.rounding)
        return plain_norm(W, p), small

    path = _recorded(step, potential_gradient(data["W"], p))
    grown, small = jax.vmap(measured)(path)
    first = small_enough(begun.descent, begun.power_growth, begun.toward_w, begun.rounding)
    return {"grown": (grown - size) / data["norm"], "small": first & jnp.all(small)}


@shared
def _paths(rng):
    pool = cone_points(rng, 4 * COUNT, radius=at_radius)
    near = np.flatnonzero(pool["radius"] * pool["stretch"] <= START * pool["norm"])[:COUNT]
    batch = {name: value[near] for name, value in pool.items()}
    return batch | {name: np.asarray(value) for name, value in _descents(batch).items()}


def descents(rng, count):
    """Growth of the norm over ||W_mm|| on descents from the cone."""
    return {name: value[:count] for name, value in _paths(rng).items()}


@jax.jit
@jax.vmap
def _opposite_descents(data, W, p):
    path = _recorded(lambda _, at: mirror_step(at, selection_gradient(at, data), 0.1, p), W)
    return jax.vmap(lambda at: plain_norm(at, p))(path) - plain_norm(W, p)


def opposite_samples(rng, count):
    """The descents with the growth on two samples whose gaps are opposite."""
    batch, draw = descents(rng, count), deepcopy(rng)
    half = gaussian_selections(draw, count, 1, 2, 3)
    X = jnp.concatenate([half.X, -half.X], axis=1)
    y = jnp.concatenate([half.y, -half.y], axis=1)
    data = TokenSelection(X, y, jnp.repeat(half.z, 2, axis=1), half.v)
    start = jnp.asarray(draw.normal(size=(count, 3, 3)))
    grown = _opposite_descents(data, start, jnp.maximum(1.5, jnp.asarray(batch["p"])))
    return {**batch, "grown": np.asarray(grown)}


@limit(
    "Norm-divergence theorem, on the descent",
    Source.RECALLED,
    sample=descents,
    scales=STEPS.astype(float),
    count=COUNT,
    assumptions=[
        assume(r"$\eta$ is small enough: Lemmas 24 and 25 hold at all records", lambda small: small)
    ],
    controls=[
        Control("two samples with opposite features and equal gaps", sample=opposite_samples)
    ],
)
def norm_divergence_descent(grown):
    r"""$$W(0)\in C_{p,\mu',R} \;\Rightarrow\; \lim_{k\to\infty}
    \exp\left(-\frac{\|W(k)\|_{p,p}-\|W(0)\|_{p,p}}{\|W_{mm}\|_{p,p}}\right)=0$$

    $10^2$ to $10^5$ plain steps of one size, one or three samples, mixtures of four losses,
    $\mu'=\mu_0$ and $R=R_\delta$. The norm grows like $\|W_{mm}\|\log k$, so that the left side
    falls like a power of $k$.
    """
    return jnp.exp(-grown), jnp.zeros_like(grown)


POINTS, LARGEST, TAKEN = 2**15, 1600.0, 1000
"""Points of the integral, the last log k, and the steps that are compared with it."""


def _of_one_sample(data, W, p, mixture):
    """G, and the logarithm of g and of the clock, the integral times eta, on a grid of c."""
    gamma, loss = scores(data.X, data.v, data.y)[0], mixed_loss(mixture)
    better = jnp.argmax(gamma)
    D, gap = data.X[0, better] - data.X[0, 1 - better], jnp.abs(gamma[0] - gamma[1])
    G = jnp.outer(D, data.z[0])
    pull = jnp.sum(jnp.abs(G) ** (p / (p - 1)))
    c = (jnp.linspace(0, 1.2 * LARGEST, POINTS) / pull) ** (p - 1)
    u = potential_gradient(W, p)

    def log_slope(c):
        h = jnp.sum(G * inverse_potential_gradient(u + c * G, p))
        margin = gamma[better] - gap * jax.nn.sigmoid(-h)
        return (
            loss.log_slope(margin) + jnp.log(gap) + jax.nn.log_sigmoid(h) + jax.nn.log_sigmoid(-h)
        )

    log_g = jax.vmap(log_slope)(c)
    parts = jnp.log(jnp.diff(c)) - (log_g[1:] + log_g[:-1]) / 2
    return G, c, log_g, jax.lax.cumlogsumexp(parts)


@jax.jit
@jax.vmap
def _directions(data, W, p, mixture):
    """Directions at `LATE` of the last log k, and what a descent of a thousand steps says of k."""
    G, c, log_g, clock = _of_one_sample(data, W, p, mixture)
    u = potential_gradient(W, p)
    first = 0.1 * plain_norm(u, p / (p - 1)) / plain_norm(G, p / (p - 1))
    log_eta = jnp.log(first) - log_g[0]
    log_k = LARGEST * LATE
    places = jnp.interp(log_k + log_eta, clock, c[1:])
    points = jax.vmap(lambda at: inverse_potential_gradient(u + at * G, p))(places)

    def step(_, at):
        return mirror_step(at, selection_gradient(at, data, loss), jnp.exp(log_eta), p)

    loss = mixed_loss(mixture)
    after = potential_gradient(jax.lax.fori_loop(0, TAKEN, step, W), p)
    moved = jnp.sum((after - u) * G) / jnp.sum(G**2)
    taken = TAKEN * jnp.exp(log_eta - jnp.interp(moved, c[1:], clock))
    fall = 1 - jnp.exp(jnp.interp(first, c, log_g) - log_g[0])
    return {"points": points, "taken": taken, "fall": fall, "log_k": log_k,
            "decreasing": jnp.all(jnp.diff(log_g) <= 0)}  # fmt: skip


@shared
def _two_tokens(rng):
    batch = cone_points(rng, COUNT, radius=at_radius)
    p = jnp.maximum(1.5, jnp.asarray(batch["p"]))
    data = gaussian_selections(rng, COUNT, 1, 2, 3)
    better = jnp.argmax(jax.vmap(lambda one: scores(one.X, one.v, one.y)[0])(data), axis=1)
    D = (data.X[:, 0, 0] - data.X[:, 0, 1]) * jnp.where(better == 0, 1, -1)[:, None]
    G = D[:, :, None] * data.z[:, :1]
    aim = jax.vmap(inverse_potential_gradient)(G, p)
    W_mm = aim / jnp.sum(aim * G, axis=(1, 2), keepdims=True)
    size = jax.vmap(plain_norm)(W_mm, p)[:, None, None]
    W = jnp.asarray(rng.normal(size=(COUNT, 3, 3))) * size
    W = W * jnp.sign(jnp.sum(W * G, axis=(1, 2), keepdims=True))
    path = _directions(data, W, p, jnp.asarray(batch["mixture"]))
    wrong = jax.vmap(inverse_potential_gradient)(G, jnp.where(p > 2, 1.5, 3.0))
    aims = {"divergence": W_mm, "other_divergence": wrong}
    read = {name: divergences(path["points"], aim, p) for name, aim in aims.items()}
    read |= {name: path[name] for name in ("taken", "fall", "log_k", "decreasing")}
    return {"p": np.asarray(p), **{name: np.asarray(value) for name, value in read.items()}}


def one_sample(rng, count):
    """Divergences along log k on descents for one sample of two tokens, from any start."""
    return {name: value[:count] for name, value in _two_tokens(rng).items()}


ASSUMED = (
    assume("$g$ decreases along the descent", lambda decreasing: decreasing),
    assume(
        "a thousand steps take the time that the integral says, up to the fall of $g$ by one",
        # the first of a thousand steps is not in the lower end; the sum has its own error
        lambda taken, fall: (taken <= 1 + 1e-3) & (taken >= (1 - fall) * (1 - 2e-3)),
    ),
)
of_one_sample = {"sample": one_sample, "scales": "log_k", "count": COUNT, "assumptions": ASSUMED}


@limit(
    "Direction theorem, on the descent",
    Source.RECALLED,
    controls=[Control("the multipliers of the SVM under the potential of another $p$", other=True)],
    **of_one_sample,
)
def direction_descent(divergence, other_divergence, *, other=False):
    r"""$$\lim_{k\to\infty} D_\psi\!\left(\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}},
    \frac{W(k)}{\|W(k)\|_{p,p}}\right)=0$$

    The discrete descent with a constant step, one sample of two tokens, $p$ from 1.5 to 4, mixtures
    of four losses, $\log k$ up to 1600, from starts on the side of the better token, in no cone.
    """
    divergence = other_divergence if other else divergence
    return divergence, jnp.zeros_like(divergence)


@rate(
    "Rate theorem, on the descent",
    Source.RECALLED,
    controls=[Control(r"decay as $(\log k)^{-3(p-1)}$", faster=True)],
    **of_one_sample,
)
def rate_descent(divergence, log_k, p, *, faster=False):
    r"""$$D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log\log k}{\log k}\right)\ (p>2),\quad
    O\!\left(\frac{(\log\log k)^2}{\log k}\right)\ (p=2),\quad
    O\!\left(\frac{1}{(\log k)^{p-1}}\right)\ (1<p<2)$$

    The descents of direction-descent, on which the divergence falls like $(\log k)^{-2(p-1)}$.
    """
    return divergence, log_k ** (-3 * (p - 1)) if faster else envelope(log_k, p)
