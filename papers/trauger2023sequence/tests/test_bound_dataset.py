"""The data set of bounds holds the rows of `majority_bounds`, and where they cross."""

import jax
import numpy as np

from trauger2023sequence.library.sparse_majority.bound_dataset import majority_bound_dataset
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    ROWS,
    MajorityNorms,
    majority_bounds,
)


def test_labels_are_those_of_the_rows_and_the_bound_at_the_crossing_is_the_threshold():
    rng = np.random.default_rng(0)
    shapes = ((2, 1, 5), (2, 1), (2,), (2, 2), (2, 2), (2, 3))
    norms = MajorityNorms(*(rng.uniform(0.1, 0.3, shape) for shape in shapes))
    samples = np.geomspace(1e2, 1e9, 57)
    found = majority_bound_dataset(norms, 300, samples, 9, 4, 0.05, 0.01)
    m = jax.device_put(np.append(300.0, samples))
    bound, spread = majority_bounds(jax.tree.map(jax.device_put, norms), m, 9, 4, 0.05)
    for k, (cover, version) in enumerate(ROWS):
        own = found.bound.sel(cover=cover, version=version).transpose("member", "m")
        np.testing.assert_array_equal(own, bound[:, k])
    np.testing.assert_array_equal(found.loss_range, spread)
    needed = found.log10_needed.sel(cover="1,1", version="sharp")
    height = np.log10(found.bound.sel(cover="1,1", version="sharp", m=samples).values)
    for k in range(2):
        at = np.interp(needed[k], np.log10(samples), height.reshape(2, -1)[k])
        np.testing.assert_allclose(at, -2, atol=1e-9)
    assert found.log10_needed.sel(version="printed").isnull().all()
