"""Numbers that are neither NaN nor infinite."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.finite import finite_result, require_finite


@pytest.mark.parametrize("read", [np.asarray, jnp.asarray])
def test_entries_that_are_not_finite_are_counted(read):
    assert require_finite(read([1.0, 2.0]), "x") is None
    with pytest.raises(UserError, match=r"^x has 2 entries that are NaN or infinite"):
        require_finite(read([1.0, np.nan, -np.inf]), "x")


def test_half_precision_and_integers_are_looked_at_as_they_are():
    assert require_finite(np.arange(3), "x") is None
    with pytest.raises(UserError, match="x has 1"):
        require_finite(np.asarray(jnp.array([1.0, jnp.inf], "bfloat16")), "x")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_result_that_overflowed_is_refused(value):
    found = np.array([1.0, 2.0])
    assert finite_result(found, "the kernel", "X") is found
    with pytest.raises(UserError, match=r"^the kernel exceeds the largest float64: scale down X$"):
        finite_result(np.array([1.0, value, 2.0]), "the kernel", "X")
