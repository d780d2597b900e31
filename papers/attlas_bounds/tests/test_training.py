from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.training.fit import Ensemble
from attlas_bounds.library.addition import training
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


def one_cycle(step, steps, peak):
    """From peak/25 along a half cosine over the first tenth, then down to peak/250000."""
    rise = int(0.1 * steps)
    if step < rise:
        low, high, share = peak / 25, peak, step / rise
    else:
        low, high, share = peak, peak / 25 / 1e4, (step - rise) / (steps - rise)
    return low + (high - low) * (1 - np.cos(np.pi * share)) / 2


@pytest.mark.thorough
def test_the_program_of_a_training_is_that_of_its_settings(monkeypatch):
    """Starts, batches, the grid and the step size of every step; the loop is the library's."""
    asked = {}

    def fit(loss, optimizer, models, data, **named):
        asked.update(named, loss=loss, optimizer=optimizer, models=models, data=data)
        return SimpleNamespace(last=models)

    monkeypatch.setattr(training, "fit", fit)
    sums = draw_additions(np.random.default_rng(0), 9, digits=2)
    descent = AdderDescent(steps=20, batch=4, rate=0.03, spacing=0.25, free=0.35)
    found = train_adders(jax.random.key(5), sums, [4, 7, 9], 2, SIZE, descent)
    starts, order = jax.random.split(jax.random.key(5))
    members = [make_adder(key, 2, 3, 1) for key in jax.random.split(starts, 2)]
    for leaf, *own in zip(jax.tree.leaves(found), *map(jax.tree.leaves, members), strict=True):
        for k in range(3):
            np.testing.assert_array_equal(leaf[k], own)
    draw, (rows, grid) = generator(order), asked["batches"]
    expected = [draw.integers(0, n, (2, 20, 4), np.int32) for n in (4, 7, 9)]
    np.testing.assert_array_equal(rows, np.concatenate(expected))
    np.testing.assert_array_equal(grid, [[0.0] * 7 + [0.25] * 13] * 6)
    assert asked["record_at"] == [20]
    assert asked["ensemble"] == Ensemble(params=True, batches=True)
    assert asked["loss"] is place_loss
    state = asked["optimizer"].init(jnp.array(1.0))
    with jax.numpy_dtype_promotion("standard"):
        for step in range(20):  # Adam on a slope of 1 moves by the step size
            move, state = asked["optimizer"].update(jnp.array(1.0), state)
            assert float(move) == pytest.approx(-one_cycle(step, 20, 0.03), rel=1e-5)


@pytest.mark.thorough
def test_the_loss_is_the_mean_cross_entropy_of_the_digits():
    sums = jax.tree.map(jnp.asarray, draw_additions(np.random.default_rng(0), 7, digits=2))
    adder, rows = make_adder(jax.random.key(0), 2, 3), jnp.array([5, 0, 2, 5])
    on_grid = jax.tree.map(lambda a: jnp.round(4 * a) / 4, adder)
    logits = np.asarray(on_grid(sums.operands))
    expected = [
        np.log(np.exp(logits[n, place]).sum()) - logits[n, place, sums.sums[n, place]]
        for n in rows
        for place in range(3)
    ]
    found = float(place_loss(adder, sums, (rows, jnp.array(0.25))))
    assert found == pytest.approx(np.sum(expected) / 12, rel=1e-12)


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
