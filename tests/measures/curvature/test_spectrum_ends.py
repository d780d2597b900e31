"""Ends of spectra from few products: exact where small, enclosed where large."""

import numpy as np
import pytest
from scipy import optimize

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
    with pytest.raises(UserError, match=r"choose count|give a whole number"):
        spectrum_ends(lambda rows: rows, **given)


def polynomial_bound(diagonal, off, size, failure):
    """Where sum p_j^2 reaches 2 (n - 1) / (pi failure^2), p_j the polynomials of the recurrence."""

    def excess(x):
        terms = [1.0, (x - diagonal[0]) / off[0]]
        for j in range(1, len(diagonal)):
            terms.append(((x - diagonal[j]) * terms[j] - off[j - 1] * terms[j - 1]) / off[j])
        return sum(p**2 for p in terms) - 2 * (size - 1) / np.pi / failure**2

    return optimize.brentq(excess, diagonal.max() + np.abs(off[:-1]).max(), 1e3, xtol=1e-14)


def in_basis_of(start, small):
    """A matrix that is `small` in an orthonormal basis that begins with the start."""
    draws = np.random.default_rng(6).standard_normal((start.size, len(small) - 1))
    basis = np.linalg.qr(np.column_stack([start, draws]))[0]
    return basis @ small @ basis.T


# Products that are not symmetric: what rounding would hide shows in the interval. Of the second
# matrix the second remainder, 0.01, is below the asymmetry: the recurrence ends there.
ASYMMETRIC = (
    [[0.5, 1.3, 0.02, 0, 0], [1.3, -2, 0.7, 0, 0], [0, 0.7, 1, 0.4, 0], [0, 0, 0.4, 3, 0.6],
     [0, 0, 0, 0.6, -1]],
    [[0.5, 1.3, 0.05, 0, 0], [1.3, -2, 0.01, 0, 0], [0, 0.01, 1, 0.4, 0], [0, 0, 0.4, 3, 0.6],
     [0, 0, 0, 0.6, -1]],
)  # fmt: skip


def test_the_interval_from_four_products_by_hand():
    starts, calls = np.random.default_rng(5).standard_normal((2, 11)), []
    H = np.stack([in_basis_of(*pair) for pair in zip(starts, np.array(ASYMMETRIC), strict=True)])
    found = spectrum_ends(
        products(H), 2, 11, steps=4, failure=2e-3, seed=5, progress=lambda: calls.append(1)
    )
    assert (found.steps, len(calls)) == (4, 4)
    for b, used in enumerate((4, 2)):
        small = np.array(ASYMMETRIC[b])[:4, :4]
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        ends = vectors[:, [0, -1]]
        # The images of the Ritz vectors have a part outside the space, of the remainder 0.6.
        misses = np.vstack([small @ ends - ends * values[[0, -1]], 0.6 * ends[3]])
        np.testing.assert_allclose(found.values[b], values[[0, -1]], rtol=1e-12)
        np.testing.assert_allclose(found.residuals[b], np.linalg.norm(misses, axis=0), rtol=1e-9)
        # The only entries off the symmetric tridiagonal: 0.02, or 0.05.
        rounding = (0.02, 0.05)[b]
        # The inner ends are a rounding away, the outer by the recurrence and twice its misses.
        assert found.low[b, 1] == pytest.approx(values[-1] - rounding, rel=1e-12)
        assert found.high[b, 0] == pytest.approx(values[0] + rounding, rel=1e-12)
        drift = 2 * (rounding + np.sqrt(4) * rounding)
        diagonal, off = np.diag(small)[:used], np.array([1.3, (0.7, 0.01)[b], 0.4, 0.6])[:used]
        high = polynomial_bound(diagonal, off, 11, 1e-3) + drift
        low = -polynomial_bound(-diagonal, off, 11, 1e-3) - drift
        assert (found.low[b, 0], found.high[b, 1]) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_rounding_of_symmetric_products_is_counted(dtype):
    """Diagonal matrices formed completely: sqrt(n) eps times the largest |eigenvalue| around."""
    H = np.stack([np.diag([-1.0, 3.0, 2.0]), np.diag([-7.0, 0.5, 1.0])]).astype(dtype)
    found = spectrum_ends(lambda rows: products(H)(rows.astype(dtype)), 2, 3)
    rounding = np.sqrt(3) * float(np.finfo(dtype).eps) * np.array([[3.0], [7.0]])
    assert found.values.tolist() == [[-1, 3], [-7, 1]]
    np.testing.assert_allclose(found.high, found.values + rounding, rtol=2e-16)
    np.testing.assert_allclose(found.low, found.values - rounding, rtol=2e-16)


