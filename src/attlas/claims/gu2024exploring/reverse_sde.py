r"""The backward process (4) with the true score turns p_T into the data law.

dy = (g/2 y + g grad log p_{T-tau}(y)) dtau + sqrt(g) dB, with g at T - tau. Its Euler chain is
Gaussian for Gaussian data, and for mixtures on the line its densities are propagated on a grid:
nothing is sampled. `t` stands for the T at which the reversal starts; it ends at time 0.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    drawn_mixtures,
    mixture,
    mixtures,
    schedule,
    schedules,
)
from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.gaussian_mixtures import diffused, log_density

_PAPER = "gu2024exploring"
_GAUSSIAN_STEPS = (16, 64, 256)
_GRID_STEPS = (6, 12, 24)
_LINE = np.linspace(-8, 8, 129)
"""Steps of 0.125 are below 0.7 of the least standard deviation of an Euler step, sqrt(0.8 / 24)."""


def _backward_equation(instance: Instance, pull: float = 1.0) -> Sides:
    """The Fokker-Planck equation of (4) for q_tau = p_{T - tau}, divided by the density."""
    law, rates, t, x = mixture(instance), schedule(instance), instance["t"], instance["x"]

    def log_p(t: Array, x: Array) -> Array:
        return log_density(diffused(law, rates, t), x)

    def drift(x: Array) -> Array:
        return rates.rate(t) * (x / 2 + pull * jax.grad(log_p, 1)(t, x))

    slope, bend = jax.grad(log_p, 1)(t, x), jax.hessian(log_p, 1)(t, x)
    inward = jnp.trace(jax.jacfwd(drift)(x)) + drift(x) @ slope
    spread = rates.rate(t) / 2 * (jnp.trace(bend) + slope @ slope)
    reach = jnp.abs(x)[None, :] + jnp.abs(diffused(law, rates, t).means)
    steepest = jnp.sum(reach, axis=1, keepdims=True) / diffused(law, rates, t).spectrum
    size = rates.rate(t) * (1 + x @ x + jnp.sum(steepest**2))
    return Sides(-jax.grad(log_p)(t, x), -inward + spread, scale=size)


BACKWARD_EQUATION = Claim(
    name=f"{_PAPER}/reverse-density",
    paper=_PAPER,
    locator="Section 6.1, (4)",
    statement=(
        r"q_\tau = p_{T - \tau}: \quad \partial_\tau q_\tau ="
        r"-\nabla \cdot \big( (\tfrac12 g x + g \nabla \log p_{T - \tau}) q_\tau \big)"
        r"+ \tfrac12 g \Delta q_\tau"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=drawn_mixtures,
    sides=_backward_equation,
    control=Control("half of the score", sides=partial(_backward_equation, pull=0.5)),
    terms=ROUNDINGS,
    note="The reversed law solves the equation of (4): planar mixtures, automatic derivatives.",
)


def _gaussians(key: PRNGKeyArray, count: int) -> Instance:
    """One Gaussian in the plane, with a factor L of its covariance, and a schedule."""
    rng = generator(key)
    batch = mixtures(rng, count) | schedules(rng, count, (0.3, 3.0))
    L = np.linalg.cholesky(batch.pop("covariances")[:, 0])
    batch |= {"mean": batch.pop("means")[:, 0], "L": L, "T": batch["t"]}
    del batch["weights"]
    return as_arrays(batch)


def _euler(instance: Instance, steps: int, pull: float) -> tuple[Array, Array]:
    """Mean and covariance of the chain that starts from p_T."""
    rates, mu, C = schedule(instance), instance["mean"], instance["L"] @ instance["L"].T
    eye = jnp.eye(mu.size, dtype=mu.dtype)
    h = instance["t"] / steps

    def covariance(t: Array) -> Array:
        return rates.decay(t) ** 2 * C + rates.variance(t) * eye

    def step(law: tuple[Array, Array], k: Array) -> tuple[tuple[Array, Array], None]:
        mean, spread = law
        t = instance["t"] - h * k
        rate = h * rates.rate(t)
        (a, b), (c, e) = covariance(t)
        inverse = jnp.stack((e, -b, -c, a)).reshape(2, 2) / (a * e - b * c)
        turn = eye * (1 + rate / 2) - pull * rate * inverse
        moved = turn @ mean + pull * rate * rates.decay(t) * (inverse @ mu)
        return (moved, turn @ spread @ turn.T + rate * eye), None

    start = rates.decay(instance["t"]) * mu, covariance(instance["t"])
    return jax.lax.scan(step, start, jnp.arange(steps, dtype=mu.dtype))[0]


def _gaussian_error(instance: Instance, pull: float = 1.0) -> Sides:
    mu, C = instance["mean"], instance["L"] @ instance["L"].T
    found = [_euler(instance, steps, pull) for steps in _GAUSSIAN_STEPS]
    apart = [jnp.linalg.norm(m - mu) + jnp.linalg.norm(S - C) for m, S in found]
    left = jnp.stack(apart)
    scales = jnp.asarray(_GAUSSIAN_STEPS, left.dtype)
    return Sides(left, jnp.zeros_like(left), scale=jnp.ones_like(left), scales=scales)


GAUSSIAN = Claim(
    name=f"{_PAPER}/reverse-sde-gaussian",
    paper=_PAPER,
    locator="Section 6.1, (4) for Gaussian data",
    statement=(
        r"y_0 \sim p_T,\ s = \nabla \log p_t: \quad"
        r"\lim_{N \to \infty} \|E\, y_N - \mu\| + \|\mathrm{Cov}\, y_N - C\|_F = 0"
    ),
    kind=Kind.LIMIT,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=_gaussians,
    sides=_gaussian_error,
    control=Control(
        "half of the score with all of the noise", sides=partial(_gaussian_error, pull=0.5)
    ),
    count=48,
    terms=ROUNDINGS * 16,
    note=(
        "Mean and covariance of the Euler chain with 16, 64 and 256 steps, exact to rounding; "
        "the error falls as 1/N. The chain starts from p_T itself."
    ),
)


def _lines(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    batch = mixtures(rng, count, 1) | schedules(rng, count, (0.8, 2.0))
    return as_arrays(batch | {"T": batch["t"], "end": batch["start"]})


def _grid_density(instance: Instance, t: Array) -> tuple[Array, Array]:
    """p_t and its score on the grid."""
    rates = schedule(instance)
    total = rates.decay(t) ** 2 * instance["covariances"][:, 0] + rates.variance(t)
    gap = _LINE[None, :] - rates.decay(t) * instance["means"]
    each = instance["weights"][:, None] * jnp.exp(-(gap**2) / (2 * total))
    each = each / jnp.sqrt(2 * jnp.pi * total)
    density = jnp.sum(each, axis=0)
    return density, -jnp.sum(each * gap / total, axis=0) / density


def _arrived(instance: Instance, steps: int, pull: float) -> Float[Array, " x"]:
    """Density of the Euler chain after its last step."""
    rates, width = schedule(instance), _LINE[1] - _LINE[0]
    h = instance["t"] / steps

    def step(density: Array, k: Array) -> tuple[Array, None]:
        t = instance["t"] - h * k
        rate = h * rates.rate(t)
        goal = _LINE + rate * (_LINE / 2 + pull * _grid_density(instance, t)[1])
        kernel = jnp.exp(-((_LINE[:, None] - goal[None, :]) ** 2) / (2 * rate))
        return kernel @ density * (width / jnp.sqrt(2 * jnp.pi * rate)), None

    start = _grid_density(instance, instance["t"])[0]
    return jax.lax.scan(step, start, jnp.arange(steps, dtype=start.dtype))[0]


def _mixture_error(instance: Instance, pull: float = 1.0) -> Sides:
    width, truth = _LINE[1] - _LINE[0], _grid_density(instance, jnp.zeros_like(instance["t"]))[0]
    apart = [jnp.abs(_arrived(instance, n, pull) - truth) for n in _GRID_STEPS]
    left = width * jnp.sum(jnp.stack(apart), axis=1) / 2
    scales = jnp.asarray(_GRID_STEPS, left.dtype)
    return Sides(left, jnp.zeros_like(left), scale=jnp.ones_like(left), scales=scales)


MIXTURE = Claim(
    name=f"{_PAPER}/reverse-sde-mixture",
    paper=_PAPER,
    locator="Section 6.1, (4) for mixtures",
    statement=(
        r"y_0 \sim p_T,\ s = \nabla \log p_t: \quad"
        r"\lim_{N \to \infty} \mathrm{TV}(\mathrm{law}(y_N), p_0) = 0"
    ),
    kind=Kind.LIMIT,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=_lines,
    sides=_mixture_error,
    control=Control(
        "half of the score with all of the noise", sides=partial(_mixture_error, pull=0.5)
    ),
    count=32,
    terms=ROUNDINGS * 16,
    note=(
        "Two components on the line; the density of the Euler chain with 6, 12 and 24 steps is "
        "propagated by its Gaussian transition kernels on a grid, without sampling."
    ),
)


def _divergence(mean: Array, S: Array, other: Array, C: Array) -> Float[Array, ""]:
    """KL(N(mean, S) || N(other, C)) for diagonal covariances."""
    return jnp.sum(S / C - 1 - jnp.log(S / C) + (mean - other) ** 2 / C) / 2


def _from_noise(instance: Instance, worst: bool = True) -> Sides:
    """Reversal from N(0, I): y_0 is drawn from it, x(0) from the posterior given x(T) = y_0."""
    rates, t = schedule(instance), instance["t"]
    mu, C = instance["mean"], jnp.exp(instance["log_c"])
    beta, noise = rates.decay(t), rates.variance(t)
    late = beta**2 * C + noise
    gain = beta * C / late
    left = _divergence(mu - gain * beta * mu, noise * C / late + gain**2, mu, C)
    start = _divergence(jnp.zeros_like(mu), jnp.ones_like(mu), beta * mu, late)
    kept = beta**2 * C / late
    terms = 1 + 1 / C + (1 + C) / noise + mu**2 * (1 / C + 1 / late)
    size = jnp.sum(terms + jnp.abs(instance["log_c"]))
    return Sides(left, start * (jnp.max(kept) if worst else jnp.min(kept)), scale=size)


def _cold_start(key: PRNGKeyArray, count: int) -> Instance:
    """Every second instance is isotropic; every third reversal starts early."""
    rng = generator(key)
    batch = schedules(rng, count, (0.3, 3.0))
    log_c = rng.uniform(-3, 3, (count, 2))
    log_c[::2] = log_c[::2, :1]
    mean = rng.normal(size=(count, 2)) * 10 ** rng.uniform(-1, 1, (count, 1))
    batch |= {"mean": mean, "log_c": log_c, "T": batch["t"]}
    batch["t"][::3] *= 0.1
    return as_arrays(batch)


COLD_START = Claim(
    name=f"{_PAPER}/reverse-from-noise",
    paper=_PAPER,
    locator="Section 6.1, noise as the start of the backward process",
    statement=(
        r"p_0 = N(\mu, C),\ y_0 \sim N(0, I),\ s = \nabla \log p_t: \quad"
        r"\mathrm{KL}(\mathrm{law}(y_T) \,\|\, p_0) \le"
        r"\frac{\beta^2 c}{\beta^2 c + 1 - \beta^2} \mathrm{KL}(N(0, I) \,\|\, p_T),"
        r"\quad c = \lambda_{\max}(C)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_cold_start,
    sides=_from_noise,
    free=("mean", "log_c"),
    control=Control("the least eigenvalue of C", sides=partial(_from_noise, worst=False)),
    count=48,
    terms=ROUNDINGS,
    note=(
        "The paper starts from noise in place of p_T and does not count the error. Data "
        "processing has factor 1; that of Gaussian data is the squared maximal correlation of "
        "x(0) and x(T), reached by means far out. The divergence at the start is of order "
        "beta^2, so that this error is of order beta^4, e^(-2 int g)."
    ),
)
