"""Bounds on trained sparse-majority models as a labelled data set."""

import jax
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float

from trauger2023sequence.library.measures.crossing import last_crossing
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    BALLS,
    ROWS,
    MajorityNorms,
    majority_bounds,
)

COVERS = (*BALLS, "log T", "log m", "parameters")
VERSIONS = ("sharp", "corrected", "printed")
DIMS = {
    "query_key": ("head", "norm"),
    "value": ("head",),
    "bias": (),
    "readout": ("logit",),
    "constant": ("logit",),
    "tokens": ("token_norm",),
}
"""Axes of `MajorityNorms` after that of the members."""


def majority_bound_dataset(
    norms: MajorityNorms,
    train: int,
    samples: Float[np.ndarray, " s"],
    bits: int,
    d: int,
    delta: float,
    threshold: float,
) -> xr.Dataset:
    r"""`majority_bounds` by cover, version and number of samples, and where they become useful.

    Args:
        train: number of training samples, the first label of the axis m.
        samples: further ones, increasing.
        threshold: largest gap at which a bound is useful.

    Returns:
        `bound` along member, cover, version and m; `log10_needed`, the logarithm of the number of
        samples from which on a bound is below the threshold, infinite where it never is; the
        `loss_range` of each member; and the norms. What no row has is NaN, as are the needed
        samples of the printed rows, which are no bounds.

    Examples:
        >>> one, tokens = np.ones((1, 1)), np.ones((1, 3))
        >>> norms = MajorityNorms(np.ones((1, 1, 5)) / 9, one, one[0], one, one, tokens)
        >>> result = majority_bound_dataset(norms, 300, np.geomspace(1e2, 1e9, 15), 8, 4, 0.05, 0.5)
        >>> needed = result.log10_needed.sel(member=0, version="sharp")
        >>> [f"{float(needed.sel(cover=cover)):.1f}" for cover in ("1,1", "log T", "parameters")]
        ['4.0', '4.3', '4.0']
    """
    m = np.append(float(train), samples)
    with jax.enable_x64(True):
        bounds, spread = majority_bounds(
            jax.tree.map(jax.device_put, norms), jax.device_put(m), bits, d, delta
        )
        bound = np.asarray(bounds)
    height = np.log(bound[:, : -len(BALLS), 1:] / threshold)
    arrays = {name: (("member", *DIMS[name]), norm) for name, norm in norms._asdict().items()}
    return xr.Dataset(
        {
            "bound": _by_cover(bound, "m"),
            "log10_needed": _by_cover(last_crossing(np.log10(samples), height)),
            "loss_range": ("member", np.asarray(spread)),
            **arrays,
        },
        {"m": m},
    )


def _by_cover(values: np.ndarray | Array, *dims: str) -> xr.DataArray:
    """Values by member, row of `ROWS` and `dims`, laid out by cover and version, NaN for none."""
    rows = pd.MultiIndex.from_tuples(ROWS[: values.shape[1]], names=["cover", "version"])
    index = xr.Coordinates.from_pandas_multiindex(rows, "row")
    array = xr.DataArray(np.asarray(values), index, ("member", "row", *dims)).unstack("row")
    return array.reindex(cover=list(COVERS), version=list(VERSIONS))
