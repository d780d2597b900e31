"""Dudley's bounds by quadrature and search, and the chain level by level."""

import math
from collections.abc import Callable

from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.covering.dudley import LEVELS, RATIOS


def least_integral(
    root: Callable[[float], float],
    m: float,
    R: float,
    c_1: float = 1.0,
    c_2: float = 1.0,
    most: float = 1.0,
) -> float:
    """The least c_1 delta + c_2 / sqrt(m) int_delta^R root over delta <= most R."""

    def value(t: float) -> float:
        # With epsilon = R e^-s the integrand is bounded.
        inside = quad(lambda s: root(R * math.exp(-s)) * R * math.exp(-s), 0, t, epsrel=1e-12)[0]
        return c_1 * R * math.exp(-t) + c_2 * inside / math.sqrt(m)

    first = -math.log(most)
    best = minimize_scalar(value, bounds=(first, 40), method="bounded", options={"xatol": 1e-9})
    return min(value(first), float(best.fun))


def least_chain(entropy: Callable[[float], float], m: float, R: float) -> float:
    """The chain for every ratio, ended at any level; entropies above m / 2 are left out."""
    least = R
    for ratio in RATIOS:
        above, links = R, 0.0
        for _ in range(LEVELS):
            below = above / ratio
            if below <= 1e-15 * R or (nats := entropy(below)) > m / 2:
                break
            links += (above + below) * math.sqrt(2 * nats / m)
            least, above = min(least, below + links), below
    return float(least)
