r"""Formulas of Theorem F.2 and Theorem 6.6 against second transcriptions, and moments of kernels.

The moments of Gaussian weights are sums over a Gauss-Hermite grid, not the closed forms.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.formulas_convergence import numbers
from gu2024exploring.instances import inputs
from gu2024exploring.library.bounds.gu2024_kernel_limit import gu2024_limit_variance
from gu2024exploring.library.bounds.gu2024_regression import (
    gu2024_coupling,
    gu2024_regression_gap,
    gu2024_regression_gap_in_time,
)
from gu2024exploring.library.bounds.gu2024_score import (
    gu2024_approximation,
    gu2024_complexity,
    gu2024_score_error,
)
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

_MORE = Control("each 1 % more", more=0.01)
"""Violates every component."""


def kernels(rng, count):
    """Numbers, with changes of kernels, a row of the test kernel and a time."""
    sizes = {"eps": (-4, -0.5), "eps_test": (-3, 0), "row": (-2, 1), "tau": (-2, 2)}
    drawn = {name: 10 ** rng.uniform(*ends, count) for name, ends in sizes.items()}
    return numbers(rng, count) | drawn


@identity(r"Theorem F.2, recalled, sharpened and without $\lambda$", Source.RECALLED,
          sample=kernels, count=32, roundings=256, controls=[_MORE])  # fmt: skip
def theorem_f_2_formulas(n, d, m, lam, residual, eps, eps_test, row, tau, *, more=0.0):
    r"""$$\frac{\sqrt{nd}}{\lambda} \epsilon_{test} + \frac{\sqrt{nd}}{\lambda^2}
    \log^2\Big(\frac{nd}{\epsilon_H m \lambda}\Big) \epsilon_H,\quad
    \frac{2 \|Y\|}{\lambda} \epsilon_{test} + \frac{2 \|Y\| \|K_{te}\|}{\lambda^2} \epsilon_H,\quad
    \|Y\| \Big( \frac{\epsilon_{test}}{\rho} + \frac{\|K_{te}\| \epsilon_H}{\lambda \rho} \Big)$$

    And the two bounds in time, $\rho = \lambda (1 - \epsilon_H / 10)$.
    """
    first, rho = jnp.sqrt(n * d), lam * (1 - eps / 10)
    given = (residual, row, lam, eps, eps_test)
    ours = (
        gu2024_regression_gap(first, *given[1:], m=m, constants="printed"),
        gu2024_regression_gap(*given),
        gu2024_regression_gap(*given, contraction=rho),
        gu2024_regression_gap_in_time(tau, *given),
        gu2024_coupling(tau, residual, row, eps, eps_test),
    )
    q = jnp.exp(-lam * tau / 2)
    right = (
        first / lam * eps_test + first / lam**2 * jnp.log(n * d / (eps * m * lam)) ** 2 * eps,
        2 * residual / lam * eps_test + 2 * residual * row / lam**2 * eps,
        residual * (eps_test / rho + row * eps / (lam * rho)),
        residual * (2 / lam * (1 - q) * eps_test + 2 * row / lam**2 * (1 - q) ** 2 * eps),
        residual * tau * eps_test + residual * row * eps * tau**2 / 2,
    )
    # 1 - q is written with cancellation here, and the logarithm may be near zero.
    sizes = residual * (eps_test / lam + row * eps / lam**2)
    magnitude = jnp.abs(jnp.stack(right)) + sizes + first * eps / lam**2 * 100
    return Sides(jnp.stack(ours), (1 + more) * jnp.stack(right), magnitude=magnitude)


@identity("Theorem 6.6, the terms", Source.RECALLED,
          sample=numbers, count=32, roundings=256, controls=[_MORE])  # fmt: skip
def theorem_6_6_formulas(n, d, lam, delta, C, *, more=0.0):
    r"""$$\frac{1}{\lambda \sqrt n},\ \epsilon,\ d A^2,\ d A,\ \sqrt{d A \Gamma_\delta},\
    \Gamma_\delta;\quad A = c_1 \Lambda \Big( \frac{\sqrt{R_H}}{\Lambda} \Big)^{-2/d}
    \log \frac{\sqrt{R_H}}{\Lambda},\ \Lambda = \sqrt d,\quad \Gamma_\delta = \Big(
    \frac{2 d^2 \log^{3/2}(e(n+1)) + 1}{\sqrt n} \Big)^2 + \frac{d^2}{n} \Big( \log \frac{1}{\delta}
    + \log\log n \Big)$$

    $c_1 = 3$ and $R_H = C^4$.
    """
    terms = gu2024_score_error(n + 3, d, lam, delta, C**4, 0.25, 3.0)
    alone = gu2024_approximation(C**4, d, 3.0), gu2024_complexity(n + 3, d, delta)
    names = ("coupling", "early_stopping", "approximation_squared", "approximation", "mixed",
             "complexity")  # fmt: skip
    left = jnp.stack([*(jnp.broadcast_to(terms[name], n.shape) for name in names), *alone])
    n, ratio = n + 3, C**2 / jnp.sqrt(d)
    A = 3 * jnp.sqrt(d) * jnp.log(ratio) / ratio ** (2 / d)
    logs = (1 + jnp.log(n + 1)) ** 1.5
    Gamma = ((2 * d**2 * logs + 1) / jnp.sqrt(n)) ** 2
    Gamma = Gamma + d**2 / n * (jnp.log(jnp.log(n)) - jnp.log(delta))
    right = (
        1 / (lam * jnp.sqrt(n)), 0.25 * jnp.ones_like(n), d * A**2, d * A, jnp.sqrt(d * A * Gamma),
        Gamma, A, Gamma,
    )  # fmt: skip
    return left, (1 + more) * jnp.stack(right)


_NODES, _MASS = np.polynomial.hermite_e.hermegauss(64)
_MASS = _MASS / _MASS.sum()
_PLANE = np.stack(np.meshgrid(_NODES, _NODES), axis=-1).reshape(-1, 2)
_WEIGHT = np.outer(_MASS, _MASS).ravel()


def _moments(x, z, sigma):
    """Kernel and variances of softmax and exponential units by quadrature over w in the plane."""
    left, right = (np.exp(sigma * _PLANE @ point) for point in (x, z))
    p, q = left / (_WEIGHT @ left), right / (_WEIGHT @ right)
    both, mean = p * q, _WEIGHT @ (p * q)
    # To first order the ratio of means is the mean of this.
    linear = both - mean * (p + q) + mean
    plain = left * right
    average = _WEIGHT @ plain
    return (
        x @ z * mean, _WEIGHT @ linear**2, _WEIGHT @ both**2,
        x @ z * average, _WEIGHT @ plain**2 - average**2, _WEIGHT @ plain**2,
    )  # fmt: skip


def moments(rng, count):
    """Pairs of inputs, sigma, and the moments of their kernels, those of ReLU by an arcsine."""
    X, sigma = inputs(rng, count, 2, 2), rng.uniform(0.3, 0.8, count)
    found = []
    for (x, z), s in zip(X, sigma, strict=True):
        cosine = x @ z / (np.linalg.norm(x) * np.linalg.norm(z))
        P = 0.25 + np.arcsin(cosine) / (2 * np.pi)
        found.append([*_moments(x, z, s), x @ z * P, P * (1 - P), P])
    return {"X": X, "sigma": sigma, "moments": np.asarray(found)}


@identity(
    "Definition 3.6 at infinite width, mean and variance of every entry",
    status=Status.NEW,
    sample=moments,
    count=32,
    roundings=4096,
    controls=[_MORE],
)
def limit_moments(X, sigma, moments, *, more=0.0):
    r"""$$x_i^\top x_j e^{\rho},\quad V = e^{s_i + s_j + 4 \rho} + (e^{s_i} + e^{s_j})
    (e^{2 \rho} - 2 e^{3 \rho}) + 2 e^{3 \rho} - e^{2 \rho},\quad e^{s_i + s_j + 4 \rho}$$

    Against quadrature over $w \in R^2$ of the delta method: softmax, exponential and ReLU units,
    $\sigma$ from 0.3 to 0.8. ReLU: $P(z_i, z_j > 0) = \tfrac14 + \tfrac{1}{2 \pi} \arcsin \cos$.
    """
    ours = []
    for phi in (Activation.SOFTMAX, Activation.EXPONENTIAL, Activation.RELU):
        ours.append(softmax_ntk_limit(X, X, sigma, phi)[0, 1])
        for same in (True, False):
            ours.append(gu2024_limit_variance(X, sigma, phi, same_output=same)[0, 1])
    return Sides(jnp.stack(ours), (1 + more) * moments, magnitude=1 + jnp.abs(moments))
