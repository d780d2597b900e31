"""Dudley's bounds against quadrature, brute minimisation and exact complexities."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dudley_by_search import least_chain, least_integral
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from attlas.bounds.covering.dudley import (
    CONSTANTS,
    LEVELS,
    RATIOS,
    chain_levels,
    dudley_chain,
    dudley_integral,
    entropy_integral,
)


@pytest.mark.parametrize(("A", "D"), [(0.0, 2.0), (3.0, 0.5), (4.0, 0.0)])
def test_entropy_integral_is_the_quadrature(A, D):
    # midpoint rule in log eps: error (h^2 / 24) times the second derivative, h = 1e-4
    edges = np.linspace(math.log(0.01), math.log(2.0), 53_000)
    epsilon = np.exp((edges[1:] + edges[:-1]) / 2)
    value = np.sum(np.sqrt(A + D / epsilon**2) * epsilon) * (edges[1] - edges[0])
    np.testing.assert_allclose(entropy_integral(A, D, 0.01, 2.0), value, rtol=1e-8)


@pytest.mark.parametrize("constants", ["printed", "classical", "sharp"])
@pytest.mark.parametrize("split", [False, True])
def test_delta_is_the_best_of_a_fine_grid(constants, split):
    A, D, R = 5.0, 0.3, 1.5
    for m in (10, 1000, 10**6):
        delta = np.geomspace(1e-6 * R, R, 4001)
        c_1, c_2 = CONSTANTS[constants]
        integral = np.asarray(
            jax.vmap(lambda low: entropy_integral(A, D, low, R, split))(jnp.asarray(delta))
        )
        values = c_1 * delta + c_2 * integral / math.sqrt(m)
        best = float(dudley_integral(A, D, m, R, constants=constants, split=split))
        # the grid is 0.35 % apart and the function is convex: second order in the distance
        assert values.min() * (1 - 1e-4) <= best <= values.min() * (1 + 1e-12)


def test_sharp_constants_make_a_link_least_over_its_cell_of_the_integral():
    # (epsilon_{j-1} + epsilon_j) sqrt(2) over epsilon_j - epsilon_{j+1}, by the ratio of levels
    ratio = np.linspace(2, 3, 10**6)
    links = math.sqrt(2) * (ratio + 1) / (1 - 1 / ratio)
    best = [ratio[np.argmin(links)], links.min()]
    np.testing.assert_allclose(CONSTANTS["sharp"], best, rtol=1e-6)
    assert CONSTANTS["printed"] == (1, 1)
    assert CONSTANTS["classical"] == (4, 12)


@pytest.mark.parametrize(
    ("name", "c_1", "c_2"),
    [("printed", 1, 1), ("classical", 4, 12), ("sharp", 2.41421356237, 8.24264068712)],
)
@pytest.mark.parametrize(
    ("A", "D", "m", "R"),
    [
        (2.0, 0.5, 1e3, 1.5),
        (0.0, 3.0, 1e5, 0.7),
        (7.0, 1e-4, 400, 2.0),
        (900.0, 1.0, 300, 2.0),  # entropies above m: no delta below R is better
        (0.5, 1e4, 300, 2.0),
        (4.0, 0.0, 1e4, 3.0),
        (0.0, 0.0, 10, 2.0),
        (1.0, 2.0, 10, 0.0),
    ],
)
def test_bounds_are_the_least_by_quadrature_and_search(A, D, m, R, name, c_1, c_2):
    root = least_integral(lambda e: math.sqrt(A + D / e**2), m, R, c_1, c_2) if R else 0
    split = least_integral(lambda e: math.sqrt(A) + math.sqrt(D) / e, m, R, c_1, c_2) if R else 0
    found = [dudley_integral(A, D, m, R, constants=name, split=each) for each in (False, True)]
    np.testing.assert_allclose(found, [root, split], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("split", [False, True])
def test_an_integral_with_little_room_beside_its_constant_is_cut_off(split):
    """The square root of m c_1^2 - c_2^2 A, or c_1 m^(1/2) - c_2 A^(1/2), is one half."""
    c_1, c_2 = 1 + 2**0.5, 2**0.5 * (1 + 2**0.5) ** 2
    root_A = (c_1 * 3**0.5 - 0.5 if split else (3 * c_1**2 - 0.25) ** 0.5) / c_2
    D, R = 1e-3, 2.0
    together = lambda e: math.sqrt(root_A**2 + D / e**2)  # noqa: E731
    apart = lambda e: root_A + math.sqrt(D) / e  # noqa: E731
    least = least_integral(apart if split else together, 3, R, c_1, c_2)
    assert least < 0.999 * c_1 * R
    found = float(dudley_integral(root_A**2, D, 3, R, split=split))
    assert found == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(
    ("A", "D", "m", "R"),
    [(0.0, 2.0, 1e4, 1.0), (3.0, 0.1, 500, 4.0), (1.5, 0.0, 1e6, 0.3), (0.0, 1e3, 20, 0.5)],
)
def test_chain_level_by_level(A, D, m, R):
    found = dudley_chain(lambda e: A + D / e**2, m, R)
    np.testing.assert_allclose(found, least_chain(lambda e: A + D / e**2, m, R), rtol=1e-12)


def test_order_of_the_four_bounds():
    for m in (10**3, 10**5, 10**7):
        chain = float(dudley_chain(lambda e: 2 / e**2, m, 1.0))
        sharp, classical = (
            float(dudley_integral(0.0, 2.0, m, 1.0, constants=name))
            for name in ("sharp", "classical")
        )
        assert chain <= min(1.0, sharp) <= sharp < classical
    # 3.591 sqrt 2 per unit of log(R / delta), from the least of (ratio + 1) / log ratio
    slopes = [float(dudley_chain(lambda e: 1 / e**2, m, 1.0)) * math.sqrt(m) for m in (1e10, 1e12)]
    np.testing.assert_allclose((slopes[1] - slopes[0]) / math.log(10), 5.079, rtol=0.03)


def test_finite_class_gives_massart():
    """N(eps) = 2^m everywhere: the chain may not beat, and nearly attains, sqrt(2 log N / m)."""
    A, m = math.log(8.0), 10**5
    value = float(dudley_chain(lambda e: jnp.full_like(e, A), m, 1.0))
    massart = math.sqrt(2 * A / m)
    assert massart <= value <= 1.01 * massart


def test_bounds_hold_for_the_exact_complexity_of_an_l1_ball():
    """Linear functions of an l_1 ball: the supremum is max_j |X^T sigma|_j / m, over all signs."""
    rng = np.random.default_rng(0)
    m, d = 10, 4
    X = rng.uniform(-1, 1, size=(m, d))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=m)))
    exact = float(np.mean(np.max(np.abs(signs @ X), axis=1)) / m)
    radius, two = float(np.abs(X).max()), float(np.sqrt((X**2).sum(1)).max())
    D = two**2 * math.log(2 * d + 1)
    for scale in (1, 10**2, 10**4):
        # the same points repeated: the entropy stays, the exact value falls like the root
        chain = float(dudley_chain(lambda e: D / e**2, m * scale, radius))
        assert exact / math.sqrt(scale) <= chain * (1 + 1e-12)
        assert chain <= radius


def test_bracket_is_the_printed_closed_form_where_delta_is_inside():
    A, D, m, R = math.log(128), 0.02, 10**4, 1.0
    scale = math.sqrt(D / m)
    root = math.sqrt(A / m)
    printed = scale * (1 + math.log(R * (1 - root) / scale)) + R * root
    value = dudley_integral(A, D, m, R, constants="printed", split=True)
    np.testing.assert_allclose(value, printed, rtol=1e-12)


def test_single_precision_is_followed():
    radius = jnp.asarray(1.0, "float32")
    D = jnp.asarray(1.0, "float32")
    assert dudley_chain(lambda e: D / e**2, 1000, radius).dtype == jnp.float32


@pytest.mark.parametrize("constants", ["printed", "classical", "sharp"])
@pytest.mark.parametrize("split", [False, True])
def test_the_least_value_is_that_of_a_search_with_quadrature(constants, split):
    A, D, R, m = 3.0, 0.4, 1.7, 20_000
    c_1, c_2 = CONSTANTS[constants]

    def root(e):
        return math.sqrt(A) + math.sqrt(D) / e if split else math.sqrt(A + D / e**2)

    def value(t):
        return c_1 * math.exp(t) + c_2 * quad(root, math.exp(t), R, epsrel=1e-12)[0] / math.sqrt(m)

    found = minimize_scalar(value, bounds=(-9, math.log(R)), method="bounded")
    best = dudley_integral(A, D, m, R, constants=constants, split=split)
    np.testing.assert_allclose(best, found.fun, rtol=1e-9)
    array = dudley_integral(A, D, jnp.asarray(float(m)), R, constants=constants, split=split)
    np.testing.assert_allclose(array, best, rtol=1e-14)


@pytest.mark.parametrize("split", [False, True])
def test_delta_is_the_radius_where_the_entropy_is_too_large(split):
    for A, D, m in ((4.0, 0.01, 4), (9.0, 0.01, 4), (0.0, 40.0, 4)):
        found = dudley_integral(A, D, m, 1.5, constants="printed", split=split)
        np.testing.assert_allclose(found, 1.5, rtol=1e-15)


def test_the_chain_is_the_least_over_ratios_and_lengths():
    levels = np.asarray(chain_levels(jnp.asarray(1.3)))
    powers = RATIOS[:, None] ** -np.arange(1.0, LEVELS + 1)
    np.testing.assert_allclose(levels, 1.3 * np.maximum(powers, 1e-15), rtol=1e-13)

    def entropy(e):
        return 0.7 + 0.3 / e**1.5

    for m in (3, 40, 5000):
        best = 1.3
        for ratio, row in zip(RATIOS, levels, strict=True):
            total = 0.0
            for j, level in enumerate(row):
                if entropy(level) > m / 2:
                    break
                before = row[j - 1] if j else 1.3
                if before <= 1.4e-15:
                    break
                assert math.isclose(before, ratio * level, rel_tol=1e-12)
                total += (before + level) * math.sqrt(2 * entropy(level) / m)
                best = min(best, level + total)
        np.testing.assert_allclose(dudley_chain(entropy, m, 1.3), best, rtol=1e-12)
    exact = dudley_chain(lambda e: jnp.full_like(e, 6.0), 12, 100.0)
    assert exact == 100
    edge = dudley_chain(lambda e: jnp.where(e < 1, 1e9, 6.0), 12.0, 1.5)
    np.testing.assert_allclose(edge, min(1.5, 1 + 2.5 * 1.0), rtol=1e-14)
