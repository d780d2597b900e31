r"""Gradient descent inside the conditions of Theorem 1: heads and step size are computed first.

Start, target theta and distance D = ||theta - theta_0|| are drawn; then the number of heads is
the smallest that the condition allows (times a factor from 1 to 4), and the step size the
smallest of its limits (times a factor up to 1). Half of the starts are zero, half are heads in
opposite pairs, U_2 = -U_1 and W_2 = W_1, whose output is zero while their gradient is not.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_model import Bound
from attlas.bounds.optimisation.deora2023_training import (
    deora2023_head_condition,
    deora2023_rho,
    deora2023_step_limits,
)
from attlas.claims.deora2023optimization.instances import (
    heads,
    largest_head,
    risk,
    risk_gradient,
    spread_tokens,
    squared_distance,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import Assumption, Instance

LONGEST = 64
"""Steps of a run of the general instances at most; the horizon K of each is below."""


class Setting(NamedTuple):
    """Which theorem is instantiated, and at which sizes.

    Attributes:
        bound: constants of the conditions.
        longest: steps of a run, at least the horizon of every instance.
        groups: G different heads.
        d: embedding dimension.
        low: smallest length of the tokens of an instance.
        high: largest length of these; below 1 R is below 1 and out of the printed scope.
        informative: share of zero starts with targets of small risk at the longest horizon.
    """

    bound: Bound = "printed"
    longest: int = LONGEST
    groups: int = 2
    d: int = 2
    low: float = 1.0
    high: float = 1.5
    informative: float = 0.0


def conditions(instance: Instance) -> dict[str, Array]:
    """What the conditions of Theorem 1 say of an instance.

    Args:
        instance: with X, y, R, the start U, W, the target U_target, W_target, and copies.

    Returns:
        Scalars T, d, R, H, distance, largest (head of the target), start_loss, target_loss.
    """
    T, d = instance["X"].shape[-2:]
    change = [instance[f"{name}_target"] - instance[name] for name in "UW"]
    target = instance["U_target"], instance["W_target"]
    return {
        "T": jnp.asarray(float(T)),
        "d": jnp.asarray(float(d)),
        "R": instance["R"],
        "H": heads(instance),
        "distance": jnp.sqrt(squared_distance(instance, *change)),
        "largest": largest_head(*target),
        "start_loss": risk(instance, instance["U"], instance["W"]),
        "target_loss": risk(instance, *target),
    }


def shape_of(terms: dict[str, Array]) -> tuple[Array, Array, Array, Array, Array]:
    """The arguments T, d, R, distance, largest that all bounds of Theorem 1 start with.

    Args:
        terms: of `conditions`.

    Returns:
        The five numbers.
    """
    return terms["T"], terms["d"], terms["R"], terms["distance"], terms["largest"]


def enough_heads(bound: Bound) -> Assumption:
    """The condition (3) on the number of heads with its exact constants.

    Args:
        bound: which constants.

    Returns:
        The assumption.
    """

    def holds(instance: Instance) -> Array:
        terms = conditions(instance)
        return terms["H"] >= deora2023_head_condition(*shape_of(terms), bound)

    return Assumption("the number of heads satisfies (3) with exact constants", holds)


def small_step(bound: Bound) -> Assumption:
    """The condition of Theorem 1 on the step size.

    Args:
        bound: which rho; with "sharp" a step above 1 is allowed.

    Returns:
        The assumption.
    """

    def holds(instance: Instance) -> Array:
        limit = step_limit(conditions(instance), instance["K"], bound)
        # The limit is computed twice in another order: a few roundings apart.
        return instance["eta"] <= limit * (1 + 1e-12)

    return Assumption("the step size satisfies the conditions of Theorem 1", holds)


def step_limit(terms: dict[str, Array], steps: Array | float, bound: Bound) -> Array:
    """The largest step size that Theorem 1 allows.

    Args:
        terms: of `conditions`.
        steps: horizon K.
        bound: which rho; the limit 1 is the printed version's alone.

    Returns:
        The step size.
    """
    rho = deora2023_rho(*shape_of(terms), terms["H"], bound)
    limits = deora2023_step_limits(
        rho, terms["distance"], steps, terms["target_loss"], terms["start_loss"]
    )
    names = [name for name in limits if name != "unit" or bound == "printed"]
    return jnp.min(jnp.stack([limits[name] for name in names]))


def descend(instance: Instance, eta: Array, horizon: Array, longest: int) -> dict[str, Array]:
    """Gradient descent on all heads, frozen after the horizon.

    Args:
        instance: with X, y, copies, the start U, W and the target.
        eta: step size.
        horizon: K, at most `longest`.
        longest: steps of the loop.

    Returns:
        U_last, W_last, losses (of the iterates 0, ..., longest), from_target (distances).
    """

    def step(carry: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], Array]:
        U, W = carry
        slope = risk_gradient(instance, U, W)
        away = squared_distance(instance, U - instance["U_target"], W - instance["W_target"])
        move = jnp.where(k < horizon, eta, 0)
        met = jnp.stack([risk(instance, U, W), jnp.sqrt(away), largest_head(U, W)])
        return (U - move * slope[0], W - move * slope[1]), met

    start = instance["U"], instance["W"]
    (U, W), met = jax.lax.scan(step, start, jnp.arange(longest + 1.0))
    return {
        "U_last": U,
        "W_last": W,
        "losses": met[:, 0],
        "from_target": jnp.max(met[:, 1]),
        "largest_met": jnp.max(met[:, 2]),
    }


def _certify(raw: Instance, bound: Bound, longest: int, faster: Array) -> dict[str, Array]:
    """Heads, target, horizon and step size of one drawn instance, and its run."""
    D, near = raw["distance"], largest_head(raw["U"], raw["W"])
    T, d = raw["X"].shape[-2:]
    R, groups = raw["R"], raw["U"].shape[0]
    # Twice: the largest head of the target depends on the number of heads.
    reach = near + D
    for _ in range(2):
        needed = deora2023_head_condition(T, d, R, D, reach, bound)
        reach = near + D / jnp.sqrt(jnp.maximum(needed / groups, 1))
    copies = jnp.maximum(jnp.ceil(raw["spare"] * needed / groups), 2)
    whole = {**raw, "copies": copies}
    slope = risk_gradient(whole, raw["U"], raw["W"])
    length = jnp.sqrt(squared_distance(whole, *slope))
    other = [raw["side_U"], raw["side_W"]]
    aside = jnp.sqrt(squared_distance(whole, *other))
    move = [raw["aside"] * other[k] / aside - slope[k] / length for k in range(2)]
    scale = D / jnp.sqrt(squared_distance(whole, *move))
    whole |= {"U_target": raw["U"] + scale * move[0], "W_target": raw["W"] + scale * move[1]}
    terms = conditions(whole)
    eta = raw["part"] * step_limit(terms, 0.0, bound)
    most = raw["horizon"] * terms["distance"] ** 2 / (eta * terms["target_loss"])
    K = jnp.clip(jnp.floor(most), 1, longest)
    eta = faster * jnp.minimum(eta, step_limit(terms, K, bound))
    run = descend(whole, eta, K, longest)
    k = jnp.arange(longest + 1.0)
    average = jnp.sum(jnp.where((k >= 1) & (k <= K), run.pop("losses"), 0)) / K
    kept = {k: v for k, v in whole.items() if k in ("X", "y", "R", "U", "W", "copies")}
    kept |= {k: whole[k] for k in ("U_target", "W_target")}
    return {**kept, **run, "K": K, "eta": eta, "average": average}


_certified = jax.jit(jax.vmap(_certify, in_axes=(0, None, None, None)), static_argnums=(1, 2))


def _draw(rng: np.random.Generator, count: int, setting: Setting) -> dict[str, np.ndarray]:
    n, T, d, G = 2, 2, setting.d, setting.groups
    unit = spread_tokens(rng, count, G, T * d + d * d) * rng.uniform(0.05, 1, (count, 1, 1))
    U, W = unit[..., : T * d].reshape(count, G, T, d), unit[..., T * d :].reshape(count, G, d, d)
    U[:, 1:], W[:, 1:] = -U[:, :1], W[:, :1]
    zero = np.arange(count) % 2 == 0
    U[zero], W[zero] = 0, 0
    lengths = rng.uniform(setting.low, setting.high, (count, 1, 1, 1))
    return {
        "X": spread_tokens(rng, count, n, T, d) * lengths,
        "R": lengths[:, 0, 0, 0],
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "U": U,
        "W": W,
        "side_U": rng.normal(size=U.shape),
        "side_W": rng.normal(size=W.shape),
        "aside": np.where(rng.random(count) < 0.3, 5.0, 0.3),
        "distance": 10 ** rng.uniform(-1.5, 0.2, count),
        "spare": 10 ** rng.uniform(0.03, 0.6, count),
        "part": np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.1, 1, count)),
        "horizon": rng.uniform(0.3, 1, count),
    }


def _inform(rng: np.random.Generator, raw: dict[str, np.ndarray], rows: np.ndarray) -> None:
    """Make samples of one sign, whose margin sqrt(T) D gives the target a small risk."""
    count, n, T, _ = (len(rows), *raw["X"].shape[1:])
    raw["X"][rows] = 0
    raw["X"][rows, :, :, 0] = raw["y"][rows][:, :, None] * rng.uniform(0.9, 1, (count, n, T))
    for name, value in {"R": 1.0, "U": 0.0, "W": 0.0, "aside": 0.0, "part": 1.0}.items():
        raw[name][rows] = value
    raw["horizon"][rows] = 1
    raw["distance"][rows] = rng.uniform(1.55, 1.75, count) / np.sqrt(T)
    raw["spare"][rows] = rng.uniform(1.05, 1.5, count)


@cache
def _batch(seed: tuple[int, ...], count: int, setting: Setting, faster: float) -> Instance:
    rng = np.random.default_rng(seed)
    raw = _draw(rng, count, setting)
    _inform(rng, raw, np.arange(round(setting.informative * count)))
    instances = {k: jnp.asarray(v) for k, v in raw.items()}
    return _certified(instances, setting.bound, setting.longest, jnp.asarray(faster))


def certified(key: PRNGKeyArray, count: int, setting: Setting, faster: float = 1.0) -> Instance:
    """Runs of gradient descent inside the conditions of Theorem 1.

    Args:
        key: random key.
        count: instances.
        setting: which version of the theorem, and sizes.
        faster: factor on the step size; above 1 the conditions fail, for controls.

    Returns:
        Batch with X, y, R, U, W, U_target, W_target, copies, K, eta, U_last, W_last, average (risk
        of the iterates 1, ..., K), from_target (largest distance of the iterates 0, ..., K from
        the target) and largest_met (largest head of these iterates).
    """
    seed = seed_of(key)
    return _batch(seed, count, setting, faster)


def source(setting: Setting, faster: float = 1.0) -> Callable[[PRNGKeyArray, int], Instance]:
    """`certified` with its options bound, as claims take it.

    Args:
        setting: which version of the theorem, and sizes.
        faster: factor on the step size.

    Returns:
        Function of a key and a count.
    """
    return partial(certified, setting=setting, faster=faster)
