"""Arguments that can be seen are checked, traced ones pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.optim.arguments import exponent_of_each_leaf, nonnegative, number


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3), jnp.array(3.0)])
def test_numbers_of_all_kinds_become_floats(value):
    found = number(value, "p")
    assert type(found) is float
    assert found == 3


@pytest.mark.parametrize("value", ["3", None, True, 1j, np.True_, np.array("3"), jnp.array(True)])
def test_what_is_no_real_number_is_refused(value):
    with pytest.raises(UserError, match="is not a number"):
        number(value, "p")


def test_traced_numbers_pass():
    assert jax.jit(lambda x: nonnegative(x, "eps"))(-1.0) == -1
    assert jax.vmap(lambda x: number(x, "eps"))(jnp.arange(3)).tolist() == [0, 1, 2]


def test_one_exponent_per_leaf_where_some_leaves_are_missing():
    params = {"v": jnp.ones(2), "W": [None, jnp.ones(3)]}
    assert exponent_of_each_leaf(2.0, params) == {"v": 2.0, "W": [None, 2.0]}
    assert exponent_of_each_leaf({"v": 2.0, "W": 3.0}, params) == {"v": 2.0, "W": [None, 3.0]}
    with pytest.raises(UserError, match="prefix"):
        exponent_of_each_leaf({"v": 2.0}, params)
