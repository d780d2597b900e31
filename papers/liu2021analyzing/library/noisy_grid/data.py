r"""Noisy MNIST of liu2021analyzing: a digit in four of 16 cells, uniform noise in the others.

The digit fills one of the nine blocks of two by two neighbouring cells, drawn at random. The
enlarged 8 x 8 digits of scikit-learn are a stand-in for MNIST; `NoisyGrids.source` says which of
the two was read.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from attlas.core.errors import UserError
from attlas.data.digits import load_digits
from attlas.data.mnist import load_mnist
from attlas.data.splits import Splits
from attlas.data.token_sequences import TokenSequences

SIDE = 4
"""Cells along an edge of the grid."""


class NoisyGrids(NamedTuple):
    """Images as sequences of their 16 cells, in reading order.

    Attributes:
        source: one line that says what was read, and that it is a stand-in where it is.
    """

    train: TokenSequences
    validation: TokenSequences
    test: TokenSequences
    source: str


def load_noisy_grids(
    folder: Path | None = None,
    sizes: tuple[int, int, int] = (50_000, 10_000, 10_000),
    cell: int = 14,
    seed: int = 0,
    stand_in: bool = False,
) -> NoisyGrids:
    """Noisy grids of MNIST, or of the embedded digits.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
        sizes: training, validation and test images.
        cell: pixels along an edge of a cell; the paper's 14 keeps the 28 pixels of MNIST.
        stand_in: read the embedded digits in place of MNIST.

    Returns:
        The three sets, labels 0 to 9.

    Raises:
        UserError: if a set is to be empty or larger than what there is.

    Examples:
        >>> found = load_noisy_grids(sizes=(5, 2, 2), cell=6, stand_in=True)
        >>> found.train.tokens.shape, found.source
        ((5, 16, 36), 'digits of scikit-learn, a stand-in for MNIST')
    """
    if min(sizes) < 1:
        raise UserError(f"sizes {sizes}: each of the three sets needs at least one image")
    splits = load_digits(seed) if stand_in else load_mnist(folder, seed)
    draw = np.random.default_rng(seed)
    sets = []
    for name, size, split in zip(Splits._fields, sizes, splits, strict=True):
        if size > split.labels.size:
            raise UserError(
                f"{size} {name} images requested, {split.labels.size} available: request fewer"
            )
        images = enlarge(split.inputs[:size], 2 * cell)
        grids, _ = place_in_grid(images, draw)
        labels = split.labels[:size].astype(np.float32)
        sets.append(TokenSequences(grids, np.ones(grids.shape[:2], bool), labels))
    source = "digits of scikit-learn, a stand-in for MNIST" if stand_in else "MNIST"
    return NoisyGrids(sets[0], sets[1], sets[2], source)


def load_placed_digits(
    folder: Path | None = None,
    size: int = 1000,
    cell: int = 14,
    seed: int = 0,
    stand_in: bool = False,
) -> tuple[Float[np.ndarray, "n 16 pixels"], Int[np.ndarray, " n"]]:
    """The first test digits on grids of their own, with the places that the digits got.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
        cell: pixels along an edge of a cell.
        seed: seed of the split; places and noise differ from those of `load_noisy_grids`.
        stand_in: read the embedded digits in place of MNIST.

    Returns:
        The grids, and the first of the digit's four cells in each, see `place_in_grid`.

    Examples:
        >>> grids, first = load_placed_digits(size=2, cell=6, stand_in=True)
        >>> grids.shape, first.shape
        ((2, 16, 36), (2,))
    """
    splits = load_digits(seed) if stand_in else load_mnist(folder, seed)
    images = enlarge(splits.test.inputs[:size], 2 * cell)
    return place_in_grid(images, np.random.default_rng([seed, 1]))


def enlarge(images: np.ndarray, side: int) -> Float[np.ndarray, "n s s"]:
    """Square images in [0, 1] of another size, by linear interpolation between pixel centres.

    Args:
        images: [n, m, m] whole numbers, the largest of any image taken as 1.
        side: pixels s along an edge.

    Returns:
        float32 images; of size m unchanged but for the scale.

    Raises:
        UserError: if the images are not square or not finite, or the side is not positive.

    Examples:
        >>> enlarge(np.array([[[0, 4], [4, 8]]]), 4)[0, 0].tolist()
        [0.0, 0.125, 0.375, 0.5]
    """
    if images.ndim != 3 or images.shape[1] != images.shape[2] or not images.size:
        raise UserError(f"images of shape {images.shape} are not [n, s, s]: give square images")
    if not np.all(np.isfinite(images)):
        raise UserError("a pixel of the images is not finite: check the file they came from")
    if side < 1:
        raise UserError(f"side = {side} of an image is not positive: choose at least 1")
    old = images.shape[1]
    centres = np.clip((np.arange(side) + 0.5) * old / side - 0.5, 0, old - 1)
    weights = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(old)[None, :]))
    scaled = np.asarray(images, np.float32) / max(float(images.max()), 1.0)
    return np.einsum("ai,nij,bj->nab", weights, scaled, weights, optimize=True).astype(np.float32)


def place_in_grid(
    images: np.ndarray, draw: np.random.Generator
) -> tuple[Float[np.ndarray, "n 16 pixels"], Int[np.ndarray, " n"]]:
    """Each image on four neighbouring cells of a grid of 16, uniform noise on the others.

    Args:
        images: [n, s, s], pixels in [0, 1]; a cell is half as wide as an image.
        draw: generator of the places and the noise.

    Returns:
        The cells of each grid in reading order, pixels of a cell in reading order; and the number
        of the first of the image's four cells, which are c, c + 1, c + 4 and c + 5.

    Raises:
        UserError: if the images are not square with an even edge, or not finite floating numbers.

    Examples:
        >>> cells, first = place_in_grid(np.full((1, 2, 2), 2.0), np.random.default_rng(0))
        >>> np.flatnonzero(cells[0, :, 0] == 2).tolist() == [first[0] + k for k in (0, 1, 4, 5)]
        True
    """
    edges = images.shape[1:]
    if images.ndim != 3 or edges[0] != edges[1] or edges[0] % 2 or edges[0] < 2:
        raise UserError(f"images of shape {images.shape}: give square images with an even edge")
    if not (np.issubdtype(images.dtype, np.floating) and np.all(np.isfinite(images))):
        raise UserError(f"pixels of type {images.dtype}: give finite floating numbers in [0, 1]")
    count, cell = images.shape[0], images.shape[1] // 2
    grids = draw.random((count, SIDE * cell, SIDE * cell), np.float32).astype(images.dtype)
    rows, columns = draw.integers(0, SIDE - 1, (2, count))
    for grid, image, row, column in zip(grids, images, rows, columns, strict=True):
        grid[row * cell : (row + 2) * cell, column * cell : (column + 2) * cell] = image
    cut = grids.reshape(count, SIDE, cell, SIDE, cell).swapaxes(2, 3)
    return cut.reshape(count, SIDE**2, cell**2), SIDE * rows + columns
