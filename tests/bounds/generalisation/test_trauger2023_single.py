"""Theorem 4.1: the printed bracket, its sign, and the sharp softmax constant."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
