"""Losses of drawn networks: their law, and that draws do not depend on how many run at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from attlas.bounds.generalisation import monte_carlo_losses as module
from attlas.bounds.generalisation.gaussian_weights import GaussianWeights, read_gaussian
from attlas.bounds.generalisation.monte_carlo_losses import monte_carlo_losses
from attlas.core.errors import UserError

LAW = GaussianWeights(
    {"W": jnp.array([[1.0, -1.0]]), "b": jnp.zeros(1)},
    {"W": jnp.array([[0.5, 2.0]]), "b": jnp.array(0.1)},
)


def first(w):
    return w["W"][0, 1]


def test_weights_are_normal_with_their_own_scales():
    found = monte_carlo_losses(first, LAW, jax.random.key(1), 2000)
    assert stats.kstest(found, stats.norm(-1, 2).cdf).pvalue > 1e-3
    product = monte_carlo_losses(
        lambda w: (w["W"][0, 0] - 1) * (w["b"][0]) / 0.05, LAW, jax.random.key(2), 2000
    )
    # independent: the product of two standard normals has mean 0 and deviation 1
    assert abs(product.mean()) < 4 / np.sqrt(2000)
    np.testing.assert_allclose(product.std(), 1, atol=0.2)


def test_draws_are_the_same_however_many_run_at_once():
    one, many = (monte_carlo_losses(first, LAW, jax.random.key(0), 50, at_once=k) for k in (1, 50))
    np.testing.assert_allclose(one, many, rtol=1e-15)
    assert len(set(one.tolist())) == 50


def test_draws_are_the_mean_plus_scaled_normals_of_one_stream():
    key, law = jax.random.key(5), read_gaussian(LAW)
    assert law.scale["b"].shape == ()
    noise = np.stack([jax.random.normal(k, (3,)) for k in jax.random.split(key, 4)])
    W, b = np.array([[1.0, -1.0]]) + noise[:, :2] * [0.5, 2.0], 0.1 * noise[:, 2]
    found = monte_carlo_losses(
        lambda w: w["W"][0, 0] + 3 * w["W"][0, 1] + 7 * w["b"][0], LAW, key, 4
    )
    np.testing.assert_allclose(found, W @ [1.0, 3.0] + 7 * b, rtol=1e-14)


def test_no_more_networks_run_at_once_than_are_drawn(monkeypatch):
    calls, run = [], module._losses
    monkeypatch.setattr(module, "_losses", lambda *a: calls.append(a[-1]) or run(*a))
    for draws, at_once in ((4, 9), (9, 4)):
        monte_carlo_losses(first, LAW, jax.random.key(0), draws, at_once=at_once)
    assert calls == [4, 4]


@pytest.mark.parametrize(
    ("loss", "draws", "said"),
    [
        (lambda w: w["W"], 5, "it must return one number"),
        (lambda w: jnp.log(w["b"][0]), 50, "loss is not finite"),
        (first, 0, "draws = 0"),
    ],
)
def test_bad_input_is_one_line(loss, draws, said):
    with pytest.raises(UserError, match=said):
        monte_carlo_losses(loss, LAW, jax.random.key(0), draws)
