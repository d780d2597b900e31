r"""Lemma 1.3: what the noise of y adds to the gradient in w2.

The gradient of the empirical risk is (1/n) sum u_i Phi_i - (1/n) sum eps_i Phi_i. The second is
a vector of sub-Gaussian noise, whose length Hsu, Kakade and Zhang (2012) bound with no dimension.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import identity, inequality
from attlas.models.networks.rectifier import rectify

_SAMPLES, _INPUTS, _UNITS = 10, 4, 3
_SIGNS = np.array(list(product((-1.0, 1.0), repeat=_SAMPLES)))
_LEVELS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)


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


@inequality(
    "Lemma 1.3, size of the noise",
    sample=noisy,
    status=Status.SHARPENED,
    count=48,
    controls=[Control("the mean square alone", deviation=0.0)],
)
def lemma_1_3(x, W, *, deviation=1.0):
    r"""$$\epsilon_i \sim \mathrm{subG}(0, C_3^2),\ G = \sum_i \Phi_i \Phi_i^\top: \quad
    P\left( \left\| \tfrac1n \sum_i \epsilon_i \Phi_i \right\|_2^2 > \frac{C_3^2}{n^2}
    \big( \mathrm{tr}\, G + 2 \sqrt{\tau\, \mathrm{tr}\, G^2} + 2 \tau \|G\| \big) \right)
    \le e^{-\tau}$$

    Exact probabilities over all 1024 signs of ten samples, noise of plus and minus $C_3$. With
    $\|\Phi_i\| \le B$ it gives $C_3 B (1 + \sqrt{2 \tau}) / \sqrt{n}$: no dimension, where a net of
    the sphere costs a factor $5^d$ and a factor two in the level. Loose by 2.5 at least: half of
    either deviation term is not noticed, a missing one is.
    """
    phi, tau = rectify(x @ W), jnp.asarray(_LEVELS)
    G = phi.T @ phi
    more = 2 * jnp.sqrt(jnp.sum(G**2) * tau) + 2 * jnp.linalg.eigvalsh(G)[-1] * tau
    bound = jnp.trace(G) + deviation * more
    sizes = jnp.sum((jnp.asarray(_SIGNS) @ phi) ** 2, axis=1)
    # A level that is met up to rounding counts as met.
    met = sizes[None, :] > bound[:, None] * (1 - 1e-12)
    return jnp.mean(jnp.where(met, 1.0, 0.0), axis=1), jnp.exp(-tau)
