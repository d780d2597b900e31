r"""Training sets and leave-one-out trainings inside the conditions of Theorem 2.

Heads: sqrt(H) >= 72 beta_3(x) D^2, four times the condition of Theorem 1, because Proposition 4 is
needed between trajectories 6 D apart. Step: the smallest of 1, 1/beta_2(x), 1/beta_1(x)^2 (each
larger than the printed 1/rho for R >= 1), D^2/(K L(theta)) and D^2/L(theta_0).

The expectation over training sets is exact: the data have three values ("atoms"), and a training
set of four samples is one of fifteen multisets, trained with the multiplicities as weights.
"""

from functools import partial
from itertools import product
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.optimisation.deora2023_training import Setting, deora2023_head_condition
from attlas.claims.claim import assume
from attlas.claims.sampling import in_turn
from attlas.losses.logistic import logistic
from deora2023optimization.certified_instances import (
    conditions,
    opposite_pairs,
    reached,
    with_target,
)
from deora2023optimization.descent import smoothness
from deora2023optimization.instances import largest_head, margins, squared_distance

SAMPLES, ATOMS = 4, 3
"""Samples of a training set whose expectation is enumerated, and values that a sample takes."""
LOO, STEPS, LONGEST = 8, 12, 96
"""Samples and steps of the leave-one-out runs; longest run of the enumerated training sets."""
ALPHA = np.linspace(0, 1, 5)
"""Points of a segment."""
HEADS_FACTOR = 16.0
"""(72 / 18)^2: heads of Theorem 2 over those of Theorem 1."""


def _multisets(size):
    return np.array([c for c in product(range(size + 1), repeat=ATOMS) if sum(c) == size])


COUNTS, LESS = _multisets(SAMPLES), _multisets(SAMPLES - 1)
"""Multiplicities of the atoms in the training sets, and in those without one sample."""
WITHOUT = np.array(
    [[np.argmax((c - e == LESS).all(axis=1)) for e in np.eye(ATOMS, dtype=int)] for c in COUNTS]
)
"""Row of `LESS` that remains when an atom is removed; meaningless where it has multiplicity 0."""
ORDERS = np.array([factorial(SAMPLES) / np.prod([factorial(m) for m in c]) for c in COUNTS])
"""Sequences that share one multiset."""


def weighted_gradient(data, weights: Float[Array, " n"], U, W, loss=logistic):
    """Gradient of (1/n) sum_i w_i l_i with respect to U and W of one copy of each group."""

    def weighted(U, W):
        return jnp.mean(weights * loss(margins(data, U, W)))

    slope_U, slope_W = jax.grad(weighted, argnums=(0, 1))(U, W)
    return slope_U / data["copies"], slope_W / data["copies"]


def trajectory(run, weights: Float[Array, " n"], longest, loss=logistic):
    """U and W of the iterates 0, ..., longest on a weighted risk, frozen after K; 0 omits one."""

    def step(carry, k):
        slope = weighted_gradient(run, weights, carry[0], carry[1], loss)
        move = jnp.where(k < run["K"], run["eta"], 0)
        return (carry[0] - move * slope[0], carry[1] - move * slope[1]), carry

    return jax.lax.scan(step, (run["U"], run["W"]), jnp.arange(longest + 1.0))[1]


def sample_losses(data, U, W) -> Float[Array, " n"]:
    """Losses l_i of all samples."""
    return logistic(margins(data, U, W))


def worst_losses(run):
    """Largest loss of a sample at the target and at the start: no training set has more risk."""
    target = sample_losses(run, run["U_target"], run["W_target"])
    return jnp.max(target), jnp.max(sample_losses(run, run["U"], run["W"]))


def step_size_limit(run, steps) -> Array:
    """The largest step size allowed for every training set, the smallest of the five limits."""
    numbers = conditions(run)
    at, (target, start) = reached(run), worst_losses(run)
    smooth = jnp.maximum(at.smooth, at.slope**2)
    limit = jnp.minimum(1 / smooth, numbers.distance**2 / jnp.maximum(steps * target, start))
    return jnp.minimum(limit, 1)


def _enough_heads(**run):
    numbers = conditions(run)
    return HEADS_FACTOR * deora2023_head_condition(numbers.setting, "printed") <= numbers.H


