import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_moons

from attlas.core.errors import UserError
from attlas.data.two_moons import make_two_moons
from attlas.measures.sample_distance import energy_distance

KEY = jax.random.key(0)


def test_without_noise_the_points_lie_on_the_half_circles():
    points = np.asarray(make_two_moons(KEY, 500, noise=0.0))
    upper = np.abs(np.hypot(points[:, 0] + 1 / 4, points[:, 1] + 1 / 8) - 1 / 2) < 1e-12
    lower = np.abs(np.hypot(points[:, 0] - 1 / 4, points[:, 1] - 1 / 8) - 1 / 2) < 1e-12
    assert np.all(upper | lower)
    assert np.all(points[upper, 1] >= -1 / 8)
    assert np.all(points[lower, 1] <= 1 / 8)
    # Five standard deviations of a binomial count, and of a mean of numbers of norm at most 0.77.
    assert abs(upper.sum() - 250) <= 5 * np.sqrt(500) / 2
    assert np.all(np.abs(points.mean(axis=0)) <= 5 * 0.77 / np.sqrt(500))


def test_the_law_is_that_of_scikit_learn_at_half_its_size():
    peer = make_moons(1500, noise=0.1, random_state=0)[0]
    points = make_two_moons(KEY, 1500, noise=0.05)
    found = energy_distance(points, (peer - [0.5, 0.25]) / 2)
    assert abs(found.value) <= 5 * found.error
    # The same distance sees a noise that is twice as strong.
    other = energy_distance(make_two_moons(KEY, 1500, noise=0.2), (peer - [0.5, 0.25]) / 2)
    assert other.value > 5 * other.error


def test_keys_and_types():
    first, again = (make_two_moons(KEY, 7, dtype=jnp.float32) for _ in range(2))
    assert first.dtype == jnp.float32
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, make_two_moons(jax.random.key(1), 7))


def test_bad_input_is_refused():
    with pytest.raises(UserError, match="n = 0"):
        make_two_moons(KEY, 0)
    for noise in (-0.1, float("nan"), float("inf")):
        with pytest.raises(UserError, match="noise = "):
            make_two_moons(KEY, 3, noise=noise)
