"""The widths do what they promise: a divergence below them forces the directions together."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.julistiono2024_cone import (
    julistiono2024_mu_0,
    julistiono2024_radius,
)
from attlas.core.errors import UserError
from attlas.norms.entrywise import entrywise_norm


def unit(x, p):
    return x / (np.abs(x) ** p).sum(-1, keepdims=True) ** (1 / p)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 4.0])
def test_divergence_below_the_width_forces_the_distance(p):
    rng = np.random.default_rng(0)
    d, delta, A = 3, 0.25, 1.0
    for size in (0.003, 0.03, 0.3, 3.0):
        v = unit(rng.normal(size=(4000, d * d)) ** 3, p)
        w = unit(v + size * rng.normal(size=v.shape) * rng.integers(0, 2, size=v.shape), p)
        divergence = 1 - (np.sign(w) * np.abs(w) ** (p - 1) * v).sum(-1)
        distance = (np.abs(v - w) ** p).sum(-1) ** (1 / p)
        # solved for the width at which delta / (4 A) is the distance found
        reach = 4 * A * distance / delta
        for constants in ("printed", "sharp"):
            width = partial(julistiono2024_mu_0, A=A, p=p, d=d, constants=constants)
            bound = np.asarray(jax.vmap(width)(jnp.asarray(delta * reach)))
            # 1 - <.,.> is known to rounding of its terms
            assert (divergence >= bound - 64e-16).all()


@pytest.mark.parametrize("p", [1.5, 2.0, 2.5, 4.0])
def test_sharp_width_is_not_below_the_printed_one(p):
    sharp = julistiono2024_mu_0(0.2, 3.0, p)
    assert float(sharp) >= float(julistiono2024_mu_0(0.2, 3.0, p, 10, constants="printed"))


def test_sharp_width_has_the_best_scalar_constant():
    """(2 - sqrt 2)/3 at p = 3, where s = 1 + sqrt 2; continuous at p = 2."""
    np.testing.assert_allclose(julistiono2024_mu_0(4.0, 1.0, 3.0), (2 - 2**0.5) / 3)
    near, at = (julistiono2024_mu_0(4.0, 1.0, p) for p in (2 + 1e-6, 2.0))
    np.testing.assert_allclose(near, at, rtol=1e-5)


def test_radius_grows_with_tokens_and_is_never_negative():
    few = julistiono2024_radius(2.0, 0.25, 1.0, 1.0, 0.5, 2)
    many = julistiono2024_radius(2.0, 0.25, 1.0, 1.0, 0.5, 20)
    assert 0 < float(few) < float(many)
    assert float(julistiono2024_radius(2.0, 0.25, 1e-9, 1.0, 0.5, 2)) == 0


def test_formulas_trace_over_the_exponent():
    printed = partial(julistiono2024_mu_0, 0.25, 2.0, d=4, constants="printed")
    values = jax.vmap(lambda p: printed(p=p))(jnp.array([1.5, 3.0]))
    assert float(values[1]) == float(printed(p=3.0))
    assert float(entrywise_norm(values, 2.0)) > 0


def test_what_the_printed_width_needs_is_said_in_one_line():
    with pytest.raises(UserError, match="give d"):
        julistiono2024_mu_0(0.25, 1.0, 3.0, constants="printed")
    with pytest.raises(UserError, match="choose one of printed, sharp"):
        julistiono2024_mu_0(0.25, 1.0, 3.0, 4, constants="loose")
