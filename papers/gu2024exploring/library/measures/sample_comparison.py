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
        lost: how many samples are lost.
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
        key: of the directions of the sliced distance.
        points: samples in rows, some of them not finite.
        data: points in rows.

    Returns:
        The comparison.

    Examples:
        >>> import jax
        >>> x = np.arange(12.0)[:, None]
        >>> found = compare_samples(jax.random.key(0), np.concatenate([x, [[np.nan], [1e9]]]), x)
        >>> found.lost, found.distance[1].item()
        (2, 0.0)
    """
    points, data = np.asarray(points), np.asarray(data)
    kept = points[~lost_samples(points, data)]
    lost = len(points) - len(kept)
    if len(kept) < 3:
        return SampleComparison(np.full(2, np.nan), np.full(2, np.nan), lost)
    found = np.array([energy_distance(kept, data), sliced_wasserstein(key, kept, data)])
    return SampleComparison(found[:, 0], found[:, 1], lost)


def comparison_dataset(
    key: PRNGKeyArray,
    samples: Mapping[str, Float[np.ndarray, "_ d"]],
    data: Float[np.ndarray, "m d"],
) -> xr.Dataset:
    """Compare the samples of several laws with the same data.

    Args:
        key: of the directions, which all share.
        samples: by name of the law.
        data: points in rows.

    Returns:
        `distance` and `standard_error` by `law` and `measure`, and how many points were `drawn`
        and `lost`, by law.

    Examples:
        >>> import jax
        >>> x = np.arange(12.0)[:, None]
        >>> found = comparison_dataset(jax.random.key(0), {"same": x, "moved": x + 3}, x)
        >>> found.distance.sel(measure="sliced W2").round(6).values.tolist()
        [0.0, 3.0]
    """
    each = [compare_samples(key, points, data) for points in samples.values()]
    return xr.Dataset(
        {
            "distance": (("law", "measure"), np.stack([found.distance for found in each])),
            "standard_error": (("law", "measure"), np.stack([found.error for found in each])),
            "drawn": ("law", [len(points) for points in samples.values()]),
            "lost": ("law", [found.lost for found in each]),
        },
        {"law": list(samples), "measure": list(MEASURES)},
    )


@validate_record_arguments
def lost_samples(
    points: Float[np.ndarray, "n d"], data: Float[np.ndarray, "m d"]
) -> Bool[np.ndarray, " n"]:
    """Which samples have a coordinate ten times farther out than all data, or no number.

    Args:
        points: samples in rows.
        data: points in rows.

    Returns:
        One boolean per sample.

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
        points: samples in rows.
        data: points in rows, such as the training set.

    Returns:
        One distance per sample; NaN for a lost one.

    Examples:
        >>> data = np.array([[0.0, 0.0], [3.0, 4.0]])
        >>> nearest_distances(np.array([[0.0, 1.0], [np.inf, 0.0]]), data).tolist()
        [1.0, nan]
    """
    found = np.full(len(points), np.nan)
    kept = ~lost_samples(points, data)
    found[kept] = cdist(points[kept], data).min(axis=1, initial=np.inf)
    return found
