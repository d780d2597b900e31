"""Average model stability of stacked models, against norms one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.statistics.stability import average_model_stability, model_distances
from attlas.models.attention.multi_head import MultiHead, parameter_norm


def stacked(draws, *axes):
    """Models with leading axes."""
    one = MultiHead(jnp.zeros((2, 3, 2)), jnp.zeros((2, 2, 2)))
    return jax.tree.map(lambda leaf: jnp.asarray(draws.standard_normal(axes + leaf.shape)), one)


def test_distances_are_parameter_norms_of_differences():
    draws = np.random.default_rng(7)
    full, without = stacked(draws, 4), stacked(draws, 3, 4)
    found = np.asarray(model_distances(full, without))
    assert found.shape == (3, 4)
    for i in range(3):
        for k in range(4):
            gap = jax.tree.map(lambda b, a, i=i, k=k: b[i, k] - a[k], without, full)
            assert np.isclose(found[i, k], float(parameter_norm(gap)), rtol=1e-12)
    mean = np.asarray(average_model_stability(full, without))
    assert np.allclose(mean, found.mean(0), rtol=1e-12)


def test_other_shapes_are_refused():
    draws = np.random.default_rng(8)
    with pytest.raises(UserError, match="one training"):
        model_distances(stacked(draws, 4), stacked(draws, 3, 5))
