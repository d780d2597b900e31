"""Enclosures of spectra hold what digits say, of every matrix within the intervals."""

import mpmath
import numpy as np
import pytest

from attlas.verify.intervals import Interval, Undecided, exact
from attlas.verify.spectra import eigenvalues, singular_values


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (1, 1)])
def test_singular_values_of_floats_are_those_in_digits(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    if shape == (3, 3):
        matrix[2] = matrix[0] + matrix[1]  # the last one is nearly zero
    values = singular_values(exact(matrix))
    with mpmath.workdps(50):
        true = sorted(mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False), reverse=True)
        assert all(a <= t <= b for a, t, b in zip(values.low, true, values.high, strict=True))
    assert (values.high - values.low).max() < 1e-13


def test_eigenvalues_of_floats_are_those_in_digits():
    matrix = np.random.default_rng(1).normal(size=(2, 4, 4))
    matrix = matrix + np.swapaxes(matrix, 1, 2)
    values = eigenvalues(exact(matrix))
    for place in range(2):
        with mpmath.workdps(50):
            true = mpmath.eigsy(mpmath.matrix(matrix[place].tolist()), eigvals_only=True)
            ends = zip(values.low[place], sorted(true), values.high[place], strict=True)
            assert all(a <= t <= b for a, t, b in ends)


def test_every_matrix_within_the_intervals_is_enclosed():
    rng = np.random.default_rng(2)
    centre, radius = rng.normal(size=(3, 3)), 0.01 * rng.uniform(size=(3, 3))
    box = Interval(centre - radius, centre + radius)
    values, spectrum = singular_values(box), eigenvalues(box)
    for _ in range(100):
        matrix = centre + radius * rng.choice([-1, 1], size=(3, 3))
        s = np.linalg.svd(matrix, compute_uv=False)
        assert (values.low <= s).all()
        assert (s <= values.high).all()
        e = np.linalg.eigvalsh((matrix + matrix.T) / 2)
        assert (spectrum.low <= e).all()
        assert (e <= spectrum.high).all()
    with pytest.raises(Undecided, match="without bounds"):
        singular_values(Interval(centre, np.full((3, 3), np.inf)))
