r"""Assumptions 6.1 and 6.4 made quantitative: how large inputs are, how steep f_* is.

The derivative of f_* in x is beta / (1 - beta^2) times the covariance of x(0) given x(t) = x.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity, inequality
from gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    mixture,
    noised_mixtures,
    schedule,
    schedules,
)
from gu2024exploring.library.data.gaussian_mixtures import posterior_mean
from gu2024exploring.library.data.noise_schedule import NoiseSchedule


def _posterior_covariance(law, beta, variance, x):
    """Cov(x(0) | x(t) = x), by conditioning each component with matrices."""
    noise = variance * jnp.eye(x.size, dtype=x.dtype)

    def condition(w, mu, C):
        late = jnp.linalg.inv(beta**2 * C + noise)
        gap = x - beta * mu
        gain = beta * C @ late
        height = w * jnp.sqrt(jnp.linalg.det(late)) * jnp.exp(-gap @ late @ gap / 2)
        return height, mu + gain @ gap, C - beta * gain @ C

    height, mean, spread = jax.vmap(condition)(law["weights"], law["means"], law["covariances"])
    share = height / jnp.sum(height)
    away = mean - (share @ mean)[None, :]
    return jnp.einsum("k,kij->ij", share, spread + away[:, :, None] * away[:, None, :])


@identity(
    "Assumption 6.4, the derivative of $f_*$",
    status=Status.NEW,
    sample=noised_mixtures,
    roundings=2 * ROUNDINGS,
    controls=[Control(r"without the decay $\beta$", damped=False)],
)
def assumption_6_4_slope(t, x, *, damped=True, **law):
    r"""$$\nabla_x f_*(t, x) = \frac{\beta}{1 - \beta^2} \mathrm{Cov}(x(0) \mid x(t) = x)$$

    The second-order formula of Tweedie: the Lipschitz constant of $f_*$ is a variance.
    """
    p_0, g = mixture(law), schedule(law)
    left = jax.jacfwd(lambda x: posterior_mean(p_0, g, t, x))(x)
    beta, variance = g.decay(t), g.variance(t)
    factor = (beta if damped else jnp.ones_like(t)) / variance
    magnitude = factor * (jnp.max(jnp.sum(p_0.means**2, axis=1)) + 1 + x @ x)
    return Sides(left, factor * _posterior_covariance(law, beta, variance, x), magnitude=magnitude)


def discs(rng, count):
    """Three points in the disc of radius D; in every second instance nearly two opposite ones."""
    D, angle = 10 ** rng.uniform(-1, 1, count), rng.uniform(0, 2 * np.pi, count)
    along = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    means, weights = rng.uniform(-0.7, 0.7, (count, 3, 2)), rng.uniform(0.1, 1, (count, 3))
    means[::2] = (along[:, None] * np.array([1.0, -1.0, 0.5])[None, :, None])[::2]
    weights[::2] = [1, 1, 0.01]
    batch = schedules(rng, count, (0.05, 3.0)) | {"D": D, "means": D[:, None, None] * means}
    batch["weights"] = weights / weights.sum(axis=1, keepdims=True)
    return batch | {"x": 0.1 * D[:, None] * rng.normal(size=(count, 2))}


def _in_disc(means, D):
    length = jnp.sqrt(jnp.sum(means**2, axis=1, keepdims=True))
    return {"means": means * jnp.minimum(1, D / length)}


@inequality(
    "Assumption 6.4 for bounded data",
    status=Status.NEW,
    sample=discs,
    search_over=("means", "x"),
    project=_in_disc,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("the standard deviation in place of the variance", power=0.5)],
)
def assumption_6_4(means, weights, x, D, start, end, T, t, *, power=1.0):
    r"""$$\|x(0)\| \le D \;\Rightarrow\;
    \|\nabla_x f_*(t, x)\| \le \frac{\beta D^2}{1 - \beta^2}$$

    So the assumption holds with this constant on $[T_0, T]$, which the paper leaves open. Sharp:
    two opposite points, half way between them. It grows as $1/t$ towards $t = 0$, where no
    constant serves data in two separate places.
    """
    g = NoiseSchedule(start, end, T)
    beta, variance = g.decay(t), g.variance(t)

    def mean_of_points(x):
        away = jnp.sum((x[None, :] - beta * means) ** 2, axis=1)
        return jax.nn.softmax(jnp.log(weights) - away / (2 * variance)) @ means

    J = jax.jacfwd(mean_of_points)(x)
    # The larger eigenvalue of a symmetric matrix of two rows, without an eigensolver.
    apart = (J[0, 0] - J[1, 1]) ** 2 + (J[0, 1] + J[1, 0]) ** 2
    largest = (J[0, 0] + J[1, 1] + jnp.sqrt(apart)) / 2
    spread = beta * D**2 / variance
    # Exponents reach D |x| / (1 - beta^2), whose roundings the responsibilities inherit.
    size = D * (D + jnp.linalg.norm(x)) / variance
    return Sides(largest, spread / variance ** (power - 1), magnitude=spread * (1 + size))


def exit_probabilities(rng, count):
    """Exact probabilities that one of n inputs leaves a radius, from data of length 1."""
    from scipy.stats import ncx2  # takes half a second, and all papers are listed without it

    beta = rng.uniform(0.05, 0.999, count)
    n = np.floor(10 ** rng.uniform(0, 4, count))
    d = rng.integers(1, 20, count).astype(float)
    delta = 10 ** rng.uniform(-3, -0.05, count)
    noise = 1 - beta**2

    def outside(tail):
        square = (np.sqrt(beta**2 + noise * d) + np.sqrt(noise) * tail) ** 2 / noise
        return -np.expm1(n * np.log1p(-ncx2.sf(square, d, beta**2 / noise)))

    tail = np.sqrt(2 * np.log(n / delta))
    return {"delta": delta, "outside": outside(tail), "outside_short": outside(0.0)}


@inequality(
    "Assumption 6.1 for the inputs $x(t)$",
    status=Status.NEW,
    sample=exit_probabilities,
    count=512,
    controls=[
        Control("without the logarithm", logarithm=False),
        Control(r"$\delta / 10$ in place of $\delta$", factor=0.1),
    ],
)
def assumption_6_1(outside, outside_short, delta, *, logarithm=True, factor=1.0):
    r"""$$\|x_i(0)\| \le 1 \;\Rightarrow\; P\Big( \max_{i \le n} \|x_i(t)\| \le
    \sqrt{\beta^2 + (1 - \beta^2) d} + \sqrt{2 (1 - \beta^2) \log (n/\delta)} \Big)
    \ge 1 - \delta$$

    What bounds noisy inputs: the norm of $x(t) = \beta x(0) + \sqrt{1 - \beta^2}\, g$ is a
    function of $g$ with the Lipschitz constant $\sqrt{1 - \beta^2}$, and its mean is at most the
    root of $E \|x(t)\|^2$, the first term; then a union bound. Exact noncentral chi-square
    probabilities at $\|x(0)\| = 1$, the worst case. The Gaussian tail itself is at most half of
    the $e^{-s^2/2}$ that concentration gives, so that no more than $\delta / 2$ is used.
    Dividing by this radius makes 6.1 true with probability $1 - \delta$ and costs a factor in
    $\lambda$; dividing by the largest input makes it true of the training set alone: a new input
    exceeds all $n$ with probability $1 / (n + 1)$.
    """
    return Sides(outside if logarithm else outside_short, factor * delta, error=1e-6 * delta)
