import jax
import numpy as np
import pytest
from scipy import special, stats

from attlas._jax.device_arrays import generator
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


def transport_on_a_line(x, y, p):
    """W_p^p by the north-west corner rule: masses in whole numbers of 1 / (n m)."""
    x, y = sorted(x), sorted(y)
    cost, i, j, left, right = 0.0, 0, 0, len(y), len(x)
    while i < len(x) and j < len(y):
        mass = min(left, right)
        cost += mass * abs(x[i] - y[j]) ** p
        left, right = left - mass, right - mass
        if left == 0:
            i, left = i + 1, len(y)
        if right == 0:
            j, right = j + 1, len(x)
    return cost / (len(x) * len(y))


@pytest.mark.parametrize(("n", "m", "p"), [(5, 7, 3), (24, 23, 2), (6, 6, 2), (45, 22, 1)])
def test_the_sliced_distance_and_its_error_by_leaving_out_groups(n, m, p):
    """The same directions and groups, every transport by itself; at most 20 groups."""
    projections, count = 6, min(20, n, m)
    x, y = DRAWS.normal(size=(n, 3)), DRAWS.exponential(size=(m, 3))
    draws = generator(KEY)
    directions = draws.standard_normal((projections, 3))
    directions = np.array([theta / np.sqrt(theta @ theta) for theta in directions])
    groups = [draws.permutation(np.arange(size) % count) for size in (n, m)]
    costs = [
        [
            transport_on_a_line(x[groups[0] != g] @ theta, y[groups[1] != g] @ theta, p)
            for theta in directions
        ]
        for g in (-1, *range(count))
    ]
    value, *without = (np.mean(row) ** (1 / p) for row in costs)
    sampling = sum((one - sum(without) / count) ** 2 for one in without) * (count - 1) / count
    spread = np.sum((np.array(costs[0]) - np.mean(costs[0])) ** 2) / (projections - 1)
    # The error of the mean cost, by the derivative of its root of order p.
    direction = np.sqrt(spread / projections) * np.mean(costs[0]) ** (1 / p - 1) / p
    found = sliced_wasserstein(KEY, x, y, p=p, projections=projections)
    np.testing.assert_allclose(found, (value, np.hypot(np.sqrt(sampling), direction)), rtol=1e-11)


def test_the_error_of_equal_sets_is_that_of_leaving_out_groups():
    x = DRAWS.normal(size=(4, 1))
    shuffled = x[[2, 0, 3, 1]]
    draws = generator(KEY)
    draws.standard_normal((128, 1))
    groups = [draws.permutation(np.arange(4)) for _ in range(2)]
    without = [
        transport_on_a_line(x[groups[0] != g, 0], shuffled[groups[1] != g, 0], 2) ** 0.5
        for g in range(4)
    ]
    error = np.sqrt(3 / 4 * sum((one - sum(without) / 4) ** 2 for one in without))
    assert error > 0.1
    np.testing.assert_allclose(sliced_wasserstein(KEY, x, shuffled), (0.0, error), rtol=1e-12)


def mean_distances(x, y):
    """The means over pairs: across both samples, within each, and within over other points."""
    across = sum(np.linalg.norm(a - b) for a in x for b in y) / (len(x) * len(y))
    within = [sum(np.linalg.norm(a - b) for a in z for b in z) for z in (x, y)]
    every = [w / len(z) ** 2 for w, z in zip(within, (x, y), strict=True)]
    pairs = [w / (len(z) * (len(z) - 1)) for w, z in zip(within, (x, y), strict=True)]
    return 2 * across - sum(every), 2 * across - sum(pairs)


@pytest.mark.parametrize("degenerate", [True, False])
def test_the_energy_distance_and_the_larger_of_its_errors_by_loops(degenerate):
    """At equal laws double centring gives the error, at far ones leaving out."""
    x = np.array([[0.1, 0.0, 0.3], [1.2, 0.1, 0.0], [0.9, 1.0, 0.2], [0.0, 1.3, 1.0]])
    y = np.concatenate([x, x[:2] + 0.05, x[2:] - 0.04])
    if not degenerate:
        rng = np.random.default_rng(3)
        x, y = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) + 3
    n, m = len(x), len(y)
    biased, unbiased = mean_distances(x, y)
    both = np.concatenate([x, y])
    distances = np.array([[np.linalg.norm(a - b) for a in both] for b in both])
    centring = np.eye(n + m) - 1 / (n + m)
    h = centring @ distances @ centring
    at_equal_laws = (1 / n + 1 / m) * np.sqrt(2 * np.mean(h**2))
    variance = 0.0
    for without in (
        [mean_distances(np.delete(x, i, axis=0), y)[1] for i in range(n)],
        [mean_distances(x, np.delete(y, i, axis=0))[1] for i in range(m)],
    ):
        size = len(without)
        variance += (size - 1) / size * np.sum((without - np.mean(without)) ** 2)
    assert bool(at_equal_laws > np.sqrt(variance)) is degenerate
    error = max(at_equal_laws, np.sqrt(variance))
    np.testing.assert_allclose(energy_distance(x, y), (unbiased, error), rtol=1e-12)
    found = energy_distance(x, y, unbiased=False, memory=1)
    np.testing.assert_allclose(found, (biased, error), rtol=1e-12)
