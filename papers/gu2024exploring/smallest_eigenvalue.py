r"""The smallest eigenvalue lambda of the limit kernel falls factorially with n in the plane.

For unit inputs in R^2 the kernel is K = [x_i' x_j exp(sigma^2 x_i' x_j)]. On the circle K(theta)
= cos(theta) exp(s cos(theta)), s = sigma^2, is the sum of (I_{k-1}(s) + I_{k+1}(s)) cos(k theta),
k >= 1, and I_1(s), with modified Bessel functions I. A unit vector orthogonal to the modes
below n/2, n - 1 of them, sees the rest, each at most n times.
"""

import jax.numpy as jnp
import numpy as np
from scipy.special import iv

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

_N = 8
_MODES = 40
_ROUNDINGS = 128
"""Entries of K, and a backward stable eigenvalue of 8 rows."""


def circles(rng, count):
    """Equally spaced points in every second instance, else random ones."""
    angles = rng.uniform(0, 2 * np.pi, (count, _N))
    angles[::2] = angles[::2, :1] + 2 * np.pi * np.arange(_N) / _N
    sigma = rng.uniform(0.5, 2, count)
    k = np.arange(_N // 2, _N // 2 + _MODES)
    s = sigma[:, None] ** 2
    return {
        "X": np.stack((np.cos(angles), np.sin(angles)), axis=2),
        "sigma": sigma,
        "modes": iv(k - 1, s) + iv(k + 1, s),
    }


@inequality(
    r"Theorem 4.2, size of $\lambda$ (ours)",
    status=Status.NEW,
    sample=circles,
    search_over="X",
    project=lambda X: {"X": X / jnp.sqrt(jnp.sum(X**2, axis=1, keepdims=True))},
    count=48,
    roundings=_ROUNDINGS,
    controls=[
        Control("modes above $n/2$ only", later=1),
        Control("half of the bound", share=0.5),
    ],
)
def smallest_eigenvalue(X, sigma, modes, *, later=0, share=1.0):
    r"""$$\lambda_{\min}(K) \le n \sum_{k \ge n/2} \big( I_{k-1}(\sigma^2) + I_{k+1}(\sigma^2)
    \big),\quad \|x_i\| = 1,\ x_i \in R^2,\ n \;\mathrm{even}$$

    Equally spaced inputs attain the first term. At $\sigma = 1$ no set of 10, 20, 40 inputs has a
    $\lambda$ above 0.031, $1.2 \cdot 10^{-7}$, $6.6 \cdot 10^{-22}$. A width that grows like
    $\lambda^{-2}$ is not polynomial in $n$ in a fixed dimension.
    """
    K = softmax_ntk_limit(X, X, sigma)
    right = share * _N * jnp.sum(modes[later:])
    return Sides(jnp.linalg.eigvalsh(K)[0], right, magnitude=jnp.linalg.norm(K))
