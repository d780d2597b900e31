"""Trainings on many sets against one at a time; gaps of the tokenized mixture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import make_multi_head
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.training.fresh_sets import fresh_sets

KEY = jax.random.key(0)
MIXTURE = make_tokenized_mixture(KEY, d=4, M=2, zeta=0.25, Z_mu=0.3, Z_nu=0.5, Z=1.0)


def draw(seed, *shape):
    samples = sample_mixture(jax.random.key(seed), MIXTURE, int(np.prod(shape)), 4)
    return samples.X.reshape(*shape, 4, 4), samples.y.reshape(shape)


@pytest.mark.thorough
def test_each_set_is_trained_and_tested_by_itself():
    (X, y), test = draw(1, 3, 4), draw(2, 50)
    settings = {"step_size": 1.0, "steps": 20, "record_at": (0, 20)}
    zero = make_multi_head(2, 4, 4)

    found = fresh_sets(zero, X, y, *test, chunk=2, **settings)

    alone = gradient_descent(zero, X[2], y[2], **settings)
    losses = logistic(test[1] * jax.vmap(alone.at(-1))(test[0]))
    np.testing.assert_allclose(found.path.loss[2], alone.loss, rtol=1e-12)
    np.testing.assert_allclose(found.test_loss[2, 1], jnp.mean(losses), rtol=1e-12)
    np.testing.assert_allclose(found.test_error[2, 1], jnp.std(losses) / 50**0.5, rtol=1e-11)
    # At zero every loss is log 2.
    np.testing.assert_allclose(found.gap[:, 0], 0, atol=1e-15)
    np.testing.assert_array_equal(found.gap, found.test_loss - found.path.loss)
    assert found.path.steps.tolist() == [0, 20]


def test_sets_that_do_not_fit_are_refused():
    (X, y), (X_test, y_test) = draw(1, 3, 4), draw(2, 50)
    with pytest.raises(UserError, match="X has shape"):
        fresh_sets(make_multi_head(2, 4, 4), X, y, X_test[:, :3], y_test, step_size=1.0, steps=2)
