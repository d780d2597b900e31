"""Divergence of Gaussian laws: beside numerical integration and for each shape of scales."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
    read_gaussian,
)
from attlas.core.errors import UserError


def integral(mu, sigma, zero, lam):
    law, start = stats.norm(mu, sigma), stats.norm(zero, lam)
    return integrate.quad(
        lambda x: law.pdf(x) * (law.logpdf(x) - start.logpdf(x)), mu - 12 * sigma, mu + 12 * sigma
    )[0]


def test_it_is_the_integral_weight_by_weight():
    mean = {"a": np.array([[0.3, -1.0]]), "b": np.array([2.0])}
    scale = {"a": np.array([[0.2, 0.5]]), "b": np.array(1.5)}
    zero = {"a": np.array([[0.0, 0.1]]), "b": np.array([1.0])}
    found = gaussian_kl(GaussianWeights(mean, scale), GaussianPrior(zero, [0.4, 2.0]))
    for k, lam in enumerate((0.4, 2.0)):
        parts = [(0.3, 0.2, 0.0), (-1.0, 0.5, 0.1), (2.0, 1.5, 1.0)]
        np.testing.assert_allclose(found[k], sum(integral(*p, lam) for p in parts), rtol=1e-8)


def test_it_is_zero_for_the_prior_itself_and_never_below():
    w = np.random.default_rng(0).normal(size=10_000)
    found = gaussian_kl(GaussianWeights(w, 0.3), GaussianPrior(w, [0.3]))[0]
    assert 0 <= found < 1e-6


def test_one_scale_serves_all_arrays():
    mean = {"a": jnp.ones((2, 3)), "b": jnp.zeros(4)}
    law = read_gaussian(GaussianWeights(mean, 0.5))
    np.testing.assert_array_equal([law.scale["a"], law.scale["b"]], 0.5)


@pytest.mark.parametrize(
    ("law", "prior", "said"),
    [
        (GaussianWeights([1.0], -1.0), GaussianPrior([1.0], [1.0]), "every standard deviation"),
        (
            GaussianWeights([1.0, 2.0], [1.0] * 3),
            GaussianPrior([1.0], [1.0]),
            "posterior.scale has",
        ),
        (GaussianWeights([1.0], 1.0), GaussianPrior([1.0, 2.0], [1.0]), r"prior.mean has shape"),
        (GaussianWeights([1.0], 1.0), GaussianPrior({"a": np.ones(1)}, [1.0]), "another structure"),
        (GaussianWeights([1.0], 1.0), GaussianPrior([1.0], []), "prior.scales: give at least one"),
        (GaussianWeights([1.0], 1.0), GaussianPrior([1.0], [0.0]), "prior.scales"),
        (GaussianWeights([np.nan], 1.0), GaussianPrior([1.0], [1.0]), "posterior.mean"),
        (GaussianWeights({}, 1.0), GaussianPrior([1.0], [1.0]), "posterior.mean has no weights"),
        (
            GaussianWeights({"a": np.ones(1), "b": np.ones(2)}, [1.0, 2.0, 3.0]),
            GaussianPrior([1.0], [1.0]),
            "posterior.scale: give one number",
        ),
    ],
)
def test_bad_input_is_one_line(law, prior, said):
    with pytest.raises(UserError, match=said) as caught:
        gaussian_kl(law, prior)
    assert "\n" not in str(caught.value)


def test_what_is_added_is_the_rounding_of_all_terms():
    """The law is the prior itself: 0 and the allowance, of n + 16 roundings of the terms' sizes."""
    eps = np.finfo(float).eps
    found = gaussian_kl(GaussianWeights(np.arange(6.0), 1.0), GaussianPrior(np.arange(6.0), [1.0]))
    np.testing.assert_allclose(found, [22 * eps * 6], rtol=1e-12)
    found = gaussian_kl(GaussianWeights(np.arange(6.0), 4.0), GaussianPrior(np.arange(6.0), [4.0]))
    size = 6 + 2 * 6 * np.log(4)
    np.testing.assert_allclose(found, [22 * eps * size], atol=8 * eps * np.log(4))
