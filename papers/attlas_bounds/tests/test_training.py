import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas_bounds.library.addition.adder import make_adder
from attlas_bounds.library.addition.sums import draw_additions
from attlas_bounds.library.addition.training import (
    AdderDescent,
    AdderSize,
    place_loss,
    train_adders,
)
from attlas_bounds.library.training.weight_grid import rounded_weights

SIZE = AdderSize(layers=1, width=2, hidden=3)


@pytest.mark.thorough
def test_the_loss_is_that_of_the_rounded_weights_and_slopes_pass_the_rounding():
    data = draw_additions(np.random.default_rng(0), 6, digits=2)
    data = jax.tree.map(jnp.asarray, data)
    adder, rows = make_adder(jax.random.key(0), 2, 3), jnp.arange(6)
    own, _ = rounded_weights(adder, 0.25)
    none, grid = jnp.array(0.0), jnp.array(0.25)
    assert place_loss(adder, data, (rows, grid)) == place_loss(own, data, (rows, none))
    assert place_loss(adder, data, (rows, grid)) != place_loss(adder, data, (rows, none))
    through = jax.grad(place_loss)(adder, data, (rows, grid))
    there = jax.grad(place_loss)(own, data, (rows, none))
    for a, b in zip(jax.tree.leaves(through), jax.tree.leaves(there), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.thorough
def test_training_lowers_the_loss_and_more_sums_are_other_sums():
    data = draw_additions(np.random.default_rng(0), 64, digits=2)
    descent = AdderDescent(steps=150, batch=8, rate=0.03, spacing=1 / 32)
    found = train_adders(jax.random.key(1), data, [32, 64], 1, SIZE, descent)
    batch = (jnp.arange(64), jnp.array(1 / 32))
    on = jax.tree.map(jnp.asarray, data)
    ends = [
        float(place_loss(jax.tree.map(lambda a, k=k: a[k, 0], found), on, batch)) for k in (0, 1)
    ]
    start = float(place_loss(make_adder(jax.random.key(9), 2, 3), on, batch))
    assert max(ends) < start
    assert ends[0] != ends[1]