def test_rows_stay_orthogonal_when_images_lie_almost_in_the_span():
    """What each product is asked of is a unit vector orthogonal to all before."""
    draws, asked = np.random.default_rng(8), []
    small = np.diag(np.r_[np.full(30, 1.0), 1 + 1e-9, 1 - 1e-9])
    basis = np.linalg.qr(draws.standard_normal((32, 32)))[0]
    H = basis @ small @ basis.T

    def noted(rows):
        asked.append(rows[0])
        return rows @ H

    spectrum_ends(noted, 1, 32, steps=6)
    gram = np.array(asked) @ np.array(asked).T
    np.testing.assert_allclose(gram, np.eye(6), rtol=0, atol=32 * np.finfo(float).eps)


def test_one_product_that_is_not_finite_spoils_its_own_matrix_alone():
    H, calls = np.stack([np.diag([1.0, 2, 3]), np.diag([4.0, 5, 7])]), []

    def spoilt(rows):
        calls.append(rows)
        return products(H)(rows) * np.array([[np.nan if len(calls) == 2 else 1.0], [1.0]])

    found = spectrum_ends(spoilt, 2, 3)
    for field in found[:4]:
        assert field.shape == (2, 2)
        assert np.isnan(field[0]).all()
    assert found.values[1].tolist() == [4, 7]


@pytest.mark.parametrize(("remainder", "is_fresh"), [(20, True), (60, False)])
def test_a_remainder_of_the_rounding_of_a_product_is_replaced(remainder, is_fresh):
    """The rounding is sqrt(100) eps times the length of the image, 3: 30 eps."""
    draws, asked = np.random.default_rng(4), []
    start, fresh = draws.standard_normal((2, 100))
    start /= np.linalg.norm(start)
    other = np.random.default_rng(1).standard_normal(100)
    other -= (other @ start) * start
    other /= np.linalg.norm(other)

    def almost_invariant(rows):
        asked.append(rows[0])
        return 3 * rows + remainder * np.finfo(float).eps * other * (len(asked) == 1)

    spectrum_ends(almost_invariant, 1, 100, steps=2, seed=4)
    fresh -= (fresh @ start) * start
    wanted = fresh / np.linalg.norm(fresh) if is_fresh else other
    # What remains is rounded to a few eps.
    assert asked[1] @ wanted > (1 - 1e-12 if is_fresh else 0.95)


def test_a_run_ends_where_its_products_suffice():
    """It is the run of as many steps, but for the probability that all answers share."""
    draw = np.random.default_rng(5)
    H = np.diag(np.append(draw.uniform(-1, 1, 299), 50.0))[None]
    asked = []

    def suffices(ends):
        asked.append(ends.steps)
        return ends.residuals[0, 1] < 1e-6 * ends.values[0, 1]

    early = spectrum_ends(products(H), 1, 300, steps=100, suffices=suffices)
    assert asked == list(range(20, early.steps + 1, 20))
    assert early.steps < 100
    fixed = spectrum_ends(products(H), 1, 300, steps=early.steps, failure=1e-6 / 6)
    for one, other in zip(early, fixed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert early.low[0, 1] <= 50.0 <= early.high[0, 1]
    never = spectrum_ends(products(H), 1, 300, steps=100, suffices=lambda ends: False)
    assert never.steps == 100
