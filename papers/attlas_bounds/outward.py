"""The inverse divergence on its safe side, and the exact limit beside Chernoff's."""

import math
from decimal import Context, Decimal, localcontext

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.binomial_tail import binomial_lower_limit, binomial_upper_limit
from attlas.bounds.generalisation.kl_inverse import kl_lower_inverse, kl_upper_inverse
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import computed

_DIGITS = Context(prec=60)


def _divergence(q, p):
    """By the definition with 60 digits."""
    with localcontext(_DIGITS):
        Q, P = Decimal(q), Decimal(p)
        return float(Q * (Q / P).ln() + (1 - Q) * ((1 - Q) / (1 - P)).ln())


def _last_midpoint(q, c, end):
    """Bisection to a relative tolerance of 1e-5 that returns its last midpoint."""
    near, far, middle = q, end, q
    while abs(far - near) >= 1e-5 * max(far, near):
        middle = (near + far) / 2
        if _divergence(q, middle) > c:
            far = middle
        else:
            near = middle
    return middle


@computed(
    Kind.INEQUALITY,
    "Inverse divergence, rounded outward",
    status=Status.NEW,
    count=48,
    evaluations=480,
    controls=[Control("the last midpoint of a bisection", midpoint=True)],
)
def outward_inverse(rng, count, *, midpoint=False):
    r"""$$0<q<1:\quad c\le{\rm kl}(q\|p_+),\quad c\le{\rm kl}(q\|p_-)$$

    $p_\pm$ are the two computed inverses, the divergence has 60 digits. A published code returns
    the last midpoint of a bisection, which is below the inverse in about half of all cases and by
    up to $10^{-5}$ of it.
    """
    q, c = rng.uniform(0.001, 0.99, count), 10 ** rng.uniform(-8, 0.5, count)
    # Further than about 36 (1 - q) the upper inverse rounds to 1, at an infinite divergence.
    c = np.minimum(c, 20 * np.minimum(q, 1 - q))
    # Beyond -ln(1 - q) and -ln q the inverse is near an end, where a bisection from it begins.
    limits = np.empty((count, 2))
    for k in range(count):
        if midpoint:
            ends = _last_midpoint(q[k], c[k], 1 - 1e-10), _last_midpoint(q[k], c[k], 1e-10)
        else:
            ends = kl_upper_inverse(q[k], c[k]), kl_lower_inverse(q[k], c[k])
        limits[k] = [_divergence(q[k], p) for p in ends]
    return np.stack([c, c], axis=1), limits


@computed(
    Kind.IDENTITY,
    "The exact limits are attained",
    status=Status.NEW,
    count=32,
    controls=[Control("at half of delta", factor=0.5)],
)
def exact_limits_attained(rng, count, *, factor=1.0):
    r"""$$0<k<n:\;\mathbb P(\mathrm{Bin}(n,p_+)\le k)=\delta=\mathbb P(\mathrm{Bin}(n,p_-)\ge k)$$

    $p_\pm(k,n,\delta)$ are the two computed limits. A limit that is merely wider still covers; it
    does not attain its level. The tails here are SciPy's incomplete beta functions.
    """
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    n = np.round(10 ** rng.uniform(0.5, 3.3, count)).astype(int)
    k = rng.integers(1, n)
    delta = 10 ** rng.uniform(-6, -0.3, count)
    limits, steep = np.empty((2, count, 2))
    for e in range(count):
        errors, size, level = int(k[e]), int(n[e]), float(delta[e])
        upper = binomial_upper_limit(errors, size, level)
        lower = binomial_lower_limit(errors, size, level)
        limits[e] = binom.cdf(errors, size, upper), binom.sf(errors - 1, size, lower)
        # One rounding of a limit changes its tail by at most that many roundings of the tail.
        steep[e] = (size - errors) * upper / (1 - upper), errors
    level = np.stack([delta, delta], axis=1)
    left, right, magnitude = map(jnp.asarray, (limits, factor * level, level * (1 + steep)))
    return Sides(left, right, magnitude=magnitude)


@computed(
    Kind.INEQUALITY,
    "The exact limits beside Chernoff's",
    status=Status.NEW,
    count=48,
    evaluations=480,
    controls=[Control("nine tenths of the divergence", factor=0.9)],
)
def exact_below_chernoff(rng, count, *, factor=1.0):
    r"""$$p_{\mathrm{exact}}(k,n,\delta)\le\sup\{p:n\,\mathrm{kl}(k/n\|p)\le\ln(1/\delta)\}$$

    And the lower limits the other way round, as those of $n-k$. Equality where $k=0$.
    """
    n = np.round(10 ** rng.uniform(0.5, 4, count)).astype(int)
    k = np.where(np.arange(count) % 3 == 0, 0, rng.integers(0, n))
    delta = 10 ** rng.uniform(-6, -0.3, count)
    left, right = np.empty((2, count, 2))
    for e in range(count):
        size, errors, level = int(n[e]), int(k[e]), float(delta[e])
        c = -factor * math.log(level) / size
        left[e] = (
            binomial_upper_limit(errors, size, level),
            1 - binomial_lower_limit(size - errors, size, level),
        )
        right[e] = (kl_upper_inverse(errors / size, c), 1 - kl_lower_inverse(1 - errors / size, c))
    # What is left of 1 has the roundings of 1, however small it is.
    size = np.stack([right[:, 0], np.ones(count)], axis=1)
    left, right, magnitude = map(jnp.asarray, (left, right, size))
    return Sides(left, right, magnitude=magnitude)
