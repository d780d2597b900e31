"""Theorem 4.1: the printed bracket, its sign, and the sharp softmax constant."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dudley_by_search import least_chain, least_integral

from attlas.bounds.covering.dudley import dudley_integral
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import (
    trauger2023_alpha,
    trauger2023_bracket,
    trauger2023_single,
    trauger2023_softmax_lipschitz,
)


@pytest.mark.parametrize(("norm", "m", "value"), [(10, 300, -0.72), (30, 300, -13.8)])
def test_printed_bracket_is_negative(norm, m, value):
    C = trauger2023_cover("1,1", float(norm), 1.0, 64, 64)
    printed = float(trauger2023_bracket(C, 1.0, 64, m, constants="printed"))
    np.testing.assert_allclose(printed, value, atol=0.06)
    assert float(trauger2023_bracket(C, 1.0, 64, m, constants="corrected")) == 1.0


def test_corrected_bracket_has_the_values_of_the_notes():
    for norm, m, value in [(1, 300, 0.794), (1, 10**4, 0.250), (3, 10**6, 0.0925)]:
        C = trauger2023_cover("1,1", float(norm), 1.0, 64, 64)
        bracket = trauger2023_bracket(C, 1.0, 64, m, constants="corrected")
        np.testing.assert_allclose(bracket, value, rtol=2e-3)


def test_softmax_constant_is_attained_and_never_exceeded():
    rng = np.random.default_rng(0)
    a, b = 3 * rng.normal(size=(2, 200, 5))
    gap = np.abs(np.asarray(jax.nn.softmax(a, -1) - jax.nn.softmax(b, -1))).sum(1)
    reach = np.abs(a - b).max(1)
    assert np.all(gap <= trauger2023_softmax_lipschitz() * reach * (1 + 1e-14))
    small = jnp.array([1e-4, -1e-4])
    # equal weights, opposite moves: tanh(h) against h, relative error h^2 / 3
    ratio = jnp.abs(jax.nn.softmax(small) - 0.5).sum() / 1e-4
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-8)


def test_constants_in_order_and_capped():
    for norm, m in [(0.1, 10**4), (1.0, 10**6), (5.0, 100)]:
        C = trauger2023_cover("1,1", norm, 1.0, 16, 16)
        corrected, sharp = (
            float(trauger2023_single(0.5, C, 1.0, 16, m, constants=constants))
            for constants in ("corrected", "sharp")
        )
        assert sharp <= corrected <= 1.0
        few = float(trauger2023_single(0.5, C, 1.0, 16, m, largest_entry=0.25))
        assert few <= min(sharp, 0.25)


def test_alphas_of_the_corollaries():
    balls = ("1,1", "1,inf", "2,1")
    values = [trauger2023_alpha(ball, 3.0, 8, constants="printed") for ball in balls]
    wanted = [3 * math.sqrt(2 * math.log(129)), 6 * math.sqrt(8 * math.log(17))]
    np.testing.assert_allclose(values, [*wanted, 6 * math.sqrt(2 * math.log(8))])
    C = trauger2023_cover("1,1", 3.0, 0.7, 8, 8)
    alpha = float(trauger2023_alpha("1,1", 3.0, 8, constants="corrected"))
    np.testing.assert_allclose(0.7 * alpha, 2 * np.sqrt(float(C)))


@pytest.mark.parametrize(
    ("ball", "logarithm"),
    # signed unit matrices and the zero; for "1,inf" those of a column, for each of six columns
    [("1,1", math.log(2 * 6 * 6 + 1)), ("1,inf", 6 * math.log(2 * 6 + 1))],
)
def test_alphas_without_their_print(ball, logarithm):
    for constants, kappa in (("corrected", 2), ("sharp", 1)):
        alpha = trauger2023_alpha(ball, 3.0, 6, constants=constants)
        np.testing.assert_allclose(alpha, kappa * 3 * math.sqrt(logarithm), rtol=1e-14)


CLASSES = [  # C, B_x, d, m; the attention is then 2 B_x^2 sqrt(C) / sqrt(m) of 0.02 to 300
    (3.0, 0.8, 4, 1e4),
    (0.5, 3.0, 64, 1e6),
    (20.0, 1.5, 2, 3e5),
    (1e4, 2.0, 8, 500),
]


@pytest.mark.parametrize(("C", "B_x", "d", "m"), CLASSES)
def test_brackets_are_the_least_by_quadrature_and_search(C, B_x, d, m):
    flat, steep = math.sqrt(math.log(2 * d)), 2 * B_x**2 * math.sqrt(C)
    # the printed one integrates the first root up to B_x from 0, and has any delta
    printed = least_integral(lambda e: steep / e, m, B_x, most=1e4) + B_x * flat / math.sqrt(m)
    corrected = least_integral(lambda e: flat + steep / e, m, B_x)
    sharp = least_integral(lambda e: math.hypot(flat, steep / 2 / e), m, B_x)
    for constants, value in (("printed", printed), ("corrected", corrected), ("sharp", sharp)):
        found = trauger2023_bracket(C, B_x, d, m, constants=constants)
        np.testing.assert_allclose(found, value, rtol=1e-9)


@pytest.mark.parametrize(("C", "B_x", "d", "m"), CLASSES)
def test_bounds_of_the_class_are_those_by_search(C, B_x, d, m):
    B, b, flat = 0.7, 0.6 * B_x, math.log(2 * d)

    def root(e):
        return math.sqrt(flat + 4 * B_x**4 * C / e**2)

    link = 2**0.5 * (1 + 2**0.5) ** 2
    corrected = 2 * B * min(B_x, least_integral(root, m, B_x, 1 + 2**0.5, link))
    sharp, few = (
        2 * B * least_chain(lambda e, r=r: flat + (r * B_x) ** 2 * C / e**2, m, r) for r in (B_x, b)
    )
    found = [
        trauger2023_single(B, C, B_x, d, m, constants="corrected"),
        trauger2023_single(B, C, B_x, d, m),
        trauger2023_single(B, C, B_x, d, m, largest_entry=b),
    ]
    np.testing.assert_allclose(found, [corrected, sharp, few], rtol=1e-9)


@pytest.mark.parametrize("constants", ["printed", "corrected", "sharp"])
def test_without_keys_and_queries_the_signs_of_the_entries_remain(constants):
    """C = 0: attention is a mean, and its 2 d signed entries are all there is to cover."""
    m, d, B_x, B = 1e4, 8, 3.0, 0.5
    massart = B_x * math.sqrt(math.log(2 * d) / m)
    bracket = trauger2023_bracket(0.0, B_x, d, m, constants=constants)
    np.testing.assert_allclose(bracket, massart, rtol=1e-9)
    factor = {"printed": 1, "corrected": 2 * 2**0.5 * (1 + 2**0.5) ** 2, "sharp": 2 * 2**0.5}
    found = float(trauger2023_single(B, 0.0, B_x, d, m, constants=constants))
    # the chain ends at the finest level of its grid
    assert factor[constants] * B * massart * (1 - 1e-12) <= found
    assert found <= factor[constants] * B * massart * (1 + 1e-4)
    assert float(trauger2023_single(B, 0.0, 0.0, d, m, constants=constants)) == 0


def test_printed_bound_is_the_bracket_times_the_norms():
    found = trauger2023_single(0.7, 3.0, 0.8, 4, 1e4, constants="printed")
    bracket = trauger2023_bracket(3.0, 0.8, 4, 1e4, constants="printed")
    np.testing.assert_allclose(found, 0.7 * float(bracket), rtol=1e-14)


def test_sharp_bound_stands_above_a_sampled_class():
    """Random members of the class, mean over signs of their best correlation."""
    rng = np.random.default_rng(0)
    m, T, d = 40, 6, 3
    X = rng.normal(size=(m, T, d))
    X /= np.linalg.norm(X, axis=-1).max()
    flat = rng.dirichlet(np.ones(d * d), 3000) * rng.choice([-1, 1], (3000, d * d))
    logits = np.einsum("mtd,cde,me->cmt", X, flat.reshape(-1, d, d), X[:, 0])
    law = np.asarray(jax.nn.softmax(logits, -1))
    features = np.einsum("cmt,mtd->cdm", law, X).reshape(-1, m)
    signs = rng.choice([-1.0, 1.0], (50, m))
    sampled = float(np.mean(np.abs(signs @ features.T).max(1)) / m)
    C = trauger2023_cover("1,1", 1.0, 1.0, d, d)
    bound = float(trauger2023_single(0.5, C, 1.0, d, m))
    assert 0 < sampled < bound
    assert bound <= float(dudley_integral(math.log(2 * d), float(C), m, 1.0))
