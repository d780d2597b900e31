r"""Denoising score matching: (5) and (6) differ by a number that no score function changes.

At one time, on the line: J5(s) = E |s(x) - (log p_t)'(x)|^2 over x = x(t), and J6(s) = E |s(x) -
(log p_{t|0})'(x | x(0))|^2 over both. Functions s(x) = c_0 + c_1 x + sum_j c_j sin(omega_j x +
phi_j). J6 is a Gauss-Hermite sum over x(0) and the noise, J5 a trapezoidal sum over x(t).
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity, inequality
from gu2024exploring.diffusion_instances import (
    decay,
    line_density,
    mixtures,
    schedule,
    schedules,
)

_WAVES = 2
_HERMITE, _MASS = np.polynomial.hermite_e.hermegauss(26)
_MASS = _MASS / _MASS.sum()
_LINE = np.linspace(-10, 10, 401)
"""26 Hermite nodes are exact to rounding for sin(3 x) and a unit variance (3^52 26! / 52! =
3e-17); steps of 0.05 for densities without a complex zero within 0.3 of the line."""
_ROUNDINGS = 2 * len(_LINE)
"""Sums of 401 terms, each of a density, a score and a function (below 100 roundings)."""


def score_functions(rng, count):
    """Two functions; in every second instance the first is near the best linear one."""
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
    return batch


def _function(c, law, x):
    omega, phi = law["omega"], law["phi"]
    waves = [c[2 + j] * jnp.sin(omega[j] * x + phi[j]) for j in range(_WAVES)]
    return c[0] + c[1] * x + sum(waves)


def _denoising(c, t, law, power=0.5):
    """J6: over the component, x(0) and the noise; the target is -eps / (1 - beta^2)^power."""
    g = schedule(law)
    beta, variance = g.decay(t), g.variance(t)
    spread = jnp.sqrt(law["covariances"][:, 0, 0])
    x0 = law["means"] + spread[:, None] * _HERMITE[None, :]
    x = beta * x0[:, :, None] + jnp.sqrt(variance) * _HERMITE[None, None, :]
    target = (-_HERMITE / variance**power)[None, None, :]
    gap = (_function(c, law, x) - target) ** 2
    return law["weights"] @ jnp.einsum("kij,i,j->k", gap, _MASS, _MASS)


def _explicit(c, t, law):
    """J5."""
    density, score = line_density(law, t, _LINE)
    gap = (_function(c, law, jnp.asarray(_LINE)) - score) ** 2
    return (_LINE[1] - _LINE[0]) * jnp.sum(density * gap)


def _constant(t, law):
    """1 / (1 - beta^2) - E |(log p_t)'|^2, what (6) has at least."""
    density, score = line_density(law, t, _LINE)
    information = (_LINE[1] - _LINE[0]) * jnp.sum(density * score**2)
    return 1 / schedule(law).variance(t) - information


@identity(
    "Section 6.1, (5) and (6)",
    Source.RECALLED,
    sample=score_functions,
    count=48,
    roundings=_ROUNDINGS,
    controls=[
        Control(
            r"the noise itself as target, $-\epsilon$ in place of "
            r"$-\epsilon / \sqrt{1 - \beta^2}$",
            power=0.0,
        )
    ],
)
def denoising_score_matching(c, other, t, *, power=0.5, **law):
    r"""$$E \|s(x(t)) - \nabla \log p_{t|0}(x(t) \mid x(0))\|^2
    - E \|s(x(t)) - \nabla \log p_t(x(t))\|^2
    = \frac{d}{1 - \beta^2} - E \|\nabla \log p_t(x(t))\|^2 \quad \forall s$$

    Two functions $s$ give the same difference, and it is the number on the right; for every $t$,
    hence for any weight $\lambda(t)$ on one interval. The paper has (5) on $[0, T]$ and (6) on
    $[T_0, T]$: the difference grows as $1/t$ towards $t = 0$, where (6) would be infinite.
    """
    first, second = (_denoising(s, t, law, power) for s in (c, other))
    left = first - _explicit(c, t, law)
    right = jnp.stack((second - _explicit(other, t, law), _constant(t, law)))
    magnitude = first + jnp.stack((second, 1 / schedule(law).variance(t)))
    return Sides(jnp.stack((left, left)), right, magnitude=magnitude)


def with_constant(rng, count):
    """The constant does not depend on the functions, which the search moves."""
    batch = score_functions(rng, count)
    law = {name: on_device(value) for name, value in batch.items()}
    return batch | {"constant": jax.jit(jax.vmap(_constant))(law["t"], law)}


@inequality(
    "Section 6.1, least value of (6)",
    status=Status.NEW,
    sample=with_constant,
    search_over="c",
    count=32,
    roundings=_ROUNDINGS,
    controls=[
        Control("the variance of the noise alone", whole=True),
        Control("1.1 times the constant", times=1.1),
    ],
)
def denoising_minimum(c, t, constant, *, whole=False, times=1.0, **law):
    r"""$$E \|s(x(t)) - \nabla \log p_{t|0}(x(t) \mid x(0))\|^2
    \ge \frac{d}{1 - \beta^2} - E \|\nabla \log p_t(x(t))\|^2$$

    The loss that noisy labels leave to the perfect estimator. Equality at the score; the functions
    tried are linear ones plus two waves, and come near it.
    """
    largest, loss = 1 / schedule(law).variance(t), _denoising(c, t, law)
    return Sides(largest if whole else times * constant, loss, magnitude=largest + loss)
