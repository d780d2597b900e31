"""Trainings on many sets against one at a time; gaps of the tokenized mixture."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import make_multi_head
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.repeated_heads import RepeatedHeads
from deora2023optimization.library.training.fresh_sets import crossed_losses, fresh_sets

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


@pytest.mark.thorough
def test_losses_on_own_and_other_sets_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    copies = jnp.array([3, 1])
    U, W = jnp.asarray(rng.normal(size=(6, 2, 4, 5))), jnp.asarray(rng.normal(size=(6, 2, 5, 5)))
    X, y = rng.normal(size=(6, 7, 4, 5)), rng.choice([-1.0, 1.0], size=(6, 7))
    models = eqx.tree_at(lambda m: (m.U, m.W), RepeatedHeads(U[0], W[0], copies), (U, W))
    found = crossed_losses(models, X, y, 3)
    for g in range(2):
        losses = np.empty((3, 3))
        for i, j in np.ndindex(3, 3):
            model = RepeatedHeads(U[3 * g + i], W[3 * g + i], copies)
            outputs = np.array([float(model(jnp.asarray(x))) for x in X[3 * g + j]])
            losses[i, j] = np.log1p(np.exp(-y[3 * g + j] * outputs)).mean()
        np.testing.assert_allclose(found.training[g], np.diag(losses).mean(), rtol=1e-12)
        other = losses[~np.eye(3, dtype=bool)].mean()
        np.testing.assert_allclose(found.gap[g], other - np.diag(losses).mean(), rtol=1e-10)


@pytest.mark.parametrize("size", [1, 4])
def test_sets_that_make_no_whole_groups_are_refused(size):
    models = jax.vmap(RepeatedHeads, (0, 0, None))(
        jnp.zeros((6, 1, 2, 3)), jnp.zeros((6, 1, 3, 3)), jnp.array([1])
    )
    with pytest.raises(UserError, match=f"6 sets in groups of {size}"):
        crossed_losses(models, np.ones((6, 2, 2, 3)), np.ones((6, 2)), size)
