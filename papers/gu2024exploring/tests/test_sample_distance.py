import jax
import numpy as np
import pytest
from scipy import special, stats

from attlas.core.errors import UserError
from gu2024exploring.library.measures.sample_distance import energy_distance, sliced_wasserstein

EPS = float(np.finfo(float).eps)
KEY = jax.random.key(0)
DRAWS = np.random.default_rng(0)


def mean_norm(shift, spread, d):
    """E||N(shift, spread^2 I)||, by the mean of the noncentral chi law."""
    ratio = special.gamma((d + 1) / 2) / special.gamma(d / 2)
    return spread * np.sqrt(2) * ratio * special.hyp1f1(-1 / 2, d / 2, -((shift / spread) ** 2) / 2)


@pytest.mark.parametrize("p", [1, 2])
def test_on_a_line_it_is_the_distance_that_scipy_and_transport_give(p):
    x, y = DRAWS.standard_normal((30, 1)), DRAWS.exponential(size=(50, 1))
    found = sliced_wasserstein(KEY, x, y, p=p).value
    if p == 1:
        peer = stats.wasserstein_distance(x[:, 0], y[:, 0])
    else:
        # Repeating points makes both samples equally long without changing either law.
        gap = np.sort(np.repeat(x, 5)) - np.sort(np.repeat(y, 3))
        peer = np.sqrt(np.mean(gap**2))
    assert abs(found - peer) <= 64 * EPS * (1 + peer)


@pytest.mark.parametrize("d", [2, 5])
def test_a_shifted_sample_has_the_closed_form(d):
    """W_p between the lines is |<theta, shift>| exactly; only the directions are random."""
    x = DRAWS.standard_normal((40, d))
    shift = np.full(d, 3 / np.sqrt(d))
    exact = {
        1: 3 * special.gamma(d / 2) / (np.sqrt(np.pi) * special.gamma((d + 1) / 2)),
        2: 3 / np.sqrt(d),
    }
    for p, truth in exact.items():
        found = sliced_wasserstein(KEY, x, x + shift, p=p, projections=512)
        assert abs(found.value - truth) <= 5 * found.error
        assert found.error < 0.4


def test_blocks_of_directions_change_rounding_only():
    x, y = DRAWS.standard_normal((33, 3)), DRAWS.standard_normal((47, 3)) + 0.5
    whole = sliced_wasserstein(KEY, x, y)
    blocks = sliced_wasserstein(KEY, x, y, memory=32 * 80 * 7)
    np.testing.assert_allclose(blocks, whole, rtol=1e-12)
    # Exchanging the samples exchanges the two quantile functions.
    assert abs(sliced_wasserstein(KEY, y, x).value - whole.value) <= 64 * EPS


def test_equal_sets_have_distance_zero():
    x = DRAWS.standard_normal((25, 3))
    shuffled = x[::-1].copy()
    assert sliced_wasserstein(KEY, x, shuffled).value == 0
    found = energy_distance(x, shuffled, unbiased=False)
    # Three means of 25^2 distances of a few units that should cancel.
    assert abs(found.value) <= 1e3 * EPS
    assert energy_distance(x, x, unbiased=False).value == 0