CONDITIONS = (
    assume(r"$\sqrt H$ is at least $72 \beta_3 D^2$", _enough_heads),
    assume(
        "the step size satisfies the conditions of Theorem 1 on every training set",
        # Computed twice in another order: a few roundings apart.
        lambda **run: run["eta"] <= step_size_limit(run, run["K"]) * (1 + 1e-12),
    ),
    assume("R is at least 1", lambda R: R >= 1),
)


def _prepare(raw, faster, longest) -> dict[str, Array]:
    """Heads, target, horizon and step size of one drawn instance."""
    D, near = raw["distance"], largest_head(raw["U"], raw["W"])
    T, d = raw["X"].shape[-2:]
    setting = Setting(T, d, raw["R"], D, near + D)
    needed = HEADS_FACTOR * deora2023_head_condition(setting, "printed")
    copies = jnp.ceil(raw["spare"] * needed / len(raw["U"])) + 1
    run = with_target({**raw, "copies": copies}, D, 1.0, raw["tilt"])
    eta = raw["part"] * step_size_limit(run, 0.0)
    most = raw["horizon"] * D**2 / (eta * worst_losses(run)[0])
    K = jnp.clip(jnp.floor(most), 1, longest)
    eta = jnp.minimum(eta, step_size_limit(run, K))
    names = ("X", "y", "R", "U", "W", "copies", "U_target", "W_target", "probability")
    return {**{k: run[k] for k in names if k in run}, "K": K, "eta": faster * eta}


def _draw(rng, count, sizes, distance):
    return {
        **opposite_pairs(rng, count, (*sizes, 2), 0.5, (1, 1.3)),
        "tilt": rng.uniform(0, 5, count),
        "distance": rng.uniform(*distance, count),
        "spare": 10 ** rng.uniform(0.03, 0.6, count),
        "part": rng.uniform(0.3, 1, count),
        "horizon": rng.uniform(0.3, 1, count),
    }


def _growth(data, U, W) -> dict[str, Array]:
    """Distances, risks and heads along all leave-one-out trajectories: (n, K), (n, K, alpha)."""

    def apart(U_k, W_k, V_k, Z_k):
        return jnp.sqrt(squared_distance(data["copies"], V_k - U_k, Z_k - W_k))

    over_steps = jax.vmap(apart)
    distance = jax.vmap(lambda u, w: over_steps(u, w, U[-1], W[-1]))(U[:-1], W[:-1])

    def blind(U_k, W_k, V_k, Z_k, keep):
        def at(alpha):
            point = alpha * V_k + (1 - alpha) * U_k, alpha * Z_k + (1 - alpha) * W_k
            risk_there = jnp.mean(keep * sample_losses(data, *point))
            return jnp.stack([risk_there, largest_head(*point)])

        return jax.vmap(at)(jnp.asarray(ALPHA))

    along = jax.vmap(blind, in_axes=(0, 0, 0, 0, None))
    keep = 1 - jnp.eye(LOO)
    ratios = jax.vmap(lambda u, w, k: along(u, w, U[-1], W[-1], k))(U[:LOO], W[:LOO], keep)
    losses = jax.vmap(lambda u, w: sample_losses(data, u, w))(U[-1], W[-1])
    return {
        "apart": distance,
        "risks": ratios[:, :-1, :, 0],
        "heads": ratios[:, :-1, :, 1],
        "own": losses[:-1].T,
        "largest": jax.vmap(largest_head)(U[-1], W[-1])[:-1],
    }


