r"""Binary problems on real digits cut into tokens of bounded norm, labels +-1.

Assumption 1 of deora2023optimization requires ||x_t|| <= R: all tokens are divided by one number.
"""

import math
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.data.digits import cut_tokens, load_digits
from attlas.data.mnist import load_mnist
from attlas.data.splits import Split

BRIGHTEST = {"digits": 16, "mnist": 255}
"""The largest value that a pixel can have."""


class DigitPairs(eqx.Module):
    """Training and test samples of one binary problem.

    Attributes:
        y_train: labels, +1 or -1.
        X_test: tokens of images that are not in the training set.
    """

    X_train: Float[Array, "n T d"]
    y_train: Float[Array, " n"]
    X_test: Float[Array, "N T d"]
    y_test: Float[Array, " N"]


def load_digit_pairs(
    classes: tuple[int, int] | None = (3, 8),
    tokens: str = "rows",
    *,
    R: float = 1.0,
    scale: str = "pixels",
    count: int | None = None,
    source: str = "digits",
    folder: Path | None = None,
    seed: int = 0,
    dtype: Any = None,
) -> DigitPairs:
    r"""Two digits, or odd against even ones, as sequences of tokens with ||x_t|| <= R.

    Args:
        classes: digit with label +1, digit with label -1; odd (+1) against even when None.
        tokens: rows or patches.
        R: largest norm of a token.
        scale: "pixels" divides by the norm of a token of brightest pixels, which no image decides;
            "longest" by that of the longest token of the training and test images that are used,
            whose norm is then R, so that a certificate would have seen its test images.
        count: number of training images, both classes alternating; all when None.
        source: `digits`, embedded, 8 x 8 pixels; or `mnist`, 28 x 28 pixels, from its folder.
        folder: data folder of MNIST.
        dtype: floating type, JAX's default when None.

    Returns:
        Training and test samples; without `count` the classes keep their natural shares.

    Raises:
        UserError: if there are no such images, or R is not positive and finite.

    Examples:
        >>> data = load_digit_pairs(count=6, R=2.0)
        >>> data.X_train.shape, data.y_train.tolist()
        ((6, 8, 8), [1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    """
    if not (R > 0 and is_finite(R)):
        raise UserError(f"R = {R} is not positive and finite: choose another")
    if source not in BRIGHTEST:
        raise UserError(f"source = '{source}' is unknown: choose digits or mnist")
    if classes is not None and (len(set(classes)) != 2 or not set(classes) <= set(range(10))):
        raise UserError(f"classes = {classes} are not two digits: choose two of 0 to 9, or None")
    if scale not in ("pixels", "longest"):
        raise UserError(f"scale = '{scale}' is unknown: choose pixels or longest")
    splits = load_digits(seed) if source == "digits" else load_mnist(folder, seed)
    train, y_train = _binary(splits.train, classes)
    test, y_test = _binary(splits.test, classes)
    if count is not None:
        indices = _in_turn(y_train, count)
        train, y_train = train[indices], y_train[indices]
    tokenized = [cut_tokens(images, tokens).astype(float) for images in (train, test)]
    norm = BRIGHTEST[source] * math.sqrt(tokenized[0].shape[-1])
    if scale == "longest":
        norm = max(float(np.linalg.norm(part, axis=-1).max()) for part in tokenized)
    X_train, X_test = (jnp.asarray(R / norm * part, dtype) for part in tokenized)
    return DigitPairs(X_train, jnp.asarray(y_train, dtype), X_test, jnp.asarray(y_test, dtype))


def _binary(split: Split, classes: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    images, labels = split
    if classes is None:
        return images, np.where(labels % 2 == 1, 1.0, -1.0)
    selected = np.isin(labels, classes)
    return images[selected], np.where(labels[selected] == classes[0], 1.0, -1.0)


def _in_turn(y: np.ndarray, count: int) -> np.ndarray:
    """Indices of `count` samples, +1 and -1 in turn."""
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    pairs = min(positive.size, negative.size)
    if not 0 < count <= 2 * pairs:
        raise UserError(f"count = {count} images: choose 1 to {2 * pairs}")
    return np.stack([positive[:pairs], negative[:pairs]], axis=1).ravel()[:count]
