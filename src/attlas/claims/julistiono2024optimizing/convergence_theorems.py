r"""The norm-divergence and direction theorems, on the flow in log time."""

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.flow_instances import (
    EACH,
    LATE,
    OTHER,
    best_tokens,
    flows,
    gaussian_selections,
    run_flows,
    seed_of,
)
from attlas.core.claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.data.token_selection import TokenSelection

_PAPER = "julistiono2024optimizing"


@cache
def _opposite_flows(seed: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Flows on pairs of samples with opposite features and equal gaps."""
    # The better of two tokens is there twice, for the shape of the other flows: both samples
    # together attend to it most where their gap is zero, so that by convexity the best W is finite.
    draw, parts = np.random.default_rng(seed), []
    for p in OTHER:
        half = gaussian_selections(draw, EACH, 1, 2, 3)
        better = jnp.asarray(best_tokens(half))[:, :, None, None]
        twice = jnp.concatenate([half.X, jnp.take_along_axis(half.X, better, axis=2)], axis=2)

        def paired(first: Array, second: Array) -> Array:
            return jnp.concatenate([first, second], axis=1)

        X, y, z = paired(twice, -twice), paired(half.y, -half.y), paired(half.z, half.z)
        path = run_flows(TokenSelection(X, y, z, half.v), draw.normal(size=(EACH, 3, 3)), p)
        log_time = np.asarray(path.log_time)
        rows = zip(log_time[:, -1:] * LATE, log_time, np.asarray(path.norm), strict=True)
        read = [np.interp(at, time, norm) for at, time, norm in rows]
        parts.append({"late_log_k": log_time[:, -1:] * LATE, "late_norm": np.stack(read)})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _opposite(key: PRNGKeyArray, count: int) -> Instance:
    found = dict(flows(key, count))
    other = _opposite_flows(seed_of(key))
    return {**found, **{name: jnp.asarray(value[:count]) for name, value in other.items()}}


def _inverse_norm(instance: Instance) -> Sides:
    left = 1 / instance["late_norm"]
    return Sides(left, jnp.zeros_like(left), scales=instance["late_log_k"])


def _direction(instance: Instance) -> Sides:
    left = instance["late_divergence"]
    return Sides(left, jnp.zeros_like(left), scales=instance["late_log_k"])


def _other_direction(instance: Instance) -> Sides:
    return _direction(instance)._replace(lhs=instance["late_other_divergence"])


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.LIMIT,
    "status": Status.RECONSTRUCTED,
    "provenance": Provenance.RECALLED,
    "instances": flows,
    "count": 60,
    "assumptions": (
        Assumption(
            "the attention SVM is certified to a relative gap of 1e-8", lambda i: i["certified"]
        ),
    ),
}

NORM_DIVERGENCE = Claim(
    name=f"{_PAPER}/norm-divergence",
    locator="Norm-divergence theorem",
    statement=r"W(0)\in C_{p,\mu',R} \;\Rightarrow\; \lim_{k\to\infty}\|W(k)\|_{p,p}=\infty",
    sides=_inverse_norm,
    controls=(Control("two samples with opposite features and equal gaps", instances=_opposite),),
    note=(
        "1/||W|| against log k on the flow, p = 1.5, 2, 3. An infeasible SVM alone would be no "
        "control: the norm can still diverge then."
    ),
    **_COMMON,
)

DIRECTION = Claim(
    name=f"{_PAPER}/direction-theorem",
    locator="Direction theorem",
    statement=(
        r"\lim_{k\to\infty} D_\psi\!\left(\frac{W^\alpha_{mm}}{\|W^\alpha_{mm}\|_{p,p}},"
        r"\frac{W(k)}{\|W(k)\|_{p,p}}\right)=0"
    ),
    sides=_direction,
    controls=(Control("the attention SVM of another p", sides=_other_direction),),
    note=(
        "On the flow from starts near W_mm, p = 1.5, 2, 3. Towards the SVM of another p the "
        "divergence stops at a positive value."
    ),
    **_COMMON,
)
