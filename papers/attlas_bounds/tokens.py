"""Bounds whose sample is the tokens of a stream: one step, the range of a loss, coverage."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.token_bound import (
    bernstein_exponent,
    smoothed_losses,
    token_bound,
)
from attlas.claims.claim import Control, Kind, Sides, Source, Status
from attlas.claims.statement import computed, probability

_DELTA = 0.3


@computed(
    Kind.INEQUALITY,
    "One step of the empirical Bernstein supermartingale",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    count=96,
    roundings=64,
    controls=[Control("nine tenths of the exponent", factor=0.9)],
)
def bernstein_step(rng, count, *, factor=1.0):
    r"""$$\mathbb E\exp\big(\lambda(\mathbb EZ-Z)-\psi(\lambda)(Z-\hat z)^2\big)\le1,\quad
    \psi(\lambda)=-\ln(1-\lambda)-\lambda$$

    Fan, Grama and Liu (2015), for a loss in $[0,1]$ and any prediction $\hat z$ of it. Losses of
    four values; in every third instance $\hat z=0$ and the loss is 1 with a small probability,
    where equality is approached.
    """
    Z, law = rng.uniform(size=(count, 4)), rng.dirichlet(np.ones(4), count)
    guess, slope = rng.uniform(size=count), 1 - 10 ** rng.uniform(-2, 0, count)
    Z[::3], guess[::3] = [0, 0, 0, 1], 0
    law[::3, 3] = 10 ** rng.uniform(-4, -1, len(law[::3]))
    law[::3, 0] = 1 - law[::3, 1:].sum(1)
    law = np.abs(law) / np.abs(law).sum(1, keepdims=True)
    psi = factor * np.array([bernstein_exponent(value) for value in slope])
    mean = np.sum(law * Z, axis=1, keepdims=True)
    power = slope[:, None] * (mean - Z) - psi[:, None] * (Z - guess[:, None]) ** 2
    return np.sum(law * np.exp(power), axis=1), np.ones(count)


@computed(
    Kind.IDENTITY,
    "The range of smoothed losses",
    status=Status.NEW,
    count=48,
    roundings=64,
    controls=[Control("half of the smoothing", share=0.5), Control("one word more", words=1.0)],
)
def smoothed_range(rng, count, *, share=1.0, words=0.0):
    r"""$$\ell_{\min}+\Delta Z=-\log_2\Big((1-\alpha)p+\frac\alpha V\Big),\quad
    \Delta=\ell(0)-\ell(1)$$

    2 to 59 words and smoothings from $10^{-3}$ to 0.5; $Z$ at a probability, at 0 and at 1.
    """
    left, right = np.empty((2, count, 4))
    for e in range(count):
        V, alpha = int(rng.integers(2, 60)), float(10 ** rng.uniform(-3, -0.3))
        p = np.array([10 ** rng.uniform(-3, -0.1), 0.0, 1.0])
        Z, least, width = smoothed_losses(p, V, alpha)
        a = share * alpha
        losses = -np.log2((1 - a) * p + a / (V + words))
        left[e] = *(least + width * Z), width
        right[e] = *losses, losses[1] - losses[2]
    return Sides(*(jnp.asarray(part) for part in (left, right, 10 + np.abs(right))))


def streams(rng, count):
    """Streams of 20 to 200 bits: the risk along each, its mean loss and its bound."""
    risk, mean, bound = np.empty((3, count))
    for e in range(count):
        N, stay = int(10 ** rng.uniform(1.3, 2.3)), rng.uniform(0.3, 0.95, 2)
        bit, chance, stays = 0, np.empty(N), np.empty(N, bool)
        for i in range(N):
            chance[i] = stay[bit]
            stays[i] = rng.random() < stay[bit]
            bit = bit if stays[i] else 1 - bit
        certificate = token_bound(np.where(stays, 0.9, 0.1), 2, 0, _DELTA, smoothings=[0.1])
        Z, least, width = smoothed_losses(np.array([0.9, 0.1]), 2, 0.1)
        risk[e] = least + width * np.mean(chance * Z[0] + (1 - chance) * Z[1])
        mean[e], bound[e] = certificate.empirical, certificate.bound
    return {"risk": risk, "mean": mean, "bound": bound}


@probability(
    "Token-level bound on repeated streams",
    level=1 - _DELTA,
    status=Status.NEW,
    sample=streams,
    independent="law and stream of bits",
    count=200,
    controls=[Control("the mean loss less a tenth of what is added", deviation=-0.1)],
)
def token_coverage(risk, mean, bound, *, deviation=1.0):
    r"""$$\mathbb P\Big[\frac1N\sum_i\mathbb E[\ell_i\mid{\rm past}]\le{\rm bound}\Big]\ge1-\delta,
    \quad\delta=0.3$$

    Each bit repeats the last one with a probability that depends on it; a fixed model predicts a
    repetition with probability 0.9. The share of bounds that hold is far above the level: the
    bound pays for its worst stream.
    """
    return risk <= mean + deviation * (bound - mean)
