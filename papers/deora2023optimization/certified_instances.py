r"""Gradient descent inside the conditions of Theorem 1: heads and step size are computed first.

Start, target and distance D are drawn; then the number of heads is the smallest that the condition
allows (times a factor from 1 to 4), and the step size the
smallest of its limits (times a factor up to 1). Half of the starts are zero, half are heads in
opposite pairs, U_2 = -U_1 and W_2 = W_1, whose output is zero while their gradient is not.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.optimisation.deora2023_model import HeadConstants
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_head_norm_bound,
    deora2023_rho,
    deora2023_step_limits,
)
from attlas.claims.claim import assume
from deora2023optimization.instances import (
    Betas,
    betas,
    largest_head,
    risk,
    risk_gradient,
    spread_tokens,
    squared_distance,
)

LONGEST = 64
"""Steps of a run of the general instances at most; the horizon K of each is below."""


class Runs(NamedTuple):
    """Which theorem is instantiated, and at which sizes.

    Attributes:
        constants: of the conditions.
        longest: steps of a run, at least the horizon of every instance.
        groups: G different heads.
        d: embedding dimension.
        n: samples.
        T: tokens.
        low: smallest length of the tokens of an instance.
        high: largest length of these; below 1 R is below 1 and out of the printed scope.
        informative: share of zero starts with targets of small risk at the longest horizon.
    """

    constants: HeadConstants = "printed"
    longest: int = LONGEST
    groups: int = 2
    d: int = 2
    n: int = 2
    T: int = 2
    low: float = 1.0
    high: float = 1.5
    informative: float = 0.0


class Conditions(NamedTuple):
    """What the conditions of Theorem 1 read of a run.

    Attributes:
        setting: data and target.
        H: number of heads.
        start_loss: risk at the start.
        target_loss: risk at the target.
    """

    setting: Setting
    H: Array
    start_loss: Array
    target_loss: Array

    @property
    def distance(self) -> Array:
        """D = ||theta - theta_0||."""
        return jnp.asarray(self.setting.distance)


def conditions(run) -> Conditions:
    """The conditions of a run with X, y, R, U, W, U_target, W_target and copies."""
    T, d = run["X"].shape[-2:]
    change = [run[f"{name}_target"] - run[name] for name in "UW"]
    target = run["U_target"], run["W_target"]
    distance = jnp.sqrt(squared_distance(run["copies"], *change))
    sizes = jnp.asarray(float(T)), jnp.asarray(float(d)), run["R"]
    return Conditions(
        setting=Setting(*sizes, distance, largest_head(*target)),
        H=len(run["U"]) * run["copies"],
        start_loss=risk(run, run["U"], run["W"]),
        target_loss=risk(run, *target),
    )


def reached(run, constants: HeadConstants = "printed") -> Betas:
    """Corollary 1 at the radius of the proof, 3 D + ||theta||_{2,inf} with printed constants."""
    numbers = conditions(run)
    largest = numbers.setting.largest_head
    return betas(run, deora2023_head_norm_bound(numbers.distance, largest, constants), constants)


def enough_heads(constants: HeadConstants):
    """The condition (3) on the number of heads with its exact constants."""

    def holds(**run):
        numbers = conditions(run)
        return deora2023_head_condition(numbers.setting, constants) <= numbers.H

    return assume("the number of heads satisfies (3) with exact constants", holds)


def small_step(constants: HeadConstants):
    """The condition of Theorem 1 on the step size; a sharp one may exceed 1."""

    def holds(**run):
        limit = step_limit(conditions(run), run["K"], constants)
        # The limit is computed twice in another order: a few roundings apart.
        return run["eta"] <= limit * (1 + 1e-12)

    return assume("the step size satisfies the conditions of Theorem 1", holds)


def step_limit(numbers: Conditions, steps, constants: HeadConstants) -> Array:
    """The largest step size that Theorem 1 allows; the limit 1 is the printed version's alone."""
    limits = deora2023_step_limits(
        deora2023_rho(numbers.setting, numbers.H, constants),
        numbers.distance,
        steps,
        numbers.target_loss,
        numbers.start_loss,
    )
    names = [name for name in limits if name != "unit" or constants == "printed"]
    return jnp.min(jnp.stack([limits[name] for name in names]))


def descend(run, eta, horizon, longest) -> dict[str, Array]:
    """Gradient descent on all heads for `longest` steps, frozen after the horizon.

    Returns U_last, W_last, average (risk of the iterates 1, ..., K), from_target (their largest
    distance from U_target, W_target, and that of the start) and largest_met (the largest head).
    """

    def step(carry, k):
        U, W = carry
        slope = risk_gradient(run, U, W)
        away = squared_distance(run["copies"], U - run["U_target"], W - run["W_target"])
        move = jnp.where(k < horizon, eta, 0)
        met = jnp.stack([risk(run, U, W), jnp.sqrt(away), largest_head(U, W)])
        return (U - move * slope[0], W - move * slope[1]), met

    k = jnp.arange(longest + 1.0)
    (U, W), met = jax.lax.scan(step, (run["U"], run["W"]), k)
    return {
        "U_last": U,
        "W_last": W,
        "average": jnp.sum(jnp.where((k >= 1) & (k <= horizon), met[:, 0], 0)) / horizon,
        "from_target": jnp.max(met[:, 1]),
        "largest_met": jnp.max(met[:, 2]),
    }


