r"""Training sets and leave-one-out trainings inside the conditions of Theorem 2.

Heads: sqrt(H) >= 72 beta_3(x) D^2, four times the condition of Theorem 1, because Proposition 4 is
needed between trajectories 6 D apart. Step: the smallest of 1, 1/beta_2(x), 1/beta_1(x)^2 (each
larger than the printed 1/rho for R >= 1), D^2/(K L(theta)) and D^2/L(theta_0).

The expectation over training sets is exact: the data have three values ("atoms"), and a training
set of four samples is one of fifteen multisets, trained with the multiplicities as weights.
"""

from functools import cache, partial
from itertools import product
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1, deora2023_beta_2
from attlas.bounds.optimisation.deora2023_training import (
    deora2023_head_condition,
    deora2023_head_norm_bound,
)
from attlas.claims.deora2023optimization.certified_instances import conditions, shape_of
from attlas.claims.deora2023optimization.instances import (
    largest_head,
    margins,
    risk_gradient,
    spread_tokens,
    squared_distance,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import Assumption, Instance
from attlas.losses.logistic import logistic

SAMPLES, ATOMS = 4, 3
"""Samples of a training set whose expectation is enumerated, and values that a sample takes."""
LOO, STEPS, LONGEST = 8, 12, 96
"""Samples and steps of the leave-one-out runs; longest run of the enumerated training sets."""
ALPHA = np.linspace(0, 1, 5)
"""Points of a segment."""
HEADS_FACTOR = 16.0
"""(72 / 18)^2: heads of Theorem 2 over those of Theorem 1."""


def _multisets(size: int) -> np.ndarray:
    return np.array([c for c in product(range(size + 1), repeat=ATOMS) if sum(c) == size])


COUNTS, LESS = _multisets(SAMPLES), _multisets(SAMPLES - 1)
"""Multiplicities of the atoms in the training sets, and in those without one sample."""
WITHOUT = np.array(
    [[np.argmax((c - e == LESS).all(axis=1)) for e in np.eye(ATOMS, dtype=int)] for c in COUNTS]
)
"""Row of `LESS` that remains when an atom is removed; meaningless where it has multiplicity 0."""
ORDERS = np.array([factorial(SAMPLES) / np.prod([factorial(m) for m in c]) for c in COUNTS])
"""Sequences that share one multiset."""


def weighted_gradient(
    instance: Instance, weights: Float[Array, " n"], U: Float[Array, "G T d"], W: Array
) -> tuple[Array, Array]:
    """Gradient of (1/n) sum_i w_i l_i with respect to one copy of each group.

    Args:
        instance: with X, y, copies.
        weights: of the samples.
        U: decoders of the groups.
        W: key-query matrices of the groups.

    Returns:
        Gradients with respect to U and W.
    """

    def weighted(U: Array, W: Array) -> Array:
        return jnp.mean(weights * logistic(margins(instance, U, W)))

    slope_U, slope_W = jax.grad(weighted, argnums=(0, 1))(U, W)
    return slope_U / instance["copies"], slope_W / instance["copies"]


def trajectory(
    instance: Instance, weights: Float[Array, " n"], longest: int
) -> tuple[Float[Array, "s G T d"], Float[Array, "s G d d"]]:
    """Iterates 0, ..., longest of gradient descent on a weighted risk, frozen after K.

    Args:
        instance: with X, y, copies, U, W, eta, K.
        weights: of the samples: 0 leaves one out.
        longest: steps.

    Returns:
        U and W of all iterates.
    """

    def step(carry: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], tuple]:
        slope = weighted_gradient(instance, weights, *carry)
        move = jnp.where(k < instance["K"], instance["eta"], 0)
        return (carry[0] - move * slope[0], carry[1] - move * slope[1]), carry

    _, path = jax.lax.scan(step, (instance["U"], instance["W"]), jnp.arange(longest + 1.0))
    return path


def sample_losses(instance: Instance, U: Array, W: Array) -> Float[Array, " n"]:
    """Losses l_i of all samples.

    Args:
        instance: with X, y, copies.
        U: decoders of the groups.
        W: key-query matrices of the groups.

    Returns:
        One loss a sample.
    """
    return logistic(margins(instance, U, W))


def worst_losses(instance: Instance) -> tuple[Array, Array]:
    """Largest loss of a sample at the target and at the start: no training set has more risk.

    Args:
        instance: with start and target.

    Returns:
        The two losses.
    """
    target = sample_losses(instance, instance["U_target"], instance["W_target"])
    return jnp.max(target), jnp.max(sample_losses(instance, instance["U"], instance["W"]))


def step_size_limit(instance: Instance, steps: Array | float) -> Array:
    """The largest step size allowed for every training set.

    Args:
        instance: with start, target, copies.
        steps: horizon K.

    Returns:
        The smallest of the five limits.
    """
    terms = conditions(instance)
    T, d, R, D, largest = shape_of(terms)
    x = deora2023_head_norm_bound(D, largest)
    target, start = worst_losses(instance)
    smooth = jnp.maximum(deora2023_beta_2(T, d, R, x, terms["H"]), deora2023_beta_1(T, R, x) ** 2)
    limit = jnp.minimum(1 / smooth, D**2 / jnp.maximum(steps * target, start))
    return jnp.minimum(limit, 1)


