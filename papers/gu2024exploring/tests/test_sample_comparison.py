import jax
import numpy as np

from gu2024exploring.library.measures.sample_comparison import (
    FAR,
    compare_samples,
    comparison_dataset,
    lost_samples,
    nearest_distances,
)
from gu2024exploring.library.measures.sample_distance import energy_distance, sliced_wasserstein

KEY = jax.random.key(3)


def drawn(n):
    return np.random.default_rng(n).normal(size=(n, 2))


def test_distances_are_those_of_the_samples_that_are_left():
    points, data = drawn(20), drawn(30)
    lost = np.array([[np.nan, 0.0], [np.inf, np.inf], [0.0, -1.01 * FAR * np.abs(data).max()]])
    found = compare_samples(KEY, np.concatenate([lost, points]), data)
    energy, sliced = energy_distance(points, data), sliced_wasserstein(KEY, points, data)
    assert found.lost == 3
    assert found.distance.tolist() == [energy.value, sliced.value]
    assert found.error.tolist() == [energy.error, sliced.error]


def test_fewer_than_three_samples_have_no_distance():
    found = compare_samples(KEY, np.array([[np.nan], [1.0], [2.0]]), np.ones((4, 1)))
    assert found.lost == 1
    assert np.isnan(found.distance).all()
    assert np.isnan(found.error).all()
    three = np.array([[1.0], [2.0], [4.0]])
    assert np.isfinite(compare_samples(KEY, three, np.arange(4.0)[:, None]).distance).all()


def test_a_sample_at_the_limit_is_kept():
    data = np.array([[-1.0, 0.5]])
    at = FAR * np.array([[1.0, -1.0], [1.0 + 1e-12, 0.0]])
    assert lost_samples(at, data).tolist() == [False, True]


def test_nearest_distances_agree_with_every_pair():
    points, data = drawn(7), drawn(9)
    every = np.linalg.norm(points[:, None] - data[None], axis=2)
    np.testing.assert_allclose(nearest_distances(points, data), every.min(axis=1), rtol=1e-12)
    assert nearest_distances(data, data).max() == 0
    assert np.isnan(nearest_distances(np.full((2, 2), np.nan), data)).all()


def test_a_comparison_by_law_is_that_of_each():
    data, samples = drawn(30), {"few": drawn(5), "many": np.r_[drawn(12), [[np.nan, 0.0]]]}
    found = comparison_dataset(KEY, samples, data)
    for law, points in samples.items():
        own = compare_samples(KEY, points, data)
        assert found.distance.sel(law=law).values.tolist() == own.distance.tolist()
        assert found.standard_error.sel(law=law).values.tolist() == own.error.tolist()
    assert found.drawn.values.tolist() == [5, 13]
    assert found.lost.values.tolist() == [0, 1]
