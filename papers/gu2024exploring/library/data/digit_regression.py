"""Score estimation on digits: a few principal components of the pixels, noised several times."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.data.digits import load_digits
from gu2024exploring.library.data.diffusion_pairs import (
    DiffusionPairs,
    PairScale,
    fit_scale,
    noised,
)
from gu2024exploring.library.data.noise_schedule import NoiseSchedule, make_noise_schedule


class PrincipalComponents(NamedTuple):
    r"""An affine map from pixels to a few coordinates, and back.

    Attributes:
        mean: mean of the training pixels.
        directions: orthonormal principal directions in rows, the largest variance first; the
            entry of largest size of each is positive.
        scales: divisors of the coordinates: their standard deviations in the training set where
            whitened (covariance I), otherwise the root of their mean variance for all.
        explained: share of the pixels' total variance along each direction.
    """

    mean: Float[np.ndarray, " p"]
    directions: Float[np.ndarray, "c p"]
    scales: Float[np.ndarray, " c"]
    explained: Float[np.ndarray, " c"]

    def encode(self, images: np.ndarray) -> Float[np.ndarray, "n c"]:
        """Coordinates of images.

        Args:
            images: [n, ...], p pixels per image.
        """
        pixels = images.reshape(len(images), -1).astype(np.float64)
        return (pixels - self.mean) @ self.directions.T / self.scales

    def decode(self, codes: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n p"]:
        """The pixels that coordinates stand for, not clipped to their range.

        Args:
            codes: scaled coordinates in rows.
        """
        return self.mean + (codes * self.scales) @ self.directions


class DigitComponents(NamedTuple):
    """Digits as coordinates, with the map that gave them.

    Attributes:
        train: coordinates of the training images in rows; the map was fitted on these only.
        validation: coordinates of the validation images.
        test: coordinates of the test images.
        labels: digits of the three sets, in this order.
        components: the map that `encode` and `decode` apply.
    """

    train: Float[np.ndarray, "n c"]
    validation: Float[np.ndarray, "v c"]
    test: Float[np.ndarray, "u c"]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]
    components: PrincipalComponents


def fit_components(images: np.ndarray, count: int, *, whiten: bool = True) -> PrincipalComponents:
    r"""Principal components by the singular value decomposition of the centred pixels.

    Args:
        images: [n, ...], p pixels per image.
        whiten: scale each coordinate to variance 1, instead of all by one number.

    Raises:
        UserError: if the pixels do not vary in that many directions.

    Examples:
        >>> images = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> result = fit_components(images, 1)
        >>> result.directions.tolist(), result.explained.tolist()
        ([[1.0, 0.0]], [0.8])
    """
    pixels = images.reshape(len(images), -1).astype(np.float64)
    mean = pixels.mean(axis=0)
    _, sizes, rows = np.linalg.svd(pixels - mean, full_matrices=False)
    rank = int(np.sum(sizes > max(pixels.shape) * np.finfo(float).eps * sizes[0]))
    if not 1 <= count <= rank:
        raise UserError(f"{count} components of images that vary in {rank}: choose 1 to {rank}")
    variances = sizes**2 / len(pixels)
    leading, rows = variances[:count], rows[:count]
    largest = np.argmax(np.abs(rows), axis=1)
    rows = rows * np.sign(rows[np.arange(count), largest])[:, None]
    scales = np.sqrt(leading if whiten else np.full(count, leading.mean()))
    return PrincipalComponents(mean, rows, scales, leading / variances.sum())


def load_digit_components(
    count: int = 4,
    seed: int = 0,
    classes: tuple[int, ...] = tuple(range(10)),
    *,
    whiten: bool = True,
) -> DigitComponents:
    """The digits by their principal components, fitted on training images only.

    Args:
        classes: digits to keep.
        whiten: scale each coordinate to variance 1 in the training set.

    Examples:
        >>> data = load_digit_components(4)
        >>> data.train.shape, round(float(data.components.explained.sum()), 2)
        ((1079, 4), 0.49)
    """
    splits = load_digits(seed, classes)
    components = fit_components(splits.train.inputs, count, whiten=whiten)
    train, validation, test = (components.encode(split.inputs) for split in splits)
    labels = (splits.train.labels, splits.validation.labels, splits.test.labels)
    return DigitComponents(train, validation, test, labels, components)


RATE, T, T0 = (0.1, 5.0), 1.0, 0.05
"""The linear schedule g, and the interval of time."""


class DigitRegression(NamedTuple):
    """Digits, and their pairs.

    Attributes:
        digits: coordinates, divided by one number.
        train: pairs of training digits.
        further: pairs of validation digits, then of test digits.
        validation: number of the former.
        scale: fitted on the training pairs.
    """

    digits: DigitComponents
    schedule: NoiseSchedule
    train: DiffusionPairs
    further: DiffusionPairs
    validation: int
    scale: PairScale

    def inputs(self, pairs: DiffusionPairs) -> Float[Array, "n e"]:
        """The network's inputs.

        Returns:
            (t, x) over the scale, in rows.
        """
        return self.scale.encode_all(pairs.t, pairs.x)

    def losses(self, estimates: Float[np.ndarray, " *s n d"]) -> Float[np.ndarray, " 2 *s"]:
        """Mean squared distance of estimates from the clean digits.

        Returns:
            One row for validation digits and one for test digits.
        """
        square = np.sum((estimates - np.asarray(self.further.labels)) ** 2, axis=-1)
        halves = square[..., : self.validation], square[..., self.validation :]
        return np.stack([part.mean(axis=-1) for part in halves])


def draw_digit_regression(
    seed: int, classes: Sequence[int], components: int, repeats: int, held_repeats: int
) -> DigitRegression:
    """Load digits and noise them.

    Args:
        classes: digits to keep.
        repeats: pairs per training digit.
        held_repeats: pairs per validation and test digit.

    Examples:
        >>> data = draw_digit_regression(0, classes=(0, 1), components=2, repeats=3, held_repeats=1)
        >>> len(data.train.x) == 3 * len(data.digits.train)
        True
    """
    digits = load_digit_components(components, seed, tuple(classes), whiten=False)
    schedule = make_noise_schedule(*RATE, T=T)
    held = [np.repeat(part, held_repeats, axis=0) for part in (digits.validation, digits.test)]
    clean = np.concatenate([np.repeat(digits.train, repeats, axis=0), *held])
    pairs = noised(jax.random.key(seed), jnp.asarray(clean), schedule, T0=T0)
    end = len(digits.train) * repeats
    train, further = (
        DiffusionPairs(pairs.t[part], pairs.x[part], pairs.labels[part], None)
        for part in (slice(end), slice(end, None))
    )
    return DigitRegression(digits, schedule, train, further, len(held[0]), fit_scale(train))
