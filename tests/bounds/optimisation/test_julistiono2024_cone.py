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


@pytest.mark.parametrize(
    ("delta", "A", "p", "d", "width"),
    [
        # delta (p - 1) / (4 A d^(1/3)) = 1 / 64 at d = 8, and delta / (8 A) = 1 / 64, 1 / 40.
        (0.25, 1.0, 1.5, 8, 2 / 3 / 64**2),
        (0.25, 2.0, 2.0, 3, 1 / 2 / 64**2),
        (0.25, 2.0, 3.0, 3, 1 / 3 / 64**3),
        (0.1, 0.5, 4.0, 7, 1 / 4 / 40**4),
    ],
)
def test_printed_width_has_the_values_by_hand(delta, A, p, d, width):
    found = julistiono2024_mu_0(delta, A, p, d, constants="printed")
    np.testing.assert_allclose(found, width, rtol=1e-14)


@pytest.mark.parametrize("p", [1.1, 1.5, 1.9, 2.0, 2.3, 3.0, 4.7, 8.0])
def test_sharp_width_is_the_least_divergence_over_the_distance(p):
    # For p > 2 that of numbers x and y = 1, by search; for p <= 2 that of (1/2) ||.||_p^2, at
    # (1, 1) and a step along (1, -1) that tends to zero.
    if p > 2:
        s = np.linspace(0.5, 9, 400_001)
        least = np.min((s**p - 1 + p * (s + 1)) / (p * (1 + s) ** p))
    else:
        h = 1e-3
        before, after = 2 ** (2 / p), ((1 + h) ** p + (1 - h) ** p) ** (2 / p)
        least = (after - before) / 2 / (h**2 * before)
    found = julistiono2024_mu_0(0.2, 1.5, p)
    np.testing.assert_allclose(found, least * (0.2 / 6) ** max(p, 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "radius"),
    [
        # ||W|| / delta log(T^2 Gamma A / gap): log(16), log(9/2) and log(64).
        ((2.0, 0.25, 1.0, 1.0, 0.25, 2), 8 * 4 * np.log(2)),
        ((0.5, 0.1, 0.5, 2.0, 2.0, 3), 5 * np.log(4.5)),
        ((3.0, 0.2, 2.0, 0.5, 1.0, 8), 15 * 6 * np.log(2)),
    ],
)
def test_radius_has_the_values_by_hand(sizes, radius):
    np.testing.assert_allclose(julistiono2024_radius(*sizes), radius, rtol=1e-14)
