r"""Assumptions 6.1 and 6.4 made quantitative: how large inputs are, how steep f_* is.

The derivative of f_* in x is beta / (1 - beta^2) times the covariance of x(0) given x(t) = x.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import stats

from attlas.claims.gu2024exploring.diffusion_instances import (
    ROUNDINGS,
    drawn_mixtures,
    mixture,
    schedule,
    schedules,
)
from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.gaussian_mixtures import posterior_mean

_PAPER = "gu2024exploring"


def _posterior_covariance(instance: Instance) -> Float[Array, "d d"]:
    """Cov(x(0) | x(t) = x), by conditioning each component with matrices."""
    rates, t, x = schedule(instance), instance["t"], instance["x"]
    beta, noise = rates.decay(t), rates.variance(t) * jnp.eye(x.size, dtype=x.dtype)

    def condition(w: Array, mu: Array, C: Array) -> tuple[Array, Array, Array]:
        late = jnp.linalg.inv(beta**2 * C + noise)
        gap = x - beta * mu
        gain = beta * C @ late
        height = w * jnp.sqrt(jnp.linalg.det(late)) * jnp.exp(-gap @ late @ gap / 2)
        return height, mu + gain @ gap, C - beta * gain @ C

    parts = instance["weights"], instance["means"], instance["covariances"]
    height, mean, spread = jax.vmap(condition)(*parts)
    share = height / jnp.sum(height)
    away = mean - (share @ mean)[None, :]
    return jnp.einsum("k,kij->ij", share, spread + away[:, :, None] * away[:, None, :])


def _slope(instance: Instance, damped: bool = True) -> Sides:
    law, rates, t, x = mixture(instance), schedule(instance), instance["t"], instance["x"]
    left = jax.jacfwd(lambda x: posterior_mean(law, rates, t, x))(x)
    beta = rates.decay(t) if damped else jnp.ones_like(t)
    factor = beta / rates.variance(t)
    size = factor * (jnp.max(jnp.sum(law.means**2, axis=1)) + 1 + x @ x)
    return Sides(left, factor * _posterior_covariance(instance), scale=size)


SLOPE = Claim(
    name=f"{_PAPER}/assumption-6-4-slope",
    paper=_PAPER,
    locator="Assumption 6.4, the derivative of f_*",
    statement=(r"\nabla_x f_*(t, x) = \frac{\beta}{1 - \beta^2} \mathrm{Cov}(x(0) \mid x(t) = x)"),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=drawn_mixtures,
    sides=_slope,
    control=Control("without the decay beta", sides=partial(_slope, damped=False)),
    terms=2 * ROUNDINGS,
    note="The second-order formula of Tweedie: the Lipschitz constant of f_* is a variance.",
)


def _points(key: PRNGKeyArray, count: int) -> Instance:
    """Three points in the disc of radius D; in every second instance nearly two opposite ones."""
    rng = generator(key)
    D, angle = 10 ** rng.uniform(-1, 1, count), rng.uniform(0, 2 * np.pi, count)
    along = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    means, weights = rng.uniform(-0.7, 0.7, (count, 3, 2)), rng.uniform(0.1, 1, (count, 3))
    means[::2] = (along[:, None] * np.array([1.0, -1.0, 0.5])[None, :, None])[::2]
    weights[::2] = [1, 1, 0.01]
    batch = schedules(rng, count, (0.05, 3.0)) | {"D": D, "means": D[:, None, None] * means}
    batch["weights"] = weights / weights.sum(axis=1, keepdims=True)
    return as_arrays(batch | {"x": 0.1 * D[:, None] * rng.normal(size=(count, 2))})


def _in_disc(instance: Instance) -> Instance:
    length = jnp.sqrt(jnp.sum(instance["means"] ** 2, axis=1, keepdims=True))
    return {**instance, "means": instance["means"] * jnp.minimum(1, instance["D"] / length)}


def _mean_of_points(instance: Instance, x: Array) -> Float[Array, " d"]:
    """f_* of point masses, by the textbook formula."""
    rates, t = schedule(instance), instance["t"]
    away = jnp.sum((x[None, :] - rates.decay(t) * instance["means"]) ** 2, axis=1)
    logs = jnp.log(instance["weights"]) - away / (2 * rates.variance(t))
    return jax.nn.softmax(logs) @ instance["means"]


def _steepest(instance: Instance, power: float = 1.0) -> Sides:
    rates, t, D = schedule(instance), instance["t"], instance["D"]
    J = jax.jacfwd(partial(_mean_of_points, instance))(instance["x"])
    # The larger eigenvalue of a symmetric matrix of two rows, without an eigensolver.
    apart = (J[0, 0] - J[1, 1]) ** 2 + (J[0, 1] + J[1, 0]) ** 2
    largest = (J[0, 0] + J[1, 1] + jnp.sqrt(apart)) / 2
    spread = rates.decay(t) * D**2 / rates.variance(t)
    # Exponents reach D |x| / (1 - beta^2), whose roundings the responsibilities inherit.
    reach = D * (D + jnp.linalg.norm(instance["x"])) / rates.variance(t)
    return Sides(largest, spread / rates.variance(t) ** (power - 1), scale=spread * (1 + reach))


LIPSCHITZ = Claim(
    name=f"{_PAPER}/assumption-6-4",
    paper=_PAPER,
    locator="Assumption 6.4 for bounded data",
    statement=(
        r"\|x(0)\| \le D \;\Rightarrow\;"
        r"\|\nabla_x f_*(t, x)\| \le \frac{\beta D^2}{1 - \beta^2}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_points,
    sides=_steepest,
    free=("means", "x"),
    domain=_in_disc,
    control=Control(
        "the standard deviation in place of the variance", sides=partial(_steepest, power=0.5)
    ),
    count=32,
    terms=ROUNDINGS,
    note=(
        "So the assumption holds with this constant on [T_0, T], which the paper leaves open. "
        "Sharp: two opposite points, half way between them. It grows as 1/t towards t = 0, where "
        "no constant serves data in two separate places."
    ),
)


def _radius_of(draw: dict[str, np.ndarray], logs: bool) -> np.ndarray:
    """The radius beta + sqrt(1 - beta^2) (sqrt(d) + sqrt(2 log(n/delta)))."""
    tail = np.sqrt(2 * np.log(draw["n"] / draw["delta"])) if logs else 0.0
    return draw["beta"] + np.sqrt(1 - draw["beta"] ** 2) * (np.sqrt(draw["d"]) + tail)


def _lengths(key: PRNGKeyArray, count: int) -> Instance:
    """Exact probabilities that one of n inputs leaves a radius, from data of length 1."""
    rng = generator(key)
    draw = {
        "beta": rng.uniform(0.05, 0.95, count),
        "n": np.floor(10 ** rng.uniform(0, 4, count)),
        "d": rng.integers(1, 20, count).astype(float),
        "delta": 10 ** rng.uniform(-3, -0.5, count),
    }
    noise = 1 - draw["beta"] ** 2
    leave = {}
    for name, logs in (("outside", True), ("outside_short", False)):
        square = _radius_of(draw, logs) ** 2 / noise
        single = stats.ncx2.sf(square, draw["d"], draw["beta"] ** 2 / noise)
        leave[name] = -np.expm1(draw["n"] * np.log1p(-single))
    return as_arrays(draw | leave)


def _leave(instance: Instance, name: str = "outside") -> Sides:
    return Sides(instance[name], instance["delta"], error=1e-6 * instance["delta"])


RADIUS = Claim(
    name=f"{_PAPER}/assumption-6-1",
    paper=_PAPER,
    locator="Assumption 6.1 for the inputs x(t), mended",
    statement=(
        r"\|x_i(0)\| \le 1 \;\Rightarrow\; P\Big( \max_{i \le n} \|x_i(t)\| \le \beta +"
        r"\sqrt{1 - \beta^2} \big( \sqrt d + \sqrt{2 \log (n/\delta)} \big) \Big) \ge 1 - \delta"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_lengths,
    sides=_leave,
    control=Control("without the logarithm", sides=partial(_leave, name="outside_short")),
    terms=64,
    note=(
        "What bounds noisy inputs, by concentration of the norm and a union bound; exact "
        "noncentral chi-square probabilities at ||x(0)|| = 1, the worst case; less than "
        "1 % of delta is used. Dividing by this radius makes 6.1 true with probability 1 - delta "
        "and costs a factor in lambda; dividing by the largest input makes it true of the "
        "training set alone: a new input exceeds all n with probability 1 / (n + 1)."
    ),
)
