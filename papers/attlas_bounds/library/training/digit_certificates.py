r"""Certified errors of attention on digits by PAC-Bayes, from its training images.

Weights are drawn anew from a Gaussian posterior at every use. The prior is centred at the untrained
weights, and the bound uses all n images; or at weights trained on the first half of the images, and
the bound uses the second half. The posterior may depend on all images.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Key

from attlas._jax.device_arrays import generator
from attlas._jax.loop_jit import loop_jit
from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.pac_bayes_kl import pac_bayes_kl
from attlas.data.digit_pairs import DigitPairs
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.training.fit import fit
from attlas.training.gradient_descent import Samples, empirical_loss
from attlas.training.risk_gradient import model_outputs

PRIORS = ("untrained", "first half")
"""Where the prior is centred."""
SCALES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations, of the priors by the grid of the bound, of the posteriors freely."""
TRIALS = 4
"""Draws by which a posterior is chosen; the bound uses fresh draws."""
_LOSS = empirical_loss("logistic")
_AT_ONCE = 256
_PADDED = 2048
"""Training images below which all sizes share a program."""
START = 0.1
"""Standard deviation of the untrained weights."""


class DigitCertificate(NamedTuple):
    """Bounds on the error of weights drawn at every use, and their error on fresh images.

    Attributes:
        certified: PAC-Bayes bound, from training images.
        train_error: mean error of the draws on the images of the bound.
        divergence: divergence of the posterior from the nearest prior, in nats.
        scale: standard deviation of the posterior.
        held_out: share of the test images that a fresh draw for each gets wrong.
        held_out_bound: exact binomial bound from those.
    """

    certified: float
    train_error: float
    divergence: float
    scale: float
    held_out: float
    held_out_bound: float


class DigitDescent(NamedTuple):
    """Training of the weights by Adam.

    Attributes:
        heads: number of attention heads.
        records: steps of Adam on whole samples at which a posterior may be centred.
        rate: step size of Adam.
        draws: number of draws of the weights for the bound.
    """

    heads: int
    records: tuple[int, ...]
    rate: float
    draws: int


def _error_rate(
    model: MultiHead, X: Float[Array, "n T d"], y: Float[Array, " n"]
) -> Float[Array, ""]:
    """Share of the samples whose output has the wrong sign or is zero."""
    return jnp.mean((y * model_outputs(model, X) <= 0).astype(X.dtype))


def certify_digits(
    key: Key[Array, ""], data: DigitPairs, n: int, prior: str, descent: DigitDescent, delta: float
) -> DigitCertificate:
    """Train on the first n images and certify the error of the learnt posterior.

    Args:
        data: training images in random order, and test images.
        n: training images, at least 16.
        prior: one of `PRIORS`.
        descent: schedule and step size of the training.
        delta: probability that the certified bound fails, and that the held-out one does.

    Examples:
        >>> from attlas.data.digit_pairs import load_digit_pairs
        >>> data = load_digit_pairs(None, "patches", R=2.0)
        >>> descent = DigitDescent(heads=1, records=(0, 9), rate=0.05, draws=50)
        >>> found = certify_digits(jax.random.key(0), data, 100, "first half", descent, 0.05)
        >>> found.held_out <= found.held_out_bound
        True
    """
    begin, choose, draw, test = jax.random.split(key, 4)
    X, y = data.X_train, data.y_train
    zero = make_multi_head(descent.heads, X.shape[1], X.shape[2], dtype=X.dtype)
    start_noise = jax.tree.map(lambda a: a[0], _noise(generator(begin), zero, 1))
    start = _moved(GaussianWeights(zero, START), start_noise)
    first = n // 2 if prior == PRIORS[1] else 0
    centre = start
    if first:
        centre = _trained(start, X, y, first, descent)[-1]
    judged = (X[first:n], y[first:n])
    grid = GaussianPrior(centre, SCALES)
    law = _best_posterior(choose, [centre, *_trained(centre, X, y, n, descent)], grid, *judged)
    split = (np.arange(first), np.arange(first, n)) if first else None
    bound = pac_bayes_kl(
        Partial(_error_rate, X=judged[0], y=judged[1]), law, grid, n - first, delta, draw,
        draws=descent.draws, split=split, trivial=0.5,
    )  # fmt: skip
    wrong = _errors_of_draws(test, law, data.X_test, data.y_test)
    tested = len(data.y_test)
    return DigitCertificate(
        bound.bound,
        bound.empirical,
        bound.complexity,
        float(law.scale),
        wrong / tested,
        held_out_bound(wrong, tested, delta).bound,
    )


