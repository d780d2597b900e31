r"""The forward process (3) and its stated solution.

dx = -g/2 x dt + sqrt(g) dB; stated: x(t) = e^{-G(t)/2} (x(0) + int_0^t e^{G(s)/2} sqrt(g) dB)
with G(t) = int_0^t g, so that x(t) = beta x(0) + N(0, (1 - beta^2) I) in law.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source
from attlas.claims.statement import identity, limit
from gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    mixture,
    noised_mixtures,
    schedule,
)
from gu2024exploring.library.data.gaussian_mixtures import diffused, log_density
from gu2024exploring.library.data.noise_schedule import NoiseSchedule

_STEPS = (16, 64, 256, 1024)
_NODES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(6))
_MANY, _MANY_WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(40))
_UNWEIGHTED = Control("the inner exponential dropped", inner=0.0)


def _integrand(g, t, s, inner):
    """What stands before dB(s) in the stated solution at time t; inner times G(s)/2 within."""
    return jnp.exp(-g.integral(t) / 2) * jnp.exp(inner * g.integral(s) / 2) * jnp.sqrt(g.rate(s))


def _strong_error(g, t, x0, steps, inner):
    """(E ||x_N - x(t)||^2)^{1/2} for one Brownian motion, by Ito's isometry."""
    h = t / steps
    begins = h * jnp.arange(steps, dtype=t.dtype)
    rates = g.rate(begins)
    # after[k] damps what step k - 1 added; after[0] damps x(0).
    after = jnp.cumprod((1 - rates * h / 2)[::-1])[::-1]
    later = jnp.append(after[1:], 1.0)
    nodes = begins[:, None] + h * (0.5 + _NODES)[None, :]
    gap = (jnp.sqrt(rates) * later)[:, None] - _integrand(g, t, nodes, inner)
    noise = h * jnp.sum(gap**2 * _WEIGHTS[None, :])
    drift = (after[0] - g.decay(t)) ** 2 * jnp.sum(x0**2)
    return jnp.sqrt(drift + x0.size * noise)


@limit(
    "Section 6.1, solution of (3)",
    Source.RECALLED,
    scales=_STEPS,
    sample=noised_mixtures,
    count=48,
    roundings=2 * _STEPS[-1],
    controls=[_UNWEIGHTED],
)
def forward_solution(start, end, T, t, x0, *, inner=1.0):
    r"""$$x(t) = e^{-\frac12 \int_0^t g}\, x(0) + e^{-\frac12 \int_0^t g}
    \int_0^t e^{\frac12 \int_0^s g} \sqrt{g(s)}\, dB_s,\quad
    \lim_{N \to \infty} E \|x_N - x(t)\|^2 = 0$$

    $x_N$ is the Euler chain of (3) with $N = 16$, 64, 256, 1024 steps of one Brownian motion. By
    Ito's isometry the mean square is an integral, so nothing is sampled. It falls as $1/N^2$: the
    noise is additive.
    """
    g = NoiseSchedule(start, end, T)
    left = jnp.stack([_strong_error(g, t, x0, steps, inner) for steps in _STEPS])
    return Sides(left, jnp.zeros_like(left), magnitude=jnp.ones_like(left))


@identity(
    "Section 6.1, law of $x(t)$",
    sample=noised_mixtures,
    roundings=ROUNDINGS,
    controls=[_UNWEIGHTED, Control(r"$\beta = e^{-\int g}$", half=1.0)],
)
def forward_moments(start, end, T, t, *, inner=1.0, half=0.5):
    r"""$$x(t) \mid x(0) \sim N\big( \beta x(0), (1 - \beta^2) I \big),\quad
    \beta = e^{-\frac12 \int_0^t g},\quad
    e^{-\int_0^t g} \int_0^t e^{\int_0^s g} g(s)\, ds = 1 - \beta^2$$

    Ito's isometry by Gauss-Legendre quadrature, against the closed form of the library.
    """
    g = NoiseSchedule(start, end, T)
    nodes = t * (0.5 + _MANY)
    decay = jnp.exp(-half * t * jnp.sum(g.rate(nodes) * _MANY_WEIGHTS))
    variance = t * jnp.sum(_integrand(g, t, nodes, inner) ** 2 * _MANY_WEIGHTS)
    left = jnp.stack((decay, variance))
    return Sides(left, jnp.stack((g.decay(t), g.variance(t))), magnitude=jnp.ones_like(left))


@identity(
    "Section 6.1, density of $x(t)$",
    sample=noised_mixtures,
    roundings=ROUNDINGS,
    controls=[Control("drift $-g x$ in place of $-g x / 2$", drift=2.0)],
)
def forward_density(t, x, *, drift=1.0, **law):
    r"""$$p_t = \sum_k w_k N(\beta \mu_k, \beta^2 C_k + (1 - \beta^2) I):\quad
    \partial_t p_t = \tfrac12 g(t) \big( \nabla \cdot (x p_t) + \Delta p_t \big)$$

    The equation that (3) imposes on densities, divided by $p_t$, with all derivatives of the
    mixture's closed form automatic. Two components with full covariances in the plane.
    """
    p_0, g = mixture(law), schedule(law)

    def log_p(t, x):
        return log_density(diffused(p_0, g, t), x)

    slope, bend = jax.grad(log_p, 1)(t, x), jax.hessian(log_p, 1)(t, x)
    inward = drift * (x.size + x @ slope)
    terms = jnp.stack((inward, jnp.trace(bend), slope @ slope))
    half = g.rate(t) / 2
    size = half * (drift * (x.size + jnp.abs(x) @ jnp.abs(slope)) + jnp.sum(jnp.abs(terms[1:])))
    # Each second derivative is a difference of squares of slopes of the components.
    magnitude = size + half * jnp.sum(component_slopes(diffused(p_0, g, t), x) ** 2)
    return Sides(jax.grad(log_p)(t, x), half * jnp.sum(terms), magnitude=magnitude)


def component_slopes(p_t, x):
    """Bounds of the slopes of the components' log-densities."""
    size = jnp.abs(x)[None, :] + jnp.abs(p_t.means)
    return jnp.sum(size, axis=1, keepdims=True) / p_t.spectrum
