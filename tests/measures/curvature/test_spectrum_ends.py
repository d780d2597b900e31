"""Ends of spectra from few products: exact where small, enclosed where large."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.curvature.spectrum_ends import spectrum_ends


def matrices(spectra, seed=0):
    """Symmetric matrices of the given eigenvalues, in drawn bases."""
    draws = np.random.default_rng(seed)
    found = []
    for values in spectra:
        basis = np.linalg.qr(draws.normal(size=(values.size, values.size)))[0]
        found.append(basis @ np.diag(values) @ basis.T)
    return np.stack(found)


def products(H):
    return lambda rows: np.einsum("bij,bj->bi", H, rows)


@pytest.mark.parametrize("size", [1, 2, 17, 40])
def test_small_matrices_are_formed_whole(size):
    spectra = np.random.default_rng(size).normal(size=(3, size))
    found = spectrum_ends(products(matrices(spectra)), 3, size)
    np.testing.assert_allclose(found.values[:, 0], spectra.min(axis=1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.values[:, 1], spectra.max(axis=1), rtol=0, atol=1e-12)
    assert found.steps == size
    assert np.all(found.high - found.low < 1e-11)


@pytest.mark.parametrize("steps", [20, 40, 80])
def test_intervals_hold_the_ends_and_shrink_with_products(steps):
    draws = np.random.default_rng(1)
    flat, outliers = np.linspace(-1, 1, 300), draws.normal(size=300)
    outliers[:3] = 40, -7, 39.9
    spectra = np.stack([flat, outliers, draws.standard_t(2, size=300)])
    found = spectrum_ends(products(matrices(spectra)), 3, 300, steps=steps)
    for place, end in enumerate((spectra.min(axis=1), spectra.max(axis=1))):
        assert np.all(found.low[:, place] <= end)
        assert np.all(end <= found.high[:, place])
    # the nearest eigenvalue is no further away than the residual
    distance = np.abs(spectra[:, None] - found.values[:, :, None]).min(axis=2)
    assert np.all(distance <= found.residuals + 1e-9)
    wider = spectrum_ends(products(matrices(spectra)), 3, 300, steps=steps // 2)
    gain = (wider.high - wider.low) - (found.high - found.low)
    assert np.all(gain[0] > 1e-3)  # nothing stands out: the ends come slowly
    assert np.all(gain > -1e-9)  # ends that stand out are found to rounding by both


def test_a_space_that_ends_early_is_filled_up():
    H = np.stack([np.eye(100), np.diag(np.repeat([-2.0, 5.0], 50))])
    found = spectrum_ends(products(H), 2, 100, steps=20)
    np.testing.assert_allclose(found.values, [[1, 1], [-2, 5]], rtol=0, atol=1e-12)
    # A random start lies in no proper invariant space: what it does not see is not there.
    assert np.all(found.high - found.low < 1e-9)
    assert np.all((found.low <= found.values) & (found.values <= found.high))


def test_intervals_fail_as_seldom_as_they_say():
    """One eigenvalue far off, seen by a start with failure probability .2: 40 of 200 at most."""
    spectrum = np.append(np.linspace(0, 1, 99), 1.3)
    H = np.diag(spectrum)
    found = [
        spectrum_ends(products(H[None]), 1, 100, steps=4, failure=0.4, seed=seed).high[0, 1]
        for seed in range(200)
    ]
    missed = np.sum(np.array(found) < 1.3)
    assert missed <= 40 + 3 * np.sqrt(200 * 0.2 * 0.8)
    assert np.mean(np.array(found) < 10) > 0.9


def test_rounding_of_products_widens_the_interval():
    H = matrices(np.random.default_rng(2).normal(size=(1, 200)))
    noise = np.random.default_rng(3)

    def noisy(rows):
        return products(H)(rows) + 1e-3 * noise.normal(size=rows.shape)

    exact, rough = (spectrum_ends(each, 1, 200, steps=60) for each in (products(H), noisy))
    assert exact.high[0, 0] - exact.values[0, 0] < 1e-10
    assert rough.high[0, 0] - rough.values[0, 0] > 1e-3


def test_what_is_not_finite_is_not_decided():
    found = spectrum_ends(lambda rows: rows * np.nan, 2, 100, steps=20)
    assert np.all(np.isnan(found.values))
    assert np.all(np.isnan(found.low))


@pytest.mark.parametrize("wrong", [{"steps": 1}, {"failure": 0.0}, {"count": 0}, {"size": 0}])
def test_settings_out_of_range_are_refused(wrong):
    given = {"count": 1, "size": 3} | wrong
    with pytest.raises(UserError, match="choose count"):
        spectrum_ends(lambda rows: rows, **given)
