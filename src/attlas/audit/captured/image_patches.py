"""Images with their patches in another order, or with one patch everywhere."""

import numpy as np
from jaxtyping import Float


def shuffled_patches(
    image: Float[np.ndarray, "C H W"], sides: tuple[int, int], draw: np.random.Generator
) -> Float[np.ndarray, "C H W"]:
    """The patches of an image in another order; what no whole patch holds stays.

    Args:
        sides: height and width of a patch.

    Examples:
        >>> image = np.arange(4.0).reshape(1, 2, 2)
        >>> changed = shuffled_patches(image, (1, 1), np.random.default_rng(0))
        >>> sorted(changed.ravel().tolist()), bool(np.any(changed != image))
        ([0.0, 1.0, 2.0, 3.0], True)
    """
    rows, columns = image.shape[1] // sides[0], image.shape[2] // sides[1]
    return _arranged(image, sides, draw.permutation(rows * columns))


def repeated_patch(
    image: Float[np.ndarray, "C H W"], sides: tuple[int, int], draw: np.random.Generator
) -> Float[np.ndarray, "C H W"]:
    """One patch of an image in the place of all.

    Args:
        sides: height and width of a patch.

    Examples:
        >>> image = np.arange(4.0).reshape(1, 2, 2)
        >>> np.unique(repeated_patch(image, (1, 1), np.random.default_rng(0))).size
        1
    """
    rows, columns = image.shape[1] // sides[0], image.shape[2] // sides[1]
    return _arranged(image, sides, np.full(rows * columns, draw.integers(rows * columns)))


def _arranged(image: np.ndarray, sides: tuple[int, int], order: np.ndarray) -> np.ndarray:
    channels, (height, width) = image.shape[0], sides
    rows, columns = image.shape[1] // height, image.shape[2] // width
    inner = image[:, : rows * height, : columns * width]
    patches = inner.reshape(channels, rows, height, columns, width).swapaxes(2, 3)
    patches = patches.reshape(channels, rows * columns, height, width)[:, order]
    patches = patches.reshape(channels, rows, columns, height, width).swapaxes(2, 3)
    changed = image.copy()
    changed[:, : rows * height, : columns * width] = patches.reshape(inner.shape)
    return changed
