r"""The forward process (3) and its stated solution.

dx = -g/2 x dt + sqrt(g) dB; stated: x(t) = e^{-G(t)/2} (x(0) + int_0^t e^{G(s)/2} sqrt(g) dB)
with G(t) = int_0^t g, so that x(t) = beta x(0) + N(0, (1 - beta^2) I) in law.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.claims.gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    drawn_mixtures,
    mixture,
    schedule,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.gaussian_mixtures import diffused, log_density

_PAPER = "gu2024exploring"
_STEPS = (16, 64, 256)
_NODES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(6))
_MANY, _MANY_WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(40))
Integrand = Callable[[Instance, Array], Array]


def _stated(instance: Instance, s: Array) -> Array:
    """What stands before dB(s) in the stated solution at time t."""
    law = schedule(instance)
    end, now = law.integral(instance["t"]), law.integral(s)
    return jnp.exp(-end / 2) * jnp.exp(now / 2) * jnp.sqrt(law.rate(s))


def _unweighted(instance: Instance, s: Array) -> Array:
    """The same without the factor e^{G(s)/2}."""
    law = schedule(instance)
    return jnp.exp(-law.integral(instance["t"]) / 2) * jnp.sqrt(law.rate(s))


def _strong_error(instance: Instance, steps: int, integrand: Integrand) -> Float[Array, ""]:
    """(E ||x_N - x(t)||^2)^{1/2} for one Brownian motion, by Ito's isometry."""
    law, t, x0 = schedule(instance), instance["t"], instance["x0"]
    h = t / steps
    begins = h * jnp.arange(steps, dtype=t.dtype)
    rates = law.rate(begins)
    # after[k] damps what step k - 1 added; after[0] damps x(0).
    after = jnp.cumprod((1 - rates * h / 2)[::-1])[::-1]
    later = jnp.append(after[1:], 1.0)
    nodes = begins[:, None] + h * (0.5 + _NODES)[None, :]
    gap = (jnp.sqrt(rates) * later)[:, None] - integrand(instance, nodes)
    noise = h * jnp.sum(gap**2 * _WEIGHTS[None, :])
    drift = (after[0] - law.decay(t)) ** 2 * jnp.sum(x0**2)
    return jnp.sqrt(drift + x0.size * noise)


def _solves(instance: Instance, integrand: Integrand = _stated) -> Sides:
    left = jnp.stack([_strong_error(instance, steps, integrand) for steps in _STEPS])
    scales = jnp.asarray(_STEPS, left.dtype)
    return Sides(left, jnp.zeros_like(left), scale=jnp.ones_like(left), scales=scales)


SOLUTION = Claim(
    name=f"{_PAPER}/forward-solution",
    paper=_PAPER,
    locator="Section 6.1, solution of (3)",
    statement=(
        r"x(t) = e^{-\frac12 \int_0^t g}\, x(0) + e^{-\frac12 \int_0^t g}"
        r"\int_0^t e^{\frac12 \int_0^s g} \sqrt{g(s)}\, dB_s,\quad"
        r"\lim_{N \to \infty} E \|x_N - x(t)\|^2 = 0"
    ),
    kind=Kind.LIMIT,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=drawn_mixtures,
    sides=_solves,
    control=Control("the inner exponential dropped", sides=partial(_solves, integrand=_unweighted)),
    count=48,
    terms=2 * _STEPS[-1],
    note=(
        "x_N is the Euler chain of (3) with N = 16, 64, 256 steps of the same Brownian motion. "
        "By Ito's isometry the mean square is an integral, so nothing is sampled. It falls as "
        "1/N^2: the noise is additive."
    ),
)


def _moments(instance: Instance, integrand: Integrand = _stated) -> Sides:
    law, t = schedule(instance), instance["t"]
    nodes = t * (0.5 + _MANY)
    decay = jnp.exp(-t * jnp.sum(law.rate(nodes) * _MANY_WEIGHTS) / 2)
    variance = t * jnp.sum(integrand(instance, nodes) ** 2 * _MANY_WEIGHTS)
    left = jnp.stack((decay, variance))
    return Sides(left, jnp.stack((law.decay(t), law.variance(t))), scale=jnp.ones_like(left))


MOMENTS = Claim(
    name=f"{_PAPER}/forward-moments",
    paper=_PAPER,
    locator="Section 6.1, law of x(t)",
    statement=(
        r"x(t) \mid x(0) \sim N\big( \beta x(0), (1 - \beta^2) I \big),\quad"
        r"\beta = e^{-\frac12 \int_0^t g},\quad "
        r"e^{-\int_0^t g} \int_0^t e^{\int_0^s g} g(s)\, ds = 1 - \beta^2"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=drawn_mixtures,
    sides=_moments,
    control=Control(
        "the inner exponential dropped", sides=partial(_moments, integrand=_unweighted)
    ),
    terms=ROUNDINGS,
    note="Ito's isometry by Gauss-Legendre quadrature, against the closed form of the library.",
)


def _fokker_planck(instance: Instance, drift: float = 1.0) -> Sides:
    law, rates, t, x = mixture(instance), schedule(instance), instance["t"], instance["x"]

    def log_p(t: Array, x: Array) -> Array:
        return log_density(diffused(law, rates, t), x)

    slope, bend = jax.grad(log_p, 1)(t, x), jax.hessian(log_p, 1)(t, x)
    inward = drift * (x.size + x @ slope)
    parts = jnp.stack((inward, jnp.trace(bend), slope @ slope))
    half = rates.rate(t) / 2
    size = half * (drift * (x.size + jnp.abs(x) @ jnp.abs(slope)) + jnp.sum(jnp.abs(parts[1:])))
    # Each second derivative is a difference of squares of slopes of the components.
    size = size + half * jnp.sum(_component_slopes(instance) ** 2)
    return Sides(jax.grad(log_p)(t, x), half * jnp.sum(parts), scale=size)


def _component_slopes(instance: Instance) -> Float[Array, "K d"]:
    law = diffused(mixture(instance), schedule(instance), instance["t"])
    gap = jnp.abs(instance["x"])[None, :] + jnp.abs(law.means)
    return jnp.sum(gap, axis=1, keepdims=True) / law.spectrum


FOKKER_PLANCK = Claim(
    name=f"{_PAPER}/forward-density",
    paper=_PAPER,
    locator="Section 6.1, density of x(t)",
    statement=(
        r"p_t = \sum_k w_k N(\beta \mu_k, \beta^2 C_k + (1 - \beta^2) I):\quad"
        r"\partial_t p_t = \tfrac12 g(t) \big( \nabla \cdot (x p_t) + \Delta p_t \big)"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=drawn_mixtures,
    sides=_fokker_planck,
    control=Control("drift -g x in place of -g x / 2", sides=partial(_fokker_planck, drift=2.0)),
    terms=ROUNDINGS,
    note=(
        "The equation that (3) imposes on densities, divided by p_t, with all derivatives of the "
        "mixture's closed form automatic. Two components with full covariances in the plane."
    ),
)
