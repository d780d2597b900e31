"""Theorem 6.6 at measured errors."""

import numpy as np
import xarray as xr

from gu2024exploring.library.bounds.gu2024_score import gu2024_score_error
from gu2024exploring.library.diffusion.error_dataset import score_error_bound


def test_the_bound_takes_every_width_and_training_set_by_itself():
    n, smallest, early = [10, 1000], [0.5, 0.02], np.array([[1.0, 0.5], [8.0, 0.0], [2.0, 3.0]])
    data = xr.Dataset(
        {
            "error_at_stop": (("term", "m", "n"), np.stack([-early, early])),
            "smallest": ("n", smallest),
            "squared_norm": 7.0,
            "label_scale": 2.0,
        },
        {"term": ["mismatch", "early"], "n": n},
    )
    found = score_error_bound(data, 3, 0.1).transpose("m", "n").values
    for m, row in enumerate(early):
        for k, error in enumerate(row):
            terms = gu2024_score_error(n[k], 3, smallest[k], 0.1, 7.0, error / 4)
            assert found[m, k] == float(sum(np.asarray(term) for term in terms.values()))
