r"""The true label f_*(t, x) = E[x(0) | x(t) = x], and how it gives the score.

Planar mixtures of two components with full covariances; beta and 1 - beta^2 at time t.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source
from attlas.claims.statement import identity
from gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    data_density,
    mixture,
    noised_mixtures,
    normal_density,
    schedule,
)
from gu2024exploring.library.data import gaussian_mixtures
from gu2024exploring.library.data.gaussian_mixtures import diffused, log_density
from gu2024exploring.library.data.noise_schedule import NoiseSchedule

_LINE = np.linspace(-9, 9, 76)
_PLANE = np.stack(np.meshgrid(_LINE, _LINE), axis=-1).reshape(-1, 2)
"""A step of 0.24 is below 0.7 of the least posterior standard deviation, 0.356 at variance 0.2 and
1 - beta^2 = 0.26: there the trapezoidal rule is exact to rounding for Gaussian integrands."""


@identity(
    "Section 6.1, true label and score",
    sample=noised_mixtures,
    roundings=ROUNDINGS,
    controls=[Control("score without the variance", weighted=False)],
)
def posterior_mean_score(t, x, *, weighted=True, **law):
    r"""$$f_*(t, x) = E[x(0) \mid x(t) = x]
    = \frac{x + (1 - \beta^2) \nabla \log p_t(x)}{\beta}$$

    Tweedie's formula, not written in the paper: why learning the label learns the score. The left
    side conditions each component as a Gaussian, the right differentiates.
    """
    p_0, g = mixture(law), schedule(law)
    score = jax.grad(lambda x: log_density(diffused(p_0, g, t), x))(x)
    weight = g.variance(t) if weighted else jnp.ones_like(t)
    magnitude = jnp.max(jnp.abs(x) + weight * jnp.abs(score)) / g.decay(t)
    label = gaussian_mixtures.posterior_mean(p_0, g, t, x)
    return Sides(label, (x + weight * score) / g.decay(t), magnitude=magnitude)


@identity(
    "Section 6.1, true label",
    Source.RECALLED,
    sample=noised_mixtures,
    count=32,
    roundings=4 * ROUNDINGS,
    controls=[Control("a flat prior", prior=False)],
)
def posterior_mean(t, x, *, prior=True, **law):
    r"""$$f_*(t, x) = \frac{\int y\, p_{t|0}(x \mid y)\, p_0(y)\, dy}
    {\int p_{t|0}(x \mid y)\, p_0(y)\, dy}$$

    Bayes' formula by a trapezoidal sum over the plane against the closed form.
    """
    g = schedule(law)
    noise = g.variance(t) * jnp.eye(2, dtype=x.dtype)

    def joint(y):
        likelihood = normal_density(x, g.decay(t) * y, noise)
        return likelihood * (data_density(law, y) if prior else jnp.ones_like(likelihood))

    mass = jax.vmap(joint)(jnp.asarray(_PLANE))
    mean = mass @ _PLANE / jnp.sum(mass)
    magnitude = mass @ jnp.abs(_PLANE) / jnp.sum(mass) + jnp.max(jnp.abs(x)) + 1
    label = gaussian_mixtures.posterior_mean(mixture(law), g, t, x)
    return Sides(label, mean, magnitude=magnitude)


@identity(
    "Section 6.1, noisy labels",
    sample=noised_mixtures,
    roundings=ROUNDINGS,
    controls=[Control("the weight not squared", power=1.0)],
)
def label_regression(means, start, end, T, t, x, x0, *, power=2.0):
    r"""$$s = \frac{\beta f - x}{1 - \beta^2}: \quad
    \|s - \nabla \log p_{t|0}(x \mid x(0))\|^2
    = \Big( \frac{\beta}{1 - \beta^2} \Big)^2 \|f - x(0)\|^2$$

    So (6) is least squares on the pairs $(t, x(t)) \to x(0)$ if its weight $\lambda(t)$ is
    $((1 - \beta^2) / \beta)^2$; the weight of plain regression is not a choice of its own.
    """
    g, estimate = NoiseSchedule(start, end, T), means[0]
    beta, variance = g.decay(t), g.variance(t)

    def log_transition(x):
        return -jnp.sum((x - beta * x0) ** 2) / (2 * variance)

    target, score = jax.grad(log_transition)(x), g.score_of_mean(t, x, estimate)
    size = jnp.sum(jnp.abs(score) + jnp.abs(target)) + jnp.sum(jnp.abs(x)) / variance
    right = (beta / variance) ** power * jnp.sum((estimate - x0) ** 2)
    return Sides(jnp.sum((score - target) ** 2), right, magnitude=size**2)
