r"""Denoising score matching: (5) and (6) differ by a number that no score function changes.

At one time, on the line: J5(s) = E |s(x) - (log p_t)'(x)|^2 over x = x(t), and J6(s) = E |s(x) -
(log p_{t|0})'(x | x(0))|^2 over both. Functions s(x) = c_0 + c_1 x + sum_j c_j sin(omega_j x +
phi_j). J6 is a Gauss-Hermite sum over x(0) and the noise, J5 a trapezoidal sum over x(t).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.gu2024exploring.diffusion_instances import decay, mixtures, schedule, schedules
from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "gu2024exploring"
_WAVES = 2
_HERMITE, _MASS = np.polynomial.hermite_e.hermegauss(26)
_MASS = _MASS / _MASS.sum()
_LINE = np.linspace(-10, 10, 401)
"""26 Hermite nodes are exact to rounding for sin(3 x) and a unit variance (3^52 26! / 52! =
3e-17); steps of 0.05 for densities without a complex zero within 0.3 of the line."""
_ROUNDINGS = 2 * len(_LINE)
"""Sums of 401 terms, each of a density, a score and a function (below 100 roundings)."""


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Two functions; in every second instance the first is near the best linear one."""
    rng = generator(key)
    batch = mixtures(rng, count, 1) | schedules(rng, count, (0.3, 3.0))
    for name in ("c", "other"):
        batch[name] = rng.normal(size=(count, _WAVES + 2)) * 10 ** rng.uniform(-1, 1, (count, 1))
    w, mean, C = batch["weights"], batch["means"][:, :, 0], batch["covariances"][:, :, 0, 0]
    beta = decay(batch, batch["t"][:, None])[:, 0]
    centre = np.sum(w * mean, axis=1)
    variance = beta**2 * (np.sum(w * (C + mean**2), axis=1) - centre**2) + 1 - beta**2
    linear = np.stack((beta * centre / variance, -1 / variance), axis=1)
    batch["c"][::2] *= 0.01
    batch["c"][::2, :2] += linear[::2]
    batch["omega"] = rng.uniform(0.3, 1.5, (count, _WAVES))
    batch["phi"] = rng.uniform(0, 2 * np.pi, (count, _WAVES))
    return as_arrays(batch)


def _function(instance: Instance, name: str, x: Array) -> Array:
    c, omega, phi = instance[name], instance["omega"], instance["phi"]
    waves = [c[2 + j] * jnp.sin(omega[j] * x + phi[j]) for j in range(_WAVES)]
    return c[0] + c[1] * x + sum(waves)


def _noise(instance: Instance) -> tuple[Array, Array]:
    """Decay beta and the variance 1 - beta^2."""
    law, t = schedule(instance), instance["t"]
    return law.decay(t), law.variance(t)


def _denoising(instance: Instance, name: str, power: float = 0.5) -> Float[Array, ""]:
    """J6: over the component, x(0) and the noise; the target is -eps / (1 - beta^2)^power."""
    beta, variance = _noise(instance)
    spread = jnp.sqrt(instance["covariances"][:, 0, 0])
    x0 = instance["means"] + spread[:, None] * _HERMITE[None, :]
    x = beta * x0[:, :, None] + jnp.sqrt(variance) * _HERMITE[None, None, :]
    target = (-_HERMITE / variance**power)[None, None, :]
    gap = (_function(instance, name, x) - target) ** 2
    return instance["weights"] @ jnp.einsum("kij,i,j->k", gap, _MASS, _MASS)


def _density_and_score(instance: Instance) -> tuple[Array, Array]:
    """p_t and (log p_t)' on the grid, by the textbook formula."""
    beta, variance = _noise(instance)
    total = (beta**2 * instance["covariances"][:, 0, 0] + variance)[:, None]
    gap = _LINE[None, :] - beta * instance["means"]
    each = instance["weights"][:, None] * jnp.exp(-(gap**2) / (2 * total))
    each = each / jnp.sqrt(2 * jnp.pi * total)
    density = jnp.sum(each, axis=0)
    return density, -jnp.sum(each * gap / total, axis=0) / density


def _explicit(instance: Instance, name: str) -> Float[Array, ""]:
    """J5."""
    density, score = _density_and_score(instance)
    gap = (_function(instance, name, jnp.asarray(_LINE)) - score) ** 2
    return (_LINE[1] - _LINE[0]) * jnp.sum(density * gap)


def _constant(instance: Instance) -> Float[Array, ""]:
    """1 / (1 - beta^2) - E |(log p_t)'|^2, what (6) has at least."""
    density, score = _density_and_score(instance)
    information = (_LINE[1] - _LINE[0]) * jnp.sum(density * score**2)
    return 1 / _noise(instance)[1] - information


def _difference(instance: Instance, power: float = 0.5) -> Sides:
    first, second = (_denoising(instance, name, power) for name in ("c", "other"))
    left = first - _explicit(instance, "c")
    right = jnp.stack((second - _explicit(instance, "other"), _constant(instance)))
    size = first + jnp.stack((second, 1 / _noise(instance)[1]))
    return Sides(jnp.stack((left, left)), right, scale=size)


EQUIVALENCE = Claim(
    name=f"{_PAPER}/denoising-score-matching",
    paper=_PAPER,
    locator="Section 6.1, (5) and (6)",
    statement=(
        r"E \|s(x(t)) - \nabla \log p_{t|0}(x(t) \mid x(0))\|^2"
        r"- E \|s(x(t)) - \nabla \log p_t(x(t))\|^2"
        r"= \frac{d}{1 - \beta^2} - E \|\nabla \log p_t(x(t))\|^2 \quad \forall s"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=_instances,
    sides=_difference,
    control=Control(
        "the noise itself as target, -eps in place of -eps / sqrt(1 - beta^2)",
        sides=partial(_difference, power=0.0),
    ),
    count=48,
    terms=_ROUNDINGS,
    note=(
        "Two functions s give the same difference, and it is the number on the right; for every "
        "t, hence for any weight lambda(t) on one interval. The paper has (5) on [0, T] and (6) "
        "on [T_0, T]: the difference grows as 1/t towards t = 0, where (6) would be infinite."
    ),
)


def _with_constant(key: PRNGKeyArray, count: int) -> Instance:
    """The constant does not depend on the functions, which the search moves."""
    batch = _instances(key, count)
    return {**batch, "constant": jax.jit(jax.vmap(_constant))(batch)}


def _least(instance: Instance, whole: bool = False) -> Sides:
    largest, loss = 1 / _noise(instance)[1], _denoising(instance, "c")
    return Sides(largest if whole else instance["constant"], loss, scale=largest + loss)


MINIMUM = Claim(
    name=f"{_PAPER}/denoising-minimum",
    paper=_PAPER,
    locator="Section 6.1, least value of (6)",
    statement=(
        r"E \|s(x(t)) - \nabla \log p_{t|0}(x(t) \mid x(0))\|^2"
        r"\ge \frac{d}{1 - \beta^2} - E \|\nabla \log p_t(x(t))\|^2"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_with_constant,
    sides=_least,
    free=("c",),
    control=Control("the variance of the noise alone", sides=partial(_least, whole=True)),
    count=32,
    terms=_ROUNDINGS,
    note=(
        "The loss that noisy labels leave to the perfect estimator. Equality at the score; the "
        "functions tried are linear ones plus two waves, and come near it."
    ),
)
