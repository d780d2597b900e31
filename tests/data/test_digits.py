import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.digits import cut_tokens, load_digits


def test_splits_cover_the_set_once():
    splits = load_digits(seed=1)
    images = np.concatenate([split.inputs for split in splits])
    assert images.shape == (1797, 8, 8)
    assert images.max() == 16
    # Equal pixel totals after splitting: nothing was lost or repeated.
    assert images.sum() == np.concatenate([s.inputs for s in load_digits(seed=2)]).sum()


def test_classes_are_selected():
    splits = load_digits(classes=(3, 8))
    assert set(splits.train.labels) == set(splits.test.labels) == {3, 8}


@pytest.mark.parametrize("classes", [(3,), (3, 3), (3, 11)])
def test_other_classes_are_refused(classes):
    with pytest.raises(UserError, match="not two or more digits"):
        load_digits(classes=classes)


def test_rows_and_patches_hold_the_pixels_of_their_place():
    image = np.arange(64).reshape(1, 8, 8)
    assert np.array_equal(cut_tokens(image, "rows")[0, 2], np.arange(16, 24))
    patches = cut_tokens(image, "patches")
    assert np.array_equal(patches[0, 5], [18, 19, 26, 27])
    assert patches.shape == (1, 16, 4)


def test_images_that_cannot_be_cut_are_refused():
    with pytest.raises(UserError, match="not \\[n, s, s\\]"):
        cut_tokens(np.zeros((2, 4, 5)), "rows")
    with pytest.raises(UserError, match="side 6 cannot be cut"):
        cut_tokens(np.zeros((2, 6, 6)), "patches")
    with pytest.raises(UserError, match="tokens = 'columns' is unknown"):
        cut_tokens(np.zeros((2, 4, 4)), "columns")


@pytest.mark.parametrize("classes", [tuple(range(10)), (3, 8), (0, 6, 9)])
def test_a_fifth_of_the_images_validate_and_a_fifth_test(classes):
    splits = load_digits(4, classes)
    sizes = [split.labels.size for split in splits]
    assert sizes[1:] == [sum(sizes) // 5] * 2
    assert len({image.tobytes() for split in splits for image in split.inputs}) == sum(sizes)
    assert all(split.inputs.shape == (n, 8, 8) for split, n in zip(splits, sizes, strict=True))


def test_patches_stand_in_reading_order():
    images = np.arange(3 * 12 * 12).reshape(3, 12, 12)
    found = cut_tokens(images, "patches")
    for k in range(16):
        row, column = 3 * (k // 4), 3 * (k % 4)
        patch = images[:, row : row + 3, column : column + 3]
        assert np.array_equal(found[:, k], patch.reshape(3, 9))
