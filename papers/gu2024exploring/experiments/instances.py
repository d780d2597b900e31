r"""What the experiments of this paper share: names, and score estimation on one mixture."""

from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from attlas._jax.device_arrays import entry
from attlas.experiments import panels
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.library.data.diffusion_pairs import (
    DiffusionPairs,
    PairScale,
    fit_scale,
    make_diffusion_pairs,
)
from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture, make_gaussian_mixture
from gu2024exploring.library.data.noise_schedule import NoiseSchedule, make_noise_schedule
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

NAMES = dict(zip(map(str, Activation), ("softmax", "ReLU", "exponential"), strict=True))
"""Activations as they are written."""


DISTANCES = [
    panels.Column(title, name, at={"measure": measure})
    for measure, titles in (
        ("energy distance", ("energy distance", "its error")),
        ("sliced W2", ("sliced W2", "error of W2")),
    )
    for title, name in zip(titles, ("distance", "standard_error"), strict=True)
]
"""Columns of a comparison of samples."""


def renamed(data: xr.Dataset) -> xr.Dataset:
    """Results with activations as they are written.

    Args:
        data: any quantity with an axis `activation`.

    Examples:
        >>> renamed(xr.Dataset(coords={"activation": ["relu"]})).activation.values.tolist()
        ['ReLU']
    """
    return data.assign_coords(activation=[NAMES[name] for name in data.activation.values])


MIXTURE = {
    "weights": [2, 1, 1],
    "means": [[-1.2, 0.0], [0.8, 0.9], [0.8, -0.9]],
    "covariances": [
        [[0.04, 0.03], [0.03, 0.09]],
        [[0.05, -0.02], [-0.02, 0.03]],
        [[0.04, 0.0], [0.0, 0.04]],
    ],
}
RATE, T, T0 = (0.1, 5.0), 1.0, 0.05
"""The linear schedule g, and the interval of time."""
SIGMA = 1.0
STEP = 0.9
"""m eta times the largest eigenvalue of the kernel: a tenth inside the range of monotone decay."""


class MixtureRegression(NamedTuple):
    """Independent pairs of one mixture.

    Attributes:
        mixture: the law of the data.
        further: validation pairs in the first half, test pairs in the second.
        reference: pairs for a regression on true labels.
        scale: fitted on the training pairs.
    """

    mixture: GaussianMixture
    schedule: NoiseSchedule
    train: DiffusionPairs
    further: DiffusionPairs
    reference: DiffusionPairs
    scale: PairScale

    def inputs(self, pairs: DiffusionPairs) -> Float[Array, "n e"]:
        """The network's inputs.

        Returns:
            (t, x) over the scale, in rows.
        """
        return self.scale.encode_all(pairs.t, pairs.x)


def draw_mixture_regression(
    seed: int, train: int, held_out: int, reference: int = 0
) -> MixtureRegression:
    """Draw all pairs.

    Args:
        held_out: number of validation pairs, and of test pairs.
    """
    mixture, schedule = make_gaussian_mixture(**MIXTURE), make_noise_schedule(*RATE, T=T)
    sizes = (train, 2 * held_out, reference)
    # Drawn at once and then split: one program for the true labels.
    pairs = make_diffusion_pairs(jax.random.key(seed), mixture, schedule, sum(sizes), T0=T0)
    samples = [
        jax.tree.map(lambda a, part=slice(end - size, end): entry(a, part), pairs)
        for size, end in zip(sizes, np.cumsum(sizes), strict=True)
    ]
    return MixtureRegression(
        mixture, schedule, samples[0], samples[1], samples[2], fit_scale(samples[0])
    )


def mixture_kernel(
    first: Float[Array, "n e"], second: Float[Array, "n2 e"]
) -> Float[np.ndarray, "n n2"]:
    """The kernel of a softmax network of infinite width."""
    return np.asarray(softmax_ntk_limit(first, second, SIGMA))