def _trained(
    start: MultiHead, X: Array, y: Array, n: int, descent: DigitDescent
) -> list[MultiHead]:
    """Weights along the descent on the first n of the images."""
    # Zero weights and not fewer rows: one program for all small n.
    rows = min(len(y), max(n, _PADDED))
    weights = jnp.where(jnp.arange(rows) < n, rows / n, 0).astype(X.dtype)
    path = fit(
        _LOSS, Partial(optax.adam, jnp.asarray(descent.rate, X.dtype)), start,
        Samples(X[:rows], y[:rows], weights), record_at=descent.records,
    )  # fmt: skip
    return [jax.tree.map(lambda a, k=k: a[k], path.params) for k in range(len(descent.records))]


def _noise(draws: np.random.Generator, weights: MultiHead, count: int) -> MultiHead:
    """Standard normal copies of the weights, by NumPy: JAX's normals take seconds to compile."""

    def normals(a: Array) -> np.ndarray:
        return draws.standard_normal((count, *a.shape), dtype=np.dtype(a.dtype))

    return jax.tree.map(normals, weights)


def _moved(law: GaussianWeights, noise: MultiHead) -> MultiHead:
    return jax.tree.map(lambda a, b: a + jnp.asarray(law.scale, a.dtype) * b, law.mean, noise)


@loop_jit
def _trial_errors(noise: MultiHead, centre: MultiHead, scales: Array, X: Array, y: Array) -> Array:
    """Mean error of a few draws at each scale."""

    def at(scale: Array) -> Array:
        law = GaussianWeights(centre, scale)
        return jnp.mean(jax.lax.map(lambda draw: _error_rate(_moved(law, draw), X, y), noise))

    return jax.lax.map(at, scales)


def _best_posterior(
    key: Array, centres: list[MultiHead], prior: GaussianPrior, X: Array, y: Array
) -> GaussianWeights:
    """The centre and scale with the least bound by a few draws, in Pinsker's form."""
    best, law = np.inf, GaussianWeights(centres[0], SCALES[0])
    noise = _noise(generator(key), centres[0], TRIALS)
    for centre in centres:
        errors = np.asarray(_trial_errors(noise, centre, jnp.asarray(SCALES, X.dtype), X, y))
        for error, scale in zip(errors, SCALES, strict=True):
            posterior = GaussianWeights(centre, scale)
            c = float(gaussian_kl(posterior, prior).min()) / len(y)
            value = error + np.sqrt(2 * c * error) + 2 * c
            if value < best:
                best, law = value, posterior
    return law


def _errors_of_draws(key: Array, law: GaussianWeights, X: Array, y: Array) -> int:
    """Number of wrong images, with fresh weights for every image."""
    draws, wrong = generator(key), 0
    for first in range(0, len(y), _AT_ONCE):
        # The last images are read with those before them: one program for all.
        rows = slice(max(0, min(first, len(y) - _AT_ONCE)), first + _AT_ONCE)
        noise = _noise(draws, law.mean, len(y[rows]))
        signs = np.asarray(_signs(noise, law, X[rows], y[rows]))
        wrong += int(np.sum(signs[first - rows.start :] <= 0))
    return wrong


@loop_jit
def _signs(noise: MultiHead, law: GaussianWeights, X: Array, y: Array) -> Array:
    """Label times output of each image under its draw of the weights."""
    return y * jax.vmap(lambda draw, tokens: _moved(law, draw)(tokens))(noise, X)
