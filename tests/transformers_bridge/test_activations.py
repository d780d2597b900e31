"""Activations by name, against their formulas and against the library's."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from reference_transformers import libraries

from attlas.transformers.activations import ACTIVATIONS, activation

POINTS = np.linspace(-4, 4, 17)
EPS = float(np.finfo(np.float64).eps)


def test_gelu_and_its_approximations_by_formula():
    exact = [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in POINTS]
    inner = math.sqrt(2 / math.pi) * (POINTS + 0.044715 * POINTS**3)
    # A handful of roundings of numbers below 4.
    assert np.abs(activation("gelu")(jnp.asarray(POINTS)) - np.array(exact)).max() <= 40 * EPS
    found = activation("gelu_new")(jnp.asarray(POINTS))
    assert np.abs(found - 0.5 * POINTS * (1 + np.tanh(inner))).max() <= 40 * EPS


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_agrees_with_the_library(name):
    torch, transformers = libraries()
    expected = transformers.activations.ACT2FN[name](torch.tensor(POINTS)).numpy()
    found = np.asarray(activation(name)(jnp.asarray(POINTS)))
    # gelu_fast writes sqrt(2 / pi) with ten digits.
    budget = 4 * 1e-10 if name == "gelu_fast" else 40 * EPS
    assert np.abs(found - expected).max() <= budget
