"""Patches are moved as a whole, and what no whole patch holds stays."""

import numpy as np

from attlas.audit.captured.image_patches import repeated_patch, shuffled_patches


def patches(image):
    """Every patch of 2 times 3 as a tuple, by slices alone."""
    return [
        tuple(image[:, row : row + 2, column : column + 3].ravel())
        for row in range(0, 4, 2)
        for column in range(0, 6, 3)
    ]


def test_shuffled_patches_are_the_same_in_another_order():
    image = np.arange(2 * 5 * 7.0).reshape(2, 5, 7)
    changed = shuffled_patches(image, (2, 3), np.random.default_rng(0))
    assert sorted(patches(changed)) == sorted(patches(image))
    assert patches(changed) != patches(image)
    np.testing.assert_array_equal(changed[:, 4:], image[:, 4:])
    np.testing.assert_array_equal(changed[:, :, 6:], image[:, :, 6:])


def test_a_repeated_patch_is_one_of_the_image():
    image = np.arange(2 * 4 * 6.0).reshape(2, 4, 6)
    changed = set(patches(repeated_patch(image, (2, 3), np.random.default_rng(1))))
    assert len(changed) == 1
    assert changed <= set(patches(image))