def _enough_heads(instance: Instance) -> Array:
    terms = conditions(instance)
    return terms["H"] >= HEADS_FACTOR * deora2023_head_condition(*shape_of(terms))


CONDITIONS = (
    Assumption("sqrt(H) is at least 72 beta_3 D^2", _enough_heads),
    Assumption(
        "the step size satisfies the conditions of Theorem 1 on every training set",
        # Computed twice in another order: a few roundings apart.
        lambda i: i["eta"] <= step_size_limit(i, i["K"]) * (1 + 1e-12),
    ),
    Assumption("R is at least 1", lambda i: i["R"] >= 1),
)


def _prepare(raw: Instance, faster: Array, longest: int) -> dict[str, Array]:
    """Heads, target, horizon and step size of one drawn instance."""
    D, near = raw["distance"], largest_head(raw["U"], raw["W"])
    T, d = raw["X"].shape[-2:]
    needed = HEADS_FACTOR * deora2023_head_condition(T, d, raw["R"], D, near + D)
    groups = raw["U"].shape[0]
    whole = {**raw, "copies": jnp.ceil(raw["spare"] * needed / groups) + 1}
    slope = risk_gradient(whole, raw["U"], raw["W"])
    length = jnp.sqrt(squared_distance(whole, *slope))
    aside = jnp.sqrt(squared_distance(whole, raw["side_U"], raw["side_W"]))
    move = [
        raw[f"side_{name}"] / aside - raw["tilt"] * slope[k] / length for k, name in enumerate("UW")
    ]
    scale = D / jnp.sqrt(squared_distance(whole, *move))
    whole |= {f"{name}_target": raw[name] + scale * move[k] for k, name in enumerate("UW")}
    eta = raw["part"] * step_size_limit(whole, 0.0)
    most = raw["horizon"] * D**2 / (eta * worst_losses(whole)[0])
    K = jnp.clip(jnp.floor(most), 1, longest)
    eta = jnp.minimum(eta, step_size_limit(whole, K))
    kept = ("X", "y", "R", "U", "W", "copies", "U_target", "W_target", "probability")
    return {**{k: whole[k] for k in kept if k in whole}, "K": K, "eta": faster * eta}


def _draw(rng: np.random.Generator, count: int, n: int, distance: tuple[float, float]) -> dict:
    T, d, G = 2, 2, 2
    unit = spread_tokens(rng, count, G, T * d + d * d) * rng.uniform(0.05, 0.5, (count, 1, 1))
    U, W = unit[..., : T * d].reshape(count, G, T, d), unit[..., T * d :].reshape(count, G, d, d)
    U[:, 1], W[:, 1] = -U[:, 0], W[:, 0]
    U[::2], W[::2] = 0, 0
    lengths = rng.uniform(1, 1.3, (count, 1, 1, 1))
    return {
        "X": spread_tokens(rng, count, n, T, d) * lengths,
        "R": lengths[:, 0, 0, 0],
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "U": U,
        "W": W,
        "side_U": rng.normal(size=U.shape),
        "side_W": rng.normal(size=W.shape),
        "tilt": rng.uniform(0, 5, count),
        "distance": rng.uniform(*distance, count),
        "spare": 10 ** rng.uniform(0.03, 0.6, count),
        "part": rng.uniform(0.3, 1, count),
        "horizon": rng.uniform(0.3, 1, count),
    }


def _growth(instance: Instance, U: Array, W: Array) -> dict[str, Array]:
    """Distances, risks and heads along all leave-one-out trajectories: (n, K), (n, K, alpha)."""

    def apart(U_k: Array, W_k: Array, V_k: Array, Z_k: Array) -> Array:
        return jnp.sqrt(squared_distance(instance, V_k - U_k, Z_k - W_k))

    over_steps = jax.vmap(apart)
    distance = jax.vmap(lambda u, w: over_steps(u, w, U[-1], W[-1]))(U[:-1], W[:-1])
    alphas = jnp.asarray(ALPHA)

    def blind(U_k: Array, W_k: Array, V_k: Array, Z_k: Array, keep: Array) -> Array:
        def at(alpha: Array) -> Array:
            point = alpha * V_k + (1 - alpha) * U_k, alpha * Z_k + (1 - alpha) * W_k
            risk_there = jnp.mean(keep * sample_losses(instance, *point))
            return jnp.stack([risk_there, largest_head(*point)])

        return jax.vmap(at)(alphas)

    keep = 1 - jnp.eye(LOO)
    along = jax.vmap(blind, in_axes=(0, 0, 0, 0, None))
    found = jax.vmap(lambda u, w, k: along(u, w, U[-1], W[-1], k))(U[:LOO], W[:LOO], keep)
    losses = jax.vmap(lambda u, w: sample_losses(instance, u, w))(U[-1], W[-1])
    return {
        "apart": distance,
        "risks": found[:, :-1, :, 0],
        "heads": found[:, :-1, :, 1],
        "own": losses[:-1].T,
        "largest": jax.vmap(largest_head)(U[-1], W[-1])[:-1],
    }


