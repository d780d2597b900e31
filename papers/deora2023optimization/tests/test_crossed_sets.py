"""Losses of models on each other's sets against loops."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from deora2023optimization.library.models.repeated_heads import RepeatedHeads
from deora2023optimization.library.training.crossed_sets import crossed_losses


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
        np.testing.assert_allclose(found.own[g], np.diag(losses).mean(), rtol=1e-12)
        other = losses[~np.eye(3, dtype=bool)].mean()
        np.testing.assert_allclose(found.gap[g], other - np.diag(losses).mean(), rtol=1e-10)


@pytest.mark.parametrize("size", [1, 4])
def test_sets_that_make_no_whole_groups_are_refused(size):
    models = jax.vmap(RepeatedHeads, (0, 0, None))(
        jnp.zeros((6, 1, 2, 3)), jnp.zeros((6, 1, 3, 3)), jnp.array([1])
    )
    with pytest.raises(UserError, match=f"6 sets in groups of {size}"):
        crossed_losses(models, np.ones((6, 2, 2, 3)), np.ones((6, 2)), size)
