r"""Handwritten digits, 1797 images of 8 x 8 pixels with values 0 to 16, part of attlas.

They replace MNIST if no data folder is given, and provide real tokens: an image is the sequence of
its rows or of its patches. The table is that of scikit-learn; its licences lie beside it.
"""

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from attlas.core.argument_validation import validate_arguments
from attlas.core.errors import UserError
from attlas.data.sources import DataSet, published_manifest, read_verified
from attlas.data.splits import Split, Splits, split_groups

Digits = tuple[np.ndarray, np.ndarray]


def _read(_: Path) -> Digits:
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt") as table:
        rows = np.loadtxt(table, delimiter=",").astype(np.uint8)
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1]


def _canonical(content: Digits) -> Mapping[str, Iterable[bytes]]:
    images, labels = content
    return {"images": [str(images.shape).encode(), images.tobytes()], "labels": [labels.tobytes()]}


DIGITS = DataSet(
    name="digits",
    title="Optical recognition of handwritten digits, test part, 1797 images of 8 x 8 pixels",
    licence="CC BY 4.0 (E. Alpaydin, C. Kaynak, UCI Machine Learning Repository)",
    files=(),
    read=_read,
    canonical=_canonical,
    manifest=published_manifest("digits"),
    embedded=True,
)


def load_digits(seed: int = 0, classes: tuple[int, ...] = tuple(range(10))) -> Splits:
    """The digits, split 3 : 1 : 1 into training, validation and test images.

    Args:
        classes: digits to keep; labels stay the digits themselves.

    Returns:
        Splits with inputs [n, 8, 8] uint8 in 0..16 and labels [n] uint8.

    Raises:
        UserError: if a class is not a digit, or fewer than two are named.

    Examples:
        >>> load_digits().train.inputs.shape
        (1079, 8, 8)
    """
    if len(set(classes)) < 2 or not set(classes) <= set(range(10)):
        raise UserError(f"classes {classes} are not two or more digits: choose from 0 to 9")
    images, labels = read_verified(DIGITS)
    selected = np.isin(labels, classes)
    images, labels = images[selected], labels[selected]
    count = labels.size
    fifth = count // 5
    index_sets = split_groups(np.arange(count), (count - 2 * fifth, fifth), seed)
    return Splits(*(Split(images[part], labels[part]) for part in index_sets))


@validate_arguments
def cut_tokens(images: np.ndarray, tokens: str) -> np.ndarray:
    """Images as sequences of tokens: their rows, or their square patches of a quarter width.

    Args:
        images: [n, s, s], s a multiple of 4 for patches.
        tokens: `rows` gives s tokens of s pixels; `patches` 16 tokens of (s/4)^2 pixels, in
            reading order.

    Returns:
        Tokens [n, T, d], as views or copies of the pixels.

    Raises:
        UserError: if the images are not square, cannot be cut, or the cut is unknown.

    Examples:
        >>> image = np.arange(16).reshape(1, 4, 4)
        >>> cut_tokens(image, "rows").shape, cut_tokens(image, "patches").shape
        ((1, 4, 4), (1, 16, 1))
    """
    if images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise UserError(f"images of shape {images.shape} are not [n, s, s]: give square images")
    if tokens == "rows":
        return images
    if tokens != "patches":
        raise UserError(f"tokens = '{tokens}' is unknown: choose rows or patches")
    count, side = images.shape[:2]
    if side % 4:
        raise UserError(f"images of side {side} cannot be cut in 16 patches: use a multiple of 4")
    cut = images.reshape(count, 4, side // 4, 4, side // 4).swapaxes(2, 3)
    return cut.reshape(count, 16, (side // 4) ** 2)
