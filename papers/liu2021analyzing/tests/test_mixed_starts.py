"""Starts: the origin, the teacher, and networks with equal units."""

import numpy as np

from liu2021analyzing.library.models.mixed_starts import mixed_starts


def test_the_origin_and_the_teacher_are_starts_and_a_third_has_equal_units():
    rng = np.random.default_rng(1)
    W1, w2 = rng.standard_normal((4, 3)), np.array([0.5, -0.5, 0.5])
    starts = mixed_starts(rng, W1, w2, 2, 7, sharpness=5.0)
    first, second = np.asarray(starts.W1), np.asarray(starts.w2)
    assert starts.sharpness == 5.0
    assert not first[0].any()
    assert not second[0].any()
    np.testing.assert_array_equal(first[1], W1[:, :2])
    np.testing.assert_array_equal(first[3, :, 0], first[3, :, 1])
    assert (first[2, :, 0] != first[2, :, 1]).all()


def test_sizes_are_spread_over_two_orders_of_magnitude():
    starts = mixed_starts(np.random.default_rng(2), np.ones((20, 10)), np.ones(10), 10, 302)
    sizes = np.sqrt(np.mean(np.asarray(starts.W1)[2:] ** 2, axis=(1, 2)) / 3)
    # 200 entries vary by their number's root; equal units have 20 of them.
    assert np.quantile(sizes, 0.1) < 0.1
    assert np.quantile(sizes, 0.9) > 1.0
    assert sizes.min() > 0.03 / 2
    assert sizes.max() < 2 * 3


def test_starts_are_those_of_the_stated_draws():
    """The generator's stream once more: log-uniform sizes, Gaussian layers, equal units."""
    W1, w2 = np.random.default_rng(1).standard_normal((4, 3)), np.array([0.4, -0.4, 0.4])
    starts = mixed_starts(np.random.default_rng(9), W1, w2, 2, 8)
    draw = np.random.default_rng(9)
    sizes = 0.03 * 100 ** draw.random((2, 8))
    first, second = draw.standard_normal((8, 4, 2)), draw.standard_normal((8, 2))
    for k in range(2, 8):
        if k % 3 == 0:
            first[k, :, 1], second[k, 1] = first[k, :, 0], second[k, 0]
        expected = sizes[0, k] * 3**0.5 * first[k], sizes[1, k] * 0.4 * second[k]
        np.testing.assert_allclose(starts.W1[k], expected[0], rtol=1e-12)
        np.testing.assert_allclose(starts.w2[k], expected[1], rtol=1e-12)
    np.testing.assert_array_equal(starts.W1[1], W1[:, :2])
    np.testing.assert_array_equal(starts.w2[1], w2[:2])
