"""Tasks of one generator share their fresh inputs, their first samples and their truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.data.standardised_task import standardised_task
from liu2021analyzing.library.models.two_layer import TwoLayer


def task(n, noise=0.5):
    teacher = TwoLayer(jnp.eye(3), jnp.array([1.0, -2.0, 3.0]))
    return standardised_task(np.random.default_rng(7), teacher, n, 40, (3,), noise)


def test_tasks_of_a_seed_share_their_first_samples_and_their_truth():
    short, long = task(5), task(9)
    np.testing.assert_array_equal(short.fresh, long.fresh)
    np.testing.assert_allclose(short.truth, long.truth, rtol=1e-12)
    assert short.truth.mean() == pytest.approx(0, abs=1e-12)
    assert short.truth.std() == pytest.approx(1)


def test_labels_are_the_truth_at_their_inputs_with_noise():
    clear, noisy = task(400, 0.0), task(400)
    teacher = TwoLayer(jnp.eye(3), jnp.array([1.0, -2.0, 3.0]))
    both = np.asarray(jax.vmap(teacher)(jnp.asarray(np.concatenate([clear.fresh, clear.x]))))
    both = (both - both[:40].mean()) / both[:40].std()
    np.testing.assert_allclose(np.concatenate([clear.truth, clear.y]), both, atol=1e-12)
    # A deviation of 400 draws is off by 1 / sqrt(800) of itself.
    assert np.std(noisy.y - clear.y) == pytest.approx(0.5, rel=0.15)


def test_samples_are_those_of_the_stated_draws():
    found = standardised_task(
        np.random.default_rng(7), lambda x: 3 + x[0] * x[1] - 2 * x[2], 5, 11, (3,), 0.4
    )
    draw = np.random.default_rng(7)
    fresh, x = 2 * draw.random((11, 3)) - 1, 2 * draw.random((5, 3)) - 1
    noise = 0.4 * draw.standard_normal(5)
    truth, values = (3 + a[:, 0] * a[:, 1] - 2 * a[:, 2] for a in (fresh, x))
    mean = truth.sum() / 11
    deviation = (((truth - mean) ** 2).sum() / 11) ** 0.5
    np.testing.assert_allclose(found.fresh, fresh, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.x, x, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.truth, (truth - mean) / deviation, rtol=1e-11)
    np.testing.assert_allclose(found.y, (values - mean) / deviation + noise, rtol=1e-11)
