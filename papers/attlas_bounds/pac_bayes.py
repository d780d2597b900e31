"""PAC-Bayes with Gaussian weights: its three ingredients, and draws of whole samples."""

import math

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.pac_bayes_kl import log_moment, pac_bayes_limit
from attlas.claims.claim import Control, Kind, Sides, Source, Status
from attlas.claims.statement import computed, probability

_DELTA = 0.2


@computed(
    Kind.INEQUALITY,
    "The moment of the divergence",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    count=48,
    # sums of up to 4000 terms, each from logarithms of factorials of size 4000 ln 4000
    roundings=2**17,
    controls=[Control("5/4 in place of 2", factor=0.625)],
)
def divergence_moment(rng, count, *, factor=1.0):
    r"""$$\mathbb E\,e^{n\,{\rm kl}(K/n\|p)}=\sum_{k=0}^n\binom nk\Big(\frac kn\Big)^k
    \Big(1-\frac kn\Big)^{n-k}\le2\sqrt n\quad(n\ge8)$$

    Maurer (2004), Theorem 1, for counts of errors, whose moment is the largest. It does not depend
    on $p$; the sum grows as $\sqrt{\pi n/2}+\frac23$.
    """
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    n = np.concatenate([np.arange(8, 32), np.round(10 ** rng.uniform(1.5, 3.6, count)[24:])])
    left = []
    for m in n.astype(int):
        k = np.arange(1, m)
        inner = binom.pmf(k, m, k / m)
        left.append(2 + inner.sum())
    return np.array(left), factor * np.exp([log_moment(float(m)) for m in n])


@computed(
    Kind.IDENTITY,
    "Divergence of Gaussian weights",
    status=Status.NEW,
    count=32,
    roundings=4096,
    controls=[
        Control("the variance of the prior in the first term", exchanged=True),
        Control("without the half per weight", half=0.0),
    ],
)
def gaussian_divergence(rng, count, *, exchanged=False, half=1.0):
    r"""$$\sum_i\frac{\sigma_i^2+(\mu_i-\mu_i^0)^2}{2\lambda^2}-\frac12+\ln\frac\lambda{\sigma_i}=
    \mathbb E_{w\sim Q}\ln\frac{q(w)}{p(w)}$$

    1 to 9 weights with scales of their own; the right side by Gauss-Hermite quadrature of the two
    densities, exact for a square.
    """
    left, right, size = np.empty((3, count))
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    for e in range(count):
        d = int(rng.integers(1, 10))
        mean, start = rng.normal(size=(2, d))
        sigma, scale = 10 ** rng.uniform(-1, 0.5, d), float(10 ** rng.uniform(-0.5, 0.7))
        law = GaussianWeights(mean, sigma)
        left[e] = gaussian_kl(law, GaussianPrior(start, [scale]))[0] + (half - 1) * -d / 2
        w = mean[:, None] + sigma[:, None] * nodes
        inside = -((w - mean[:, None]) ** 2) / (2 * sigma[:, None] ** 2) - np.log(sigma)[:, None]
        if exchanged:
            inside = -((w - mean[:, None]) ** 2) / (2 * scale**2) - np.log(sigma)[:, None]
        outside = -((w - start[:, None]) ** 2) / (2 * scale**2) - math.log(scale)
        right[e] = np.sum((inside - outside) @ weights)
        size[e] = np.sum((np.abs(inside) + np.abs(outside)) @ weights) + d
    return Sides(*(jnp.asarray(part) for part in (left, right, size)))


def fitted_noise(rng, count):
    """Classifiers in 20 dimensions fitted to 16 coins; their bound, with and without divergence."""
    n, d, draws, scales = 16, 20, 200, [0.3, 1.0]
    bound, bare = np.empty((2, count))
    for e in range(count):
        X, y = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], n)
        judged = slice(n // 2, n) if e % 2 else slice(0, n)
        mean = np.linalg.pinv(X) @ y
        start = np.linalg.pinv(X[: n // 2]) @ y[: n // 2] if e % 2 else np.zeros(d)
        w = mean + 0.05 * rng.normal(size=(draws, d))
        losses = np.mean((w @ X[judged].T) * y[judged] < 0, axis=1)
        risk = kl_upper_inverse(float(losses.mean()), -math.log(0.2 * _DELTA) / draws)
        nats = gaussian_kl(GaussianWeights(mean, 0.05), GaussianPrior(start, scales)).min()
        size, share = float(len(y[judged])), 0.8 * _DELTA / len(scales)
        bound[e] = pac_bayes_limit(risk, float(nats), size, share)
        bare[e] = pac_bayes_limit(risk, 0.0, size, share)
    return {"bound": bound, "bare": bare}


@probability(
    "PAC-Bayes on repeated samples",
    level=1 - _DELTA,
    status=Status.NEW,
    sample=fitted_noise,
    independent="sample, coins and weights",
    count=96,
    controls=[Control("without the divergence", divergence=0.0)],
)
def pac_bayes_coverage(bound, bare, *, divergence=1.0):
    r"""$$\mathbb P\big[R(Q)\le{\rm bound}\big]\ge1-\delta,\quad R(Q)=\tfrac12,\ \delta=0.2$$

    Labels are fair coins, so that every network has risk $\frac12$. The Gaussian law of a linear
    classifier is chosen after the samples; every other trial has the mean of its prior from the
    first half and its bound from the second. 200 draws, with a confidence of their own.
    """
    return bare + divergence * (bound - bare) >= 0.5
