import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from attlas.core.errors import UserError
from gu2024exploring.library.data.noise_schedule import make_noise_schedule, require_times

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("ends", [(1.5, 1.5), (0.1, 20.0), (3.0, 0.5)])
def test_the_integral_is_that_of_the_rate(ends):
    schedule = make_noise_schedule(*ends, T=2.0)
    for t in (0.0, 0.3, 2.0):
        # The trapezoidal rule is exact for a linear rate.
        nodes = np.linspace(0, t, 3)
        exact = integrate.trapezoid(np.asarray(schedule.rate(jnp.asarray(nodes))), nodes)
        found = schedule.integral(jnp.asarray(t))
        assert abs(float(found) - exact) <= 16 * EPS * (1 + exact)
    assert float(schedule.rate(jnp.asarray(0.0))) == ends[0]
    assert abs(float(schedule.rate(jnp.asarray(2.0))) - ends[1]) <= 4 * EPS * sum(ends)


def test_decay_and_variance_fit_together_also_at_tiny_times():
    schedule = make_noise_schedule(0.1, 20.0, T=1.0)
    t = jnp.array([1e-14, 1e-6, 0.5, 1.0])
    beta, variance = schedule.decay(t), schedule.variance(t)
    np.testing.assert_allclose(beta**2 + variance, 1, rtol=0, atol=4 * EPS)
    # 1 - beta^2 = g(0) t + O(t^2): a subtraction would have lost every digit here.
    assert abs(float(variance[0]) / 1e-15 - 1) < 1e-12


def test_the_decay_solves_its_differential_equation():
    schedule = make_noise_schedule(0.1, 20.0, T=1.0)
    for t in jnp.array([0.0, 0.4, 1.0]):
        slope = jax.grad(schedule.decay)(t)
        assert abs(float(slope + schedule.rate(t) / 2 * schedule.decay(t))) <= 64 * EPS


def test_score_and_mean_are_inverse_to_each_other():
    schedule = make_noise_schedule(1.0, 2.0, T=1.0)
    t, x, mean = jnp.asarray(0.3), jnp.array([1.0, -2.0]), jnp.array([0.5, 3.0])
    back = schedule.mean_of_score(t, x, schedule.score_of_mean(t, x, mean))
    np.testing.assert_allclose(back, mean, rtol=0, atol=64 * EPS)


def test_times_outside_and_bad_rates_are_refused():
    schedule = make_noise_schedule(1.0, T=2.0)
    require_times(schedule, np.array([0.5, 2.0]), 0.5)
    for t, T0, said in (
        (0.4, 0.5, r"time 0.4 is outside \[0.5, 2.0\]"),
        (jnp.array([1.0, 2.1]), 0.5, "time 2.1"),
        (float("nan"), 0.5, "time nan"),
        (1.0, 2.0, "T0 = 2.0"),
        (1.0, -0.1, "T0 = -0.1"),
    ):
        with pytest.raises(UserError, match=said):
            require_times(schedule, t, T0)
    for numbers in ((0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("inf"))):
        with pytest.raises(UserError, match="not positive and finite"):
            make_noise_schedule(numbers[0], numbers[1], T=numbers[2])
