"""Every loss: derivative against autodiff, slope in logarithms, Assumption A."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.losses.margin_loss import margin_loss

EPS = np.finfo(np.float64).eps


@pytest.mark.parametrize("name", ["correlation", "exponential", "logistic"])
def test_derivative_and_log_slope(name):
    loss = margin_loss(name)
    u = jnp.array([-30.0, -1.0, 0.0, 0.5, 30.0])
    slope = loss.derivative(u)
    assert jnp.allclose(jax.vmap(jax.grad(loss.value))(u), slope, rtol=8 * EPS, atol=0)
    # exp turns the rounding of an exponent of 30 into a relative one of 30 eps.
    assert jnp.allclose(-jnp.exp(loss.log_slope(u)), slope, rtol=64 * EPS, atol=0)
    assert jnp.all(slope < 0)


def test_nothing_overflows():
    assert margin_loss("logistic").value(jnp.array([-1e4, 1e4])).tolist() == [1e4, 0.0]
