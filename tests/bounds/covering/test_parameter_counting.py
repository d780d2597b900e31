"""Parameter counting: the volume of covers, and overflow of deep costs."""

import math

import jax.numpy as jnp
import numpy as np

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
