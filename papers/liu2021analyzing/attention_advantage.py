r"""Beyond the paper: the factor by which attention saves samples, as a theorem.

y = sum_j f_j <w_j, x_j> + noise, f = s0^-1/2 on the support. A known fixed support leaves s0 d
parameters instead of p d; a moving support leaves p d, whatever the learner knows about f. Proof:
papers/liu2021analyzing/proofs/advantage.md.
"""

import itertools
import math

import jax.numpy as jnp
import numpy as np
from scipy import integrate, special

from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import computed
from liu2021analyzing.library.bounds.attended_risk import (
    attention_advantage,
    least_squares_risk,
    regression_risk_floor,
)


def _mean_inverse(k):
    """The mean of 1 / x for a chi-square x with k degrees of freedom, over t = log x."""
    total = k / 2 * math.log(2) + math.lgamma(k / 2)

    def density(t):
        return math.exp((k / 2 - 1) * t - math.exp(t) / 2 - total)

    # From four degrees of freedom on what is cut off is below 1e-12 of the mean.
    end = math.log(2 * special.gammainccinv(k / 2, 1e-15))
    return integrate.quad(density, -30, end, epsabs=0, epsrel=1e-10, limit=400)[0]


@computed(
    Kind.IDENTITY,
    "beyond the paper: the risk with a known support",
    status=Status.NEW,
    count=48,
    alike=True,
    controls=[
        Control("$p$ in place of $s_0$", known=False),
        Control("one degree of freedom more", freedom=1),
    ],
    # Adaptive quadrature is asked for a relative error of 1e-10.
    roundings=2**22,
)
def known_support_risk(rng, count, *, known=True, freedom=0):
    r"""$$n>s_0d+1:\quad E\,\|\hat w-w\|_\Sigma^2=\sigma^2\frac{s_0d}{n-s_0d-1}$$

    Least squares on the $s_0$ attended Gaussian tokens. The left side is the sum of the mean
    inverse square distances of each column from the span of the others, whose law is chi-square
    with $n-s_0d+1$ degrees of freedom, by quadrature.
    """
    left, right = np.zeros((2, count))
    for e in range(count):
        s0, d = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        p, P = s0 + int(rng.integers(1, 9)), s0 * d
        n = p * d + int(rng.integers(3, 60))
        left[e] = P * _mean_inverse(n - P + 1 + freedom)
        right[e] = least_squares_risk(n, P if known else p * d)
    return left, right


def _designs(p, s0, d):
    """All attended inputs, a row each of p d numbers, and the mean of their products."""
    rows = []
    for support in itertools.combinations(range(p), s0):
        for signs in itertools.product([-1.0, 1.0], repeat=s0 * d):
            z = np.zeros((p, d))
            z[list(support)] = np.reshape(signs, (s0, d)) / math.sqrt(s0)
            rows.append(z.ravel())
    rows = np.array(rows)
    return rows, rows.T @ rows / len(rows)


_CASES = [(2, 1, 1, 6), (3, 1, 1, 5), (3, 2, 1, 3), (2, 1, 2, 4), (4, 1, 1, 4), (4, 3, 1, 2)]
"""p, s0, d and the largest number of samples whose designs are enumerated."""


