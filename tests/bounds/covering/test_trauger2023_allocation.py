"""Lemma E.1: optimality conditions, and no random share does better."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_allocation import (
    trauger2023_allocation,
    trauger2023_allocation_residual,
)


def test_optimal_and_unbeaten():
    rng = np.random.default_rng(0)
    C, beta = jnp.asarray(rng.uniform(0.1, 9, 5)), jnp.asarray(rng.uniform(0.1, 9, 5))
    total, resolution = trauger2023_allocation(C, beta)
    assert float(trauger2023_allocation_residual(C, beta, resolution)) < 1e-13
    np.testing.assert_allclose(jnp.sum(C / resolution**2), total, rtol=1e-13)
    other = rng.dirichlet(np.ones(5), 200) / np.asarray(beta)
    totals = np.sum(np.asarray(C) / other**2, axis=1)
    assert np.all(totals >= float(total) * (1 - 1e-13))
    near = np.asarray(resolution) * (1 + 1e-3 * np.array([1, -1, 0, 0, 0]))
    near = jnp.asarray(near / np.sum(np.asarray(beta) * near))
    assert float(jnp.sum(C / near**2)) > float(total)
    assert float(trauger2023_allocation_residual(C, beta, near)) > 1e-4
