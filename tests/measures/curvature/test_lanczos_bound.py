"""The probability bound of Lanczos against random starts."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.curvature.lanczos_bound import largest_eigenvalue_bound

SIZE = 200
# Chebyshev nodes: no gap at the ends, hard for a Krylov space. Copies: one space sees each once.
SPECTRA = {
    "chebyshev nodes": (1 + np.cos(np.pi * np.arange(SIZE) / (SIZE - 1))) / 2,
    "a cluster": np.concatenate([np.linspace(0, 0.9, SIZE - 5), 1 - 1e-3 * np.arange(5)]),
    "copies": np.repeat([0.0, 0.5, 0.9, 1.0], SIZE // 4),
    "one far out": np.concatenate([np.zeros(SIZE - 1), [1.0]]),
}


def recurrence(values, start, steps):
    """Lanczos of a diagonal matrix, reorthogonalised: alpha_1..alpha_k and beta_1..beta_k."""
    space, vector = np.zeros((len(values), 0)), start / np.linalg.norm(start)
    diagonal, off = [], []
    for _ in range(steps):
        space = np.column_stack([space, vector])
        image = values * vector
        diagonal.append(vector @ image)
        for _ in range(2):
            image = image - space @ (space.T @ image)
        off.append(float(np.linalg.norm(image)))
        if off[-1] < 1e-12:
            off[-1] = 0.0
            break
        vector = image / off[-1]
    return np.array(diagonal), np.array(off)


@pytest.mark.parametrize("steps", [1, 12, 30])
@pytest.mark.parametrize("name", SPECTRA)
def test_holds_as_often_as_stated(name, steps):
    values, draws = SPECTRA[name], np.random.default_rng(3)
    for failure in (0.02, 0.3):
        runs = [recurrence(values, draws.standard_normal(SIZE), steps) for _ in range(150)]
        high = np.array([largest_eigenvalue_bound(*run, SIZE, failure) for run in runs])
        low = np.array([-largest_eigenvalue_bound(-a, b, SIZE, failure) for a, b in runs])
        # three standard deviations of a proportion from 150 runs
        allowed = failure + 3 * np.sqrt(failure * (1 - failure) / 150)
        assert np.mean(high < values.max() - 1e-12) <= allowed
        assert np.mean(low > values.min() + 1e-12) <= allowed


def test_the_probability_is_needed():
    values, draws = SPECTRA["one far out"], np.random.default_rng(5)
    runs = [recurrence(values, draws.standard_normal(SIZE), 1) for _ in range(300)]
    bounds = np.array([largest_eigenvalue_bound(*run, SIZE, 0.5) for run in runs])
    # One step has seen next to nothing: half of the bounds may fail, and a good part does.
    assert 0.2 <= np.mean(bounds < 1.0) <= 0.5


def test_it_lies_within_the_bound_that_knows_no_recurrence():
    values, draws = SPECTRA["chebyshev nodes"], np.random.default_rng(6)
    for steps in (20, 40):
        diagonal, off = recurrence(values, draws.standard_normal(SIZE), steps)
        found = largest_eigenvalue_bound(diagonal, off, SIZE, 1e-6)
        # Kuczynski and Wozniakowski: short of the end by this part of the spectrum's width
        short = (np.log(1.648 * np.sqrt(SIZE) / 1e-6) / (2 * steps - 1)) ** 2
        tridiagonal = np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
        assert 1.0 <= found < np.linalg.eigvalsh(tridiagonal)[-1] + short


@pytest.mark.parametrize(
    ("lengths", "size", "failure"),
    [((0, 0), 5, 0.1), ((2, 1), 5, 0.1), ((2, 2), 1, 0.1), ((2, 2), 5, 0.0), ((2, 2), 5, 1.0)],
)
def test_bad_arguments_are_refused(lengths, size, failure):
    with pytest.raises(UserError, match=r"choose|give"):
        largest_eigenvalue_bound(np.ones(lengths[0]), np.ones(lengths[1]), size, failure)


@pytest.mark.parametrize("failure", [0.02, 1e-6])
def test_one_and_two_steps_by_hand(failure):
    limit = 2 * 29 / np.pi / failure**2
    # 1 + (x - a)^2 / b^2 = limit
    found = largest_eigenvalue_bound(np.array([0.7]), np.array([0.3]), 30, failure)
    assert found == pytest.approx(0.7 + 0.3 * np.sqrt(limit - 1), rel=1e-14)
    # With p_1 = (x - a) / b and p_2 = ((x - c) p_1 - b) / d a polynomial of degree four.
    a, c, b, d = 0.7, -0.4, 0.3, 1.1
    first = np.polynomial.Polynomial([-a / b, 1 / b])
    second = (np.polynomial.Polynomial([-c, 1]) * first - b) / d
    roots = (1 + first**2 + second**2 - limit).roots()
    truth = roots[np.abs(roots.imag) < 1e-9 * np.abs(roots)].real.max()
    found = largest_eigenvalue_bound(np.array([a, c]), np.array([b, d]), 30, failure)
    assert found == pytest.approx(truth, rel=1e-12)


def test_an_invariant_space_bounds_by_its_largest_value():
    diagonal, off = np.array([0.7, -0.4, 1.9]), np.array([0.3, 1.1, 0.0])
    tridiagonal = np.diag(diagonal) + np.diag(off[:2], 1) + np.diag(off[:2], -1)
    found = largest_eigenvalue_bound(diagonal, off, 30, 0.1)
    assert found == pytest.approx(np.linalg.eigvalsh(tridiagonal)[-1], rel=1e-14)


def test_a_spectrum_far_below_zero_has_the_bound_of_its_shift():
    limit = 2 * 29 / np.pi / 0.02**2
    found = largest_eigenvalue_bound(np.array([-200.0]), np.array([0.3]), 30, 0.02)
    assert found == pytest.approx(-200 + 0.3 * np.sqrt(limit - 1), rel=1e-14)
