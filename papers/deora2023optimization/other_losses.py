r"""Section 2: "our analysis extends to any convex, smooth, Lipschitz and self-bounded loss".

With |l'| <= C l, |l'| <= G and 0 <= l'' <= B the three bounds of Corollary 1 take the factors C, G
and B, and Theorem 1 asks for C times as many heads under the root. Two families: a log(1 + exp(-b
u)), with C = b, G = ab, B = ab^2/4, and sqrt(1 + u^2) - u, which falls like 1/(2u), with C = 1,
G = 2, B = 1. beta_1 and beta_3 are the sharp ones, R is the longest token.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1, deora2023_beta_3
from attlas.claims.claim import Control, Sides, Source, assume
from attlas.claims.statement import inequality
from deora2023optimization.certified_instances import opposite_pairs, with_target
from deora2023optimization.corollary_1 import with_the_extremal
from deora2023optimization.instances import (
    ROUNDINGS,
    betas,
    largest_head,
    margins,
    risk_curvature,
    risk_gradient,
    squared_distance,
)
from deora2023optimization.stability_instances import (
    ATOMS,
    COUNTS,
    LESS,
    ORDERS,
    SAMPLES,
    WITHOUT,
    trajectory,
)

LONGEST = 32
"""Steps of a run at most."""


def _heavy(u):
    """The loss sqrt(1 + u^2) - u without cancellation."""
    root = jnp.sqrt(1 + u**2)
    return jnp.where(u > 0, 1 / (root + jnp.abs(u)), root - u)


def other_loss(heavy, a, b, u):
    """The loss of a margin."""
    return jnp.where(heavy, _heavy(u), a * jax.nn.softplus(-b * u))


def loss_derivatives(heavy, a, b, u):
    """First and second derivative of the loss."""
    root, s = jnp.sqrt(1 + u**2), jax.nn.sigmoid(-b * u)
    slope = jnp.where(heavy, -_heavy(u) / root, -a * b * s)
    return slope, jnp.where(heavy, root**-3.0, a * b**2 * s * jax.nn.sigmoid(b * u))


def loss_constants(heavy, a, b):
    """C, G and B."""
    return jnp.where(heavy, 1, b), jnp.where(heavy, 2, a * b), jnp.where(heavy, 1, a * b**2 / 4)


def with_losses(rng, batch, count, decades=0.5):
    """A batch with a loss for each, a and b within these decades of 1."""
    sizes = {name: 10 ** rng.uniform(-decades, decades, count) for name in "ab"}
    return {**batch, **sizes, "heavy": np.arange(count) % 2 == 1}


def models(rng, count):
    """Models as in Corollary 1, with a loss for each; the extremal one has the logistic loss.

    The third is at zero with opposite tokens, all that its loss sees is a slope: the term of G.
    """
    batch = with_losses(rng, with_the_extremal(rng, count), count)
    batch["a"][0] = batch["b"][0] = 1
    third = slice(2, 3)
    for name, value in {"X": batch["X"][0], "b": 0.01, "copies": 2, "U": 0, "W": 0, "y": 1}.items():
        batch[name][third] = value
    return batch


@inequality(
    "Section 2, Corollary 1 for other losses",
    Source.FOUND,
    sample=models,
    search_over=("X", "U", "W"),
    controls=[
        Control("a fifth of $C$", C=0.2),
        Control("a fifth of $G$", G=0.2),
        Control("a fifth of $B$", B=0.2),
    ],
    count=32,
    roundings=ROUNDINGS,
)
def corollary_1_losses(U, W, heavy, a, b, *, C=1.0, G=1.0, B=1.0, **data):
    r"""$$|\ell'| \le C \ell,\ |\ell'| \le G,\ 0 \le \ell'' \le B: \quad \|\nabla \widehat L\| \le
    C \beta_1 \widehat L,\quad \|\nabla^2 \widehat L\| \le \tfrac{G \beta_3}{\sqrt H} +
    B \beta_1^2,\quad \lambda_{\min}(\nabla^2 \widehat L) \ge -\tfrac{C \beta_3}{\sqrt H}
    \widehat L$$

    The proof of Corollary 1 uses no more of the logistic loss, whose constants are 1, 1 and 1/4.
    Theorem 2 and its steps are in `other_losses_steps` and `other_losses_stability`.
    """
    at = betas({**data, "U": U}, largest_head(U, W), "sharp")
    scale = [s * c for s, c in zip((C, G, B), loss_constants(heavy, a, b), strict=True)]
    of = partial(loss_derivatives, heavy, a, b)
    risk = jnp.mean(other_loss(heavy, a, b, margins(data, U, W)))
    slope = jnp.sqrt(squared_distance(data["copies"], *risk_gradient(data, U, W, of)))
    bend = risk_curvature(data, U, W, of)
    right = [scale[0] * at.slope * risk, scale[1] * at.weak + scale[2] * at.slope**2]
    right.append(scale[0] * at.weak * risk)
    return jnp.stack([slope, bend.norm, -bend.smallest]), jnp.stack(right)


def _largest_norm(run):
    """D, beta_1 and beta_3 at 3 D + ||theta||_{2,inf}."""
    change = [run[f"{name}_target"] - run[name] for name in "UW"]
    D = jnp.sqrt(squared_distance(run["copies"], *change))
    (T, d), R = run["X"].shape[1:], run["R"]
    x = 3 * D + largest_head(run["U_target"], run["W_target"])
    return D, deora2023_beta_1(T, R, x), deora2023_beta_3(T, d, R, x)


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _placed(raw):
    T, d = raw["X"].shape[1:]
    D, near = raw["distance"], largest_head(raw["U"], raw["W"])
    C = loss_constants(raw["heavy"], raw["a"], raw["b"])[0]
    root = 18 * C * deora2023_beta_3(T, d, raw["R"], 4 * D + near) * D**2
    copies = jnp.maximum(jnp.ceil(raw["spare"] * root**2 / len(raw["U"])), 2)
    return with_target({**raw, "copies": copies}, D, 0.3, 1.0)


def runs(rng, count):
    """Starts and targets with as many heads as the condition asks, and a loss for each."""
    batch = opposite_pairs(rng, count, (2, 3, 2, 2), 0.5, (1, 1.5))
    # A third in dimension 1, a third with one sample.
    batch["X"][::3, ..., 1] = 0
    batch["X"][1::3, 1], batch["y"][1::3, 1] = batch["X"][1::3, 0], batch["y"][1::3, 0]
    batch |= {"distance": 10 ** rng.uniform(-1, 0.5, count), "spare": rng.uniform(1.1, 3, count)}
    batch["K"] = np.floor(rng.uniform(4, LONGEST + 1, count))
    return _placed(with_losses(rng, batch, count))


def _enough_heads(U, copies, heavy, a, b, **run):
    D, _, beta_3 = _largest_norm({**run, "U": U, "copies": copies})
    return jnp.sqrt(len(U) * copies) >= 18 * loss_constants(heavy, a, b)[0] * beta_3 * D**2


@inequality(
    "Section 2, Theorem 1 for other losses",
    Source.FOUND,
    sample=runs,
    assumptions=[assume(r"$\sqrt H$ is at least $18 C \tilde\beta_3 D^2$", _enough_heads)],
    controls=[
        Control("without the term of the distance", path=0.0),
        Control("a third of the right side", share=1 / 3),
    ],
    count=48,
    roundings=ROUNDINGS * LONGEST,
)
def theorem_1_losses(heavy, a, b, K, *, path=1.0, share=1.0, **run):
    r"""$$\sqrt H \ge 18\, C \tilde\beta_3 D^2,\quad \tfrac1\eta =
    \Big( \tfrac{G \tilde\beta_3}{\sqrt H} + B \tilde\beta_1^2 \Big) \vee
    \tfrac{K \widehat L(\theta)}{D^2} \vee \tfrac{\widehat L(\theta_0)}{D^2} \;\Rightarrow\;
    \tfrac1K \sum_{k=1}^K \widehat L(\theta_k) \le 2 \widehat L(\theta) +
    \tfrac{5 D^2}{4 \eta K}$$

    The comparison on a segment in `papers/deora2023optimization/proofs/training.md` uses the three
    bounds and that the risk is positive, nothing else of the loss.
    """
    _, G, B = loss_constants(heavy, a, b)
    D, beta_1, beta_3 = _largest_norm(run)

    def risk(U, W):
        return jnp.mean(other_loss(heavy, a, b, margins(run, U, W)))

    smooth = G * beta_3 / jnp.sqrt(len(run["U"]) * run["copies"]) + B * beta_1**2
    there, start = risk(run["U_target"], run["W_target"]), risk(run["U"], run["W"])
    eta = 1 / jnp.maximum(smooth, jnp.maximum(K * there, start) / D**2)

    def step(point, k):
        slope = risk_gradient(run, *point, loss=partial(loss_derivatives, heavy, a, b))
        point = [part - eta * by for part, by in zip(point, slope, strict=True)]
        return point, jnp.where(k < K, risk(*point), 0)

    met = jax.lax.scan(step, [run["U"], run["W"]], jnp.arange(LONGEST * 1.0))[1]
    size = jnp.maximum(start, there)
    bound = share * (2 * there + path * 5 * D**2 / (4 * eta * K))
    return Sides(jnp.sum(met) / K, bound, magnitude=size)


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def on_all_sets(run):
    """Trainings on all training sets, up to 32 steps: one number for each, but for the last.

    likely (the probability of the set), gap, stability, regret (the sum of the risks of the
    iterates 0, ..., K - 1) and largest_met, the largest head.
    """
    loss = partial(other_loss, run["heavy"], run["a"], run["b"])
    weights = jnp.asarray(np.concatenate([COUNTS, LESS]) * (ATOMS / SAMPLES))
    U, W = jax.vmap(lambda w: trajectory(run, w, LONGEST, loss))(weights)
    met, p, shares = jax.vmap(jax.vmap(largest_head))(U, W), run["probability"], COUNTS / SAMPLES
    sets = np.arange(len(COUNTS))
    along = jax.vmap(jax.vmap(lambda *at: loss(margins(run, *at))))(U[sets], W[sets])
    risks, losses = jnp.einsum("si,ski->sk", shares, along), along[:, -1]
    U, W = U[:, -1], W[:, -1]
    change = [part[sets][:, None] - part[len(sets) + WITHOUT] for part in (U, W)]
    square = run["copies"] * sum(jnp.sum(part**2, axis=(2, 3, 4)) for part in change)
    return {
        "likely": ORDERS * jnp.prod(p[None] ** COUNTS, axis=1),
        "gap": losses @ p - risks[:, -1],
        "stability": jnp.sum(shares * jnp.sqrt(square), axis=1),
        "regret": jnp.sum(jnp.where(jnp.arange(LONGEST + 1) < run["K"], risks, 0), axis=1),
        "largest_met": jnp.max(met),
    }


def trainings(rng, count):
    """Trainings on all sets of four samples with three values, two of opposite labels."""
    batch = opposite_pairs(rng, count, (ATOMS, 3, 2, 2), 0.5, (1, 1.5))
    batch["X"][:, 1], batch["y"][:, 1] = batch["X"][:, 0], -batch["y"][:, 0]
    batch |= {"copies": np.floor(10 ** rng.uniform(0.4, 4, count))}
    batch["eta"], batch["K"] = 10 ** rng.uniform(-2, 0, count), rng.integers(1, LONGEST, count)
    batch["probability"] = rng.dirichlet(np.ones(ATOMS), count)
    batch = with_losses(rng, batch, count)
    return {**batch, **on_all_sets(batch)}


@inequality(
    "Section 2, Lemma 3 for other losses",
    Source.FOUND,
    sample=trainings,
    controls=[Control("a twentieth of $G$", part=0.05)],
    count=32,
    roundings=ROUNDINGS * LONGEST,
    evaluations=32,
)
def lemma_3_losses(X, R, heavy, a, b, likely, gap, stability, largest_met, *, part=1.0):
    r"""$$|\ell'| \le G: \quad E[L(\theta_K) - \widehat{L}(\theta_K)] \le 2 G \beta_1\,
    E\left[\frac1n \sum_{i=1}^n \|\theta_K - \theta_K^{\neg i}\|\right]$$

    Exact expectations over fifteen training sets, any step size; $\beta_1$ at the largest head met.
    """
    slope = part * loss_constants(heavy, a, b)[1] * deora2023_beta_1(X.shape[1], R, largest_met)
    left = likely @ gap
    return Sides(left, 2 * slope * likely @ stability, magnitude=jnp.maximum(1, jnp.abs(left)))
