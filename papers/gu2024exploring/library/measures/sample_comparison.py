"""Samples of a model beside data: distances of the laws, samples lost, nearest data; NumPy."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from scipy.spatial.distance import cdist

from attlas.core.argument_validation import validate_record_arguments
from gu2024exploring.library.measures.sample_distance import energy_distance, sliced_wasserstein

MEASURES = ("energy distance", "sliced W2")
FAR = 10.0
"""A sample is lost when it is so many times farther out than all data."""


class SampleComparison(NamedTuple):
    """How far samples are from data.

    Attributes:
        distance: energy distance and sliced Wasserstein distance of the samples that are not
            lost; NaN for fewer than three.
        error: their standard errors.
        lost: number of lost samples.
    """

    distance: Float[np.ndarray, " 2"]
    error: Float[np.ndarray, " 2"]
    lost: int


@validate_record_arguments
def compare_samples(
    key: PRNGKeyArray,
    points: Float[Array | np.ndarray, "n d"],
    data: Float[Array | np.ndarray, "m d"],
) -> SampleComparison:
    """Compare samples with data.

    Args:
        points: samples in rows, some of them not finite.

    Examples:
        >>> import jax
        >>> x = np.arange(12.0)[:, None]
        >>> result = compare_samples(jax.random.key(0), np.concatenate([x, [[np.nan], [1e9]]]), x)
        >>> result.lost, result.distance[1].item()
        (2, 0.0)
    """
    points, data = np.asarray(points), np.asarray(data)
    finite = points[~lost_samples(points, data)]
    lost = len(points) - len(finite)
    if len(finite) < 3:
        return SampleComparison(np.full(2, np.nan), np.full(2, np.nan), lost)
    distances = np.array([energy_distance(finite, data), sliced_wasserstein(key, finite, data)])
    return SampleComparison(distances[:, 0], distances[:, 1], lost)


def comparison_dataset(
    key: PRNGKeyArray,
    samples: Mapping[str, Float[np.ndarray, "_ d"]],
    data: Float[np.ndarray, "m d"],
) -> xr.Dataset:
    """Compare the samples of several laws with the same data.

    Args:
        key: random key of the directions, which all samples share.
        samples: samples in rows, keyed by the name of their law.

    Returns:
        `distance` and `standard_error` by `law` and `measure`, and how many points were `drawn`
        and `lost`, by law.

    Examples:
        >>> import jax
        >>> x = np.arange(12.0)[:, None]
        >>> result = comparison_dataset(jax.random.key(0), {"same": x, "moved": x + 3}, x)
        >>> result.distance.sel(measure="sliced W2").round(6).values.tolist()
        [0.0, 3.0]
    """
    comparisons = [compare_samples(key, points, data) for points in samples.values()]
    return xr.Dataset(
        {
            "distance": (
                ("law", "measure"),
                np.stack([comparison.distance for comparison in comparisons]),
            ),
            "standard_error": (
                ("law", "measure"),
                np.stack([comparison.error for comparison in comparisons]),
            ),
            "drawn": ("law", [len(points) for points in samples.values()]),
            "lost": ("law", [comparison.lost for comparison in comparisons]),
        },
        {"law": list(samples), "measure": list(MEASURES)},
    )


@validate_record_arguments
def lost_samples(
    points: Float[np.ndarray, "n d"], data: Float[np.ndarray, "m d"]
) -> Bool[np.ndarray, " n"]:
    """Which samples have a coordinate ten times farther out than all data, or no number.

    Examples:
        >>> points = np.array([[9.0, 0.0], [0.0, 11.0], [np.nan, 0.0]])
        >>> lost_samples(points, np.ones((1, 2))).tolist()
        [False, True, True]
    """
    return ~np.all(np.abs(points) <= FAR * np.abs(data).max(), axis=1)


@validate_record_arguments
def nearest_distances(
    points: Float[np.ndarray, "n d"], data: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, " n"]:
    """The distance from each sample to the nearest datum: near 0 where data are memorised.

    Args:
        data: points in rows, such as the training set.

    Returns:
        One distance per sample; NaN for a lost one.

    Examples:
        >>> data = np.array([[0.0, 0.0], [3.0, 4.0]])
        >>> nearest_distances(np.array([[0.0, 1.0], [np.inf, 0.0]]), data).tolist()
        [1.0, nan]
    """
    distances = np.full(len(points), np.nan)
    finite = ~lost_samples(points, data)
    distances[finite] = cdist(points[finite], data).min(axis=1, initial=np.inf)
    return distances
