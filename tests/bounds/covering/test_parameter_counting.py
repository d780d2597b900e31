"""Parameter counting: the volume of covers, and overflow of deep costs."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from dudley_by_search import least_chain

from attlas.bounds.covering.parameter_counting import parameter_counting_single, parameter_entropy


def test_entropy_by_hand_and_without_overflow():
    p, scale, beta = jnp.array([2.0, 3.0]), jnp.array([1.0, 4.0]), jnp.array([5.0, 1.0])
    wanted = 2 * math.log1p(5 * 5 / (2 * 0.1)) + 3 * math.log1p(4 * 5 / (3 * 0.1))
    np.testing.assert_allclose(parameter_entropy(p, scale, beta, jnp.asarray(0.1)), wanted)
    huge = parameter_entropy(p, scale, beta * 1e300, jnp.asarray(1e-30))
    assert np.isfinite(float(huge))


def test_slow_in_the_norm():
    small, large = (parameter_counting_single(0.5, B, 1.0, 16, 4, 10**6) for B in (1.0, 100.0))
    assert float(small) < float(large) < 1.5 * float(small) < 0.1


@pytest.mark.parametrize(
    ("B", "norm", "B_x", "parameters", "d", "m", "factored"),
    [
        (0.5, 3.0, 0.7, 4, 2, 1e4, False),
        (2.0, 0.1, 2.0, 30, 5, 1e6, False),
        (0.5, 3.0, 0.7, 6, 4, 1e4, True),
        (1.0, 1.0, 3.0, 10_000, 100, 1e3, False),
        (1.0, 0.0, 2.0, 4, 2, 1e4, False),
        (1.0, 1.0, 0.0, 4, 2, 1e4, False),
    ],
)
def test_single_layer_is_the_chain_over_the_cells(B, norm, B_x, parameters, d, m, factored):
    # an entry of M moves a pooled entry by B_x^3; its range is 2 B_M, of two factors twice that
    cells = (2 if factored else 1) * 2 * norm * B_x**3

    def entropy(epsilon):
        signs = math.log(2 * d)
        return signs + sum(math.log((epsilon + cells) / epsilon) for _ in range(parameters))

    found = parameter_counting_single(B, norm, B_x, parameters, d, m, factored)
    np.testing.assert_allclose(found, 2 * B * least_chain(entropy, m, B_x), rtol=1e-11)
