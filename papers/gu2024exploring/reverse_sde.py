r"""The backward process (4) with the true score turns p_T into the data law.

dy = (g/2 y + g grad log p_{T-tau}(y)) dtau + sqrt(g) dB, with g at T - tau. Its Euler chain is
Gaussian for Gaussian data, and for mixtures on the line its densities are propagated on a grid:
nothing is sampled. `t` stands for the T at which the reversal starts; it ends at time 0.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity, inequality, limit
from gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    line_density,
    mixture,
    mixtures,
    noised_mixtures,
    schedule,
    schedules,
)
from gu2024exploring.forward_law import component_slopes
from gu2024exploring.library.data.gaussian_mixtures import diffused, log_density
from gu2024exploring.library.data.noise_schedule import NoiseSchedule

_GAUSSIAN_STEPS = (16, 64, 256, 1024)
_GRID_STEPS = (6, 12, 24, 48)
_LINE = np.linspace(-8, 8, 129)
"""Steps of 0.125 are below the least standard deviation of an Euler step, sqrt(0.8 / 48)."""
_HALF = Control("half of the score with all of the noise", pull=0.5)


@identity(
    "Section 6.1, (4)",
    Source.RECALLED,
    sample=noised_mixtures,
    roundings=ROUNDINGS,
    controls=[Control("half of the score", pull=0.5)],
)
def reverse_density(t, x, *, pull=1.0, **law):
    r"""$$q_\tau = p_{T - \tau}: \quad \partial_\tau q_\tau =
    -\nabla \cdot \big( (\tfrac12 g x + g \nabla \log p_{T - \tau}) q_\tau \big)
    + \tfrac12 g \Delta q_\tau$$

    The reversed law solves the equation of (4): planar mixtures, automatic derivatives.
    """
    p_0, g = mixture(law), schedule(law)

    def log_p(t, x):
        return log_density(diffused(p_0, g, t), x)

    def drift(x):
        return g.rate(t) * (x / 2 + pull * jax.grad(log_p, 1)(t, x))

    # The equation is divided by the density.
    slope, bend = jax.grad(log_p, 1)(t, x), jax.hessian(log_p, 1)(t, x)
    inward = jnp.trace(jax.jacfwd(drift)(x)) + drift(x) @ slope
    spread = g.rate(t) / 2 * (jnp.trace(bend) + slope @ slope)
    steepest = jnp.sum(component_slopes(diffused(p_0, g, t), x) ** 2)
    magnitude = g.rate(t) * (1 + x @ x + steepest)
    return Sides(-jax.grad(log_p)(t, x), -inward + spread, magnitude=magnitude)


def gaussians(rng, count):
    """One Gaussian in the plane, with a factor L of its covariance, and a schedule."""
    law, times = mixtures(rng, count), schedules(rng, count, (0.3, 3.0))
    L = np.linalg.cholesky(law["covariances"][:, 0])
    return times | {"mean": law["means"][:, 0], "L": L, "T": times["t"]}


def _euler(g, t, mu, C, steps, pull):
    """Mean and covariance of the chain that starts from p_T."""
    eye = jnp.eye(mu.size, dtype=mu.dtype)
    h = t / steps

    def covariance(t):
        return g.decay(t) ** 2 * C + g.variance(t) * eye

    def step(law, k):
        mean, spread = law
        now = t - h * k
        rate = h * g.rate(now)
        (a, b), (c, e) = covariance(now)
        inverse = jnp.stack((e, -b, -c, a)).reshape(2, 2) / (a * e - b * c)
        turn = eye * (1 + rate / 2) - pull * rate * inverse
        moved = turn @ mean + pull * rate * g.decay(now) * (inverse @ mu)
        return (moved, turn @ spread @ turn.T + rate * eye), None

    start = g.decay(t) * mu, covariance(t)
    return jax.lax.scan(step, start, jnp.arange(steps, dtype=mu.dtype))[0]


@limit(
    "Section 6.1, (4) for Gaussian data",
    Source.RECALLED,
    scales=_GAUSSIAN_STEPS,
    sample=gaussians,
    count=48,
    roundings=16 * ROUNDINGS,
    controls=[_HALF],
)
def reverse_sde_gaussian(mean, L, start, end, T, t, *, pull=1.0):
    r"""$$y_0 \sim p_T,\ s = \nabla \log p_t: \quad
    \lim_{N \to \infty} \|E\, y_N - \mu\| + \|\mathrm{Cov}\, y_N - C\|_F = 0$$

    Mean and covariance of the Euler chain with 16 to 1024 steps, exact to rounding; the error
    falls as $1/N$. The chain starts from $p_T$ itself.
    """
    g, C = NoiseSchedule(start, end, T), L @ L.T
    laws = [_euler(g, t, mean, C, steps, pull) for steps in _GAUSSIAN_STEPS]
    left = jnp.stack([jnp.linalg.norm(m - mean) + jnp.linalg.norm(S - C) for m, S in laws])
    return Sides(left, jnp.zeros_like(left), magnitude=jnp.ones_like(left))


def lines(rng, count):
    """Mixtures on the line, under a constant rate of noise."""
    integral, t = rng.uniform(0.8, 2.0, count), rng.uniform(0.25, 2.0, count)
    return mixtures(rng, count, 1) | {"start": integral / t, "end": integral / t, "T": t, "t": t}


def _arrived(law, t, steps, pull):
    """Density of the Euler chain after its last step."""
    g, width = schedule(law), _LINE[1] - _LINE[0]
    h = t / steps

    def step(density, k):
        now = t - h * k
        rate = h * g.rate(now)
        goal = _LINE + rate * (_LINE / 2 + pull * line_density(law, now, _LINE)[1])
        kernel = jnp.exp(-((_LINE[:, None] - goal[None, :]) ** 2) / (2 * rate))
        return kernel @ density * (width / jnp.sqrt(2 * jnp.pi * rate)), None

    start = line_density(law, t, _LINE)[0]
    return jax.lax.scan(step, start, jnp.arange(steps, dtype=start.dtype))[0]


@limit(
    "Section 6.1, (4) for mixtures",
    Source.RECALLED,
    scales=_GRID_STEPS,
    sample=lines,
    count=32,
    roundings=16 * ROUNDINGS,
    controls=[_HALF],
)
def reverse_sde_mixture(t, *, pull=1.0, **law):
    r"""$$y_0 \sim p_T,\ s = \nabla \log p_t: \quad
    \lim_{N \to \infty} \mathrm{TV}(\mathrm{law}(y_N), p_0) = 0$$

    Two components on the line; the density of the Euler chain with 6, 12, 24 and 48 steps is
    propagated by its Gaussian transition kernels on a grid, without sampling.
    """
    width, truth = _LINE[1] - _LINE[0], line_density(law, jnp.zeros_like(t), _LINE)[0]
    apart = [jnp.abs(_arrived(law, t, n, pull) - truth) for n in _GRID_STEPS]
    left = width * jnp.sum(jnp.stack(apart), axis=1) / 2
    return Sides(left, jnp.zeros_like(left), magnitude=jnp.ones_like(left))


def cold_starts(rng, count):
    """Diagonal Gaussians; every second one is isotropic, every third schedule is short."""
    batch = schedules(rng, count, (0.3, 3.0))
    log_c = rng.uniform(-3, 3, (count, 2))
    log_c[::2] = log_c[::2, :1]
    mean = rng.normal(size=(count, 2)) * 10 ** rng.uniform(-1, 1, (count, 1))
    t = np.where(np.arange(count) % 3 == 0, 0.1, 1.0) * batch["t"]
    return batch | {"mean": mean, "log_c": log_c, "T": t, "t": t}


def _divergence(mean, S, reference_mean, C):
    """KL(N(mean, S) || N(other, C)) for diagonal covariances."""
    return jnp.sum(S / C - 1 - jnp.log(S / C) + (mean - reference_mean) ** 2 / C) / 2


@inequality(
    "Section 6.1, noise as the start of the backward process",
    status=Status.NEW,
    sample=cold_starts,
    search_over=("mean", "log_c"),
    count=48,
    roundings=ROUNDINGS,
    controls=[
        Control("the least eigenvalue of $C$", worst=False),
        Control("nine tenths of the right side", share=0.9),
    ],
)
def reverse_from_noise(mean, log_c, start, end, T, t, *, worst=True, share=1.0):
    r"""$$p_0 = N(\mu, C),\ y_0 \sim N(0, I),\ s = \nabla \log p_t: \quad
    \mathrm{KL}(\mathrm{law}(y_T) \,\|\, p_0) \le
    \frac{\beta^2 c}{\beta^2 c + 1 - \beta^2} \mathrm{KL}(N(0, I) \,\|\, p_T),
    \quad c = \lambda_{\max}(C)$$

    The paper starts from noise in place of $p_T$ and does not count the error. Data processing has
    factor 1; that of Gaussian data is the squared maximal correlation of $x(0)$ and $x(T)$,
    reached by means far out. The divergence at the start is of order $\beta^2$, so that this error
    is of order $\beta^4$, $e^{-2 \int g}$.
    """
    g, C = NoiseSchedule(start, end, T), jnp.exp(log_c)
    beta, noise = g.decay(t), g.variance(t)
    late = beta**2 * C + noise
    # y_0 is drawn from N(0, I), x(0) from the posterior given x(T) = y_0.
    gain = beta * C / late
    left = _divergence(mean - gain * beta * mean, noise * C / late + gain**2, mean, C)
    first = _divergence(jnp.zeros_like(mean), jnp.ones_like(mean), beta * mean, late)
    signal = beta**2 * C / late
    terms = 1 + 1 / C + (1 + C) / noise + mean**2 * (1 / C + 1 / late) + jnp.abs(log_c)
    right = first * (jnp.max(signal) if worst else jnp.min(signal))
    return Sides(left, share * right, magnitude=jnp.sum(terms))
