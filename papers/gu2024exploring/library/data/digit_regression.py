r"""Score estimation on digits as regression: few principal components, noised several times."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gu2024exploring.library.data.diffusion_pairs import (
    DiffusionPairs,
    PairScale,
    fit_scale,
    noised,
)
from gu2024exploring.library.data.digit_components import DigitComponents, load_digit_components
from gu2024exploring.library.data.noise_schedule import NoiseSchedule, make_noise_schedule

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

    def losses(self, estimates: Float[np.ndarray, "*s n d"]) -> Float[np.ndarray, "2 *s"]:
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
