r"""Erratum 4: (0, 0) is a stationary point, and (A3) cannot hold there.

Softplus units of sharpness tau_0, as section 2 takes them, on a finite population; y is centred and
E(y|x) is the teacher's output.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.liu2021analyzing.teacher_instances import INPUTS, TEACHERS, UNITS, attended
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.measures.statistics.conditional_covariance import conditional_covariance
from attlas.models.networks.rectifier import rectify

_PAPER = "liu2021analyzing"
_SHARPNESS = 10.0

_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "status": Status.NEW,
    "provenance": Provenance.DERIVED,
    "count": 48,
    "terms": 128,
}


def _teachers(key: PRNGKeyArray, count: int) -> Instance:
    """Inputs after attention, a teacher, and another student's first layer."""
    rng = generator(key)
    parts = {
        "z": attended(rng, count),
        "Ws": rng.standard_normal((count, INPUTS, TEACHERS))
        * 10 ** rng.uniform(-1, 1, (count, 1, 1)),
        "ws": rng.standard_normal((count, TEACHERS)) * 10 ** rng.uniform(-1, 1, (count, 1)),
        "W": rng.standard_normal((count, INPUTS, UNITS)) * 10 ** rng.uniform(-2, 1, (count, 1, 1)),
    }
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _units(instance: Instance, W: Array) -> Array:
    return rectify(instance["z"] @ W, _SHARPNESS)


def _at_zero(instance: Instance, centred: bool) -> Sides:
    target = _units(instance, instance["Ws"]) @ instance["ws"]
    mean = target - jnp.mean(target) if centred else target

    def risk(W: Array, w: Array) -> Array:
        return jnp.mean((_units(instance, W) @ w - mean) ** 2) / 2

    zero = jnp.zeros_like(instance["W"]), jnp.zeros_like(instance["W"][0])
    value, slopes = jax.value_and_grad(risk, argnums=(0, 1))(*zero)
    size = jnp.sqrt(sum(jnp.sum(part**2) for part in slopes))
    # The second side of the error is the variance, by another formula.
    variance = jnp.mean(target**2) - jnp.mean(target) ** 2
    right = jnp.stack([jnp.zeros_like(variance), variance])
    return Sides(jnp.stack([size, 2 * value]), right, scale=_terms(instance))


def _terms(instance: Instance) -> Array:
    """Size of what cancels in the gradient and in the variance."""
    size = _units(instance, instance["Ws"]) @ jnp.abs(instance["ws"])
    return jnp.stack([jnp.mean(size), jnp.mean(size**2)])


ZERO_POINT = Claim(
    name=f"{_PAPER}/zero-point",
    locator="Theorem 1, 'any stationary point'",
    statement=(
        r"E y = 0: \quad \nabla \tfrac12 E (w^\top \phi(W^\top z) - E(y|x))^2 = 0 \quad "
        r"\text{at } W = 0,\ w = 0, \quad E u^2 = E[E(y|x)^2]"
    ),
    kind=Kind.IDENTITY,
    instances=_teachers,
    sides=partial(_at_zero, centred=True),
    control=Control("y not centred", sides=partial(_at_zero, centred=False)),
    note=(
        "The error at this stationary point is that of predicting nothing, whatever n. The theorem "
        "excludes it through (A3) alone, which it assumes there without saying so: see "
        "assumption-a3-at-zero. On a sample with centred y it is stationary as well."
    ),
    **_COMMON,
)


def _largest(instance: Instance, W: Array) -> Array:
    """Largest eigenvalue of Var(Phi* | Phi) at a first layer W."""
    target = _units(instance, instance["Ws"])
    return conditional_covariance(target, _units(instance, W)).largest


def _uniform(instance: Instance, at: str) -> Sides:
    target = _units(instance, instance["Ws"])
    h = target @ instance["ws"]
    worst = _largest(instance, jnp.zeros_like(instance["W"]) if at == "zero" else instance["Ws"])
    left = jnp.stack([jnp.var(h), _largest(instance, instance["W"])])
    right = jnp.stack([jnp.sum(instance["ws"] ** 2), jnp.ones_like(worst)]) * worst
    size = jnp.mean(jnp.sum(target**2, axis=1))
    return Sides(left, right, scale=size * jnp.stack([jnp.sum(instance["ws"] ** 2), worst / worst]))


ASSUMPTION_A3_AT_ZERO = Claim(
    name=f"{_PAPER}/assumption-a3-at-zero",
    locator="(A3), assumed of all first layers",
    statement=(
        r"E[E(y|x)^2] \le \|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_0)), \quad "
        r"\lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_W)) \le "
        r"\lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_0)) = \lambda_{\max}(\mathrm{Cov}\, \Phi^*)"
    ),
    kind=Kind.INEQUALITY,
    instances=_teachers,
    sides=partial(_uniform, at="zero"),
    control=Control("at the teacher's own first layer", sides=partial(_uniform, at="teacher")),
    note=(
        "Features at W = 0 are constant and explain nothing. If (A3) holds for all first layers, "
        "C_2^2 o(gamma^2) bounds the whole of E(y|x): the network that predicts 0 has the error "
        "that the theorem promises. No nontrivial teacher satisfies (A3) on a set that contains 0."
    ),
    **_COMMON,
)
