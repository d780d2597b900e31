"""Trainings on many sets against one at a time; gaps of the tokenized mixture."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.losses.logistic import logistic
from attlas.models.attention.multi_head import MultiHead, make_multi_head
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


def output_by_definition(U, W, x):
    """H^(-1/2) sum_h <U_h, softmax(x W_h x') x>."""
    total = 0.0
    for u, w in zip(U, W, strict=True):
        weights = np.exp(x @ w @ x.T)
        total += np.sum(u * (weights / weights.sum(axis=1, keepdims=True) @ x))
    return total / np.sqrt(len(U))


def losses_by_definition(U, W, X, y):
    return [np.log1p(np.exp(-b * output_by_definition(U, W, x))) for x, b in zip(X, y, strict=True)]


def test_the_losses_of_every_record_are_means_with_their_standard_errors():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(3, 5, 4, 2)), rng.choice([-1.0, 1.0], (3, 5))
    X_test, y_test = rng.normal(size=(7, 4, 2)), rng.choice([-1.0, 1.0], 7)
    start = MultiHead(*(jnp.asarray(rng.normal(size=(3, rows, 2))) for rows in (4, 2)))
    found = fresh_sets(
        start, *map(jnp.asarray, (X, y, X_test, y_test)), step_size=0.5, steps=2, record_at=(0, 2)
    )
    for e, s in np.ndindex(3, 2):
        U, W = (np.asarray(a[e, s]) for a in (found.path.params.U, found.path.params.W))
        losses = losses_by_definition(U, W, X_test, y_test)
        mean = sum(losses) / 7
        deviation = np.sqrt(sum((a - mean) ** 2 for a in losses) / 7)
        training = np.mean(losses_by_definition(U, W, X[e], y[e]))
        values = [a[e, s] for a in (found.test_loss, found.test_error, found.gap)]
        np.testing.assert_allclose(values, (mean, deviation / 7**0.5, mean - training), rtol=1e-11)
    assert np.all(found.path.loss[:, 1] < found.path.loss[:, 0])


def test_crossed_losses_are_means_over_the_other_sets_of_a_group():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(6, 5, 4, 2)), rng.choice([-1.0, 1.0], (6, 5))
    U, W = rng.normal(size=(6, 1, 4, 2)), rng.normal(size=(6, 1, 2, 2))
    found = crossed_losses(jax.vmap(MultiHead)(jnp.asarray(U), jnp.asarray(W)), X, y, 3)
    for g in range(2):
        losses = {
            (i, j): np.mean(losses_by_definition(U[i], W[i], X[j], y[j]))
            for i in range(3 * g, 3 * g + 3)
            for j in range(3 * g, 3 * g + 3)
        }
        training = sum(a for (i, j), a in losses.items() if i == j) / 3
        crossed = sum(a for (i, j), a in losses.items() if i != j) / 6
        values = found.training[g], found.crossed[g], found.gap[g]
        np.testing.assert_allclose(values, (training, crossed, crossed - training), rtol=1e-11)