def with_target(start, distance, aside, downhill):
    """Add the target: at this distance, along the side direction and down the gradient."""
    slope = risk_gradient(start, start["U"], start["W"])
    side = [start["side_U"], start["side_W"]]
    lengths = [jnp.sqrt(squared_distance(start["copies"], *way)) for way in (side, slope)]
    move = [aside * side[k] / lengths[0] - downhill * slope[k] / lengths[1] for k in range(2)]
    scale = distance / jnp.sqrt(squared_distance(start["copies"], *move))
    return {**start, **{f"{n}_target": start[n] + scale * move[k] for k, n in enumerate("UW")}}


def _certify(raw, constants: HeadConstants, longest, faster) -> dict[str, Array]:
    """Heads, target, horizon and step size of one drawn instance, and its run."""
    D, near = raw["distance"], largest_head(raw["U"], raw["W"])
    T, d = raw["X"].shape[-2:]
    R, groups = raw["R"], len(raw["U"])
    # Twice: the largest head of the target depends on the number of heads.
    size = near + D
    for _ in range(2):
        needed = deora2023_head_condition(Setting(T, d, R, D, size), constants)
        size = near + D / jnp.sqrt(jnp.maximum(needed / groups, 1))
    copies = jnp.maximum(jnp.ceil(raw["spare"] * needed / groups), 2)
    problem = with_target({**raw, "copies": copies}, D, raw["aside"], 1.0)
    numbers = conditions(problem)
    eta = raw["part"] * step_limit(numbers, 0.0, constants)
    most = raw["horizon"] * numbers.distance**2 / (eta * numbers.target_loss)
    K = jnp.clip(jnp.floor(most), 1, longest)
    eta = faster * jnp.minimum(eta, step_limit(numbers, K, constants))
    run = descend(problem, eta, K, longest)
    names = ("X", "y", "R", "U", "W", "copies", "U_target", "W_target")
    return {**{name: problem[name] for name in names}, **run, "K": K, "eta": eta}


_certified = jax.jit(
    jax.vmap(_certify, in_axes=(0, None, None, None)),
    static_argnums=(1, 2),
    compiler_options=CHEAP_COMPILATION,
)


def opposite_pairs(rng, count, shape, longest, lengths):
    """Samples and starts of shape (n, T, d, G), and side directions of the starts.

    Every second start is zero, the others are heads in opposite pairs of norm up to `longest`;
    `lengths` are the least and the largest of the tokens.
    """
    n, T, d, G = shape
    unit = spread_tokens(rng, count, G, T * d + d * d) * rng.uniform(0.05, longest, (count, 1, 1))
    U, W = unit[..., : T * d].reshape(count, G, T, d), unit[..., T * d :].reshape(count, G, d, d)
    U[:, 1:], W[:, 1:] = -U[:, :1], W[:, :1]
    U[::2], W[::2] = 0, 0
    R = rng.uniform(*lengths, (count, 1, 1, 1))
    return {
        "X": spread_tokens(rng, count, n, T, d) * R,
        "R": R[:, 0, 0, 0],
        "y": rng.choice([-1.0, 1.0], size=(count, n)),
        "U": U,
        "W": W,
        "side_U": rng.normal(size=U.shape),
        "side_W": rng.normal(size=W.shape),
    }


def _draw(rng, count, runs: Runs):
    return {
        **opposite_pairs(
            rng, count, (runs.n, runs.T, runs.d, runs.groups), 1, (runs.low, runs.high)
        ),
        "aside": np.where(rng.random(count) < 0.3, 5.0, 0.3),
        "distance": 10 ** rng.uniform(-1.5, 1, count),
        "spare": 10 ** rng.uniform(0.03, 0.6, count),
        "part": np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.1, 1, count)),
        "horizon": rng.uniform(0.3, 1, count),
    }


def _inform(rng, raw, rows):
    """Make samples of one sign, whose margin sqrt(T) D gives the target a small risk."""
    count, n, T, _ = (len(rows), *raw["X"].shape[1:])
    raw["X"][rows] = 0
    raw["X"][rows, :, :, 0] = raw["y"][rows][:, :, None] * rng.uniform(0.9, 1, (count, n, T))
    for name, value in {"R": 1.0, "U": 0.0, "W": 0.0, "aside": 0.0, "part": 1.0}.items():
        raw[name][rows] = value
    raw["horizon"][rows] = 1
    # From 1.62 on the bound of each at its longest horizon, 3.25 times the risk, is below log 2.
    raw["distance"][rows] = rng.uniform(1.62, 1.75, count) / np.sqrt(T)
    raw["spare"][rows] = rng.uniform(1.05, 1.5, count)


def certified(rng, count, runs: Runs, faster=1.0):
    """Runs of gradient descent inside the conditions of Theorem 1.

    With X, y, R, U, W, U_target, W_target, copies, K, eta, U_last, W_last, average (risk of the
    iterates 1, ..., K), from_target (largest distance of the iterates 0, ..., K from the target)
    and largest_met (largest head of these iterates). Above `faster` = 1 the conditions fail.
    """
    raw = _draw(rng, count, runs)
    _inform(rng, raw, np.arange(round(runs.informative * count)))
    return _certified(raw, runs.constants, runs.longest, faster)


def source(runs: Runs, faster=1.0):
    """`certified` with its options bound, as claims take it."""
    return partial(certified, runs=runs, faster=faster)