@computed(
    Kind.INEQUALITY,
    "beyond the paper: no learner saves samples where the support moves",
    status=Status.NEW,
    count=36,
    evaluations=1080,
    controls=[
        Control("$s_0d$ parameters more", extra=True),
        Control("$n-1$ in place of $n+1$", fewer=2),
    ],
)
def moving_support_floor(rng, count, *, extra=False, fewer=0):
    r"""$$\inf_{\hat w}E\,\|\hat w-w\|_\Sigma^2\ge\sigma^2R,\quad
    (n+1)\frac R{1+R}+\kappa R=pd,\quad
    \kappa\to0:\ \sigma^2\frac{pd}{n+1-pd}$$

    For every learner, also one that knows $f(x)$; $w\sim N(0,\frac{\sigma^2}\kappa\Sigma^{-1})$.
    Tokens of signs and uniform supports: the posterior's risk over all designs, exactly.
    """
    left, right = np.zeros((2, count))
    for e in range(count):
        p, s0, d, most = _CASES[e % len(_CASES)]
        n, kappa = int(rng.integers(1, most + 1)), 10 ** rng.uniform(-2, 1.5)
        rows, second = _designs(p, s0, d)
        white = np.linalg.solve(np.linalg.cholesky(second), rows.T).T
        products = white[:, :, None] * white[:, None]
        gram = np.zeros((1, p * d, p * d))
        for _ in range(n):
            gram = (gram[:, None] + products[None]).reshape(-1, p * d, p * d)
        ridge = kappa * np.eye(p * d)
        right[e] = np.mean(np.trace(np.linalg.inv(gram + ridge), axis1=1, axis2=2))
        parameters = p * d + (s0 * d if extra else 0)
        left[e] = regression_risk_floor(max(n - fewer, 0), parameters, kappa)
    return left, right


@computed(
    Kind.IDENTITY,
    "beyond the paper: no attention on a support that moves",
    status=Status.NEW,
    count=48,
    alike=True,
    controls=[Control("without the part of the mean", mean=0.0)],
    roundings=2**10,
)
def floor_without_attention(rng, count, *, mean=1.0):
    r"""$$\min_vE\big(\langle w,x\circ f\rangle-\langle v,x\rangle\big)^2=
    \frac{\|w\|^2}p\Big(1-\frac{s_0}p\Big)$$

    Supports uniform and independent of isotropic tokens: a linear model that does not see $f$
    keeps this error at any number of samples. Normal equations over all supports and signs.
    """
    left, right, size = np.zeros((3, count))
    for e in range(count):
        p = int(rng.integers(2, 6))
        s0 = int(rng.integers(1, p + 1))
        w, terms = rng.normal(size=p), []
        for support in itertools.combinations(range(p), s0):
            f = np.zeros(p)
            f[list(support)] = s0**-0.5
            terms += [(np.array(x), f) for x in itertools.product([-1.0, 1.0], repeat=p)]
        x, f = (np.array(part) for part in zip(*terms, strict=True))
        target = (x * f) @ w
        v = np.linalg.lstsq(x, target, rcond=None)[0]
        left[e] = np.mean((target - x @ v) ** 2)
        right[e] = w @ w / p * (1 - mean * s0 / p)
        size[e] = w @ w
    return Sides(*map(jnp.asarray, (left, right)), magnitude=jnp.asarray(size))


@computed(
    Kind.INEQUALITY,
    "beyond the paper: the factor of the samples",
    status=Status.NEW,
    count=48,
    controls=[
        Control("$(p/s_0)^2$, as the paper has it", square=True),
        Control("$s_0+1$ in place of $s_0$", more=1),
    ],
)
def advantage_factor(rng, count, *, square=False, more=0):
    r"""$$\frac{n_{moving}}{n_{known}}\le\frac p{s_0}\quad\text{and}\quad
    \frac{n_{moving}}{n_{known}}\ge\frac p{s_0}-\frac{p/s_0+1}{n_{known}}$$

    Samples that suffice with a known support and that are necessary with a moving one, at one risk:
    least squares has the first risk at $n_{known}$, no learner the second below $n_{moving}$.
    """
    left, right = np.zeros((2, count, 2))
    for e in range(count):
        s0, d = int(rng.integers(1, 9)), int(rng.integers(1, 9))
        p, n = s0 * int(rng.integers(2, 9)), s0 * d + 2 + int(10 ** rng.uniform(0.5, 4))
        advantage = attention_advantage(least_squares_risk(n, s0 * d), p, s0, d)
        ratio = (p / (s0 + more)) ** (2 if square else 1)
        left[e] = advantage.factor, ratio - (ratio + 1) / n
        right[e] = p / (s0 + more), advantage.moving_support / n
    return left, right
