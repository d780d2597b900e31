"""Roots by iteration against the ordinary power."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from julistiono2024optimizing.library.token_selection.rational_power import rational_power


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [1 / 3, 4 / 3, 7 / 3, 0.75, 1 / 9, 1.5, 10.0, 0.987])
def test_against_the_power(exponent, dtype):
    info = np.finfo(dtype)
    reach = 25 / max(exponent, 1)
    x = np.geomspace(10.0**-reach, 10.0**reach, 401).astype(dtype)
    expected = x.astype(np.longdouble) ** np.longdouble(exponent)
    found = np.asarray(rational_power(jnp.asarray(x), exponent))
    assert found.dtype == dtype
    # At most two roots and nine products; the exponent's own rounding counts log(x) ~ 58 times.
    error = np.abs(found / expected - 1)
    assert np.max(error) <= (32 if dtype == np.float32 else 96) * info.eps


@pytest.mark.parametrize("exponent", [3 / 5, 3 / 7, 5 / 8, 11 / 12, 5 / 16, 7 / 18, 41.0, 1e-12])
def test_other_fractions_are_ordinary_powers(exponent):
    x = jnp.geomspace(0.1, 10.0, 7)
    np.testing.assert_allclose(rational_power(x, exponent), x**exponent, rtol=1e-13)
    assert " pow " in str(jax.make_jaxpr(lambda x: rational_power(x, exponent))(x))
    assert rational_power(jnp.zeros(1), exponent)[0] == 0


@pytest.mark.parametrize(
    ("exponent", "roots"),
    [(3.0, 0), (1.5, 1), (2 / 3, 0), (0.75, 2), (7 / 6, 1), (10 / 9, 0), (40.0, 0), (20 / 3, 0)],
)
def test_simple_fractions_need_no_power(exponent, roots):
    """An exponential and a logarithm per entry cost ten times as much as the roots."""
    program = str(jax.make_jaxpr(lambda x: rational_power(x, exponent))(jnp.ones(3)))
    assert " pow " not in program
    assert program.count(" sqrt ") == roots


def test_zero_and_the_smallest_numbers():
    tiny = np.finfo(np.float64).tiny
    x = jnp.array([0.0, tiny / 4, tiny, 1.0, np.finfo(np.float64).max])
    found = rational_power(x, 1 / 3)
    assert found[0] == found[1] == 0
    # The power's exponent is rounded: eps / 6 times |log x| = 708.
    assert jnp.allclose(found[2:] / x[2:] ** (1 / 3), 1, rtol=512 * np.finfo(np.float64).eps)


@pytest.mark.parametrize("exponent", [0.0, -1.0, float("inf"), float("nan")])
def test_other_exponents_are_refused(exponent):
    with pytest.raises(UserError, match="not positive and finite"):
        rational_power(jnp.ones(2), exponent)
