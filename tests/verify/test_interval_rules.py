"""Programs on intervals enclose what JAX computes at points inside."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.verify import intervals as iv
from attlas.verify.interval_rules import applied, as_interval, contraction, evaluated
from attlas.verify.intervals import Interval

RNG = np.random.default_rng(0)


def sides(x):
    """Sums, products, a choice and a contraction."""
    return jnp.where(x > 0.5, x**2, jnp.tanh(x)) @ x + jnp.cumsum(x)[-1] / (1 + jnp.exp(x[0]))


def test_a_program_encloses_its_values():
    with jax.enable_x64(True):
        program = jax.make_jaxpr(sides)(jnp.ones(3))
        low = RNG.uniform(-1, 1, size=3)
        box = Interval(low, low + 0.3)
        (enclosure,) = evaluated(program.jaxpr, program.consts, [box], applied)
        for _ in range(50):
            value = float(sides(jnp.asarray(RNG.uniform(box.low, box.high))))
            assert (
                as_interval(enclosure).low - 1e-12 <= value <= as_interval(enclosure).high + 1e-12
            )


def test_a_contraction_takes_another_arithmetic():
    numbers = {"dimension_numbers": (((1,), (0,)), ((), ()))}
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    enclosure = contraction(numbers, iv.exact(a), iv.exact(b), iv.subtract)
    assert (enclosure.low <= -a @ b + 1e-12).all()
    assert (enclosure.high >= -a @ b - 1e-12).all()
