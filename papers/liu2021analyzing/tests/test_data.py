import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.digits import load_digits
from liu2021analyzing.library.noisy_grid.data import (
    enlarge,
    load_noisy_grids,
    load_placed_digits,
    place_in_grid,
)


def test_every_place_occurs_and_the_rest_is_uniform_noise():
    draw = np.random.default_rng(0)
    images = 2 + draw.random((300, 6, 6))
    cells, first = place_in_grid(images, draw)
    assert set(first.tolist()) == {0, 1, 2, 4, 5, 6, 8, 9, 10}
    for own, image, at in zip(cells, images, first, strict=True):
        block = own[[at, at + 1, at + 4, at + 5]].reshape(2, 2, 3, 3).swapaxes(1, 2)
        assert np.array_equal(block.reshape(6, 6), image)
    noise = cells[cells < 2]
    assert noise.size == 300 * 12 * 9
    # 32,400 uniform draws: mean and variance within five standard errors.
    assert abs(noise.mean() - 0.5) < 5 * np.sqrt(1 / 12 / noise.size)
    assert abs(noise.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / noise.size)


def test_enlarged_images_keep_their_size_or_interpolate():
    images = load_digits().train.inputs[:3]
    assert np.array_equal(enlarge(images, 8), images.astype(np.float32) / 16)
    wide = enlarge(images, 16)
    assert wide.dtype == np.float32
    # Every old pixel lies between four new ones, which have weights 9, 3, 3 and 1 of it.
    around = wide.reshape(3, 8, 2, 8, 2).mean(axis=(2, 4))
    inner = images[:, 1:-1, 1:-1] / 16
    padded = images.astype(float) / 16
    rows = (padded[:, :-2] + 6 * padded[:, 1:-1] + padded[:, 2:]) / 8
    both = (rows[:, :, :-2] + 6 * rows[:, :, 1:-1] + rows[:, :, 2:]) / 8
    assert both.shape == inner.shape
    assert np.max(np.abs(around[:, 1:-1, 1:-1] - both)) < 16 * np.finfo(np.float32).eps


@pytest.mark.parametrize("side", [3, 5, 7, 12])
def test_each_new_pixel_is_interpolated_from_the_nearest_old_ones(side):
    """Pixel by pixel: its centre in units of old pixels, no further out than the outermost."""
    images = np.random.default_rng(5).integers(0, 14, (2, 5, 5))
    images[0, 2, 3] = 14  # the largest of both
    found = enlarge(images, side)
    assert found.shape == (2, side, side)

    def around(k):
        centre = min(max((k + 0.5) * 5 / side - 0.5, 0.0), 4.0)
        low = min(int(centre), 3)
        return (low, 1 - (centre - low)), (low + 1, centre - low)

    for a, b in np.ndindex(side, side):
        value = sum(u * v * images[:, i, j] / 14 for i, u in around(a) for j, v in around(b))
        np.testing.assert_allclose(found[:, a, b], value, rtol=1e-5, atol=1e-7)


def test_dim_images_are_not_made_brighter():
    dim = np.full((1, 2, 2), 0.25)
    np.testing.assert_array_equal(enlarge(dim, 4), np.full((1, 4, 4), 0.25, np.float32))
    np.testing.assert_array_equal(enlarge(8 * dim, 4), np.ones((1, 4, 4), np.float32))
    assert enlarge(np.array([[[3]]]), 1).tolist() == [[[1.0]]]


def _placed_by_hand(images, draw):
    count, cell = len(images), images.shape[1] // 2
    noise = draw.random((count, 4 * cell, 4 * cell), np.float32)
    rows, columns = draw.integers(0, 3, (2, count))
    cells = np.zeros((count, 16, cell * cell))
    for k, image in enumerate(images):
        for a, b in np.ndindex(4 * cell, 4 * cell):
            i, j = a - rows[k] * cell, b - columns[k] * cell
            inside = 0 <= i < 2 * cell and 0 <= j < 2 * cell
            value = image[i, j] if inside else noise[k, a, b]
            cells[k, 4 * (a // cell) + b // cell, cell * (a % cell) + b % cell] = value
    return cells, 4 * rows + columns


def test_grids_are_those_of_the_stated_draws():
    images = 2 + np.random.default_rng(1).random((7, 6, 6))
    cells, first = place_in_grid(images, np.random.default_rng(8))
    expected, places = _placed_by_hand(images, np.random.default_rng(8))
    np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(first, places)


def test_sets_are_the_first_digits_enlarged_on_grids_of_one_generator():
    found = load_noisy_grids(sizes=(5, 3, 4), cell=5, seed=2, stand_in=True)
    draw = np.random.default_rng(2)
    for own, split, size in zip(found, load_digits(2), (5, 3, 4), strict=False):
        expected, _ = _placed_by_hand(enlarge(split.inputs[:size], 10), draw)
        np.testing.assert_array_equal(own.tokens, expected)
        assert own.mask.shape == (size, 16)
        assert np.all(own.mask)
        np.testing.assert_array_equal(own.labels, split.labels[:size])
    grids, first = load_placed_digits(size=6, cell=3, seed=2, stand_in=True)
    test = enlarge(load_digits(2).test.inputs[:6], 6)
    expected, places = _placed_by_hand(test, np.random.default_rng([2, 1]))
    np.testing.assert_array_equal(grids, expected)
    np.testing.assert_array_equal(first, places)


def test_sets_are_disjoint_in_their_noise_and_labelled():
    found = load_noisy_grids(sizes=(30, 10, 10), cell=7, stand_in=True)
    assert "stand-in" in found.source
    assert found.train.tokens.shape == (30, 16, 49)
    assert set(np.asarray(found.train.labels).tolist()) <= set(range(10))
    assert not np.array_equal(found.validation.tokens, found.test.tokens)
    again = load_noisy_grids(sizes=(30, 10, 10), cell=7, stand_in=True)
    assert np.array_equal(found.test.tokens, again.test.tokens)


def test_unusable_images_are_refused():
    draw = np.random.default_rng(0)
    for shape in ((2, 4, 6), (2, 5, 5), (4, 4)):
        with pytest.raises(UserError, match="square images"):
            place_in_grid(np.ones(shape), draw)
    with pytest.raises(UserError, match="square images"):
        enlarge(np.ones((2, 3, 4)), 6)
    with pytest.raises(UserError, match="9999 train images requested"):
        load_noisy_grids(sizes=(9999, 1, 1), stand_in=True)
    with pytest.raises(UserError, match="at least one image"):
        load_noisy_grids(sizes=(1, 0, 1), stand_in=True)


def test_mnist_keeps_its_pixels(data_dir):
    found = load_noisy_grids(data_dir, sizes=(20, 5, 5))
    assert found.source == "MNIST"
    assert found.train.tokens.shape == (20, 16, 196)