def _leave_one_out(raw: Instance, faster: Array) -> dict[str, Array]:
    whole = _prepare(raw, faster, STEPS)
    half = jnp.asarray(np.arange(LOO) >= LOO // 2, float)
    weights = jnp.concatenate([1 - jnp.eye(LOO), half[None], jnp.ones((1, LOO))])
    path_U, path_W = jax.vmap(lambda w: trajectory(whole, w, STEPS))(weights)
    return {**whole, **_growth(whole, path_U, path_W)}


def _train(whole: Instance) -> dict[str, Array]:
    weights = jnp.asarray(np.concatenate([COUNTS, LESS]) * (ATOMS / SAMPLES))
    path_U, path_W = jax.vmap(lambda w: trajectory(whole, w, LONGEST))(weights)
    sets = len(COUNTS)
    losses = jax.vmap(jax.vmap(lambda U, W: sample_losses(whole, U, W)))
    before = jnp.arange(LONGEST + 1.0)[None, :, None] < whole["K"]
    summed = jnp.sum(jnp.where(before, losses(path_U[:sets], path_W[:sets]), 0), axis=1)
    heads = jax.vmap(jax.vmap(largest_head))(path_U, path_W)
    return {
        "U_last": path_U[:, -1],
        "W_last": path_W[:, -1],
        "summed_losses": summed,
        "largest_met": jnp.max(heads),
    }


_train_all = jax.jit(jax.vmap(_train))
_RUN = ("X", "y", "U", "W", "copies", "eta", "K")


def train_on_all_sets(batch: Instance) -> Instance:
    """Train every instance of a batch on all training sets of its atoms.

    Args:
        batch: with X and y of the three atoms, U, W, copies, eta, K up to `LONGEST`.

    Returns:
        The batch with U_last and W_last of the training sets `COUNTS`, then of `LESS`,
        summed_losses (of each atom over the iterates before K, per set of `COUNTS`), largest_met.
    """
    return {**batch, **_train_all({name: batch[name] for name in _RUN})}


_leave_all_out = jax.jit(jax.vmap(_leave_one_out, in_axes=(0, None)))
_prepare_all = jax.jit(jax.vmap(partial(_prepare, longest=LONGEST), in_axes=(0, None)))


@cache
def _batch(seed: tuple[int, ...], count: int, kind: str, faster: float) -> Instance:
    rng = np.random.default_rng(seed)
    n, distance = (LOO, (0.02, 0.6)) if kind == "leave one out" else (ATOMS, (0.1, 1.0))
    raw = _draw(rng, count, n, distance)
    if kind == "leave one out":
        # Samples that agree: what one of them adds to a step, eight add eight times.
        alike = raw["X"][::4, :1, :1] * raw["y"][::4, :, None, None]
        raw["X"][::4] = np.broadcast_to(alike, raw["X"][::4].shape)
    else:
        # Labels that contradict each other on equal tokens: the gap does not vanish.
        raw["X"][::2, 1], raw["y"][::2, 1] = raw["X"][::2, 0], -raw["y"][::2, 0]
        raw["probability"] = rng.dirichlet(np.ones(ATOMS), count)
    instances = {name: jnp.asarray(value) for name, value in raw.items()}
    if kind == "leave one out":
        return _leave_all_out(instances, jnp.asarray(faster))
    return train_on_all_sets(_prepare_all(instances, jnp.asarray(faster)))


def leave_one_out_runs(key: PRNGKeyArray, count: int, faster: float = 1.0) -> Instance:
    """Leave-one-out trainings of eight samples, certified.

    Args:
        key: random key.
        count: instances.
        faster: factor on the step size; above 1 the conditions fail.

    Returns:
        Batch with apart (distances from the run on all samples: without each sample, without the
        first half), risks L^{-i} and heads on the segment of each step, own (l_i before each
        step), largest (head of the run on all samples); beside X, y, R, U, W, U_target,
        W_target, copies, K, eta.
    """
    seed = seed_of(key)
    return _batch(seed, count, "leave one out", faster)


def training_sets(key: PRNGKeyArray, count: int, faster: float = 1.0) -> Instance:
    """Trainings on all training sets of a distribution with three atoms, certified.

    Args:
        key: random key.
        count: instances.
        faster: factor on the step size; above 1 the conditions fail.

    Returns:
        Batch with U_last and W_last of the training sets `COUNTS`, then of `LESS`; summed_losses
        (of each atom over the iterates before K, per set of `COUNTS`), largest_met, probability
        of the atoms; beside X, y, R, U, W, U_target, W_target, copies, K, eta.
    """
    seed = seed_of(key)
    return _batch(seed, count, "training sets", faster)
