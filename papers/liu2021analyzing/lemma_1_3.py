r"""Lemma 1.3: what the noise of y adds to the gradient in w2.

The gradient of the empirical risk is (1/n) sum u_i Phi_i - (1/n) sum eps_i Phi_i. The second is
a vector of sub-Gaussian noise, whose length Hsu, Kakade and Zhang (2012) bound with no dimension.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity, inequality
from liu2021analyzing.library.models.rectifier import rectify

_SAMPLES, _INPUTS, _UNITS, _FEW = 10, 4, 3, 6
_VALUES = np.array(list(product((-1.0, 0.0, 1.0), repeat=_FEW)))
_LEVELS = (0.01, 0.042, 0.13, 0.5, 1.0, 1.45, 2.0, 4.0)


def noisy(rng, count):
    """Samples, student and teacher of mixed sizes; features of every third sample are parallel."""
    sizes = 10 ** rng.uniform(-1, 1, (3, count, 1))
    x = rng.standard_normal((count, _SAMPLES, _INPUTS))
    x[::3] = np.abs(x[::3, :1])
    return {
        "x": x,
        "W": rng.standard_normal((count, _INPUTS, _UNITS)) * sizes[0][:, :, None],
        "w": rng.standard_normal((count, _UNITS)) * sizes[1],
        "mean": rng.standard_normal((count, _SAMPLES)),
        "eps": rng.standard_normal((count, _SAMPLES)) * sizes[2],
    }


@identity(
    "Lemma 1.3, the two parts of the gradient",
    sample=noisy,
    count=48,
    controls=[Control("without the noise", noise=0.0)],
)
def lemma_1_3_split(x, W, w, mean, eps, *, noise=1.0):
    r"""$$\nabla_{w} \frac{1}{2n} \sum_i (w^\top \Phi_i - y_i)^2 =
    \frac1n \sum_i u_i \Phi_i - \frac1n \sum_i \epsilon_i \Phi_i$$
    """
    phi = rectify(x @ W)

    def risk(w):
        return jnp.sum((phi @ w - mean - eps) ** 2) / (2 * _SAMPLES)

    right = (phi @ w - mean) @ phi / _SAMPLES - noise * (eps @ phi) / _SAMPLES
    size = phi @ jnp.abs(w) + jnp.abs(mean) + jnp.abs(eps)
    return Sides(jax.grad(risk)(w), right, size @ phi / _SAMPLES)


def outcomes(rng, count):
    """Vectors of six samples, levels, and how often the noise is zero, up to 2/3.

    A third of the vectors are parallel, a third the corners of a triangle around 0: there two of
    three signs give the largest sum, of probability 3/4. In every sixth instance three are
    orthogonal and noise is 0 twice in three: two of three squares of 3 have probability 7/27.
    """
    phi = rng.standard_normal((count, _FEW, _UNITS))
    phi[::3] = np.abs(phi[::3, :, :1]) * np.ones(_UNITS)
    phi[1::3] = 0
    phi[1::3, :3] = np.eye(3) - 1 / 3
    idle, tau = rng.choice([0.0, 1 / 3, 2 / 3], count), np.tile(_LEVELS, (count, 1))
    idle[1::3] = 0
    phi[2::6] = 0
    phi[2::6, :3], idle[2::6] = np.eye(3), 2 / 3
    return {"phi": phi, "idle": idle, "tau": tau}


def in_range(idle, tau):
    """Noise whose fourth moment is at most a Gaussian's, and positive levels."""
    return {"idle": jnp.clip(idle, 0.0, 2 / 3), "tau": jnp.clip(tau, 1e-6, 50.0)}


@inequality(
    "Lemma 1.3, size of the noise",
    sample=outcomes,
    status=Status.SHARPENED,
    alike=True,
    search_over=("phi", "idle", "tau"),
    project=in_range,
    controls=[
        Control("the mean square alone", deviation=0.0),
        Control(r"without $\mathrm{tr}\, G^2$", square=0.0),
    ],
    evaluations=1472,
)
def lemma_1_3(phi, idle, tau, *, deviation=1.0, square=1.0):
    r"""$$\epsilon_i \sim \mathrm{subG}(0, C_3^2),\ G = \sum_i \Phi_i \Phi_i^\top: \quad
    P\left( \left\| \tfrac1n \sum_i \epsilon_i \Phi_i \right\|_2^2 > \frac{C_3^2}{n^2}
    \big( \mathrm{tr}\, G + 2 \sqrt{\tau\, \mathrm{tr}\, G^2} + 2 \tau \|G\| \big) \right)
    \le e^{-\tau}$$

    Exact probabilities over all $3^6$ outcomes of six samples; noise of three values, 0 with
    probability $\pi_0 \le 2/3$ and $\pm C_3 / \sqrt{1 - \pi_0}$, which is sub-Gaussian: its moments
    are at most those of a Gaussian. With $\pi_0 = 0$ it is sign noise. With $\|\Phi_i\| \le B$ it
    gives $C_3 B (1 + \sqrt{2 \tau}) / \sqrt{n}$: no dimension, where a net of the sphere costs a
    factor $5^d$ and a factor two in the level. The triangle comes nearest to the bound.
    """
    G = phi.T @ phi
    more = square * 2 * jnp.sqrt(jnp.sum(G**2) * tau) + 2 * jnp.linalg.eigvalsh(G)[-1] * tau
    bound = jnp.trace(G) + deviation * more
    sizes = jnp.sum((jnp.asarray(_VALUES) @ phi) ** 2, axis=1) / (1 - idle)
    zeros = jnp.sum((jnp.asarray(_VALUES) == 0).astype(float), axis=1)
    chance = jnp.where(zeros > 0, idle, 1.0) ** zeros * ((1 - idle) / 2) ** (_FEW - zeros)
    # A level that is met up to rounding counts as met.
    met = sizes[None, :] > bound[:, None] * (1 - 1e-12)
    return jnp.sum(jnp.where(met, chance[None, :], 0.0), axis=1), jnp.exp(-tau)


def gaussian(rng, count):
    """Squared lengths of the features of parallel samples, and levels; every eighth is large."""
    square, tau = 10 ** rng.uniform(-2, 2, count), 10 ** rng.uniform(-2, 1.5, count)
    tau[::8] = 10 ** rng.uniform(1.4, 1.5, len(tau[::8]))
    return {"square": square, "tau": tau}


@inequality(
    "Lemma 1.3, size of the noise, Gaussian and parallel features",
    sample=gaussian,
    status=Status.SHARPENED,
    search_over="tau",
    project=lambda tau: {"tau": jnp.clip(tau, 1e-6, 50.0)},
    controls=[Control("0.73 of the deviations", deviation=0.73)],
)
def lemma_1_3_gaussian(square, tau, *, deviation=1.0):
    r"""$$\epsilon \sim N(0, C_3^2 I),\ \mathrm{rank}\, G = 1: \quad
    2 \left( 1 - \mathrm{cdf}\big( \sqrt{1 + 2 \sqrt{\tau} + 2 \tau} \big) \right) \le e^{-\tau}$$

    The exact probability of lemma-1-3; the features' size cancels. At most 0.32 of the bound, as
    $\tau$ goes to 0; for large $\tau$ the exponent is $\tau$, so that its constant 2 is sharp.
    """
    level = square * (1 + deviation * (2 * jnp.sqrt(tau) + 2 * tau))
    return jax.scipy.special.erfc(jnp.sqrt(level / (2 * square))), jnp.exp(-tau)
