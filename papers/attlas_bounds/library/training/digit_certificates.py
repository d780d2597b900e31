r"""Certified errors of attention on digits, from its training images: held-out half, or PAC-Bayes.

The held-out half: weights trained on the first half of the images, judged by the second. PAC-Bayes:
a prior centred at weights trained on the first tenth of the images, and posteriors on a path of
Adam on all of them, whose weights are drawn anew at every use; the other nine tenths are judged.
"""

from dataclasses import dataclass
from functools import partial
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
from attlas.bounds.generalisation.pac_bayes_kl import pac_bayes_of_errors
from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.bounds.generalisation.union import union
from attlas.data.digit_pairs import DigitPairs
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.training.fit import fit
from attlas.training.gradient_descent import Samples, empirical_loss
from attlas.training.risk_gradient import model_outputs

PRIOR_PART = 10
"""The prior is trained on the first n over this many images."""
SCALES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations, of the priors by the grid of the bound, of the posteriors freely."""
TRIALS = 4
"""Draws by which the scale of a posterior is chosen; the bound uses fresh draws."""
GUESSING = 0.5
_LOSS = empirical_loss("logistic")
_AT_ONCE = 256
_PADDED = 2048
"""Training images below which all sizes share a program."""
START = 0.1
"""Standard deviation of the untrained weights."""


@dataclass(frozen=True)
class DigitCertificates:
    """Certificates of errors from the same n images, and errors on test images.

    The K certificates hold together at delta: the one of the half, and one for each posterior.

    Attributes:
        certified: the least of the K.
        half: exact binomial bound for the weights of the first half, at delta / K.
        half_alone: the same at delta, for who uses no other certificate.
        half_error: share of the second half that these weights get wrong.
        half_test: share of the test images that they get wrong.
        posterior: PAC-Bayes bounds by recorded step, each at delta / K.
        posterior_error: mean error of the draws on the images of the bound.
        posterior_test: share of the test images that a fresh draw for each gets wrong.
        nats: divergence of each posterior from the nearest prior.
        scale: standard deviation of each posterior.
    """

    certified: float
    half: float
    half_alone: float
    half_error: float
    half_test: float
    posterior: Float[np.ndarray, " steps"]
    posterior_error: Float[np.ndarray, " steps"]
    posterior_test: Float[np.ndarray, " steps"]
    nats: Float[np.ndarray, " steps"]
    scale: Float[np.ndarray, " steps"]


class DigitDescent(NamedTuple):
    """Training of the weights by Adam.

    Attributes:
        heads: number of attention heads.
        records: steps of Adam on whole samples at which a posterior is centred; the prior and the
            weights of the half are those of the last.
        rate: step size of Adam from untrained weights.
        tuning: step size of Adam from the prior to the posteriors.
        draws: draws of the weights for each image of the bound.
    """

    heads: int
    records: tuple[int, ...]
    rate: float
    tuning: float
    draws: int


def certify_digits(
    key: Key[Array, ""], data: DigitPairs, n: int, descent: DigitDescent, delta: float
) -> DigitCertificates:
    """Train on the first n images and certify the error in every way.

    Args:
        data: training images in random order, and test images.
        n: training images, at least 16.
        descent: schedule and step size of the training.
        delta: probability that some certificate fails.

    Examples:
        >>> from attlas.data.digit_pairs import load_digit_pairs
        >>> data = load_digit_pairs(None, "patches", R=2.0)
        >>> descent = DigitDescent(heads=1, records=(2, 9), rate=0.05, tuning=0.01, draws=1)
        >>> found = certify_digits(jax.random.key(0), data, 100, descent, 0.05)
        >>> found.half > found.half_alone, found.certified == min(found.half, *found.posterior)
        (True, True)
    """
    begin, choose, draw, test = jax.random.split(key, 4)
    X, y = data.X_train, data.y_train
    zero = make_multi_head(descent.heads, X.shape[1], X.shape[2], dtype=X.dtype)
    start_noise = jax.tree.map(lambda a: a[0], _noise(generator(begin), zero, 1))
    start = _moved(GaussianWeights(zero, START), start_noise)
    few, first = n // PRIOR_PART, n // 2
    half = _trained(start, X, y, first, descent)[-1]
    half_bound = partial(
        held_out_bound, _errors(half, X[first:n], y[first:n]), n - first, trivial=GUESSING
    )
    centre = _trained(start, X, y, few, descent)[-1]
    prior = GaussianPrior(centre, SCALES)
    judged = (X[few:n], y[few:n])
    path = _trained(centre, X, y, n, descent._replace(rate=descent.tuning))
    laws = [_best_scale(choose, own, prior, *judged) for own in path]
    level = delta / (1 + len(laws))
    bounds = [
        _posterior_bound(
            jax.random.fold_in(draw, k), law, prior, judged, (few, descent.draws, level)
        )
        for k, law in enumerate(laws)
    ]
    tests = (data.X_test, data.y_test)
    return DigitCertificates(
        certified=union(half_bound(level), *bounds).bound,
        half=half_bound(level).bound,
        half_alone=half_bound(delta).bound,
        half_error=half_bound(delta).empirical,
        half_test=_errors(half, *tests) / len(data.y_test),
        posterior=np.array([bound.bound for bound in bounds]),
        posterior_error=np.array([bound.empirical for bound in bounds]),
        posterior_test=np.array([
            _errors_of_draws(jax.random.fold_in(test, k), law, *tests) / len(data.y_test)
            for k, law in enumerate(laws)
        ]),
        nats=np.array([bound.complexity for bound in bounds]),
        scale=np.array([float(law.scale) for law in laws]),
    )  # fmt: skip


def _posterior_bound(
    key: Array,
    law: GaussianWeights,
    prior: GaussianPrior,
    judged: tuple[Array, Array],
    sizes: tuple[int, int, float],
) -> RiskBound:
    """PAC-Bayes from fresh draws, some for each judged image, at the level of one certificate."""
    few, rounds, level = sizes
    n = len(judged[1])
    wrong = sum(_errors_of_draws(each, law, *judged) for each in jax.random.split(key, rounds))
    split = np.arange(few), np.arange(few, few + n)
    return pac_bayes_of_errors(
        wrong, rounds * n, law, prior, n, level, split=split, trivial=GUESSING
    )


def _errors(model: MultiHead, X: Float[Array, "n T d"], y: Float[Array, " n"]) -> int:
    """Number of samples whose output has the wrong sign or is zero."""
    return int(jnp.sum(y * model_outputs(model, X) <= 0))


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

    def error_rate(model: MultiHead) -> Array:
        return jnp.mean((y * model_outputs(model, X) <= 0).astype(X.dtype))

    def at(scale: Array) -> Array:
        law = GaussianWeights(centre, scale)
        return jnp.mean(jax.lax.map(lambda draw: error_rate(_moved(law, draw)), noise))

    return jax.lax.map(at, scales)


def _best_scale(
    key: Array, centre: MultiHead, prior: GaussianPrior, X: Array, y: Array
) -> GaussianWeights:
    """The scale with the least bound by a few draws, in Pinsker's form."""
    noise = _noise(generator(key), centre, TRIALS)
    errors = np.asarray(_trial_errors(noise, centre, jnp.asarray(SCALES, X.dtype), X, y), float)
    laws = [GaussianWeights(centre, scale) for scale in SCALES]
    c = np.array([float(gaussian_kl(law, prior).min()) for law in laws]) / len(y)
    return laws[int(np.argmin(errors + np.sqrt(2 * c * errors) + 2 * c))]


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
