from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import entropy_integral
from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.optimisation.deora2023_training import Setting, deora2023_head_condition
from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import liu2021_regions


@pytest.mark.parametrize("kind", [float, int, np.float32, np.array, np.int8, jnp.asarray])
def test_numbers_of_any_kind_are_float64_under_the_narrow_default(kind):
    with jax.enable_x64(False):
        found = entropy_integral(kind(4), 0, 1, 3)
        assert found.dtype == jnp.float64
        assert found == 4
        assert jnp.asarray(1.0).dtype == jnp.float32


def test_an_integer_that_jax_cannot_hold_counts_as_a_real_number():
    assert entropy_integral(10**20, 0, 1, 3) == entropy_integral(1e20, 0, 1, 3)
    with pytest.raises(UserError, match=r"^A is beyond the largest float: give a smaller number$"):
        entropy_integral(10**400, 0, 1, 3)


def test_float32_of_jax_is_followed():
    assert entropy_integral(jnp.float32(4), 0, 1, 3).dtype == jnp.float32


def test_lists_are_float64_under_the_narrow_default():
    with jax.enable_x64(False):
        resolution, _ = trauger2023_allocation([1.0, 2.0], [1, 2])
        assert resolution.dtype == jnp.float64


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a", "A has dtype <U1: give real numbers"),
        (True, "A has dtype bool: give real numbers"),
        (float("nan"), "A is NaN: give a number"),
        ([1.0, 2.0], "A has shape (2,): give one number, and use jax.vmap for many"),
    ],
)
def test_what_is_no_number_is_one_line(value, said):
    with pytest.raises(UserError) as caught:
        entropy_integral(value, 0, 1, 3)
    assert str(caught.value) == said


def test_whole_numbers_stay_whole_and_others_are_refused():
    assert liu2021_regions(np.array(3), 1.0) == liu2021_regions(3, 1)
    with pytest.raises(UserError, match=r"^n1 = 2.5: give a whole number$"):
        liu2021_regions(2.5, 1)


def test_axes_of_one_name_have_one_size():
    with pytest.raises(UserError, match=r"^beta has shape \(3,\): give \[n\] with n = 2"):
        trauger2023_allocation([1.0, 2.0], [1.0, 2.0, 3.0])


def test_fields_are_read_and_named():
    assert deora2023_head_condition(Setting(2, 2, np.array(1.0), 1, 1)) > 0
    with pytest.raises(UserError, match=r"^setting\.R has dtype <U1"):
        deora2023_head_condition(Setting(2, 2, "a", 1, 1))
    with pytest.raises(UserError, match=r"^setting is a tuple: give a Setting$"):
        deora2023_head_condition((2, 2, 1, 1, 1))


def test_within_vmap_the_program_is_that_of_the_formula():
    bare = entropy_integral.__wrapped__
    numbers = jnp.arange(1.0, 4.0)
    door, formula = (
        str(jax.make_jaxpr(jax.vmap(partial(f, D=1.0, lower=1.0, upper=3.0)))(numbers))
        for f in (entropy_integral, bare)
    )
    assert door == formula


def test_not_a_number_is_no_probability():
    with pytest.raises(UserError, match=r"^delta is NaN"):
        generalisation_gap(0.1, 100, float("nan"))


def test_numbers_within_a_program_that_is_traced_pass():
    @closed_form
    def quotient(x: float) -> jax.Array:
        return outside / x

    def program(y):
        nonlocal outside
        outside = y
        return quotient(2.0)

    outside = jnp.zeros(())
    assert float(jax.jit(program)(3.0)) == 1.5
    outside = jnp.zeros(())
    with pytest.raises(UserError, match="quotient is not defined there"):
        quotient(0.0)