@pytest.mark.parametrize("d", [1, 3])
def test_the_energy_distance_of_shifted_gaussians_is_known(d):
    shift, n = 1.5, 1500
    x, y = DRAWS.standard_normal((n, d)), DRAWS.standard_normal((n // 2, d))
    y[:, 0] += shift
    root = np.sqrt(2)
    exact = 2 * mean_norm(shift, root, d) - 2 * mean_norm(0.0, root, d)
    found = energy_distance(x, y)
    assert abs(found.value - exact) <= 5 * found.error
    # As large as the spread over many repetitions was: about 2 standard deviations / sqrt(n / 2).
    assert 0.01 < found.error < 0.2


def test_the_energy_distance_is_symmetric_and_independent_of_blocks():
    x, y = DRAWS.standard_normal((40, 2)), DRAWS.standard_normal((31, 2)) * 2
    whole = energy_distance(x, y)
    np.testing.assert_allclose(energy_distance(y, x), whole, rtol=1e-11)
    np.testing.assert_allclose(energy_distance(x, y, memory=31 * 8 * 3), whole, rtol=1e-11)


def test_the_standard_errors_are_those_of_repetition():
    """Against the standard deviation over repetitions, at equal and at different laws.

    The spread of a standard deviation over 60 repetitions is about 9%, more where tails are
    heavy. At equal laws the jackknife's variance is twice the true one on average.
    """
    for shift, low, high in ((1.0, 0.7, 1.4), (0.0, 0.7, 2.0)):
        energies, slices = [], []
        for _ in range(60):
            x, y = DRAWS.standard_normal((80, 2)), DRAWS.standard_normal((80, 2)) + shift
            energies.append(energy_distance(x, y))
            slices.append(sliced_wasserstein(KEY, x, y, projections=16))
        errors = np.array([e.error for e in energies])
        ratio = np.mean(errors) / np.std([e.value for e in energies])
        assert low < ratio < high
        # None is small by chance, so that a distance in units of it means something.
        assert errors.min() > errors.mean() / 3
        # Unbiased: zero within the error of the mean at equal laws.
        if shift == 0.0:
            values = np.array([e.value for e in energies])
            assert abs(values.mean()) <= 5 * values.std() / np.sqrt(60)
        else:
            # One set of directions for all: what varies is the sampling part of the error.
            spread = np.std([s.value for s in slices])
            assert np.mean([s.error for s in slices]) >= 0.7 * spread


def test_the_jackknife_of_the_energy_distance_by_leaving_out():
    x, y = DRAWS.standard_normal((7, 2)), DRAWS.standard_normal((5, 2)) + 3
    variance = 0.0
    for k, sample in enumerate((x, y)):
        values = []
        for i in range(len(sample)):
            left = np.delete(sample, i, axis=0)
            values.append(energy_distance(*((left, y) if k == 0 else (x, left))).value)
        values = np.array(values)
        variance += (len(values) - 1) / len(values) * np.sum((values - values.mean()) ** 2)
    assert abs(energy_distance(x, y).error - np.sqrt(variance)) <= 1e3 * EPS


def test_the_error_at_equal_laws_by_double_centring():
    """Two samples so alike that the jackknife sees nothing: the degenerate term remains."""
    x = np.array([[0.0], [1.0], [3.0], [4.0]])
    distances = np.abs(np.concatenate([x, x]) - np.concatenate([x, x]).T)
    centring = np.eye(8) - 1 / 8
    h = centring @ distances @ centring
    exact = (1 / 4 + 1 / 4) * np.sqrt(2 * np.mean(h**2))
    found = energy_distance(x, x).error
    assert found >= exact - 64 * EPS
    # Points at which all leave-one-out values agree: the error is the degenerate one.
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    both = np.concatenate([square, square])
    distances = np.linalg.norm(both[:, None] - both[None], axis=2)
    exact = np.sqrt(2 * np.mean((centring @ distances @ centring) ** 2)) / 2
    assert abs(energy_distance(square, square).error - exact) <= 64 * EPS


def test_bad_samples_are_refused():
    x = np.zeros((4, 2))
    for other, said in (
        (np.zeros((4, 3)), "give"),
        (np.zeros(4), "expected axes"),
        (np.zeros((2, 2)), "at least 3"),
        (np.full((4, 2), np.nan), "NaN or infinite"),
    ):
        with pytest.raises(UserError, match=said):
            energy_distance(x, other)
        with pytest.raises(UserError, match=said):
            sliced_wasserstein(KEY, x, other)
    with pytest.raises(UserError, match="p = 0"):
        sliced_wasserstein(KEY, x, x, p=0)
