"""The first phase against autodiff at zero, its mean on (DM1), and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import Decoder, make_multi_head
from attlas.optim.one_step import first_phase_steps, one_step_initialisation

KEY = jax.random.key(0)
MIXTURE = make_tokenized_mixture(KEY, d=5, M=2, S=1.5, zeta=0.4, Z_mu=0.3, Z_nu=0.4, Z=0.8)


@pytest.mark.thorough
@pytest.mark.parametrize("decoder", list(Decoder))
def test_step_is_the_gradient_at_zero(decoder):
    samples = sample_mixture(KEY, MIXTURE, 6, 5)
    zero = make_multi_head(3, 5, 5, decoder)
    gradient = jax.grad(empirical_risk)(zero, samples.X, samples.y)

    model = one_step_initialisation(KEY, samples.X, samples.y, 3, decoder, scale=2.0)

    alpha = first_phase_steps(KEY, 3, 2.0)
    step = (-alpha * 3**0.5).reshape(3, *[1] * (gradient.U.ndim - 1))
    # Means of 30 tokens of size 2: a hundred units of rounding cover both orders.
    np.testing.assert_allclose(model.U, step * gradient.U, rtol=0, atol=100 * 2.3e-16)
    assert not jnp.any(model.W)
    assert float(jnp.max(jnp.abs(gradient.W))) == 0


@pytest.mark.parametrize("decoder", list(Decoder))
def test_step_of_every_head_is_that_of_the_risk_linearised_at_zero(decoder):
    """With W = 0 and small U the risk is log 2 - mean(y Phi) / 2, and Phi is linear in U."""
    draw, n, T, d, H = np.random.default_rng(3), 7, 4, 3, 5
    X, y = draw.normal(size=(n, T, d)), np.resize([1.0, -1.0, -1.0], n)
    model = one_step_initialisation(KEY, jnp.asarray(X), jnp.asarray(y), H, decoder, scale=2.5)
    alpha = first_phase_steps(KEY, H, 2.5)
    mean = X.sum(axis=1) / T
    # Every query attends to all tokens alike: the derivative of sqrt(H) Phi in a row of U.
    read = {Decoder.FULL: mean, Decoder.POOLED: T * mean, Decoder.LAST: mean}[decoder]
    slope = -sum(y[i] * read[i] for i in range(n)) / n / 2 / np.sqrt(H)
    for h in range(H):
        exact = -alpha[h] * np.sqrt(H) * slope
        exact = np.tile(exact, (T, 1)) if decoder is Decoder.FULL else exact
        assert model.U[h].shape == exact.shape
        np.testing.assert_allclose(model.U[h], exact, rtol=0, atol=1e-14)
    assert model.W.shape == (H, d, d)
    assert model.decoder is decoder


def test_mean_step_is_a_quarter_of_zeta_not_half():
    samples = sample_mixture(KEY, MIXTURE, 20_000, 5)
    model = one_step_initialisation(KEY, samples.X, samples.y, 1)
    oracle = MIXTURE.patterns[0] - MIXTURE.patterns[1]

    reached = abs(float(model.U[0, 0] @ oracle) / float(oracle @ oracle))

    # Of y <m, oracle> / ||oracle||^2 the deviation is below 1/2, of 20000 samples below 0.004;
    # half of that after l'(0): five of them are 0.01, zeta / 2 would be 0.1 away.
    assert abs(reached - 0.4 / 4) < 0.01


def test_signs_are_both_and_a_key_repeats_them():
    steps = first_phase_steps(KEY, 64)
    assert set(steps.tolist()) == {-1.0, 1.0}
    assert jnp.array_equal(steps, first_phase_steps(KEY, 64))


def test_many_starts_at_once():
    samples = sample_mixture(KEY, MIXTURE, 6, 5)
    starts = jax.vmap(lambda k: one_step_initialisation(k, samples.X, samples.y, 4))(
        jax.random.split(KEY, 3)
    )
    assert starts.U.shape == (3, 4, 5, 5)


def test_bad_input_is_refused():
    X, y = jnp.ones((2, 3, 4)), jnp.ones(2)
    with pytest.raises(UserError, match="heads = 0"):
        one_step_initialisation(KEY, X, y, 0)
    with pytest.raises(UserError, match=r"scale = 0\.0"):
        one_step_initialisation(KEY, X, y, 1, scale=0.0)
    with pytest.raises(UserError, match="is not \\+1 or -1"):
        one_step_initialisation(KEY, X, 0 * y, 1)
