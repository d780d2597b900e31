"""The largest slope of a loss on an interval, against difference quotients of its value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from julistiono2024optimizing.cone_instances import mixed_loss, mixtures
from julistiono2024optimizing.lemma_18 import steepest


def by_quotients(mixture, size):
    """The largest fall of the loss over its step, on a grid: at most sup |l'|, and close to it."""
    u = np.linspace(-size, size, 40_001)
    return np.max(-np.diff(np.asarray(mixed_loss(mixture).value(u))) / np.diff(u))


@pytest.mark.parametrize("size", [0.01, 0.3, 2.0, 9.0])
def test_it_is_the_supremum_of_the_quotients(size):
    rng = np.random.default_rng(5)
    pure = np.eye(4)
    # a root inside of the interval, near the sigmoid's largest slope
    mixed = [[0.3, 1e-4, 0, 0.7], [0.05, 0.02, 0.1, 0.83], [0, 1e-9, 0, 1], [0.5, 0, 0, 0.5]]
    rows = np.concatenate([pure, np.array(mixed), mixtures(rng, 60)])
    found = jax.vmap(steepest, (None, 0))(jnp.array(size), jnp.asarray(rows))
    for row, value in zip(rows, np.asarray(found), strict=True):
        quotient = by_quotients(jnp.asarray(row), size)
        # a quotient is the slope at a point between: off by at most a step times |l''| < 3 |l'|
        step = 2 * size / 40_000
        assert quotient * (1 - 1e-8) <= value <= quotient * (1 + 3 * step) + 3 * step, row


def test_the_slope_of_a_sigmoid_is_largest_at_zero_and_not_at_the_end():
    sigmoid = jnp.array([0.0, 0, 0, 1])
    assert float(steepest(jnp.array(5.0), sigmoid)) == pytest.approx(0.25, rel=1e-12)
    assert float(-mixed_loss(sigmoid).derivative(jnp.array(-5.0))) < 0.01