def _omit(run) -> dict[str, Array]:
    """A run with its leave-one-out trajectories."""
    half = jnp.asarray(np.arange(LOO) >= LOO // 2, float)
    weights = jnp.concatenate([1 - jnp.eye(LOO), half[None], jnp.ones((1, LOO))])
    path_U, path_W = jax.vmap(lambda w: trajectory(run, w, STEPS))(weights)
    return {**run, **_growth(run, path_U, path_W)}


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@partial(jax.vmap, in_axes=(0, None))
def _leave_one_out(raw, faster) -> dict[str, Array]:
    return _omit(_prepare(raw, faster, STEPS))


@partial(jax.jit, compiler_options=CHEAP_COMPILATION)
@jax.vmap
def _overshoot(raw) -> dict[str, Array]:
    eta = raw["pace"] / smoothness(raw, raw["U"], raw["W"])
    names = ("X", "y", "R", "U", "W", "copies")
    target = {"U_target": raw["U"], "W_target": raw["W"]}
    return _omit({name: raw[name] for name in names} | target | {"K": float(STEPS), "eta": eta})


@jax.jit
@jax.vmap
def _train(run) -> dict[str, Array]:
    weights = jnp.asarray(np.concatenate([COUNTS, LESS]) * (ATOMS / SAMPLES))
    path_U, path_W = jax.vmap(lambda w: trajectory(run, w, LONGEST))(weights)
    sets = len(COUNTS)
    losses = jax.vmap(jax.vmap(lambda U, W: sample_losses(run, U, W)))
    before = jnp.arange(LONGEST + 1.0)[None, :, None] < run["K"]
    summed = jnp.sum(jnp.where(before, losses(path_U[:sets], path_W[:sets]), 0), axis=1)
    return {
        "U_last": path_U[:, -1],
        "W_last": path_W[:, -1],
        "summed_losses": summed,
        "largest_met": jnp.max(jax.vmap(jax.vmap(largest_head))(path_U, path_W)),
    }


def train_on_all_sets(batch):
    """Train every instance of a batch on all training sets of its atoms, up to `LONGEST` steps.

    Adds U_last and W_last of the training sets `COUNTS`, then of `LESS`, summed_losses (of each
    atom over the iterates before K, per set of `COUNTS`) and largest_met to X and y of the three
    atoms, U, W, copies, eta and K.
    """
    run = ("X", "y", "U", "W", "copies", "eta", "K")
    return {**batch, **_train({name: batch[name] for name in run})}


_prepare_all = jax.jit(
    jax.vmap(partial(_prepare, longest=LONGEST), in_axes=(0, None)),
    compiler_options=CHEAP_COMPILATION,
)


def leave_one_out_runs(rng, count, faster=1.0):
    """Leave-one-out trainings of eight samples, T = 3 and d = 2, certified unless `faster` than 1.

    With apart (distances from the run on all samples: without each sample, without the first
    half), risks L^{-i} and heads on the segment of each step, own (l_i before each step), largest
    (head of the run on all samples); beside X, y, R, U, W, U_target, W_target, copies, K, eta.
    """
    raw = _draw(rng, count, (LOO, 3, 2), (0.02, 0.6))
    # Samples that agree: what one of them adds to a step, eight add eight times.
    alike = raw["X"][::4, :1, :1] * raw["y"][::4, :, None, None]
    raw["X"][::4] = np.broadcast_to(alike, raw["X"][::4].shape)
    # Targets nearby, for which beta_1 at the radius of the proof is that of the path.
    raw["distance"][::8] = rng.uniform(0.02, 0.1, len(raw["distance"][::8]))
    return _leave_one_out(raw, faster)


def calm_and_wild_runs(rng, count):
    """The certified trainings, in turn with four heads whose steps of 10^3 to 10^4 / beta_2
    overshoot, so that distances grow.
    """
    raw = _draw(rng, count, (LOO, 3, 2), (0.02, 0.6))
    for name, low, high in (("U", -0.5, 0.3), ("W", -1, 1)):
        sizes = 10 ** rng.uniform(low, high, (count, 1, 1, 1))
        raw[name] = rng.normal(size=raw[name].shape) * sizes
    raw |= {"copies": np.full(count, 2.0), "pace": 10 ** rng.uniform(3, 4, count)}
    return in_turn([leave_one_out_runs(rng, count), _overshoot(raw)], count)


def training_sets(rng, count, faster=1.0):
    """Trainings on all training sets of three atoms, certified unless `faster` than 1.

    T = 2 and d = 3. With what `train_on_all_sets` adds and the probability of the atoms, beside X,
    y, R, U, W, U_target, W_target, copies, K, eta.
    """
    raw = _draw(rng, count, (ATOMS, 2, 3), (0.1, 1.0))
    # Labels that contradict each other on equal tokens: the gap does not vanish.
    raw["X"][::2, 1], raw["y"][::2, 1] = raw["X"][::2, 0], -raw["y"][::2, 0]
    # Samples that agree and a distant target: its risk is small, and the distance is what counts.
    alike = raw["X"][1::8, :1, :1] * raw["y"][1::8, :, None, None]
    raw["X"][1::8] = np.broadcast_to(alike, raw["X"][1::8].shape)
    raw["distance"][1::8], raw["tilt"][1::8] = 1, 20
    raw["probability"] = rng.dirichlet(np.ones(ATOMS), count)
    return train_on_all_sets(_prepare_all(raw, faster))
