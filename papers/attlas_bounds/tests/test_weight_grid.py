"""Weights on a grid: the straight-through slope, and whole numbers that give them back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.training.weight_grid import rounded_weights, straight_through


def test_value_is_rounded_and_slope_is_that_of_the_identity():
    w = {"a": jnp.array([0.3, -1.1]), "b": jnp.array(0.76)}
    seen = straight_through(w, jnp.array(0.25))
    np.testing.assert_allclose(seen["a"], [0.25, -1.0])
    slope = jax.grad(lambda v: jnp.sum(3 * straight_through(v, jnp.array(0.25))["a"]))(w)
    np.testing.assert_allclose(slope["a"], [3, 3])
    np.testing.assert_allclose(straight_through(w, jnp.array(0.0))["b"], 0.76)


@pytest.mark.parametrize("spacing", [0.3, 1.0, 2.5])
def test_rounding_is_to_the_nearest_multiple(spacing):
    w = np.array([-7.1, -0.4, 0.1, 1.3, 1.7, 6.2])
    seen = straight_through([jnp.asarray(w)], jnp.array(spacing))[0]
    np.testing.assert_allclose(seen, [spacing * round(v / spacing) for v in w], rtol=1e-14)


def test_whole_numbers_times_the_spacing_are_the_weights():
    w = [jnp.array([[0.3, -1.1]]), jnp.array([2.0])]
    on_grid, numbers = rounded_weights(w, 0.25)
    assert numbers.tolist() == [1, -4, 8]
    np.testing.assert_allclose(np.concatenate([np.ravel(a) for a in on_grid]), numbers * 0.25)


def test_a_weight_that_is_not_finite_is_on_no_grid():
    with pytest.raises(UserError, match="diverged"):
        rounded_weights([jnp.array([1.0, jnp.nan])], 0.25)
